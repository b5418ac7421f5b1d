"""The method compressed-tensors, whose groups say what is packed and how. Held against what release 0.20 writes."""

from collections.abc import Mapping

from kvlib.errors import SpecError, short
from kvlib.stored.options import choice, inner, integer, names, pair, unknown
from kvlib.stored.packing import FP16, FP32, INT32, INT64, Bytes, Packing, ceil_div


def compressed_tensors(config: Mapping) -> Packing:
    """The formats of compressed-tensors: one scale per tensor, row, block or group, of 16 bits unless the values have 4.

    pack-quantized also keeps the shape, and zero points where it is not symmetric; nvfp4 an fp8 scale per group and one
    fp32 scale per tensor, of the activations too where they are quantised; mxfp4 a scale byte per group.
    """
    groups = config.get("config_groups") or {}
    if not isinstance(groups, Mapping) or not all(isinstance(g, Mapping) for g in groups.values()):
        raise SpecError(f"quantization_config.config_groups is {short(groups)}; expected an object of groups")
    groups = list(groups.values())
    if len({repr((g.get("weights"), g.get("input_activations"))) for g in groups}) != 1:
        raise unknown(f"config_groups has {len(groups)} groups; kvlib reads one, or several that are alike")
    weights, activations = inner(groups[0], "weights"), inner(groups[0], "input_activations")
    form = choice(config, "format", None, "pack-quantized", "float-quantized", "int-quantized", "naive-quantized",
                  "nvfp4-pack-quantized", "mxfp4-pack-quantized")  # fmt: skip
    strategy = choice(weights, "strategy", "tensor", "tensor", "channel", "group", "tensor_group", "block")
    symmetric, bits = choice(weights, "symmetric", True, True, False), integer(weights, "num_bits")
    if form in ("float-quantized", "int-quantized", "naive-quantized") and (bits != 8 or not symmetric):
        raise unknown(f"format is {form} with num_bits = {bits} and symmetric = {symmetric}, which kvlib does not know")
    for key in ("sparsity_config", "transform_config"):
        if config.get(key) and not (isinstance(config[key], Mapping) and config[key].get("format") == "dense"):
            raise unknown(f"{key} may change what is stored, and kvlib does not read it")
    n_scales = _scales(weights, strategy)

    def matrix(out: int, into: int) -> int:
        scales = n_scales(out, into)
        if form == "mxfp4-pack-quantized":
            return out * into // 2 + scales
        if form == "nvfp4-pack-quantized":
            return out * into // 2 + scales + FP32 * (1 + bool(activations))
        if form == "pack-quantized":
            zeros = 0 if symmetric else INT32 * ceil_div(out * bits, 32) * (scales // out)
            return INT32 * out * ceil_div(into * bits, 32) + FP16 * scales + zeros + 2 * INT64
        return out * into + FP16 * (scales + (activations.get("dynamic") is False))

    return Packing(matrix, names(config, "ignore"), _targets(groups), head_too=True)


def _targets(groups: list[Mapping]) -> tuple[str, ...]:
    """The modules that the groups name; none where one of them takes every linear map."""
    targets = tuple(target for group in groups for target in names(group, "targets"))
    if other := next((t for t in targets if not (t == "Linear" or t.startswith("re:") or "layers." in t)), None):
        raise unknown(f"config_groups has the target {short(other)}; kvlib knows 'Linear', names of modules and re:…")
    return () if "Linear" in targets else targets


def _scales(weights: Mapping, strategy: object) -> Bytes:
    """How many scales a linear map has."""
    if strategy in ("tensor", "channel"):
        return lambda out, into: out if strategy == "channel" else 1
    if strategy == "block":
        rows, columns = pair("block_structure", weights.get("block_structure"))
    else:
        rows, columns = 1, integer(weights, "group_size")
    return lambda out, into: ceil_div(out, rows) * ceil_div(into, columns)
