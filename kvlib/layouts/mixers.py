"""The tensors of layers that keep a recurrent state instead of keys and values, one function per kind.

Each takes the fields of the config and the layer, and returns the tensors of that layer.
"""

from kvlib.config.fields import Fields
from kvlib.layouts.blocks import linear, norm
from kvlib.layouts.facts import first
from kvlib.spec import Layer, Weight

PART = "recurrent"


def _vector(name: str, *shape: int) -> list[Weight]:
    return [Weight(name, PART, shape)]


def _conv(name: str, channels: int, kernel: int, bias: bool = False) -> list[Weight]:
    """A depthwise convolution over time."""
    return _vector(name, channels, 1, kernel) + (_vector(f"{name}.bias", channels) if bias else [])


def mamba(fields: Fields, _layer: Layer) -> list[Weight]:
    """Mamba-1: an input-dependent state space of N values per channel; dt goes through a low rank R."""
    hidden = fields.integer("hidden_size")
    return _mamba(fields, hidden, fields.optional("intermediate_size") or fields.integer("mamba_expand") * hidden)


def mamba_normed(fields: Fields, _layer: Layer) -> list[Weight]:
    """Mamba-1 whose dt, B and C are normalised (Jamba); intermediate_size is there the feed-forward block's."""
    hidden = fields.integer("hidden_size")
    widths = _dt_rank(fields, hidden), *(fields.integer("mamba_d_state"),) * 2
    norms = [w for x, width in zip(["dt", "b", "c"], widths, strict=True) for w in norm(f"{x}_norm", width, part=PART)]
    return _mamba(fields, hidden, fields.integer("mamba_expand") * hidden) + norms


def _mamba(fields: Fields, hidden: int, inner: int) -> list[Weight]:
    n_state, kernel, rank = fields.integer("mamba_d_state"), fields.integer("mamba_d_conv"), _dt_rank(fields, hidden)
    bias = fields.flag(first(fields, "use_bias", "mamba_proj_bias"), default=False)
    return [
        *linear("in_proj", PART, 2 * inner, hidden, bias),
        *_conv("conv1d", inner, kernel, fields.flag(first(fields, "use_conv_bias", "mamba_conv_bias"), default=True)),
        *linear("x_proj", PART, rank + 2 * n_state, inner),
        *linear("dt_proj", PART, inner, rank, bias=True),
        *_vector("A_log", inner, n_state),
        *_vector("D", inner),
        *linear("out_proj", PART, hidden, inner, bias),
    ]


