"""The state of a recurrent layer: its size is the same after one token and after a million.

A layer keeps the last taps of a short convolution, of the model's dtype, and usually a matrix of its own dtype. A
convolution of k taps needs the last k − 1 inputs; engines may keep one more. Each row of `STATES` reads one kind of
layer from the fields that only that kind has.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kvlib import dtypes
from kvlib.errors import SpecError
from kvlib.families import Family
from kvlib.fields import Fields


@dataclass(frozen=True, slots=True)
class State:
    """Values that a recurrent layer keeps per sequence. taps: of the convolution, over `channels`. matrix: the rest."""

    channels: int = 0
    taps: int = 1
    matrix: int = 0


def state_bytes(fields: Fields, family: Family) -> int:
    """Bytes per sequence of one recurrent layer.

    Raises SpecError when no row of `STATES` knows the layer, or a field of it is absent.
    """
    if fields.get("mamba_n_heads") is None:
        family.needs(fields, "mamba_n_heads")
    state = next((read(fields) for has, read in STATES if fields.get(has) is not None), None)
    if state is None and family.state_heads:
        state = State(matrix=_square_heads(fields))
    if state is None:
        raise SpecError(f"{fields.where}: a layer is recurrent and no field says what state it keeps; kvlib looks for "
                        f"{', '.join(has for has, _ in STATES)}; describe the layers yourself with ModelSpec")  # fmt: skip
    model_dtype = fields.text("dtype") or "bf16"
    matrix_dtype = fields.text("mamba_ssm_dtype") or family.state_dtype or model_dtype
    return (dtypes.nbytes(state.channels * (state.taps - 1), model_dtype)
            + dtypes.nbytes(state.matrix, matrix_dtype))  # fmt: skip


def _gated_delta_net(fields: Fields) -> State:
    """Qwen3-Next and others: a convolution over q, k and v, and one key × value matrix per value head."""
    k_dim, v_dim = fields.integer("linear_key_head_dim"), fields.integer("linear_value_head_dim")
    k_heads, v_heads = fields.integer("linear_num_key_heads"), fields.integer("linear_num_value_heads")
    return State(2 * k_heads * k_dim + v_heads * v_dim, fields.integer("linear_conv_kernel_dim"), v_heads * k_dim * v_dim)


def _kimi_delta(fields: Fields) -> State:
    """Kimi Linear: the same with one number of heads and one width for q, k and v."""
    heads, width = fields.integer("linear_num_heads"), fields.integer("linear_head_dim")
    return State(3 * heads * width, fields.integer("linear_conv_kernel_dim"), heads * width * width)


def _mamba_2(fields: Fields) -> State:
    """Mamba-2 (SSD): a convolution over x, B and C, and one width × state matrix per head."""
    fields.key("mamba_expand")  # says the same as heads · width
    heads, width, state = (fields.integer(f"mamba_{x}") for x in ("n_heads", "d_head", "d_state"))
    channels = heads * width + 2 * fields.integer("mamba_n_groups") * state
    return State(channels, fields.integer("mamba_d_conv"), heads * width * state)


def _mamba_1(fields: Fields) -> State:
    """Mamba: a convolution over the inner width, and a state vector per channel."""
    inner = fields.optional("mamba_d_inner") or fields.integer("mamba_expand") * fields.integer("hidden_size")
    return State(inner, fields.integer("mamba_d_conv"), inner * fields.integer("mamba_d_state"))


def _short_convolution(fields: Fields) -> State:
    """LFM2: a gated convolution over the hidden size, and nothing else."""
    return State(fields.integer("hidden_size"), fields.integer("conv_L_cache"))


def _rg_lru(fields: Fields) -> State:
    """RecurrentGemma (Griffin): a convolution and a vector over the width of the recurrence."""
    width = fields.integer("lru_width")
    return State(width, fields.integer("conv1d_width"), width)


def _square_heads(fields: Fields) -> int:
    """Lightning attention (MiniMax-01): one key × value matrix per query head, no convolution."""
    heads = fields.integer("num_attention_heads")
    width = fields.optional("head_dim", minimum=0) or fields.integer("hidden_size") // heads
    return heads * width * width


STATES: tuple[tuple[str, Callable[[Fields], State]], ...] = (
    ("linear_num_value_heads", _gated_delta_net),
    ("linear_num_heads", _kimi_delta),
    ("mamba_n_heads", _mamba_2),
    ("mamba_d_head", _mamba_2),
    ("mamba_d_state", _mamba_1),
    ("conv_L_cache", _short_convolution),
    ("lru_width", _rg_lru),
)
