"""Which kind each layer is: the many spellings of a layer pattern, read into one list of kinds.

A config says it as a list, a string of letters, a set of layer numbers, or an interval; whoever wrote first wins in the
order of `layer_kinds`. What no field says stands in the model's class, and so in its row of `families`.
"""

from collections.abc import Iterable, Mapping

from kvlib.config.families import GENERIC, Family
from kvlib.config.fields import Fields
from kvlib.errors import SpecError, whole

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

INTERVALS = (
    "full_attention_interval", "layer_group_size", "attn_layer_period", "attn_layer_offset", "sliding_window_pattern",
    "global_attn_every_n_layers", "no_rope_layers", "no_rope_layer_interval", "max_window_layers",
)  # fmt: skip
OTHERS = ("hybrid_override_pattern", "block_types", "_block_types", "attention_types", "block_configs", "indexer_types")

BLOCK_FIELDS = {"n_heads_in_group", "num_key_value_heads", "window_length", "sparsify"}
"""What may stand under block_configs[].attention beside no_op and replace_with_linear."""


def count_layers(fields: Fields, family: Family) -> int:
    """num_hidden_layers; where it is absent, the length of the list or string that names every layer."""
    for name in ("decoder_layers", "num_decoder_layers", "decoder_attention_heads", "num_decoder_attention_heads"):
        if fields.get(name) is None:
            family.needs(fields, name)
    if fields.get("num_hidden_layers") is None:
        for name in ("layers_block_type", "hybrid_override_pattern", "layer_types", "block_configs"):
            value = fields.get(name)
            if isinstance(value, list | tuple | str) and value:
                return len(value)
    return fields.integer("num_hidden_layers")


def layer_kinds(fields: Fields, family: Family, n_layers: int, limited: str | None) -> tuple[str, ...]:
    """The kind of each layer, a key of `SPELLINGS`.

    limited: "sliding_attention" or "chunked_attention" when the config has a window or a chunk that counts, else None.
    Raises SpecError for a pattern of the wrong length, an unknown kind, and where nothing says which layers are which.
    """
    for name in (*LISTS, *NUMBERED, *INDICES, *INTERVALS, *OTHERS):
        fields.key(name)  # known, though only the first one decides
    kinds = _pattern(fields, n_layers) or _by_interval(fields, family, n_layers, limited)
    kinds = tuple(family.attention if kind == "full_attention" else kind for kind in kinds)
    if (indexers := fields.listed("indexer_types", n_layers)) is None:
        family.needs(fields, "indexer_types")
    else:  # "shared": reads another layer's choice of tokens
        kinds = tuple("full_attention" if indexers[i] == "shared" else kind for i, kind in enumerate(kinds))
    return kinds


def _pattern(fields: Fields, n_layers: int) -> tuple[str, ...] | None:
    """Patterns that name each layer; None when there is none."""
    for name in LISTS:
        if (listed := fields.listed(name, n_layers)) is not None:
            return _kinds(fields, name, listed)
    if (letters := fields.text("hybrid_override_pattern")) is not None:
        _same_length(fields, "hybrid_override_pattern", len(letters), n_layers)
        return _kinds(fields, "hybrid_override_pattern", letters)
    for name, meaning in NUMBERED.items():
        if (numbers := fields.listed(name, n_layers)) is not None:
            if wrong := [n for n in numbers if n not in (0, 1) or isinstance(n, bool)]:
                raise SpecError(f"{fields.where}: {name} holds {wrong[0]!r}; expected 0 ({meaning[0]}) or 1 ({meaning[1]})")
            return tuple(meaning[n] for n in numbers)
    for name in ("block_types", "_block_types"):  # repeated until there are enough
        if (cycle := fields.listed(name)) is not None:
            return _cycle(fields, name, cycle, n_layers)
    if (groups := fields.listed("attention_types")) is not None:
        return _grouped(fields, groups, n_layers)
    if (blocks := fields.listed("block_configs", n_layers)) is not None:
        return tuple(_block_kind(fields, i, block) for i, block in enumerate(blocks))
    for name, (first, listed_kind, other) in INDICES.items():
        if (found := fields.indices(name, n_layers, first)) is not None:
            return tuple(listed_kind if i in found else other for i in range(n_layers))
    return None