def _dt_rank(fields: Fields, hidden: int) -> int:
    """One sixteenth of the hidden size where the config leaves it open."""
    name = first(fields, "mamba_dt_rank", "time_step_rank")
    return -(-hidden // 16) if fields.get(name) in (None, "auto") else fields.integer(name)


def mamba2(fields: Fields, _layer: Layer) -> list[Weight]:
    """Mamba-2: H heads of P channels that share one decay each; B and C in G groups of N values; a norm before the output."""
    return _mamba2(fields, normed=True)


def mamba2_with_norm_if_said(fields: Fields, _layer: Layer) -> list[Weight]:
    """Mamba-2 that has its norm only where the config says so (Falcon-H1)."""
    return _mamba2(fields, normed=fields.flag("mamba_rms_norm", default=False))


def _mamba2(fields: Fields, normed: bool) -> list[Weight]:
    hidden, n_heads = fields.integer("hidden_size"), fields.integer("mamba_n_heads")
    inner = mamba2_inner(fields, hidden, n_heads)
    groups, n_state, kernel = (fields.integer(f"mamba_{x}") for x in ("n_groups", "d_state", "d_conv"))
    mixed = inner + 2 * groups * n_state
    bias = fields.flag(first(fields, "use_bias", "mamba_proj_bias", "add_bias_linear"), default=False)
    out_bias = fields.flag("projectors_bias", default=bias)
    return [
        *linear("in_proj", PART, inner + mixed + n_heads, hidden, bias),
        *_conv("conv1d", mixed, kernel, fields.flag(first(fields, "use_conv_bias", "mamba_conv_bias"), default=True)),
        *_vector("dt_bias", n_heads),
        *_vector("A_log", n_heads),
        *_vector("D", n_heads),
        *(norm("norm", inner, part=PART) if normed else []),
        *linear("out_proj", PART, hidden, inner, out_bias),
    ]


def mamba2_inner(fields: Fields, hidden: int, n_heads: int) -> int:
    """H · P where the config gives P, else a multiple of the hidden size."""
    if fields.get("mamba_d_ssm") is not None:
        return fields.integer("mamba_d_ssm")
    if fields.get("mamba_d_head") in (None, "auto"):
        return fields.integer("mamba_expand") * hidden
    return n_heads * fields.integer("mamba_d_head")


def gated_delta_net(fields: Fields, _layer: Layer) -> list[Weight]:
    """Gated DeltaNet: q and k of H_k heads, v and its gate of H_v heads, two numbers per value head that steer decay."""
    hidden, n_values = fields.integer("hidden_size"), fields.integer("linear_num_value_heads")
    keys = fields.integer("linear_num_key_heads") * fields.integer("linear_key_head_dim")
    v_dim = fields.integer("linear_value_head_dim")
    values = n_values * v_dim
    return [
        *linear("qkvz_proj", PART, 2 * keys + 2 * values, hidden),
        *linear("ba_proj", PART, 2 * n_values, hidden),
        *_conv("conv1d", 2 * keys + values, fields.integer("linear_conv_kernel_dim")),
        *_vector("dt_bias", n_values),
        *_vector("A_log", n_values),
        *norm("norm", v_dim, part=PART),
        *linear("out_proj", PART, hidden, values),
    ]


def kimi_delta(fields: Fields, _layer: Layer) -> list[Weight]:
    """Kimi Delta Attention: a decay per channel and an output gate, each through a low rank of one head's width."""
    hidden, n_heads = fields.integer("hidden_size"), fields.integer("linear_num_heads")
    dim = fields.integer("linear_head_dim")
    inner = n_heads * dim
    return [
        *linear("qkv_proj", PART, 3 * inner, hidden),
        *_conv("conv1d", 3 * inner, fields.integer("linear_conv_kernel_dim")),
        *_vector("dt_bias", inner),
        *_vector("A_log", n_heads),
        *(w for x in ("decay", "gate") for w in linear(f"{x}_a", PART, dim, hidden) + linear(f"{x}_b", PART, inner, dim)),
        *linear("b_proj", PART, n_heads, hidden),
        *norm("o_norm", dim, part=PART),
        *linear("o_proj", PART, hidden, inner),
    ]


def lightning(fields: Fields, _layer: Layer) -> list[Weight]:
    """Lightning attention (MiniMax-01): linear attention with as many heads as the softmax layers have query heads."""
    hidden, n_heads = fields.integer("hidden_size"), fields.integer("num_attention_heads")
    inner = n_heads * (fields.optional("head_dim") or hidden // n_heads)
    return [
        *linear("qkv_proj", PART, 3 * inner, hidden),
        *linear("output_gate", PART, inner, hidden),
        *norm("norm", inner, part=PART),
        *linear("out_proj", PART, hidden, inner),
    ]


def short_conv(fields: Fields, _layer: Layer) -> list[Weight]:
    """A gated convolution over the last few tokens (LFM2)."""
    hidden, bias = fields.integer("hidden_size"), fields.flag("conv_bias", default=False)
    return [
        *linear("in_proj", PART, 3 * hidden, hidden, bias),
        *_conv("conv", hidden, fields.integer("conv_L_cache"), bias),
        *linear("out_proj", PART, hidden, hidden, bias),
    ]


def rg_lru(fields: Fields, _layer: Layer) -> list[Weight]:
    """The real-gated linear recurrent unit (Griffin): block-diagonal gates, one block per head."""
    hidden, n_heads = fields.integer("hidden_size"), fields.integer("num_attention_heads")
    width = fields.optional("lru_width") or hidden
    block = width // n_heads
    return [
        *(w for x in "yx" for w in linear(f"linear_{x}", PART, width, hidden, bias=True)),
        *linear("linear_out", PART, hidden, width, bias=True),
        *_conv("conv_1d", width, fields.integer("conv1d_width"), bias=True),
        *_vector("recurrent_param", width),
        *(w for x in ("input", "recurrent") for w in _vector(f"{x}_gate", n_heads, block, block)),
        *(w for x in ("input", "recurrent") for w in _vector(f"{x}_gate.bias", n_heads, block)),
    ]
