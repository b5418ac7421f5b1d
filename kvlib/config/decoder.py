"""The text decoder of a config: where it is nested, under which names its class reads it, and whether it keeps a cache."""

from collections.abc import Mapping

from kvlib.config.families import GENERIC, Family
from kvlib.config.family_table import FAMILIES
from kvlib.config.fields import Fields, other_names
from kvlib.errors import SpecError, short

INNER = ("text_config", "llm_config", "language_config", "thinker_config")
"""Where multi-modal configs keep their text decoder; one may lie in another."""
OUTER = ("tie_word_embeddings", "torch_dtype", "dtype", "quantization_config")
"""Fields of a multi-modal config that hold for its text decoder too, whatever is written there."""


def read_decoder(config: Mapping, overrides: Mapping, name: str) -> tuple[Fields, Family]:
    """The fields of the text decoder, and its family."""
    config = decoder_config(config, overrides, name)
    model_type = Fields(config, name).text("model_type")
    family = FAMILIES.get(model_type, GENERIC)
    config |= {elsewhere: config[here] for here, elsewhere in family.renamed if here in config}
    fields = Fields(config, name, family.unseen)
    if fields.get("use_bidirectional_attention") in (True, "all"):
        raise SpecError(f"{name}: use_bidirectional_attention is {short(fields.get('use_bidirectional_attention'))}: every token reads "
                        "every other one, so the model keeps no KV cache")  # fmt: skip
    if family.encoder and not fields.flag("is_decoder", default=False):
        raise SpecError(f"{name}: model_type {short(model_type)} reads in both directions (an encoder, a diffusion model) and keeps no "
                        "KV cache; an encoder has one with is_decoder = true")  # fmt: skip
    return fields, family


def decoder_config(config: Mapping, overrides: Mapping, name: str = "config") -> dict:
    """The config of the text decoder, with `overrides` under the names that its class reads. `name` stands in errors."""
    while inner := next((config[k] for k in INNER if isinstance(config.get(k), Mapping)), None):
        config = {**inner, **{k: config[k] for k in OUTER if config.get(k) is not None}}
    model_type = Fields({**config, **overrides}, name).text("model_type")
    family = FAMILIES.get(model_type, GENERIC)
    for field, value in overrides.items():  # under the name that the class reads, and without the other names
        names = other_names(field)
        config = {k: v for k, v in config.items() if k not in names} | {_own_name(names, family) or field: value}
    return dict(config)


def _own_name(names: set[str], family: Family) -> str | None:
    """The one of a field's names that the class insists on: BART has decoder_layers, not num_hidden_layers."""
    return next((name for name in family.own if name in names and "decoder" in name), None)
