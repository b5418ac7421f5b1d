"""How many bytes one linear map takes under each quantisation method, with its scales, zero points and bookkeeping.

Read in transformers 5.24 (`integrations`, `quantizers`) and held against the tensors that auto_gptq 0.7.1, bitsandbytes
0.50 and compressed-tensors 0.20 write.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kvlib.errors import SpecError, whole

Bytes = Callable[[int, int], int]
"""Bytes of one linear map from its (out, in)."""

FP32, FP16, INT32, INT64 = 4, 2, 4, 8


@dataclass(frozen=True, slots=True)
class Packing:
    """How a method stores one linear map, which modules it leaves alone, and whether it packs only the experts."""

    matrix: Bytes
    skipped: tuple[str, ...] = ()
    only_experts: bool = False
    head_too: bool = False


def _ceil(n: int, block: int) -> int:
    return -(-n // block)


def _names(config: Mapping, *keys: str) -> tuple[str, ...]:
    """The lists of modules that stay as they are, under whatever names the method keeps them."""
    for key in keys:
        if not (config.get(key) is None or (isinstance(config[key], list | tuple) and all(isinstance(x, str) for x in config[key]))):
            raise SpecError(f"quantization_config.{key} is {config[key]!r}; expected a list of names of modules")
    return tuple(name for key in keys for name in config.get(key) or ())


def _pair(name: str, value: object) -> tuple[int, int]:
    """The rows and columns of one block."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise SpecError(f"quantization_config.{name} is {value!r}; expected two whole numbers, such as [128, 128]")
    return whole(f"quantization_config.{name}", value[0]), whole(f"quantization_config.{name}", value[1])


def _group_size(config: Mapping) -> int:
    size = _whole(config, "group_size", config.get("q_group_size", 128), minimum=-1)
    return size if size else _whole(config, "group_size")


def _groups(into: int, size: int) -> int:
    """Groups along the input; -1 is one for all of it."""
    return 1 if size == -1 else _ceil(into, size)


def _choice(config: Mapping, key: str, default: object, *known: object) -> object:
    value = config.get(key, default)
    if value not in known:
        raise SpecError(f"quantization_config.{key} is {value!r}; kvlib knows {', '.join(map(repr, known))}")
    return value


def _whole(config: Mapping, key: str, default: object = None, minimum: int = 1) -> int:
    return whole(f"quantization_config.{key}", config.get(key, default), minimum)


def _fp8(config: Mapping) -> Packing:
    """One byte per value, and a scale per block of `weight_block_size`, or per tensor where there are no blocks."""
    static = FP32 * (_choice(config, "activation_scheme", "dynamic", "dynamic", "static") == "static")
    skipped = _names(config, "modules_to_not_convert", "ignored_layers")
    if config.get("weight_block_size") is None:
        return Packing(lambda out, into: out * into + FP32 + static, skipped)
    rows, columns = _pair("weight_block_size", config["weight_block_size"])
    scale = 1 if config.get("scale_fmt") == "ue8m0" else FP32
    return Packing(lambda out, into: out * into + scale * _ceil(out, rows) * _ceil(into, columns) + static, skipped)


def _fp8_rows(config: Mapping) -> Packing:
    """FBGEMM: one byte per value and a scale per row."""
    return Packing(lambda out, into: out * into + FP32 * out, _names(config, "modules_to_not_convert"))


