"""The weight tensors of a decoder: the facts of its `Layout` put together with the fields of its config.

Shapes are (out, in), as torch.nn.Linear stores them. The sum of their sizes is the parameter count.
"""

from kvlib.config.fields import Fields
from kvlib.errors import MissingField, short
from kvlib.layouts import LAYOUTS, Layout
from kvlib.layouts.blocks import attention, experts, feed_forward, latent_attention, linear, sparse_layers
from kvlib.layouts.facts import Uncounted, layer_size, on
from kvlib.spec import Layer, Weight


def count_weights(fields: Fields, kinds: tuple[str, ...],
                  layers: tuple[Layer, ...]) -> tuple[tuple[Weight, ...] | None, str]:  # fmt: skip
    """Every weight tensor of the model and an empty text, or None and the reason why they cannot be counted.

    kinds: what each layer does, as `patterns` spells it: attention of some kind, "recurrent", "hybrid" (both) or "none"
    (neither). layers give the widths of K and V; latent attention has its own shapes.

    Raises SpecError naming a field that is malformed.
    """
    layout = LAYOUTS.get(fields.text("model_type"))
    if layout is None:
        return None, f"how model_type {short(fields.text('model_type'))} lays out its weights is not known"
    if fields.flag("add_cross_attention", default=False) and not layout.blocks:
        return None, "add_cross_attention is true, and the weights of that cross-attention are not known"
    if "none" in kinds and not (layout.one_block or layout.blocks):
        return None, "a layer without attention may lack a feed-forward block too, and the config does not say which"
    try:
        weights = _embeddings(fields, layout) + _all_layers(fields, layout, kinds, layers)
        weights += [w for extra in layout.extra for w in extra(fields, layers)]
        return _merged(weights + _head(fields, layout)), ""
    except (MissingField, Uncounted) as error:
        return None, str(error)


def _embeddings(fields: Fields, layout: Layout) -> list[Weight]:
    hidden, vocab, width = fields.integer("hidden_size"), fields.integer("vocab_size"), _embedding_width(fields, layout)
    weights = [Weight("embed_tokens", "embedding", (vocab, width))]
    if width != hidden:
        weights += linear("project_in", "embedding", hidden, width) + linear("project_out", "embedding", width, hidden)
    if layout.positions:
        name, more = layout.positions
        weights += [Weight("embed_positions", "embedding", (fields.integer(name) + more, hidden))]
    return weights + (_norms(fields, layout, "embedding_norm", 1) if layout.embedding_norm else [])


def _head(fields: Fields, layout: Layout) -> list[Weight]:
    vocab = fields.integer("vocab_size")
    weights = _norms(fields, layout, "norm", 1) if on(fields, layout.final_norm) else []
    if not on(fields, layout.tied):
        weights += [Weight("lm_head", "head", (vocab, _embedding_width(fields, layout)))]
    return weights + ([Weight("lm_head.bias", "head", (vocab,))] if on(fields, layout.head_bias) else [])


def _embedding_width(fields: Fields, layout: Layout) -> int:
    narrow = fields.optional(layout.embedding_width) if layout.embedding_width else None
    return narrow or fields.integer("hidden_size")


def _all_layers(fields: Fields, layout: Layout, kinds: tuple[str, ...], layers: tuple[Layer, ...]) -> list[Weight]:
    if layout.blocks:
        return layout.blocks(fields, layers)
    weights: list[Weight] = []
    for kind, layer in zip(kinds, layers, strict=True):
        if kind in ("recurrent", "hybrid", "hybrid_sliding"):
            if layout.mixer is None:
                raise Uncounted(f"{fields.where}: a layer is {kind}, and kvlib knows no recurrent layers of model_type "
                                f"{short(fields.text('model_type'))}")  # fmt: skip
            weights += layout.mixer(fields, layer)
        if kind not in ("recurrent", "none"):
            weights += latent_attention(fields, layout) if layer.latent else attention(fields, layout, layer, kind)
    wanted = [kind == "none" or not layout.one_block for kind in kinds]
    weights += _feed_forwards(fields, layout, wanted) if any(wanted) else []
    n_norms = layout.norms if isinstance(layout.norms, int) else layout.norms(fields)
    return weights + (_norms(fields, layout, "layer norms", len(layers) * n_norms) if n_norms else [])


def _feed_forwards(fields: Fields, layout: Layout, wanted: list[bool]) -> list[Weight]:
    """The feed-forward block or the experts of each layer that is `wanted` to have one."""
    sparse = sparse_layers(fields, layout, len(wanted))
    hidden = fields.integer("hidden_size")
    weights: list[Weight] = []
    for i in (i for i, has in enumerate(wanted) if has):
        if sparse[i]:
            weights += experts(fields, layout)
        else:
            inner = layer_size(fields, layout.mlp_width, i, len(wanted))
            weights += feed_forward("mlp", inner, hidden, gated=layout.gated, bias=on(fields, layout.mlp_bias))
    return weights


def _norms(fields: Fields, layout: Layout, name: str, count: int) -> list[Weight]:
    shift = [Weight(f"{name}.bias", "norm", (fields.integer("hidden_size"),), count)] if on(fields, layout.norm_bias) else []
    return [Weight(name, "norm", (fields.integer("hidden_size"),), count), *shift]


def _merged(weights: list[Weight]) -> tuple[Weight, ...]:
    """Equal tensors of different layers as one entry with their number, in the order of the first."""
    counts: dict[tuple, list[int]] = {}
    for w in weights:
        total = counts.setdefault((w.name, w.part, w.shape), [0, 0])
        total[0] += w.count
        total[1] += w.count if w.active is None else w.active
    return tuple(Weight(*key, count, None if active == count else active) for key, (count, active) in counts.items())
