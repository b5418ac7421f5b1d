"""The kinds of layers by what they keep, and the words that configs use for them."""

from collections.abc import Iterable

from kvlib.config.fields import Fields
from kvlib.errors import SpecError, short

# kind: what a layer keeps, then the spellings of it in layer_types, layers_block_type, block_types, attention_layers
# and the letters of hybrid_override_pattern and sliding_window_pattern
SPELLINGS = {
    "full_attention": ("full_attention", "attention", "global", "global_attention", "full", "*", "G"),
    "sliding_attention": ("sliding_attention", "local", "local_attention", "sliding", "swa", "L"),
    "chunked_attention": ("chunked_attention",),
    "indexed_attention": ("indexed_attention", "deepseek_sparse_attention"),  # all tokens, and an index key for each
    "cross_attention": ("cross_attention",),  # K and V of another sequence only
    "recurrent": ("linear_attention", "mamba", "mamba2", "recurrent", "conv", "M"),  # a state, no tokens
    "hybrid": ("hybrid",),  # attention and a state in one layer
    "hybrid_sliding": ("hybrid_sliding",),
    "none": ("mlp", "moe", "no_op", "-", "E"),
}
KINDS = {spelling: kind for kind, spellings in SPELLINGS.items() for spelling in spellings}


def kinds_of(fields: Fields, name: str, spellings: Iterable) -> tuple[str, ...]:
    """The kind of each spelling; SpecError names field `name` and what is unknown."""
    spellings = tuple(spellings)
    if unknown := sorted({short(s) for s in spellings if not isinstance(s, str) or s not in KINDS}):
        raise SpecError(f"{fields.where}: {name} names {', '.join(unknown[:3])}, of which kvlib does not know what it keeps; "
                        f"it knows {', '.join(KINDS)}")  # fmt: skip
    return tuple(KINDS[s] for s in spellings)


def cycle(fields: Fields, name: str, spellings: Iterable, n_layers: int) -> tuple[str, ...]:
    """The kinds of `n_layers` layers from spellings that repeat; SpecError when there are none."""
    kinds = kinds_of(fields, name, spellings)
    if not kinds:
        raise SpecError(f"{fields.where}: {name} is empty; name at least one kind, or remove it")
    return (kinds * -(-n_layers // len(kinds)))[:n_layers]


def same_length(fields: Fields, name: str, length: int, n_layers: int) -> None:
    """Raise SpecError unless field `name` describes as many layers as there are."""
    if length != n_layers:
        raise SpecError(f"{fields.where}: {name} describes {length} layers and num_hidden_layers is {n_layers}; correct "
                        "one of them")  # fmt: skip