def _by_interval(fields: Fields, family: Family, n_layers: int, limited: str | None) -> tuple[str, ...]:
    """Patterns that are written as a distance between special layers, and those that only the class knows."""
    if (every := fields.optional("full_attention_interval")) is not None:
        return tuple("recurrent" if (i + 1) % every else "full_attention" for i in range(n_layers))
    if (every := fields.optional("layer_group_size")) is not None:  # an incomplete last group is full
        whole_groups = n_layers // every * every
        return tuple("full_attention" if (i + 1) % every == 0 or i >= whole_groups else "recurrent" for i in range(n_layers))
    if (period := fields.optional("attn_layer_period")) is not None:
        offset = fields.integer("attn_layer_offset", minimum=0)
        return tuple("full_attention" if i % period == offset else "recurrent" for i in range(n_layers))
    if limited is None:
        if family.kind is None:
            raise SpecError(f"{fields.where}: nothing says which of the {n_layers} layers are which, and this model_type mixes "
                            "kinds; add layer_types")  # fmt: skip
        return (family.kind,) * n_layers
    family.needs(fields, "layer_types")
    pattern = _first(fields, "sliding_window_pattern", "global_attn_every_n_layers")
    if isinstance(pattern, str):
        return _cycle(fields, "sliding_window_pattern", pattern, n_layers)
    if limited == "chunked_attention" and (rotary := fields.listed("no_rope_layers")):  # chunked layers have RoPE
        _same_length(fields, "no_rope_layers", len(rotary), n_layers)
        return tuple(limited if r else "full_attention" for r in rotary)
    if pattern is None and limited == "chunked_attention":
        pattern = fields.optional("no_rope_layer_interval")
    if pattern is None and family.full_below:  # Qwen: the lower layers are full
        full_below = fields.integer("max_window_layers", minimum=0)
        return tuple("full_attention" if i < full_below else limited for i in range(n_layers))
    if pattern is None and (family is GENERIC or (family.kind is None and family.full_every is None)):
        name = "sliding_window" if limited == "sliding_attention" else "attention_chunk_size"
        raise SpecError(f"{fields.where}: {name} is {fields.get(name)} and nothing says which layers it holds for; add "
                        "layer_types")  # fmt: skip
    every = family.full_every if pattern is None else whole(f"{fields.where}: sliding_window_pattern", pattern)
    if every is None:
        return (limited,) * n_layers
    return tuple("full_attention" if i % every == family.full_at % every else limited for i in range(n_layers))


def _kinds(fields: Fields, name: str, spellings: Iterable) -> tuple[str, ...]:
    spellings = tuple(spellings)
    if unknown := sorted({repr(s) for s in spellings if not isinstance(s, str) or s not in KINDS}):
        raise SpecError(f"{fields.where}: {name} names {', '.join(unknown)}, of which kvlib does not know what it keeps; "
                        f"it knows {', '.join(KINDS)}")  # fmt: skip
    return tuple(KINDS[s] for s in spellings)


def _grouped(fields: Fields, groups: list, n_layers: int) -> tuple[str, ...]:
    """attention_types: [[["global", "local"], 12]] repeats global, local twelve times."""
    kinds: list[str] = []
    for group in groups:
        if not (isinstance(group, list | tuple) and len(group) == 2 and isinstance(group[0], list | tuple)):
            raise SpecError(f"{fields.where}: attention_types holds {group!r}; expected [[kinds], repeats]")
        repeats = whole(f"{fields.where}: the repeats in attention_types", group[1])
        if repeats > n_layers:
            _same_length(fields, "attention_types", repeats, n_layers)
        kinds += _kinds(fields, "attention_types", group[0]) * repeats
    _same_length(fields, "attention_types", len(kinds), n_layers)
    return tuple(kinds)


def _block_kind(fields: Fields, i: int, block: object) -> str:
    """block_configs (neural architecture search): attention may be left out or replaced, block by block."""
    attention = block.get("attention") if isinstance(block, Mapping) else None
    if not isinstance(attention, Mapping):
        raise SpecError(f"{fields.where}: block_configs[{i}] is {block!r}; expected an object with attention")
    if attention.get("no_op") or attention.get("replace_with_linear"):
        return "none"
    if unread := sorted(k for k, v in attention.items() if v and k not in BLOCK_FIELDS):
        raise SpecError(f"{fields.where}: block_configs[{i}].attention.{unread[0]} is {attention[unread[0]]!r} and may change "
                        "what the layer keeps; kvlib does not read it; describe the layers yourself with ModelSpec")  # fmt: skip
    return "full_attention" if attention.get("window_length") is None else "sliding_attention"


def _same_length(fields: Fields, name: str, length: int, n_layers: int) -> None:
    if length != n_layers:
        raise SpecError(f"{fields.where}: {name} describes {length} layers and num_hidden_layers is {n_layers}; correct "
                        "one of them")  # fmt: skip


def _cycle(fields: Fields, name: str, spellings: Iterable, n_layers: int) -> tuple[str, ...]:
    kinds = _kinds(fields, name, spellings)
    if not kinds:
        raise SpecError(f"{fields.where}: {name} is empty; name at least one kind, or remove it")
    return (kinds * -(-n_layers // len(kinds)))[:n_layers]


def _first(fields: Fields, *names: str) -> object:
    return next((value for name in names if (value := fields.get(name)) is not None), None)
