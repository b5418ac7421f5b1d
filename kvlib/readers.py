"""From a preset's name, a config.json or a mapping to a `ModelSpec`.

Invariant: nothing is guessed. A field that decides the answer and is absent, contradictory or malformed raises a
SpecError that names it. Facts that a config leaves to its class are rows of `config.family_table`.
"""

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from kvlib.config.decoder import read_decoder
from kvlib.config.families import GENERIC, Family
from kvlib.config.fields import Fields
from kvlib.config.layers import read_layers
from kvlib.config.notes import idle_note, mtp_layers, nested_note, reading_notes
from kvlib.config.patterns import count_layers, layer_kinds
from kvlib.config.unread import refuse_unread
from kvlib.config.windows import limit_of
from kvlib.errors import MissingField, SpecError, short
from kvlib.sources import find_config
from kvlib.spec import FileTensors, Layer, ModelSpec, Weight
from kvlib.weights import count_weights


def load_spec(model: str | Path | Mapping | ModelSpec, *, mtp: bool = False, encoder_tokens: int | None = None,
              **overrides: object) -> ModelSpec:  # fmt: skip
    """Read a model's layers and weights.

    model: a preset name ("llama-2-70b"), the path of a config.json, of a folder that holds one or of a .gguf file, a Hub
    id ("org/name": a preset of that id, else fetched when huggingface_hub is installed), or a mapping with the same fields;
    a ModelSpec comes back as it is. mtp: count the layers for multi-token prediction as well. encoder_tokens: how many
    tokens of an encoder's output the cross-attention layers keep. overrides replace single fields of the config:
    `load_spec("llama-2-70b", num_key_value_heads=64)` is the same model with multi-head attention.

    Raises SpecError when the name is unknown or a field that decides the answer is absent or contradictory.
    """
    if isinstance(model, ModelSpec):
        if overrides or mtp or encoder_tokens is not None:
            raise SpecError("overrides change fields of a config; a ModelSpec has none: use dataclasses.replace")
        return model
    name, source, config = find_config(model)
    return read_config(config, overrides, name=name, source=source, mtp=mtp, encoder_tokens=encoder_tokens)


def read_config(config: Mapping, overrides: Mapping | None = None, *, name: str = "config", source: str = "",
                mtp: bool = False, encoder_tokens: int | None = None) -> ModelSpec:  # fmt: skip
    """A `ModelSpec` from the fields of a config.json, with single fields replaced by `overrides`; the rest as `load_spec`.

    Multi-modal configs are read through their `text_config`. Raises SpecError as `load_spec` does.
    """
    overrides = overrides or {}
    fields, family = read_decoder(config, overrides, name)
    spec = _spec(fields, family, name, source, mtp, encoder_tokens)
    if family is GENERIC or "auto_map" in fields.config:  # no class of transformers, or code of its own
        refuse_unread(fields)
    if ignored := sorted(name for name in overrides if name not in fields.asked or name in family.unseen):
        near = get_close_matches(ignored[0], fields.asked, n=1)
        raise SpecError(f"{name}: no field {short(ignored[0])} is read for model_type {short(fields.text('model_type'))}"
                        + (f"; did you mean {near[0]}?" if near else ""))  # fmt: skip
    notes = [nested_note(config), *reading_notes(fields, family, spec, mtp)]
    notes += [idle_note(field) for field in overrides if _idle(config, overrides, field, spec, mtp, encoder_tokens)]
    return replace(spec, notes=tuple(note for note in notes if note))


def _spec(fields: Fields, family: Family, name: str, source: str, mtp: bool, encoder_tokens: int | None) -> ModelSpec:
    n_layers = count_layers(fields, family)
    kinds = layer_kinds(fields, family, n_layers, limit_of(fields, family))
    kinds = tuple(kind for kind in kinds for _ in range(family.per_layer))
    layers = read_layers(fields, family, kinds, encoder_tokens)
    weights, unknown_weights = _weights(fields, kinds, layers)
    if mtp and (n_mtp := mtp_layers(fields)):
        layers += (next((x for x in reversed(layers) if x.values_per_token), layers[-1]),) * n_mtp
    return ModelSpec(
        name=name,
        layers=layers,
        n_heads=fields.optional("num_attention_heads") or 0,
        hidden_size=fields.integer("hidden_size"),
        max_position_embeddings=fields.optional("max_position_embeddings"),
        weights=weights,
        unknown_weights=unknown_weights,
        source=source,
        dtype=fields.text("dtype") or "",
        quantization=_quantization(fields),
        stored_nbytes=in_the_file.nbytes if (in_the_file := _in_the_file(fields)) else None,
        expanded=family.expanded(fields),
    )


def _idle(config: Mapping, overrides: Mapping, field: str, spec: ModelSpec, mtp: bool, encoder_tokens: int | None) -> bool:
    """Does replacing `field` change nothing, though its value is another one?"""
    if config.get(field) == overrides[field]:
        return False
    others = {k: v for k, v in overrides.items() if k != field}
    try:
        fields, family = read_decoder(config, others, spec.name)
        return spec == _spec(fields, family, spec.name, spec.source, mtp, encoder_tokens)
    except SpecError:
        return False


def _weights(fields: Fields, kinds: tuple[str, ...], layers: tuple[Layer, ...]) -> tuple[tuple[Weight, ...] | None, str]:
    """The weights, or None and why they cannot be counted: the KV cache may be known all the same."""
    if in_the_file := _in_the_file(fields):
        return in_the_file.weights, ""
    try:
        return count_weights(fields, kinds, layers)
    except MissingField as error:
        return None, str(error)


def _in_the_file(fields: Fields) -> FileTensors | None:
    """What `kvlib.gguf` found in a .gguf file; whatever a JSON holds under that name is something else."""
    found = fields.get("file_tensors")
    return found if isinstance(found, FileTensors) else None


def _quantization(fields: Fields) -> Mapping | None:
    found = fields.get("quantization_config")
    if found is not None and not isinstance(found, Mapping):
        raise SpecError(f"{fields.where}: quantization_config is {short(found)}; expected an object with named fields")
    return found
