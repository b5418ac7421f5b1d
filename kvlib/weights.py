"""The weight tensors of a decoder, piece by piece, from the fields of its config.

Shapes are (out, in), as torch.nn.Linear stores them. The sum of their sizes is the parameter count.
"""

from kvlib.families import Family
from kvlib.fields import Fields
from kvlib.spec import Layer, Weight


def decoder_weights(fields: Fields, family: Family, layer: Layer, n_layers: int, n_heads: int) -> tuple[Weight, ...]:
    """Every weight tensor of the model. The widths of K and V come from `layer`; latent attention has its own shapes.

    Raises SpecError naming a field that is absent or malformed.
    """
    hidden, vocab = fields.integer("hidden_size"), fields.integer("vocab_size")
    embedding = Weight("embed_tokens", "embedding", (vocab, hidden))
    head = Weight("lm_head", "head", (vocab, hidden))
    tied = fields.flag("tie_word_embeddings", default=family.tied)
    if layer.latent:
        attention = _latent_attention(fields, n_layers, n_heads, hidden)
    else:
        attention = _attention(fields, family, layer, n_layers, n_heads, hidden)
    norms = (
        Weight("layer norms", "norm", (hidden,), n_layers * family.norms),
        Weight("norm", "norm", (hidden,)),
    )
    return (embedding, *attention, *_feed_forward(fields, family, n_layers, hidden), *norms, *(() if tied else (head,)))


def _linear(name: str, part: str, out: int, into: int, count: int, bias: bool = False) -> tuple[Weight, ...]:
    weight = Weight(name, part, (out, into), count)
    return (weight, Weight(f"{name}.bias", part, (out,), count)) if bias else (weight,)


def _attention(fields: Fields, family: Family, layer: Layer, n_layers: int, n_heads: int,
               hidden: int) -> tuple[Weight, ...]:  # fmt: skip
    says = fields.flag("attention_bias", default=family.attention_bias)
    qkv = says if family.qkv_bias is None else family.qkv_bias
    out = says if family.o_bias is None else family.o_bias
    head_dim = layer.k_dim
    queries, keys = n_heads * head_dim, layer.n_kv_heads * head_dim
    extra = []
    if family.qk_norm:
        extra += [Weight(f"{x}_norm", "attention", (head_dim,), n_layers) for x in "qk"]
    if family.sinks:
        extra += [Weight("sinks", "attention", (n_heads,), n_layers)]
    return (
        *_linear("q_proj", "attention", queries, hidden, n_layers, qkv),
        *_linear("k_proj", "attention", keys, hidden, n_layers, qkv),
        *_linear("v_proj", "attention", keys, hidden, n_layers, qkv),
        *_linear("o_proj", "attention", hidden, queries, n_layers, out),
        *extra,
    )


def _latent_attention(fields: Fields, n_layers: int, n_heads: int, hidden: int) -> tuple[Weight, ...]:
    """Multi-head latent attention (DeepSeek-V2, section 2.1): q and kv each go through a low-rank bottleneck."""
    kv_rank, rope = fields.integer("kv_lora_rank"), fields.integer("qk_rope_head_dim")
    nope, v_dim = fields.integer("qk_nope_head_dim"), fields.integer("v_head_dim")
    bias = fields.flag("attention_bias", default=False)
    q_out = n_heads * (nope + rope)
    if fields.get("q_lora_rank") is None:
        query = _linear("q_proj", "attention", q_out, hidden, n_layers)
    else:
        q_rank = fields.integer("q_lora_rank")
        query = (
            *_linear("q_a_proj", "attention", q_rank, hidden, n_layers, bias),
            Weight("q_a_layernorm", "attention", (q_rank,), n_layers),
            *_linear("q_b_proj", "attention", q_out, q_rank, n_layers),
        )
    return (
        *query,
        *_linear("kv_a_proj", "attention", kv_rank + rope, hidden, n_layers, bias),
        Weight("kv_a_layernorm", "attention", (kv_rank,), n_layers),
        *_linear("kv_b_proj", "attention", n_heads * (nope + v_dim), kv_rank, n_layers),
        *_linear("o_proj", "attention", hidden, n_heads * v_dim, n_layers, bias),
    )


def _feed_forward(fields: Fields, family: Family, n_layers: int, hidden: int) -> tuple[Weight, ...]:
    inner = fields.integer("intermediate_size")
    if family.experts == "fused":
        n_experts = fields.integer("num_local_experts")
        return (
            *_linear("router", "feed-forward", n_experts, hidden, n_layers, bias=True),
            *_linear("experts.gate_up_proj", "experts", 2 * inner, hidden, n_layers * n_experts, bias=True),
            *_linear("experts.down_proj", "experts", hidden, inner, n_layers * n_experts, bias=True),
        )
    if family.experts == "separate":
        n_dense = min(fields.integer("first_k_dense_replace", minimum=0), n_layers)
        n_moe, n_experts = n_layers - n_dense, fields.integer("n_routed_experts")
        width = fields.integer("moe_intermediate_size")
        shared = width * fields.integer("n_shared_experts")
        return (
            *_gated("mlp", inner, hidden, n_dense),
            Weight("router", "feed-forward", (n_experts, hidden), n_moe),
            *_gated("experts", width, hidden, n_moe * n_experts, part="experts"),
            *_gated("shared_experts", shared, hidden, n_moe),
        )
    bias = family.mlp_bias and fields.flag("mlp_bias", default=False)
    return _gated("mlp", inner, hidden, n_layers, bias=bias)


def _gated(name: str, inner: int, hidden: int, count: int, bias: bool = False,
           part: str = "feed-forward") -> tuple[Weight, ...]:  # fmt: skip
    """The three matrices of a gated feed-forward block (SwiGLU, GeGLU)."""
    return (
        *_linear(f"{name}.gate_proj", part, inner, hidden, count, bias),
        *_linear(f"{name}.up_proj", part, inner, hidden, count, bias),
        *_linear(f"{name}.down_proj", part, hidden, inner, count, bias),
    )
