"""Tensors that only one or two families have, and sizes that their classes compute by a rule.

An extra takes the fields of the config and all layers, and returns its tensors for the whole model.
"""

from kvlib.fields import Fields
from kvlib.layouts.blocks import feed_forward, linear, norm
from kvlib.spec import Layer, Weight


def parallel_norms(fields: Fields) -> int:
    """Attention and feed-forward side by side share one norm, or have one each where the config says so (Falcon)."""
    if not fields.flag("parallel_attn", default=True):
        return 2
    newer = fields.flag("new_decoder_architecture", default=False)
    return fields.optional("num_ln_in_parallel_attn") or (2 if newer else 1)


def one_norm_if_parallel(fields: Fields) -> int:
    """Attention and feed-forward side by side share one norm (StableLM)."""
    return 1 if fields.flag("use_parallel_residual", default=False) else 2


def post_norms(fields: Fields) -> int:
    """Norms after each block too, where the config says so (HyperCLOVA X)."""
    return 4 if fields.flag("use_post_norm", default=False) else 2


def affine_norms(fields: Fields) -> int:
    """Norms without any weight, where the config says so (OPT)."""
    return 2 if fields.flag("layer_norm_elementwise_affine", default=True) else 0


def norm_at_the_end(fields: Fields) -> bool:
    """Only layers that normalise before each block need a norm after the last (OPT)."""
    removed = fields.flag("_remove_final_layer_norm", default=False)
    return bool(affine_norms(fields)) and fields.flag("do_layer_norm_before", default=True) and not removed


def times_hidden(name: str = "", ratio: int = 4):
    """A rule for an inner width: the field `name`, or `ratio` times the hidden size where it is absent."""

    def width(fields: Fields) -> int:
        return (fields.optional(name) if name else None) or ratio * fields.integer("hidden_size")

    return width


def half_width(fields: Fields) -> int:
    """The config counts gate and up together."""
    return fields.integer("intermediate_size") // 2


def adjusted_width(fields: Fields) -> int:
    """Two thirds of the config's width, times a factor, rounded up to a multiple (LFM2)."""
    width = fields.integer("intermediate_size")
    if not fields.flag("block_auto_adjust_ff_dim", default=True):
        return width
    factor = fields.get("block_ffn_dim_multiplier")
    width = int((1 if factor is None else factor) * int(2 * width / 3))
    multiple = fields.integer("block_multiple_of")
    return -(-width // multiple) * multiple


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
    width = fields.optional("hidden_size_per_layer_input", minimum=0)
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
