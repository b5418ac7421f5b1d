"""From a preset's name, a config.json or a mapping to a `ModelSpec`.

Invariant: nothing is guessed. A field that decides the answer and is absent, contradictory or malformed raises a
SpecError that names it. Facts that a config leaves to its class are rows of `config.family_table`.
"""

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from kvlib.config.families import GENERIC, Family
from kvlib.config.family_table import FAMILIES
from kvlib.config.fields import Fields, other_names
from kvlib.config.layers import read_layers
from kvlib.config.patterns import count_layers, layer_kinds
from kvlib.config.unread import refuse_unread
from kvlib.config.windows import limit_of
from kvlib.errors import MissingField, SpecError, short
from kvlib.i18n import T
from kvlib.sources import find_config
from kvlib.spec import FileTensors, Layer, ModelSpec, Weight
from kvlib.weights import count_weights

INNER = ("text_config", "llm_config", "language_config", "thinker_config")
"""Where multi-modal configs keep their text decoder; one may lie in another."""
OUTER = ("tie_word_embeddings", "torch_dtype", "dtype", "quantization_config")
"""Fields of a multi-modal config that hold for its text decoder too, whatever is written there."""


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
    fields, family = _decoder(config, overrides, name)
    spec = _spec(fields, family, name, source, mtp, encoder_tokens)
    if family is GENERIC or "auto_map" in fields.config:  # no class of transformers, or code of its own
        refuse_unread(fields)
    if ignored := sorted(name for name in overrides if name not in fields.asked or name in family.unseen):
        near = get_close_matches(ignored[0], fields.asked, n=1)
        raise SpecError(f"{name}: no field {short(ignored[0])} is read for model_type {short(fields.text('model_type'))}"
                        + (f"; did you mean {near[0]}?" if near else ""))  # fmt: skip
    notes = [_nested_note(config), *_notes(fields, family, spec, mtp)]
    notes += [_idle_note(field) for field in overrides if _idle(config, overrides, field, spec, mtp, encoder_tokens)]
    return replace(spec, notes=tuple(note for note in notes if note))


def _spec(fields: Fields, family: Family, name: str, source: str, mtp: bool, encoder_tokens: int | None) -> ModelSpec:
    n_layers = count_layers(fields, family)
    kinds = layer_kinds(fields, family, n_layers, limit_of(fields, family))
    kinds = tuple(kind for kind in kinds for _ in range(family.per_layer))
    layers = read_layers(fields, family, kinds, encoder_tokens)
    weights, unknown_weights = _weights(fields, kinds, layers)
    if mtp and (n_mtp := _mtp_layers(fields)):
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


def _mtp_layers(fields: Fields) -> int:
    return fields.optional("num_nextn_predict_layers", minimum=0) or 0


def _idle(config: Mapping, overrides: Mapping, field: str, spec: ModelSpec, mtp: bool, encoder_tokens: int | None) -> bool:
    """Does replacing `field` change nothing, though its value is another one?"""
    if config.get(field) == overrides[field]:
        return False
    others = {k: v for k, v in overrides.items() if k != field}
    try:
        fields, family = _decoder(config, others, spec.name)
        return spec == _spec(fields, family, spec.name, spec.source, mtp, encoder_tokens)
    except SpecError:
        return False


def _decoder(config: Mapping, overrides: Mapping, name: str) -> tuple[Fields, Family]:
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


def _nested_note(config: Mapping) -> str:
    if not any(isinstance(config.get(k), Mapping) for k in INNER):
        return ""
    return T("只算文字解碼器，影像與聲音的部分沒算", "the text decoder only; the parts for images and sound are not counted")


def _idle_note(field: str) -> str:
    return T(f"改寫 {field} 沒有改變任何數字", f"replacing {field} changes no number here")


def _notes(fields: Fields, family: Family, spec: ModelSpec, mtp: bool) -> list[str]:
    notes = []
    if family is GENERIC:
        unknown = repr(fields.text("model_type"))
        notes.append(T(f"不認得 model_type {unknown}，照一般的欄位讀", f"model_type {unknown} is unknown and was read generically"))
        if fields.get("num_key_value_heads") is None and fields.get("block_configs") is None:
            notes.append(T("沒寫 KV 頭數，當作每個查詢頭各有一個", "KV heads are absent, read as one per query head"))
    if not mtp and (n_mtp := _mtp_layers(fields)):
        field = fields.key("num_nextn_predict_layers")
        layers = f"{n_mtp} layer" + "s" * (n_mtp > 1)
        notes.append(T(f"另有 {n_mtp} 層多 token 預測（{field}）沒算；要算：mtp=True 或 --mtp",
                       f"{layers} for multi-token prediction ({field}) not counted; mtp=True or --mtp counts them"))  # fmt: skip
    parts = [part for layer in spec.layers for part in layer.state_parts]
    if parts and fields.get("dtype") is None:
        notes.append(T("config 沒寫型別（dtype），遞迴狀態當作 bf16", "dtype is absent; the recurrent state is taken as bf16"))
    if any(part.matrix for part in parts) and fields.get("mamba_ssm_dtype") is None and family.state_dtype is None:
        notes.append(T("config 沒寫遞迴狀態的型別，照模型的型別算；引擎可能用 fp32（--set mamba_ssm_dtype=float32）",
                       "the dtype of the recurrent state is not given; counted in the model's; an engine may keep fp32 "
                       "(--set mamba_ssm_dtype=float32)"))  # fmt: skip
    if mtp and _mtp_layers(fields):
        notes.append(T("多 token 預測的層只算了快取，沒算權重", "of the layers for multi-token prediction only the cache is counted, not the "
                       "weights"))  # fmt: skip
    return notes
