"""From the kinds of a model's layers to what each of them keeps: heads, widths, windows, states and sharing."""

import json
from collections.abc import Mapping
from dataclasses import replace

from kvlib.errors import SpecError, whole
from kvlib.families import GENERIC, Family
from kvlib.fields import Fields
from kvlib.spec import Layer
from kvlib.states import state_parts

INDEX_GROUP, INDEX_SCALE = 128, 4
"""A sparse indexer keeps its keys in fp8, with a 32-bit scale for every 128 values, whatever the KV dtype (vLLM 0.11)."""

# Fields of their own for the layers of one kind: the field that they replace there
FIELDS_OF_KIND = {
    "sliding_attention": {
        "num_attention_heads": "swa_num_attention_heads",
        "num_key_value_heads": "swa_num_key_value_heads",
        "head_dim": "swa_head_dim",
        "v_head_dim": "swa_v_head_dim",
    },
    "full_attention": {
        "num_key_value_heads": "num_global_key_value_heads",
        "head_dim": "global_head_dim",
    },
}
FIELDS_OF_KIND["hybrid_sliding"] = FIELDS_OF_KIND["sliding_attention"]


def read_layers(fields: Fields, family: Family, kinds: tuple[str, ...],
                encoder_tokens: int | None) -> tuple[Layer, ...]:  # fmt: skip
    """One Layer per entry of `kinds`. encoder_tokens: length of the other sequence that cross-attention reads.

    Raises SpecError naming a field that is absent or contradictory.
    """
    read: dict[tuple[str, str], Layer] = {}  # layers with the same fields are the same layer
    layers = []
    for i, kind in enumerate(kinds):
        changes = _changes(fields, family, i, kind, len(kinds))
        key = kind, json.dumps(changes, sort_keys=True, default=repr)
        if key not in read:
            read[key] = _layer(fields.replaced(changes) if changes else fields, family, kind, encoder_tokens)
        layers.append(read[key])
    return _shared(fields, family, kinds, layers)


