"""The tensors of one attention block and of one feed-forward block.

Shapes are (out, in), as torch.nn.Linear stores them. Whether a checkpoint fuses q, k and v, or gate and up, into one
tensor does not change what they hold, so they stand apart here.
"""

from kvlib.config.fields import Fields
from kvlib.errors import SpecError, short
from kvlib.layouts.facts import Experts, Layout, Uncounted, first, number, on, size, stated
from kvlib.spec import Layer, Weight

N_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "ffn_config.moe_num_experts")
TOP_K = (
    "num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_topk", "moe_k", "top_k_experts",
    "ffn_config.moe_top_k",
)  # fmt: skip
N_SHARED = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")


def linear(name: str, part: str, out: int, into: int, bias: bool = False, count: int = 1,
           active: int | None = None) -> list[Weight]:  # fmt: skip
    """A linear map, with its bias where it has one; `count` equal ones of which a token uses `active`."""
    weight = [Weight(name, part, (out, into), count, active)]
    return [*weight, Weight(f"{name}.bias", part, (out,), count, active)] if bias else weight


def norm(name: str, width: int, bias: bool = False, part: str = "norm") -> list[Weight]:
    """The scale of a norm, and its shift where it has one."""
    scale = [Weight(name, part, (width,))]
    return [*scale, Weight(f"{name}.bias", part, (width,))] if bias else scale


def attention(fields: Fields, layout: Layout, layer: Layer, kind: str) -> list[Weight]:
    """Attention with heads of its own. A layer that reads another's cache has no k and v to project."""
    hidden, n_heads = fields.integer("hidden_size"), fields.integer("num_attention_heads")
    queries, keys, values = n_heads * layer.k_dim, layer.n_kv_heads * layer.k_dim, layer.n_kv_heads * layer.v_dim
    attended = n_heads * layer.v_dim
    bias, own = on(fields, layout.qkv_bias), layer.shared_with is None
    weights = linear("q_proj", "attention", queries, hidden, bias)
    if own:
        weights += linear("k_proj", "attention", keys, hidden, bias)
        if not (kind == "full_attention" and on(fields, layout.key_is_value)):
            weights += linear("v_proj", "attention", values, hidden, bias)
    weights += linear("o_proj", "attention", hidden, attended, on(fields, layout.o_bias))
    if layout.qk_norm and on(fields, layout.qk_norm_when):
        full = layout.qk_norm == "full"
        shift = on(fields, layout.qk_norm_bias)
        weights += norm("q_norm", queries if full else layer.k_dim, shift, "attention")
        weights += norm("k_norm", keys if full else layer.k_dim, shift, "attention") if own else []
    if layout.q_gate and on(fields, layout.q_gate_when):
        width = n_heads if layout.q_gate == "head" else attended
        weights += linear("gate", "attention", width, hidden, bias and layout.q_gate == "query")
    if on(fields, layout.sinks) or (layout.sinks_if_sliding and kind == "sliding_attention"):
        weights += [Weight("sinks", "attention", (n_heads,))]
    return weights


def latent_attention(fields: Fields, layout: Layout) -> list[Weight]:
    """Multi-head latent attention (DeepSeek-V2, section 2.1): q and kv each go through a low-rank bottleneck."""
    hidden, n_heads = fields.integer("hidden_size"), fields.integer("num_attention_heads")
    kv_rank, rope = fields.integer("kv_lora_rank"), fields.integer("qk_rope_head_dim")
    nope, v_dim = fields.integer("qk_nope_head_dim"), fields.integer("v_head_dim")
    q_rank, bias = stated(fields, "q_lora_rank"), on(fields, layout.qkv_bias)
    q_out = n_heads * (nope + rope)
    if q_rank is None:
        weights = linear("q_proj", "attention", q_out, hidden)
    else:
        weights = linear("q_a_proj", "attention", q_rank, hidden, bias) + norm("q_a_norm", q_rank, part="attention")
        weights += linear("q_b_proj", "attention", q_out, q_rank)
    weights += linear("kv_a_proj", "attention", kv_rank + rope, hidden, bias) + norm("kv_a_norm", kv_rank, part="attention")
    weights += linear("kv_b_proj", "attention", n_heads * (nope + v_dim), kv_rank)
    weights += linear("o_proj", "attention", hidden, n_heads * v_dim, on(fields, layout.o_bias))
    return weights + (_indexer(fields, hidden, q_rank) if layout.indexer else [])


def _indexer(fields: Fields, hidden: int, q_rank: int | None) -> list[Weight]:
    """The lightning indexer of DeepSeek-V3.2: narrow heads that pick the tokens which attention then reads."""
    n_heads, width = fields.integer("index_n_heads"), fields.integer("index_head_dim")
    return [
        *linear("indexer.q_proj", "attention", n_heads * width, q_rank or hidden),
        *linear("indexer.k_proj", "attention", width, hidden),
        *norm("indexer.k_norm", width, bias=True, part="attention"),
        *linear("indexer.head_weights", "attention", n_heads, hidden),
    ]


