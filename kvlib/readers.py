"""From a preset's name, a config.json or a mapping to a `ModelSpec`.

Invariant: nothing is guessed. A field that decides the answer and is absent, contradictory or malformed raises a
SpecError that names it. Facts that a config leaves to its class are rows of `families.FAMILIES`.
"""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from kvlib.errors import MissingField, SpecError
from kvlib.families import FAMILIES, GENERIC, UNMODELLED, Family
from kvlib.fields import Fields
from kvlib.spec import Layer, ModelSpec, Weight
from kvlib.weights import decoder_weights

MODELS = Path(__file__).parent / "models"


def presets() -> list[str]:
    """Names of the models shipped with kvlib, sorted."""
    return sorted(path.stem for path in MODELS.glob("*.json"))


def load_spec(model: str | Path | Mapping | ModelSpec, **overrides: object) -> ModelSpec:
    """Read a model's layers and weights.

    model: a preset name ("llama-2-70b"), the path of a config.json or of a folder that holds one, or a mapping with
    the same fields; a ModelSpec comes back as it is. overrides replace single fields of the config:
    `load_spec("llama-2-70b", num_key_value_heads=64)` is the same model with multi-head attention.

    Raises SpecError when the name is unknown or a field that decides the answer is absent or contradictory.
    """
    if isinstance(model, ModelSpec):
        if overrides:
            raise SpecError("overrides change fields of a config; a ModelSpec has none: use dataclasses.replace")
        return model
    name, source, config = _find(model)
    return read_config(config, overrides, name=name, source=source)


def read_config(config: Mapping, overrides: Mapping | None = None, *, name: str = "config",
                source: str = "") -> ModelSpec:  # fmt: skip
    """A `ModelSpec` from the fields of a config.json, with single fields replaced by `overrides`.

    Multi-modal configs are read through their `text_config`. Raises SpecError as `load_spec` does.
    """
    if isinstance(config.get("text_config"), Mapping):
        config = config["text_config"] | {k: config[k] for k in ("tie_word_embeddings",) if k in config}
    fields = Fields({**config, **(overrides or {})}, name)
    model_type = fields.text("model_type")
    family = FAMILIES.get(model_type, GENERIC)
    if family is GENERIC:
        _refuse_unmodelled(fields)
    n_layers = fields.integer("num_hidden_layers")
    n_heads = fields.integer("num_attention_heads")
    layer = _latent_layer(fields) if fields.get("kv_lora_rank") is not None else _layer(fields, family, n_heads)
    layers = _with_windows(fields, family, layer, n_layers)
    weights, unknown_weights = _weights(fields, family, layer, n_layers, n_heads)
    if ignored := sorted(set(overrides or {}) - fields.asked):
        near = get_close_matches(ignored[0], fields.asked, n=1)
        raise SpecError(f"{name}: no field {ignored[0]!r} is read" + (f"; did you mean {near[0]}?" if near else ""))
    return ModelSpec(
        name=name,
        layers=layers,
        n_heads=n_heads,
        hidden_size=fields.integer("hidden_size"),
        max_position_embeddings=fields.optional("max_position_embeddings"),
        weights=weights,
        unknown_weights=unknown_weights,
        source=source,
        notes=_notes(fields, family),
    )


def _refuse_unmodelled(fields: Fields) -> None:
    for name in UNMODELLED:
        if fields.config.get(name) not in (None, False, 0, [], {}):
            raise SpecError(f"{fields.where}: model_type {fields.text('model_type')!r} is unknown and {name} = "
                            f"{fields.config[name]!r} changes what its cache holds; kvlib does not read it, so describe the "
                            "layers yourself with ModelSpec")  # fmt: skip


def _weights(fields: Fields, family: Family, layer: Layer, n_layers: int,
             n_heads: int) -> tuple[tuple[Weight, ...] | None, str]:  # fmt: skip
    """The weights, or None and why they cannot be counted: the KV cache may be known all the same."""
    if family is GENERIC:
        return None, f"how model_type {fields.text('model_type')!r} lays out its weights is not known"
    try:
        return decoder_weights(fields, family, layer, n_layers, n_heads), ""
    except MissingField as error:
        return None, str(error)


def _notes(fields: Fields, family: Family) -> tuple[str, ...]:
    if family is not GENERIC:
        return ()
    heads = "" if fields.get("num_key_value_heads") else "; KV heads are absent, read as one per query head"
    return (f"model_type {fields.text('model_type')!r} is unknown and was read generically{heads}",)


def _find(model: str | Path | Mapping) -> tuple[str, str, Mapping]:
    if not isinstance(model, str | Path | Mapping):
        raise SpecError(f"model is {model!r}; expected a preset's name, a path, or a mapping of config fields")
    if isinstance(model, Mapping):
        return str(model.get("_name_or_path") or model.get("model_type") or "config"), "mapping", model
    if model in presets():
        data = json.loads((MODELS / f"{model}.json").read_text(encoding="utf-8"))
        return data["name"], data["source"], data["config"]
    path = Path(model)
    try:
        path = path / "config.json" if path.is_dir() else path
        if path.is_file():
            return path.parent.name if path.name == "config.json" else path.stem, str(path), _json(path)
    except OSError as error:  # a name too long for a path, a folder that may not be read
        raise SpecError(f"model is {str(model)[:80]!r}: {error.strerror}; give a preset's name or a readable path") from error
    near = get_close_matches(str(model).lower(), presets(), n=1)
    raise SpecError(f"model is {str(model)!r}: neither a file, nor a folder with a config.json, nor a preset"
                    + (f"; did you mean {near[0]}?" if near else f" ({', '.join(presets())})"))  # fmt: skip


