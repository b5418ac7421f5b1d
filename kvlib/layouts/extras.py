"""Tensors that only one or two families have, and sizes that their classes compute by a rule.

An extra takes the fields of the config and all layers, and returns its tensors for the whole model.
"""

from collections.abc import Callable

from kvlib.errors import SpecError
from kvlib.fields import Fields
from kvlib.layouts.blocks import experts, feed_forward, linear, norm
from kvlib.layouts.facts import Experts, Layout, first, stated
from kvlib.spec import Layer, Weight


def parallel_norms(fields: Fields) -> int:
    """Attention and feed-forward side by side share one norm, or have one each where the config says so (Falcon)."""
    if not fields.flag("parallel_attn", default=True):
        return 2
    newer, given = fields.flag("new_decoder_architecture", default=False), fields.optional("num_ln_in_parallel_attn")
    return 2 if given == 2 or (newer and given is None) else 1


def one_norm_if_parallel(fields: Fields) -> int:
    """Attention and feed-forward side by side share one norm (StableLM)."""
    return 1 if fields.flag("use_parallel_residual", default=False) else 2


def post_norms(fields: Fields) -> int:
    """Norms after each block too, unless the config says otherwise (HyperCLOVA X)."""
    return 4 if fields.flag("use_post_norm", default=True) else 2


def affine_norms(fields: Fields) -> int:
    """Norms without any weight, where the config says so (OPT)."""
    return 2 if fields.flag("layer_norm_elementwise_affine", default=True) else 0


def norm_at_the_end(fields: Fields) -> bool:
    """Only layers that normalise before each block need a norm after the last (OPT)."""
    removed = fields.flag("_remove_final_layer_norm", default=False)
    return bool(affine_norms(fields)) and fields.flag("do_layer_norm_before", default=True) and not removed


def times_hidden(*names: str) -> Callable[[Fields], int]:
    """A rule for an inner width: the field of one of `names`, or four times the hidden size where it is absent."""

    def width(fields: Fields) -> int:
        return (fields.optional(first(fields, *names)) if names else None) or 4 * fields.integer("hidden_size")

    return width


def multiple_of_hidden(fields: Fields) -> int:
    """An inner width given as a multiple of the hidden size."""
    return (fields.optional("intermediate_multiple_size") or 4) * fields.integer("hidden_size")


def half_width(fields: Fields) -> int:
    """The config counts gate and up together."""
    return fields.integer("intermediate_size") // 2