def _layer(fields: Fields, family: Family, kind: str, encoder_tokens: int | None) -> Layer:
    if kind == "none":
        return Layer()
    if kind == "recurrent":
        return _with_state(Layer(), fields, family)
    layer = _attention(fields, family)
    if kind in ("sliding_attention", "hybrid_sliding"):
        layer = replace(layer, window=_window_of_layer(fields, family, kind))
    if kind == "chunked_attention":
        layer = replace(layer, chunk=fields.integer("attention_chunk_size"))
    if kind == "indexed_attention":
        width = fields.integer("index_head_dim")
        layer = replace(layer, token_bytes=width + INDEX_SCALE * -(-width // INDEX_GROUP))
    if kind in ("hybrid", "hybrid_sliding"):
        layer = _with_state(layer, fields, family)
    if kind == "cross_attention":
        return replace(layer, window=0, cross_tokens=_encoder_tokens(fields, encoder_tokens))
    if fields.flag("is_encoder_decoder", default=False) or fields.flag("add_cross_attention", default=False):
        return replace(layer, cross_tokens=_encoder_tokens(fields, encoder_tokens))
    return layer


def _with_state(layer: Layer, fields: Fields, family: Family) -> Layer:
    parts = state_parts(fields, family)
    return replace(layer, state_bytes=sum(nbytes * heads for nbytes, heads in parts), state_heads=parts)


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
    if family.window_switch and not fields.flag("use_sliding_window", default=family is GENERIC):
        return None
    if not fields.has("sliding_window"):
        family.needs(fields, "sliding_window")
    window, longest = fields.optional("sliding_window"), fields.optional("max_position_embeddings")
    if window is not None and family.window_beside_query and fields.get("sliding_window_size") is not None:
        window += 1
    if window is not None and longest is None:
        family.needs(fields, "max_position_embeddings")
    if window is not None and not family.windows:
        raise SpecError(f"{fields.where}: {fields.key('sliding_window')} is {window} and model_type "
                        f"{fields.get('model_type')!r} has no windows; remove it or correct model_type")  # fmt: skip
    return None if window and longest and window > longest else window


def _window_of_layer(fields: Fields, family: Family, kind: str) -> int | None:
    if fields.get("sliding_window") is None:
        raise SpecError(f"{fields.where}: a layer is of kind {kind} and sliding_window is absent or null; add "
                        "sliding_window")  # fmt: skip
    return read_window(fields, family)


def _encoder_tokens(fields: Fields, given: int | None) -> int:
    """How long the other sequence is: as given, or as the model fixes it."""
    if given is not None:
        return whole("encoder_tokens", given, 0)
    fixed = fields.optional("max_source_positions") if fields.get("num_mel_bins") is not None else None
    if fixed is None:
        raise SpecError(f"{fields.where}: its layers keep K and V of an encoder's output as well, once per sequence, and "
                        "nothing says how many tokens that is; give encoder_tokens (0: without cross-attention)")  # fmt: skip
    return fixed


def _attention(fields: Fields, family: Family) -> Layer:
    """K and V per head, or the latent that all heads of multi-head latent attention share."""
    if fields.get("kv_lora_rank") is None:
        family.needs(fields, "kv_lora_rank")
    else:
        for decoy in ("head_dim", "v_head_dim", "qk_nope_head_dim", "qk_head_dim", "q_lora_rank", "num_key_value_heads"):
            fields.key(decoy)  # known here, and the cache does not depend on it
        rope = fields.integer("qk_rope_head_dim")
        return Layer(latent=fields.integer("kv_lora_rank") + rope, latent_rope=rope)
    n_heads = fields.integer("num_attention_heads")
    head_dim = _head_dim(fields, family, n_heads)
    v_dim = fields.optional("v_head_dim")
    if v_dim is None:
        family.needs(fields, "v_head_dim")
    return Layer(n_kv_heads=_n_kv_heads(fields, family, n_heads), k_dim=head_dim, v_dim=v_dim or head_dim)


def _n_kv_heads(fields: Fields, family: Family, n_heads: int) -> int:
    name = "num_key_value_heads"
    if fields.get("multi_query") is None:
        family.needs(fields, "multi_query")
    elif fields.flag("multi_query", default=False) and not fields.flag("new_decoder_architecture", default=False):
        return 1  # Falcon-7B, StarCoder: one head for all, whatever num_kv_heads says
    if fields.get(name) is None:
        family.needs(fields, name)
        return n_heads
    n_kv_heads = fields.integer(name)
    if n_heads % n_kv_heads:
        raise SpecError(f"{fields.where}: {fields.key(name)} is {n_kv_heads} and does not divide "
                        f"{fields.key('num_attention_heads')} = {n_heads}; correct one of them")  # fmt: skip
    return n_kv_heads


def _head_dim(fields: Fields, family: Family, n_heads: int) -> int:
    if fields.get("head_dim"):  # absent, null and 0 all mean "derived"
        return fields.integer("head_dim")
    family.needs(fields, "head_dim")
    hidden = fields.integer("hidden_size")
    if hidden % n_heads:
        raise SpecError(f"{fields.where}: head_dim is absent and hidden_size / num_attention_heads = {hidden} / "
                        f"{n_heads} is not whole; add head_dim")  # fmt: skip
    return hidden // n_heads


def _changes(fields: Fields, family: Family, i: int, kind: str, n_layers: int) -> dict:
    """The fields that are different in layer `i`: by its kind, by its number, by its block of a searched architecture."""
    changes = _changes_of_kind(fields, family, kind)
    for name in ("num_attention_heads", "num_key_value_heads"):
        if (per_layer := fields.listed(f"{name}_per_layer", n_layers)) is not None:
            changes[name] = per_layer[i]
    by_number = fields.get("per_layer_config")
    if isinstance(by_number, Mapping):
        own = next((v for k, v in by_number.items() if str(k).isdecimal() and int(k) == i), {})
        changes |= own if isinstance(own, Mapping) else {}
    return changes | _block_changes(fields, i, n_layers)


def _changes_of_kind(fields: Fields, family: Family, kind: str) -> dict:
    own = {name: fields.get(other) for name, other in FIELDS_OF_KIND.get(kind, {}).items()}
    changes = {name: value for name, value in own.items() if value is not None}
    if kind == "sliding_attention" and family.sliding_kv_heads > 1:
        changes.setdefault("num_key_value_heads", family.sliding_kv_heads * fields.integer("num_key_value_heads"))
    if kind == "full_attention" and not fields.flag("attention_k_eq_v", default=True):
        changes.pop("num_key_value_heads", None)  # Gemma 4: the global number counts only where V is K
    if kind == "full_attention" and "head_dim" not in changes and fields.get("per_layer_config") is None:
        family.needs(fields, "global_head_dim")
    return changes


def _block_changes(fields: Fields, i: int, n_layers: int) -> dict:
    """block_configs (neural architecture search): how many query heads share a KV head, and the window, layer by layer."""
    blocks = fields.listed("block_configs", n_layers)
    attention = blocks[i]["attention"] if blocks else {}
    changes = {} if attention.get("window_length") is None else {"sliding_window": attention["window_length"]}
    if attention.get("n_heads_in_group") is None:
        return changes
    where = f"{fields.where}: block_configs[{i}].attention.n_heads_in_group"
    group, n_heads = whole(where, attention["n_heads_in_group"]), fields.integer("num_attention_heads")
    if n_heads % group:
        raise SpecError(f"{where} is {group} and does not divide num_attention_heads = {n_heads}; correct one of them")
    return changes | {"num_key_value_heads": n_heads // group}


def _shared(fields: Fields, family: Family, kinds: tuple[str, ...], layers: list[Layer]) -> tuple[Layer, ...]:
    """Layers that read the cache of an earlier one: the last n of the stack, or every layer but the first of a group."""
    n_layers, n_shared = len(layers), fields.optional("num_kv_shared_layers", minimum=0)
    if n_shared is None:
        family.needs(fields, "num_kv_shared_layers")
        n_shared = 0
    if n_shared > n_layers:
        raise SpecError(f"{fields.where}: num_kv_shared_layers is {n_shared} and num_hidden_layers is {n_layers}; correct "
                        "one of them")  # fmt: skip
    own = n_layers - n_shared
    for i in range(own, n_layers):
        source = max((j for j in range(own) if kinds[j] == kinds[i]), default=None)
        if source is None:
            raise SpecError(f"{fields.where}: num_kv_shared_layers is {n_shared} and layer {i} ({kinds[i]}) has no earlier "
                            "layer of its kind to share with; correct it")  # fmt: skip
        layers[i] = replace(layers[i], shared_with=source)
    fields.key("cla_share_factor")  # counts only where use_cla is true
    if fields.flag("use_cla", default=False):
        group = fields.integer("cla_share_factor")
        layers = [replace(x, shared_with=i - i % group) if i % group else x for i, x in enumerate(layers)]
    return tuple(layers)
