"""Which kind each layer is: the many spellings of a layer pattern, read into one list of kinds.

A config says it as a list, a string of letters, a set of layer numbers, or an interval; the first of them in the
order of `_pattern` decides. What no field says stands in the model's class, and so in its row of `families`.
"""

from collections.abc import Mapping

from kvlib.config.families import Family
from kvlib.config.fields import Fields
from kvlib.config.intervals import INTERVALS, kinds_by_interval
from kvlib.config.kinds import cycle, kinds_of, same_length
from kvlib.errors import SpecError, short, whole

LISTS = ("layer_types", "layers_block_type", "attention_layers")  # one spelling per layer
NUMBERED = {  # one number per layer: what 0 and 1 mean
    "hybrid_layer_pattern": ("full_attention", "sliding_attention"),
    "attn_type_list": ("recurrent", "full_attention"),
}
INDICES = {  # numbers of the listed layers, counted from `first`: (first, kind of the listed, kind of the others)
    "linear_attn_config.full_attn_layers": (1, "full_attention", "recurrent"),
    "full_attn_layers": (1, "full_attention", "recurrent"),
    "full_attn_idxs": (0, "full_attention", "recurrent"),
    "attn_layer_indices": (0, "full_attention", "recurrent"),
    "hybrid_layer_ids": (0, "hybrid", "recurrent"),
    "cross_attention_layers": (0, "cross_attention", "full_attention"),
}
MOST_LAYERS = 10_000
OTHERS = ("hybrid_override_pattern", "block_types", "_block_types", "attention_types", "block_configs", "indexer_types")

BLOCK_FIELDS = {"n_heads_in_group", "num_key_value_heads", "window_length", "sparsify"}
"""What may stand under block_configs[].attention beside no_op and replace_with_linear."""


def count_layers(fields: Fields, family: Family) -> int:
    """num_hidden_layers; where it is absent, the length of the list or string that names every layer."""
    for name in ("decoder_layers", "num_decoder_layers", "decoder_attention_heads", "num_decoder_attention_heads"):
        if fields.get(name) is None:
            family.needs(fields, name)
    n_layers = None
    if fields.get("num_hidden_layers") is None:
        for name in ("layers_block_type", "hybrid_override_pattern", "layer_types", "block_configs"):
            value = fields.get(name)
            if isinstance(value, list | tuple | str) and value:
                n_layers = n_layers or len(value)
    n_layers = n_layers or fields.integer("num_hidden_layers")
    if n_layers > MOST_LAYERS:
        raise SpecError(f"{fields.where}: {fields.key('num_hidden_layers')} is {n_layers}; kvlib reads at most {MOST_LAYERS} layers")
    return n_layers


def layer_kinds(fields: Fields, family: Family, n_layers: int, limited: str | None) -> tuple[str, ...]:
    """The kind of each layer, a key of `kinds.SPELLINGS`.

    limited: "sliding_attention" or "chunked_attention" when the config has a window or a chunk that counts, else None.
    Raises SpecError for a pattern of the wrong length, an unknown kind, and where nothing says which layers are which.
    """
    for name in (*LISTS, *NUMBERED, *INDICES, *INTERVALS, *OTHERS):
        fields.key(name)  # known, though only the first one decides
    kinds = _pattern(fields, n_layers) or kinds_by_interval(fields, family, n_layers, limited)
    kinds = tuple(family.attention if kind == "full_attention" else kind for kind in kinds)
    if (indexers := fields.listed("indexer_types", n_layers)) is None:
        family.needs(fields, "indexer_types")
    else:  # "shared": reads another layer's choice of tokens
        if wrong := [x for x in indexers if x not in ("full", "shared")]:
            raise SpecError(f"{fields.where}: indexer_types holds {short(wrong[0])}; expected full or shared")
        kinds = tuple("full_attention" if indexers[i] == "shared" else kind for i, kind in enumerate(kinds))
    return kinds


def _pattern(fields: Fields, n_layers: int) -> tuple[str, ...] | None:
    """Patterns that name each layer; None when there is none."""
    for name in LISTS:
        if (listed := fields.listed(name, n_layers)) is not None:
            return kinds_of(fields, name, listed)
    if (letters := fields.text("hybrid_override_pattern")) is not None:
        same_length(fields, "hybrid_override_pattern", len(letters), n_layers)
        return kinds_of(fields, "hybrid_override_pattern", letters)
    for name, meaning in NUMBERED.items():
        if (numbers := fields.listed(name, n_layers)) is not None:
            if wrong := [n for n in numbers if n not in (0, 1) or isinstance(n, bool)]:
                raise SpecError(f"{fields.where}: {name} holds {short(wrong[0])}; expected 0 ({meaning[0]}) or 1 ({meaning[1]})")
            return tuple(meaning[n] for n in numbers)
    for name in ("block_types", "_block_types"):  # repeated until there are enough
        if (repeated := fields.listed(name)) is not None:
            return cycle(fields, name, repeated, n_layers)
    if (groups := fields.listed("attention_types")) is not None:
        return _grouped(fields, groups, n_layers)
    if (blocks := fields.listed("block_configs", n_layers)) is not None:
        return tuple(_block_kind(fields, i, block) for i, block in enumerate(blocks))
    for name, (first, listed_kind, other) in INDICES.items():
        if (found := fields.indices(name, n_layers, first)) is not None:
            return tuple(listed_kind if i in found else other for i in range(n_layers))
    return None


def _grouped(fields: Fields, groups: list, n_layers: int) -> tuple[str, ...]:
    """attention_types: [[["global", "local"], 12]] repeats global, local twelve times."""
    kinds: list[str] = []
    for group in groups:
        if not (isinstance(group, list | tuple) and len(group) == 2 and isinstance(group[0], list | tuple)):
            raise SpecError(f"{fields.where}: attention_types holds {short(group)}; expected [[kinds], repeats]")
        repeats = whole(f"{fields.where}: the repeats in attention_types", group[1])
        if repeats > n_layers:
            same_length(fields, "attention_types", repeats, n_layers)
        kinds += kinds_of(fields, "attention_types", group[0]) * repeats
    same_length(fields, "attention_types", len(kinds), n_layers)
    return tuple(kinds)


def _block_kind(fields: Fields, i: int, block: object) -> str:
    """block_configs (neural architecture search): attention may be left out or replaced, block by block."""
    attention = block.get("attention") if isinstance(block, Mapping) else None
    if not isinstance(attention, Mapping):
        raise SpecError(f"{fields.where}: block_configs[{i}] is {short(block)}; expected an object with attention")
    if attention.get("no_op") or attention.get("replace_with_linear"):
        return "none"
    if unread := sorted(k for k, v in attention.items() if v and k not in BLOCK_FIELDS):
        raise SpecError(f"{fields.where}: block_configs[{i}].attention.{unread[0]} is {short(attention[unread[0]])} and may change "
                        "what the layer keeps; kvlib does not read it; describe the layers yourself with ModelSpec")  # fmt: skip
    return "full_attention" if attention.get("window_length") is None else "sliding_attention"
