"""Layer patterns that are written as a distance between special layers, and those that only the class knows."""

from kvlib.config.families import GENERIC, Family
from kvlib.config.fields import Fields
from kvlib.config.kinds import cycle, same_length
from kvlib.errors import SpecError, short, whole

INTERVALS = (
    "full_attention_interval", "layer_group_size", "attn_layer_period", "attn_layer_offset", "sliding_window_pattern",
    "global_attn_every_n_layers", "no_rope_layers", "no_rope_layer_interval", "max_window_layers",
)  # fmt: skip


def kinds_by_interval(fields: Fields, family: Family, n_layers: int, limited: str | None) -> tuple[str, ...]:
    """The kind of each layer; `limited` as in `patterns.layer_kinds`."""
    if (every := fields.optional("full_attention_interval")) is not None:
        return tuple("recurrent" if (i + 1) % every else "full_attention" for i in range(n_layers))
    if (every := fields.optional("layer_group_size")) is not None:  # an incomplete last group is full
        whole_groups = n_layers // every * every
        return tuple("full_attention" if (i + 1) % every == 0 or i >= whole_groups else "recurrent" for i in range(n_layers))
    if (period := fields.optional("attn_layer_period")) is not None:
        offset = fields.integer("attn_layer_offset", minimum=0)
        if offset >= period:
            raise SpecError(f"{fields.where}: attn_layer_offset is {offset} and attn_layer_period {period}, so no layer would "
                            "have attention; correct one of them")  # fmt: skip
        return tuple("full_attention" if i % period == offset else "recurrent" for i in range(n_layers))
    if limited is None:
        if family.kind is None:
            raise SpecError(f"{fields.where}: nothing says which of the {n_layers} layers are which, and this model_type mixes "
                            "kinds; add layer_types")  # fmt: skip
        return (family.kind,) * n_layers
    family.needs(fields, "layer_types")
    pattern = fields.get(_pattern_field(fields))
    if isinstance(pattern, str):
        return cycle(fields, _pattern_field(fields), pattern, n_layers)
    if limited == "chunked_attention" and (rotary := fields.listed("no_rope_layers")):  # chunked layers have RoPE
        same_length(fields, "no_rope_layers", len(rotary), n_layers)
        if wrong := [r for r in rotary if r not in (0, 1)]:
            raise SpecError(f"{fields.where}: no_rope_layers holds {short(wrong[0])}; expected 0 (full) or 1 (chunked)")
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
    every = family.full_every if pattern is None else whole(f"{fields.where}: {_pattern_field(fields)}", pattern)
    if every is None:
        return (limited,) * n_layers
    return tuple("full_attention" if i % every == family.full_at % every else limited for i in range(n_layers))


def _pattern_field(fields: Fields) -> str:
    names = ("sliding_window_pattern", "global_attn_every_n_layers")
    return next((name for name in names if fields.get(name) is not None), names[0])
