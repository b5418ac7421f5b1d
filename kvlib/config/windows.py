"""How many tokens a windowed layer retains, and whether a window or a chunk counts at all."""

from kvlib.config.families import GENERIC, Family
from kvlib.config.fields import Fields
from kvlib.errors import SpecError, short


def limit_of(fields: Fields, family: Family) -> str | None:
    """ "sliding_attention" or "chunked_attention" when a window or a chunk counts somewhere in the model, else None."""
    if read_window(fields, family) is not None:
        return "sliding_attention"
    if fields.get("attention_chunk_size") is None:
        family.needs(fields, "attention_chunk_size")
        return None
    return "chunked_attention"


def read_window(fields: Fields, family: Family) -> int | None:
    """Tokens in the window, or None where there is none, it is switched off, or no allowed context would fill it."""
    fields.key("sliding_window")
    if family.window_switch and not fields.flag("use_sliding_window", default=family is GENERIC):
        return None
    if not fields.has("sliding_window"):
        family.needs(fields, "sliding_window")
    window = None if fields.get("sliding_window") == -1 else fields.optional("sliding_window")  # -1 is flash-attention's "none"
    longest = fields.optional("max_position_embeddings")
    if window is not None and family.window_beside_query and fields.get("sliding_window_size") is not None:
        window += 1
    if window is not None and longest is None:
        family.needs(fields, "max_position_embeddings")
    if window is not None and not family.windows:
        raise SpecError(f"{fields.where}: {fields.key('sliding_window')} is {window} and model_type "
                        f"{short(fields.get('model_type'))} has no windows; remove it or correct model_type")  # fmt: skip
    return None if window and longest and window > longest else window


def window_of_layer(fields: Fields, family: Family, kind: str) -> int | None:
    """The window of a layer that is said to slide, which therefore must be given."""
    if fields.get("sliding_window") is None:
        raise SpecError(f"{fields.where}: a layer is of kind {kind} and sliding_window is absent or null; add "
                        "sliding_window")  # fmt: skip
    return read_window(fields, family)
