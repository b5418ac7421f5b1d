"""All layers of models whose layers are no row of equal blocks: each rule takes the fields and all layers."""

from kvlib.config.fields import Fields
from kvlib.errors import MissingField, SpecError, short
from kvlib.layouts.blocks import feed_forward, linear, norm
from kvlib.layouts.facts import Uncounted
from kvlib.layouts.mixers import mamba2
from kvlib.spec import Layer, Weight


def searched_blocks(fields: Fields, layers: tuple[Layer, ...]) -> list[Weight]:
    """Layers that a search has thinned out: each says whether it has attention and how wide its feed-forward block is."""
    hidden, n_heads = fields.integer("hidden_size"), fields.integer("num_attention_heads")
    weights: list[Weight] = []
    blocks = fields.listed("block_configs", len(layers))
    if blocks is None:
        raise MissingField(f"{fields.where}: block_configs is absent and says how wide every block is; add it")
    for i, (layer, block) in enumerate(zip(layers, blocks, strict=True)):
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
    if factor is None:
        raise MissingField(f"{block.where}: ffn.ffn_mult is absent and says how wide the block is; add it")
    if isinstance(factor, bool) or not isinstance(factor, int | float) or factor <= 0:
        raise SpecError(f"{block.where}: ffn.ffn_mult is {short(factor)}; expected a number above 0")
    return -(-int(2 * factor * hidden / 3) // 256) * 256


def mamba2_with_shared_blocks(fields: Fields, layers: tuple[Layer, ...]) -> list[Weight]:
    """All layers of Zamba2: Mamba-2 in each, and before some of them one of a few transformer blocks that they share.

    The block reads the hidden state beside the embedding, so it is twice as wide; what each user of it has for itself is a
    projection back and low-rank adapters.
    """
    hidden, inner, rank = (fields.integer(x) for x in ("hidden_size", "intermediate_size", "adapter_rank"))
    wide = fields.optional("attention_hidden_size") or 2 * hidden
    attended = fields.integer("num_attention_heads") * fields.integer("head_dim")
    keys = fields.integer("num_key_value_heads") * fields.integer("head_dim")
    users = sum(layer.values_per_token > 0 for layer in layers)
    shared, bias = min(users, fields.integer("num_mem_blocks")), fields.flag("add_bias_linear", default=False)
    if not fields.flag("tie_word_embeddings", default=True):
        raise Uncounted(f"{fields.where}: tie_word_embeddings is false, and whether the shared blocks are shared then is not known")
    if fields.integer("mamba_expand") * hidden % fields.integer("mamba_n_heads"):
        raise Uncounted(f"{fields.where}: mamba_n_heads does not divide mamba_expand times hidden_size; correct one of them")
    always = fields.replaced({"use_conv_bias": True, "mamba_d_head": None})  # what the class does not look at
    weights = [w for layer in layers for w in mamba2(always, layer)] + norm("layer norms", hidden) * len(layers)
    for name, out, into in (("q", attended, wide), ("k", keys, wide), ("v", keys, wide), ("o", hidden, attended)):
        weights += linear(f"{name}_proj", "attention", out, into, count=shared)
    weights += linear("mlp.gate_up_proj", "feed-forward", 2 * inner, hidden, bias, count=shared)
    weights += linear("mlp.down_proj", "feed-forward", hidden, inner, bias, count=shared)
    weights += [*norm("block norms", wide), *norm("block norms", hidden)] * shared
    weights += linear("linear", "attention", hidden, hidden, count=users)
    weights += _adapter("mlp", "feed-forward", 2 * inner, hidden, rank, users)
    if fields.flag("use_shared_attention_adapter", default=False):
        weights += _adapter("attention", "attention", wide, wide, rank, 3 * users)
    return weights


def _adapter(name: str, part: str, out: int, into: int, rank: int, count: int) -> list[Weight]:
    """A low-rank correction of a shared map."""
    return linear(f"{name}.adapter_a", part, rank, into, count=count) + linear(f"{name}.adapter_b", part, out, rank, count=count)