def feed_forward(name: str, inner: int, hidden: int, *, gated: bool = True, bias: bool = False, count: int = 1,
                 active: int | None = None, part: str = "feed-forward") -> list[Weight]:  # fmt: skip
    """Up and down, and between them a gate (SwiGLU, GeGLU) in most models."""
    gate = linear(f"{name}.gate_proj", part, inner, hidden, bias, count, active) if gated else []
    return [
        *gate,
        *linear(f"{name}.up_proj", part, inner, hidden, bias, count, active),
        *linear(f"{name}.down_proj", part, hidden, inner, bias, count, active),
    ]


def experts(fields: Fields, layout: Layout) -> list[Weight]:
    """A router, its experts, and the experts that every token uses."""
    moe, hidden = layout.experts, fields.integer("hidden_size")
    n_experts, width = number(fields, *N_EXPERTS), size(fields, moe.width)
    top_k = number(fields, *TOP_K)
    inside = fields.optional(moe.latent) if moe.latent else None
    weights = linear("router", "feed-forward", n_experts, hidden, on(fields, moe.router_bias))
    weights += feed_forward("experts", width, inside or hidden, gated=layout.gated, bias=on(fields, moe.bias),
                            count=n_experts, active=min(top_k, n_experts), part="experts")  # fmt: skip
    if moe.correction:
        weights += [Weight("router.correction", "feed-forward", (n_experts,))]
    if inside:
        weights += linear("latent_in", "feed-forward", inside, hidden) + linear("latent_out", "feed-forward", hidden, inside)
    return weights + _shared(fields, layout, moe, width, hidden)


def _shared(fields: Fields, layout: Layout, moe: Experts, width: int, hidden: int) -> list[Weight]:
    if moe.shared_width:
        inner = size(fields, moe.shared_width, minimum=0)
    else:
        inner = width * (stated(fields, *N_SHARED, minimum=0) or 0) if moe.shared else 0
    if not inner:
        return []
    gate = linear("shared_gate", "feed-forward", 1, hidden) if moe.shared_gate else []
    return feed_forward("shared_experts", inner, hidden, gated=layout.gated, bias=on(fields, layout.mlp_bias)) + gate


def sparse_layers(fields: Fields, layout: Layout, n_layers: int) -> list[bool]:
    """Which layers have experts instead of one feed-forward block; a list with an entry per layer overrides every rule."""
    moe = layout.experts
    if moe is None:
        return [False] * n_layers
    if (kinds := fields.listed("mlp_layer_types", n_layers)) is not None:
        return _one_of(fields, "mlp_layer_types", kinds, "dense", "sparse")
    if isinstance(fields.get("moe_layer_freq"), list | tuple):
        return _one_of(fields, "moe_layer_freq", fields.listed("moe_layer_freq", n_layers), 0, 1)
    if moe.where == "first dense":
        n_dense = fields.integer(first(fields, "first_k_dense_replace", "num_dense_layers"), minimum=0)
        return [i >= n_dense for i in range(n_layers)]
    if moe.where == "named":
        names = fields.get("hybrid_override_pattern") or fields.listed("layers_block_type", n_layers) or [""] * n_layers
        return [name in ("E", "moe") for name in names]
    if moe.where == "step":
        if moe.needs_list and fields.get("mlp_only_layers") is None:
            raise Uncounted(f"{fields.where}: mlp_only_layers is absent and this model_type has a default of its own; add it")
        only, step = fields.listed("mlp_only_layers") or [], fields.optional("decoder_sparse_step") or 1
        return [i not in only and (i + 1) % step == 0 for i in range(n_layers)]
    if moe.where == "period":
        period, offset = fields.integer("expert_layer_period"), fields.integer("expert_layer_offset", minimum=0)
        return [i % period == offset for i in range(n_layers)]
    if moe.where == "range":
        start, end = fields.integer("moe_layer_start_index", minimum=0), fields.integer("moe_layer_end_index", minimum=-1)
        step, end = fields.integer("moe_layer_interval"), n_layers - 1 if end == -1 else end
        return [start <= i <= end and (i + 1) % step == 0 for i in range(n_layers)]
    if moe.where == "interleaved":
        chosen, step = fields.indices("moe_layers", n_layers), fields.optional("interleave_moe_layer_step") or 1
        return [i in chosen if chosen is not None else (i + 1) % step == 0 for i in range(n_layers)]
    return [True] * n_layers


def _one_of(fields: Fields, name: str, values: list, no: object, yes: object) -> list[bool]:
    """Which entries of a list are `yes`. Raises SpecError for one that is neither."""
    if unknown := [value for value in values if value not in (no, yes)]:
        raise SpecError(f"{fields.where}: {name} has the entry {short(unknown[0])}; expected {no!r} or {yes!r}")
    return [value == yes for value in values]