def _json(path: Path) -> Mapping:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SpecError(f"{path} is not JSON ({error}); give the model's config.json") from error
    if not isinstance(data, Mapping):
        raise SpecError(f"{path} holds a {type(data).__name__}; a config.json holds one object with named fields")
    if isinstance(data.get("config"), Mapping) and "hub_id" in data:  # a file of kvlib/models
        return data["config"]
    return data


def _latent_layer(fields: Fields) -> Layer:
    """MLA keeps one latent per token for all heads, and the rotary part of the key; a head_dim there is a decoy."""
    return Layer(latent=fields.integer("kv_lora_rank") + fields.integer("qk_rope_head_dim"))


def _layer(fields: Fields, family: Family, n_heads: int) -> Layer:
    n_kv_heads = _n_kv_heads(fields, family, n_heads)
    head_dim = _head_dim(fields, family, n_heads)
    return Layer(n_kv_heads=n_kv_heads, k_dim=head_dim, v_dim=head_dim)


def _n_kv_heads(fields: Fields, family: Family, n_heads: int) -> int:
    name = "num_key_value_heads"
    if fields.get(name) is None and fields.get("block_configs") is None and family.mha_when_absent:
        return n_heads
    n_kv_heads = fields.integer(name)
    if n_heads % n_kv_heads:
        raise SpecError(f"{fields.where}: {fields.key(name)} is {n_kv_heads} and does not divide "
                        f"{fields.key('num_attention_heads')} = {n_heads}; correct one of them")  # fmt: skip
    return n_kv_heads


def _head_dim(fields: Fields, family: Family, n_heads: int) -> int:
    if fields.get("head_dim"):  # absent, null and 0 all mean "derived"
        return fields.integer("head_dim")
    hidden = fields.integer("hidden_size")
    if not family.derive_head_dim:
        raise SpecError(f"{fields.where}: head_dim is absent; this model_type does not derive it from "
                        "hidden_size, so add it")  # fmt: skip
    if hidden % n_heads:
        raise SpecError(f"{fields.where}: head_dim is absent and hidden_size / num_attention_heads = {hidden} / "
                        f"{n_heads} is not whole; add head_dim")  # fmt: skip
    return hidden // n_heads


def _with_windows(fields: Fields, family: Family, layer: Layer, n_layers: int) -> tuple[Layer, ...]:
    """One Layer per layer: which of them slide, and how far."""
    window = _window(fields, family)
    kinds = _layer_kinds(fields, family, n_layers, window)
    if "sliding_attention" in kinds and fields.get("sliding_window") is None:
        raise SpecError(f"{fields.where}: layer_types has sliding_attention and sliding_window is absent or null; "
                        "add sliding_window")  # fmt: skip
    sliding = Layer(layer.n_kv_heads, layer.k_dim, layer.v_dim, layer.latent, window=window)
    return tuple(sliding if kind == "sliding_attention" else layer for kind in kinds)


def _window(fields: Fields, family: Family) -> int | None:
    """Tokens in the window, or None where there is none, it is switched off, or no allowed context would fill it."""
    switchable = family.window_switch or family is GENERIC
    if switchable and not fields.flag("use_sliding_window", default=not family.window_switch):
        return None
    if family.windows and family is not GENERIC and "sliding_window" not in fields.config:
        raise SpecError(f"{fields.where}: sliding_window is absent and this model_type has a default of its own; add it, "
                        "or null for full attention")  # fmt: skip
    window, longest = fields.optional("sliding_window"), fields.optional("max_position_embeddings")
    if window is not None and not family.windows:
        raise SpecError(f"{fields.where}: sliding_window is {window} and model_type {fields.get('model_type')!r} has no "
                        "windows; remove it or correct model_type")  # fmt: skip
    return None if window and longest and window > longest else window


def _layer_kinds(fields: Fields, family: Family, n_layers: int, window: int | None) -> list[str]:
    """ "full_attention" or "sliding_attention" for each layer, as transformers spells them."""
    kinds = fields.get("layer_types")
    if kinds is not None:
        if not isinstance(kinds, list | tuple) or len(kinds) != n_layers:
            raise SpecError(f"{fields.where}: layer_types must name one kind for each of the {n_layers} layers of "
                            f"num_hidden_layers; it is {kinds!r}")  # fmt: skip
        unknown = sorted({str(k) for k in kinds} - {"full_attention", "sliding_attention"})
        if unknown:
            raise SpecError(f"{fields.where}: layer_types names {', '.join(unknown)}; kvlib reads full_attention and "
                            "sliding_attention so far")  # fmt: skip
        return list(kinds)
    if window is None:
        return ["full_attention"] * n_layers
    if family is GENERIC:
        raise SpecError(f"{fields.where}: sliding_window is {window} and nothing says which layers slide; add "
                        "layer_types")  # fmt: skip
    if family.window_switch:  # Qwen: the lower layers are full
        full_below = fields.integer("max_window_layers", minimum=0)
        return ["full_attention" if i < full_below else "sliding_attention" for i in range(n_layers)]
    every = fields.optional("sliding_window_pattern") or family.full_every
    return ["full_attention" if every and (i + 1) % every == 0 else "sliding_attention" for i in range(n_layers)]
