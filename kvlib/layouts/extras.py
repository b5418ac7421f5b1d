"""Tensors that only one or two families have: each rule takes the fields and all layers, and adds to the other facts."""

from kvlib.config.fields import Fields
from kvlib.layouts.blocks import experts, feed_forward, linear, norm
from kvlib.layouts.facts import Experts, Layout, stated
from kvlib.spec import Layer, Weight


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
