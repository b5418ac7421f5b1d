"""From the kinds of a model's layers to what each of them keeps: heads, widths, windows, states and sharing."""

import json
from dataclasses import replace

from kvlib.config.families import Family
from kvlib.config.fields import Fields
from kvlib.config.per_layer import changed_fields
from kvlib.config.states import state_parts
from kvlib.config.windows import window_of_layer
from kvlib.errors import SpecError, whole
from kvlib.spec import Layer

INDEX_GROUP, INDEX_SCALE = 128, 4
"""A sparse indexer keeps its keys in fp8, with a 32-bit scale for every 128 values, whatever the KV dtype (vLLM)."""


def read_layers(fields: Fields, family: Family, kinds: tuple[str, ...],
                encoder_tokens: int | None) -> tuple[Layer, ...]:  # fmt: skip
    """One Layer per entry of `kinds`. encoder_tokens: length of the other sequence that cross-attention reads.

    Raises SpecError naming a field that is absent or contradictory.
    """
    read: dict[tuple[str, str], Layer] = {}  # layers with the same fields are the same layer
    layers = []
    for i, kind in enumerate(kinds):
        changes = changed_fields(fields, family, i, kind, len(kinds))
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
        layer = replace(layer, window=window_of_layer(fields, family, kind))
    if kind == "chunked_attention":
        layer = replace(layer, chunk=fields.integer("attention_chunk_size"))
    if kind == "indexed_attention":
        width = fields.integer("index_head_dim")
        layer = replace(layer, index_bytes=width + INDEX_SCALE * -(-width // INDEX_GROUP))
    if kind in ("hybrid", "hybrid_sliding"):
        layer = _with_state(layer, fields, family)
    if kind == "cross_attention":
        return replace(layer, window=0, cross_tokens=_encoder_tokens(fields, encoder_tokens))
    if fields.flag("is_encoder_decoder", default=family.cross) or fields.flag("add_cross_attention", default=False):
        return replace(layer, cross_tokens=_encoder_tokens(fields, encoder_tokens))
    return layer


def _with_state(layer: Layer, fields: Fields, family: Family) -> Layer:
    parts = state_parts(fields, family)
    return replace(layer, state_bytes=sum(part.nbytes() for part in parts), state_parts=parts)


def _encoder_tokens(fields: Fields, given: int | None) -> int:
    """How long the other sequence is: as given, or as the model fixes it."""
    if given is not None:
        return whole("encoder_tokens", given, 0)
    fixed = fields.optional("max_source_positions") if fields.get("num_mel_bins") is not None else None
    if fixed is None:
        raise SpecError(f"{fields.where}: its layers keep K and V of an encoder's output as well, once per sequence, and "
                        "nothing says how many tokens that is; give encoder_tokens, or --encoder-tokens (0: without cross-attention)")  # fmt: skip
    return fixed


def _attention(fields: Fields, family: Family) -> Layer:
    """K and V per head, or the latent that all heads of multi-head latent attention share."""
    if fields.flag("use_mla", default=True) and fields.get("kv_lora_rank") is None:
        family.needs(fields, "kv_lora_rank")
    elif fields.flag("use_mla", default=True):
        for decoy in ("head_dim", "v_head_dim", "qk_nope_head_dim", "qk_head_dim", "q_lora_rank", "num_key_value_heads"):
            fields.key(decoy)  # known here, and the cache does not depend on it
        rope = fields.integer("qk_rope_head_dim")
        return Layer(latent=fields.integer("kv_lora_rank") + rope, latent_rope=rope)
    n_heads = fields.integer("num_attention_heads")
    head_dim = _head_dim(fields, family, n_heads)
    v_dim = fields.optional("v_head_dim", minimum=0)  # 0, like an absent head_dim, means derived
    if v_dim is None:
        family.needs(fields, "v_head_dim")
    return Layer(n_kv_heads=_n_kv_heads(fields, family, n_heads), k_dim=head_dim, v_dim=v_dim or head_dim)


def _n_kv_heads(fields: Fields, family: Family, n_heads: int) -> int:
    name = "num_key_value_heads"
    for one_head in ("attention_head_type", "attn_config.attn_type"):  # SantaCoder, MPT
        if fields.text(one_head) in ("multiquery", "multiquery_attention"):
            return 1
    if fields.get("multi_query") is None:
        family.needs(fields, "multi_query")
    elif fields.flag("multi_query", default=False) and not fields.flag("new_decoder_architecture", default=False):
        return 1  # Falcon-7B, StarCoder: one head for all, whatever num_kv_heads says
    if fields.flag("multi_query_attention", default=True) is False:  # ChatGLM: the number of groups counts only with it
        fields.key(name)
        return n_heads
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