def _mxfp4(config: Mapping) -> Packing:
    """Half a byte per value and one scale byte for every 32 along the input; only the experts."""
    return Packing(lambda out, into: out * into // 2 + out * _ceil(into, 32), _names(config, "modules_to_not_convert"), True)


def _gptq(config: Mapping) -> Packing:
    """Values and zero points packed into int32, fp16 scales per group, and the group of every input (g_idx)."""
    bits, group = _whole(config, "bits"), _group_size(config)

    def matrix(out: int, into: int) -> int:
        groups = _groups(into, group)
        return INT32 * (_ceil(into * bits, 32) * out + groups * _ceil(out * bits, 32) + into) + FP16 * groups * out

    return Packing(matrix, _names(config, "modules_to_not_convert"), head_too=bool(config.get("lm_head")))


def _awq(config: Mapping) -> Packing:
    """Values and zero points packed into int32 and fp16 scales per group."""
    _choice(config, "version", "gemm", "gemm", "GEMM")
    bits, group = _whole(config, "bits", config.get("w_bit", 4)), _group_size(config)

    def matrix(out: int, into: int) -> int:
        groups = _groups(into, group)
        return INT32 * (into + groups) * _ceil(out * bits, 32) + FP16 * groups * out

    return Packing(matrix, _names(config, "modules_to_not_convert"))


def _bitsandbytes(config: Mapping) -> Packing:
    """8 bits: a scale per row and a byte that names the layout. 4 bits: a scale per 64 values, itself quantised per 256
    where `bnb_4bit_use_double_quant` says so, and the code books; the short text that describes each map is not counted."""
    skipped = _names(config, "llm_int8_skip_modules")
    if config.get("load_in_8bit"):
        return Packing(lambda out, into: out * into + FP32 * out + 1, skipped)
    double = bool(config.get("bnb_4bit_use_double_quant"))

    def matrix(out: int, into: int) -> int:
        blocks = _ceil(out * into, 64)
        scales = blocks + FP32 * (_ceil(blocks, 256) + 256) if double else FP32 * blocks
        return _ceil(out * into, 2) + scales + FP32 * 16

    return Packing(matrix, skipped)


def _compressed_tensors(config: Mapping) -> Packing:
    """The formats of compressed-tensors: one scale per tensor, row, block or group, of 16 bits unless the values have 4.

    pack-quantized also keeps the shape, and zero points where it is not symmetric; nvfp4 an fp8 scale per group and one
    fp32 scale per tensor, of the activations too where they are quantised; mxfp4 a scale byte per group.
    """
    groups = config.get("config_groups") or {}
    if not isinstance(groups, Mapping) or not all(isinstance(g, Mapping) for g in groups.values()):
        raise SpecError(f"quantization_config.config_groups is {groups!r}; expected an object of groups")
    groups = list(groups.values())
    if len({repr((g.get("weights"), g.get("input_activations"))) for g in groups}) != 1:
        raise SpecError(f"quantization_config.config_groups has {len(groups)} groups; kvlib reads one, or several that are alike")
    weights, activations = groups[0].get("weights") or {}, groups[0].get("input_activations") or {}
    form = _choice(config, "format", None, "pack-quantized", "float-quantized", "int-quantized", "naive-quantized",
                   "nvfp4-pack-quantized", "mxfp4-pack-quantized")  # fmt: skip
    strategy = _choice(weights, "strategy", "tensor", "tensor", "channel", "group", "tensor_group", "block")
    symmetric, bits = _choice(weights, "symmetric", True, True, False), _whole(weights, "num_bits")
    if form in ("float-quantized", "int-quantized", "naive-quantized") and (bits != 8 or not symmetric):
        raise SpecError(f"quantization_config: {form} with num_bits = {bits} and symmetric = {symmetric} is not known to kvlib")
    n_scales = _scales(weights, strategy)

    def matrix(out: int, into: int) -> int:
        scales = n_scales(out, into)
        if form == "mxfp4-pack-quantized":
            return out * into // 2 + scales
        if form == "nvfp4-pack-quantized":
            return out * into // 2 + scales + FP32 * (1 + bool(activations))
        if form == "pack-quantized":
            zeros = 0 if symmetric else INT32 * _ceil(out * bits, 32) * (scales // out)
            return INT32 * out * _ceil(into * bits, 32) + FP16 * scales + zeros + 2 * INT64
        return out * into + FP16 * (scales + (activations.get("dynamic") is False))

    return Packing(matrix, _names(config, "ignore"), head_too=True)


def _scales(weights: Mapping, strategy: object) -> Bytes:
    """How many scales a linear map has."""
    if strategy in ("tensor", "channel"):
        return lambda out, into: out if strategy == "channel" else 1
    if strategy == "block":
        rows, columns = _pair("block_structure", weights.get("block_structure"))
    else:
        rows, columns = 1, _whole(weights, "group_size")
    return lambda out, into: _ceil(out, rows) * _ceil(into, columns)


METHODS: dict[str, Callable[[Mapping], Packing]] = {
    "fp8": _fp8, "fbgemm_fp8": _fp8_rows, "mxfp4": _mxfp4, "gptq": _gptq, "awq": _awq, "bitsandbytes": _bitsandbytes,
    "compressed-tensors": _compressed_tensors,
}  # fmt: skip
"""By `quant_method`: the packing that a quantization_config stands for."""
