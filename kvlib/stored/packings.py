"""How many bytes one linear map takes under each quantisation method, with its scales, zero points and bookkeeping.

Read in transformers 5.24 (`integrations`, `quantizers`) and held against the tensors that auto_gptq 0.7.1, bitsandbytes
0.50 and compressed-tensors 0.20 write.
"""

from collections.abc import Callable, Mapping

from kvlib.stored.compressed_tensors import compressed_tensors
from kvlib.stored.options import bits_of, choice, flag, group_size, in_block, left_alone, names, pair, unknown
from kvlib.stored.packing import FP16, FP32, INT32, Packing, ceil_div, n_groups


def _fp8(config: Mapping) -> Packing:
    """One byte per value, and a scale per block of `weight_block_size`, or per tensor where there are no blocks."""
    static = FP32 * (choice(config, "activation_scheme", "dynamic", "dynamic", "static") == "static")
    skipped = names(config, "modules_to_not_convert", "ignored_layers")
    if config.get("weight_block_size") is None:
        return Packing(lambda out, into: out * into + FP32 + static, skipped)
    rows, columns = pair("weight_block_size", config["weight_block_size"])
    scale = 1 if config.get("scale_fmt") == "ue8m0" else FP32
    return Packing(lambda out, into: out * into + scale * ceil_div(out, rows) * ceil_div(into, columns) + static, skipped)


def _fp8_rows(config: Mapping) -> Packing:
    """FBGEMM: one byte per value and a scale per row."""
    return Packing(lambda out, into: out * into + FP32 * out, names(config, "modules_to_not_convert"))


def _mxfp4(config: Mapping) -> Packing:
    """Half a byte per value and one scale byte for every 32 along the input; only the experts."""
    return Packing(lambda out, into: out * into // 2 + out * ceil_div(into, 32), names(config, "modules_to_not_convert"),
                   only_experts=True)  # fmt: skip


def _gptq(config: Mapping) -> Packing:
    """Values and zero points packed into int32, fp16 scales per group, and the group of every input (g_idx)."""
    for key in ("checkpoint_format", "format"):
        choice(config, key, "gptq", "gptq", "gptq_v2")
    choice(config, "is_marlin_format", False, False)
    bits, group, head = bits_of(config), group_size(config), flag(config, "lm_head")

    def matrix(out: int, into: int) -> int:
        groups = n_groups(into, group)
        return INT32 * (ceil_div(into * bits, 32) * out + groups * ceil_div(out * bits, 32) + into) + FP16 * groups * out

    only = in_block(config)  # of a block, to which the head does not belong
    return Packing(matrix, left_alone(config), only and (*only, *["lm_head"] * head), head_too=head)


def _awq(config: Mapping) -> Packing:
    """Values and zero points packed into int32 and fp16 scales per group."""
    for key in ("version", "checkpoint_format", "format"):
        choice(config, key, "gemm", "gemm", "GEMM")
    bits, group = bits_of(config, config.get("w_bit", 4)), group_size(config)

    def matrix(out: int, into: int) -> int:
        groups = n_groups(into, group)
        return INT32 * (into + groups) * ceil_div(out * bits, 32) + FP16 * groups * out

    return Packing(matrix, left_alone(config))


def _bitsandbytes(config: Mapping) -> Packing:
    """8 bits: a scale per row and a byte that names the layout. 4 bits: a scale per 64 values, itself quantised per 256
    where `bnb_4bit_use_double_quant` says so, and the code books; the short text that describes each map is not counted."""
    skipped = names(config, "llm_int8_skip_modules")
    eight = flag(config, "load_in_8bit")
    if eight == flag(config, "load_in_4bit"):
        raise unknown(f"load_in_8bit and load_in_4bit are both {str(eight).lower()}; exactly one must be true")
    if eight:
        return Packing(lambda out, into: out * into + FP32 * out + 1, skipped)
    double = flag(config, "bnb_4bit_use_double_quant")

    def matrix(out: int, into: int) -> int:
        blocks = ceil_div(out * into, 64)
        scales = blocks + FP32 * (ceil_div(blocks, 256) + 256) if double else FP32 * blocks
        return ceil_div(out * into, 2) + scales + FP32 * 16

    return Packing(matrix, skipped)


METHODS: dict[str, Callable[[Mapping], Packing]] = {
    "fp8": _fp8, "fbgemm_fp8": _fp8_rows, "mxfp4": _mxfp4, "gptq": _gptq, "awq": _awq, "bitsandbytes": _bitsandbytes,
    "compressed-tensors": compressed_tensors,
}  # fmt: skip
"""By `quant_method`: the packing that a quantization_config stands for."""