def adjusted_width(fields: Fields) -> int:
    """Two thirds of the config's width, times a factor, rounded up to a multiple (LFM2)."""
    width = fields.integer(first(fields, "intermediate_size", "block_ff_dim"))
    if not fields.flag("block_auto_adjust_ff_dim", default=True):
        return width
    factor = fields.get("block_ffn_dim_multiplier")
    width = int((1 if factor is None else factor) * int(2 * width / 3))
    multiple = fields.optional("block_multiple_of") or 256
    return -(-width // multiple) * multiple


def sandwich_norms(fields: Fields) -> int:
    """Norms after each block too, unless the config says otherwise (LFM3)."""
    return 4 if fields.flag("use_sandwich_norm", default=True) else 2


def shared_or_dense(fields: Fields) -> int:
    """The experts that every token uses; none of them stands for one as wide as a dense block (Hunyuan 3)."""
    width = fields.integer("moe_intermediate_size") * fields.integer("num_shared_experts", minimum=0)
    return width or fields.integer("intermediate_size")


def norms_around_experts(fields: Fields) -> int:
    """Four norms, and three more where experts work beside the feed-forward block (Gemma 4)."""
    return 7 if fields.flag("enable_moe_block", default=False) else 4


def experts_beside(fields: Fields, layers: tuple[Layer, ...]) -> list[Weight]:
    """Experts beside the feed-forward block of every layer, and a router with scales of its own (Gemma 4)."""
    if not fields.flag("enable_moe_block", default=False):
        return []
    n_experts, hidden, n = fields.integer("num_experts"), fields.integer("hidden_size"), len(layers)
    return [
        *experts(fields, Layout(experts=Experts())) * n,
        Weight("router.scale", "feed-forward", (hidden,), n),
        Weight("router.per_expert_scale", "feed-forward", (n_experts,), n),
    ]


def double_width(fields: Fields, layers: tuple[Layer, ...]) -> list[Weight]:
    """Layers that read another's keys have a feed-forward block twice as wide where the config says so (Gemma 4)."""
    if not fields.flag("use_double_wide_mlp", default=False):
        return []
    n_shared = sum(layer.shared_with is not None for layer in layers)
    inner, hidden = fields.integer("intermediate_size"), fields.integer("hidden_size")
    return feed_forward("mlp", inner, hidden, count=n_shared) if n_shared else []


def one_output_bias(fields: Fields, _layers: tuple[Layer, ...]) -> list[Weight]:
    """Only the last layer's output projection has a bias (GPT-NeoX Japanese)."""
    return [Weight("o_proj.bias", "attention", (fields.integer("hidden_size"),))]


def searched_blocks(fields: Fields, layers: tuple[Layer, ...]) -> list[Weight]:
    """Layers that a search has thinned out: each says whether it has attention and how wide its feed-forward block is."""
    hidden, n_heads = fields.integer("hidden_size"), fields.integer("num_attention_heads")
    weights: list[Weight] = []
    for i, (layer, block) in enumerate(zip(layers, fields.listed("block_configs", len(layers)) or [], strict=True)):
        inside = Fields(block, f"{fields.where}: block_configs[{i}]")
        if inside.flag("attention.replace_with_linear", default=False):
            weights += linear("attention_as_linear", "attention", hidden, hidden) + norm("layer norms", hidden)
        elif not inside.flag("attention.no_op", default=False):
            keys, queries = layer.n_kv_heads * layer.k_dim, n_heads * layer.k_dim
            for name, out, into in (("q", queries, hidden), ("k", keys, hidden), ("v", keys, hidden), ("o", hidden, queries)):
                weights += linear(f"{name}_proj", "attention", out, into)
            weights += norm("layer norms", hidden)
        if inside.flag("ffn.replace_with_linear", default=False):
            weights += linear("mlp_as_linear", "feed-forward", hidden, hidden) + norm("layer norms", hidden)
        elif not inside.flag("ffn.no_op", default=False):
            weights += feed_forward("mlp", _searched_width(inside, hidden), hidden) + norm("layer norms", hidden)
    return weights


def _searched_width(block: Fields, hidden: int) -> int:
    """Two thirds of a multiple of the hidden size, rounded up to 256."""
    factor = block.get("ffn.ffn_mult")
    if isinstance(factor, bool) or not isinstance(factor, int | float) or factor <= 0:
        raise SpecError(f"{block.where}: ffn.ffn_mult is {factor!r}; expected a number above 0")
    return -(-int(2 * factor * hidden / 3) // 256) * 256


def learned_activation(_fields: Fields, layers: tuple[Layer, ...]) -> list[Weight]:
    """Two learned numbers in each layer's activation (xIELU)."""
    return [Weight("activation", "feed-forward", (1,), 2 * len(layers))]


def sub_norms(fields: Fields, layers: tuple[Layer, ...]) -> list[Weight]:
    """Norms before the two output projections (BitNet)."""
    widths = fields.integer("hidden_size"), fields.integer("intermediate_size")
    return [Weight("sub_norm", "norm", (width,), len(layers)) for width in widths]


def differential(_fields: Fields, layers: tuple[Layer, ...]) -> list[Weight]:
    """The four vectors that weigh the two attention maps against each other (Differential Transformer)."""
    return [Weight("lambda", "attention", (layer.k_dim,), 4) for layer in layers]


def shared_feed_forward(fields: Fields, layers: tuple[Layer, ...]) -> list[Weight]:
    """A feed-forward block in every layer, next to the experts or instead of them."""
    width, hidden = fields.integer("shared_intermediate_size", minimum=0), fields.integer("hidden_size")
    return feed_forward("shared_mlp", width, hidden, count=len(layers)) if width else []


def per_layer_inputs(fields: Fields, layers: tuple[Layer, ...]) -> list[Weight]:
    """An embedding of its own for every layer (Gemma-3n)."""
    width = stated(fields, "hidden_size_per_layer_input", minimum=0)
    if not width:
        return []
    hidden, n = fields.integer("hidden_size"), len(layers)
    return [
        Weight("embed_tokens_per_layer", "embedding", (fields.integer("vocab_size_per_layer_input"), n * width)),
        *linear("per_layer_model_projection", "embedding", n * width, hidden),
        *norm("per_layer_projection_norm", width),
        *linear("per_layer_input_gate", "feed-forward", width, hidden, count=n),
        *linear("per_layer_projection", "feed-forward", hidden, width, count=n),
        Weight("post_per_layer_input_norm", "norm", (hidden,), n),
    ]


def alternating_updates(fields: Fields, layers: tuple[Layer, ...]) -> list[Weight]:
    """Several streams of hidden states, of which each layer computes one and predicts the rest; and a low-rank residual."""
    hidden, streams, n = fields.integer("hidden_size"), fields.integer("altup_num_inputs"), len(layers)
    rank = fields.integer("laurel_rank")
    return [
        *linear("altup_projections", "embedding", hidden, hidden, count=2 * (streams - 1)),
        *linear("altup.correction", "feed-forward", streams, streams, count=n),
        *linear("altup.prediction", "feed-forward", streams**2, streams, count=n),
        *linear("altup.router", "feed-forward", streams, hidden, count=n),
        *linear("laurel_left", "feed-forward", rank, hidden, count=n),
        *linear("laurel_right", "feed-forward", hidden, rank, count=n),
        Weight("altup and laurel norms", "norm", (hidden,), 3 * n),
    ]
