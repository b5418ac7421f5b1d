"""The state of a recurrent layer: its size is the same after one token and after a million.

A layer keeps the last taps of a short convolution, of the model's dtype, and usually a matrix of its own dtype. A
convolution of k taps needs the last k − 1 inputs; engines may keep one more. Each row of `STATES` reads one kind of
layer from the fields that only that kind has.
"""

from collections.abc import Callable
from dataclasses import replace

from kvlib.config.families import Family
from kvlib.config.fields import Fields
from kvlib.dtypes import dtype_name
from kvlib.errors import SpecError
from kvlib.spec import StatePart


def state_parts(fields: Fields, family: Family) -> tuple[StatePart, ...]:
    """What one recurrent layer keeps per sequence.

    Raises SpecError when no row of `STATES` knows the layer, or a field of it is absent.
    """
    if fields.get("mamba_n_heads") is None:
        family.needs(fields, "mamba_n_heads")
    parts = next((read(fields) for has, read in STATES if fields.get(has) is not None), None)
    if parts is None and family.state_heads:
        parts = _lightning(fields)
    if parts is None:
        raise SpecError(f"{fields.where}: a layer is recurrent and no field says what state it keeps; kvlib looks for "
                        f"{', '.join(has for has, _ in STATES)}; describe the layers yourself with ModelSpec")  # fmt: skip
    model_dtype = fields.text("dtype") or "bf16"
    matrix_dtype = fields.text("mamba_ssm_dtype") or family.state_dtype or model_dtype
    return tuple(replace(part, dtype=dtype_name(model_dtype), matrix_dtype=dtype_name(matrix_dtype)) for part in parts)


def _gated_delta_net(fields: Fields) -> tuple[StatePart, ...]:
    """Qwen3-Next and others: a convolution over q, k and v, and one key × value matrix per value head."""
    k_dim, v_dim = fields.integer("linear_key_head_dim"), fields.integer("linear_value_head_dim")
    k_heads, v_heads = fields.integer("linear_num_key_heads"), fields.integer("linear_num_value_heads")
    taps = fields.integer("linear_conv_kernel_dim")
    return StatePart(k_heads, 2 * k_dim, taps), StatePart(v_heads, v_dim, taps, k_dim * v_dim)


def _kimi_delta(fields: Fields) -> tuple[StatePart, ...]:
    """Kimi Linear: the same with one number of heads and one width for q, k and v."""
    heads, width = fields.integer("linear_num_heads"), fields.integer("linear_head_dim")
    return (StatePart(heads, 3 * width, fields.integer("linear_conv_kernel_dim"), width * width),)


def _mamba_2(fields: Fields) -> tuple[StatePart, ...]:
    """Mamba-2 (SSD): a convolution over x per head and over B and C per group, and one width × state matrix per head."""
    fields.key("mamba_expand")  # says the same as heads · width
    heads, width, state = (fields.integer(f"mamba_{x}") for x in ("n_heads", "d_head", "d_state"))
    taps = fields.integer("mamba_d_conv")
    return StatePart(heads, width, taps, width * state), StatePart(fields.integer("mamba_n_groups"), 2 * state, taps)


def _mamba_1(fields: Fields) -> tuple[StatePart, ...]:
    """Mamba: a convolution over the inner width, and a state vector per channel."""
    inner = fields.optional("mamba_d_inner") or fields.integer("mamba_expand") * fields.integer("hidden_size")
    return (StatePart(inner, 1, fields.integer("mamba_d_conv"), fields.integer("mamba_d_state")),)


def _short_convolution(fields: Fields) -> tuple[StatePart, ...]:
    """LFM2: a gated convolution over the hidden size, and nothing else."""
    return (StatePart(fields.integer("hidden_size"), 1, fields.integer("conv_L_cache")),)


def _rg_lru(fields: Fields) -> tuple[StatePart, ...]:
    """RecurrentGemma (Griffin): a convolution and a vector over the width of the recurrence."""
    return (StatePart(fields.integer("lru_width"), 1, fields.integer("conv1d_width"), 1),)


def _lightning(fields: Fields) -> tuple[StatePart, ...]:
    """Lightning attention (MiniMax-01): one key × value matrix per query head, no convolution."""
    heads = fields.integer("num_attention_heads")
    width = fields.optional("head_dim", minimum=0) or fields.integer("hidden_size") // heads
    return (StatePart(heads, matrix=width * width),)


STATES: tuple[tuple[str, Callable[[Fields], tuple[StatePart, ...]]], ...] = (
    ("linear_num_value_heads", _gated_delta_net),
    ("linear_num_heads", _kimi_delta),
    ("mamba_n_heads", _mamba_2),
    ("mamba_d_head", _mamba_2),
    ("mamba_d_state", _mamba_1),
    ("conv_L_cache", _short_convolution),
    ("lru_width", _rg_lru),
)
