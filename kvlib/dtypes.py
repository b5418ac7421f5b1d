"""How many bits one stored value takes.

Plain storage: block scales and zero points are not counted here. A name, an alias, or a torch dtype
(read by its text, so that nothing here imports torch) gives the bits.
"""

from kvlib.errors import SpecError

BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4}

ALIASES = {
    "float32": "fp32", "float": "fp32", "f32": "fp32",
    "bfloat16": "bf16", "float16": "fp16", "half": "fp16", "f16": "fp16",
    "float8_e4m3fn": "fp8", "float8_e5m2": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8",
}  # fmt: skip


def dtype_name(dtype: object) -> str:
    """The canonical name of `dtype`: a key of `BITS`. Raises SpecError for an unknown one."""
    text = str(dtype).removeprefix("torch.").lower()
    name = ALIASES.get(text, text)
    if name not in BITS:
        raise SpecError(f"dtype is {dtype!r}; expected one of {', '.join(BITS)} or an alias of one")
    return name


def bits(dtype: object) -> int:
    """Bits per stored value: 16 for "bf16". Raises SpecError for an unknown dtype."""
    return BITS[dtype_name(dtype)]


def nbytes(n_values: int, dtype: object) -> int:
    """Whole bytes that `n_values` take in `dtype`; half a byte left over is rounded up."""
    return -(-n_values * bits(dtype) // 8)
