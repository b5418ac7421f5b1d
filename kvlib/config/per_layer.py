"""Fields that are different in single layers: those of a kind, of a number, or of a block of a searched architecture."""

from collections.abc import Mapping

from kvlib.config.families import Family
from kvlib.config.fields import Fields
from kvlib.errors import SpecError, short, whole

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


def changed_fields(fields: Fields, family: Family, i: int, kind: str, n_layers: int) -> dict:
    """The fields that are different in layer `i`, by their transformers names. Raises SpecError for a malformed one."""
    changes = _changes_of_kind(fields, family, kind)
    for name in ("num_attention_heads", "num_key_value_heads"):
        if (per_layer := fields.listed(f"{name}_per_layer", n_layers)) is not None:
            changes[name] = per_layer[i]
    changes |= _changes_by_number(fields, n_layers).get(i, {})
    return changes | _block_changes(fields, i, n_layers)


def _changes_by_number(fields: Fields, n_layers: int) -> dict[int, Mapping]:
    """per_layer_config: the fields of single layers, under their numbers."""
    found = fields.get("per_layer_config")
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise SpecError(f"{fields.where}: per_layer_config is {short(found)}; expected an object: number of a layer: its fields")
    for number, own in found.items():
        if not (str(number).isdecimal() and int(number) < n_layers and isinstance(own, Mapping)):
            raise SpecError(f"{fields.where}: per_layer_config has {short(number)}: {short(own)}; expected the number of one of "
                            f"{n_layers} layers, and an object with its fields")  # fmt: skip
    return {int(number): own for number, own in found.items()}


def _changes_of_kind(fields: Fields, family: Family, kind: str) -> dict:
    own = {name: fields.get(other) for name, other in FIELDS_OF_KIND.get(kind, {}).items()}
    changes = {name: value for name, value in own.items() if value is not None}
    if kind == "sliding_attention" and family.sliding_kv_heads > 1:
        changes.setdefault("num_key_value_heads", family.sliding_kv_heads * fields.integer("num_key_value_heads"))
    if kind == "full_attention" and "num_key_value_heads" in changes:  # Gemma 4: it counts only where V is K
        if fields.get("attention_k_eq_v") is None:
            family.needs(fields, "attention_k_eq_v")
        elif not fields.flag("attention_k_eq_v", default=True):
            del changes["num_key_value_heads"]
    if kind == "full_attention" and "head_dim" not in changes and fields.get("per_layer_config") is None:
        family.needs(fields, "global_head_dim")
    return changes


def _block_changes(fields: Fields, i: int, n_layers: int) -> dict:
    """block_configs (neural architecture search): how many query heads share a KV head, and the window, layer by layer."""
    blocks = fields.listed("block_configs", n_layers)
    attention = blocks[i].get("attention") if blocks and isinstance(blocks[i], Mapping) else None
    if not isinstance(attention, Mapping):
        return {}
    changes = {} if attention.get("window_length") is None else {"sliding_window": attention["window_length"]}
    if attention.get("num_key_value_heads") is not None:
        return changes | {"num_key_value_heads": attention["num_key_value_heads"]}
    if attention.get("n_heads_in_group") is None:
        return changes
    where = f"{fields.where}: block_configs[{i}].attention.n_heads_in_group"
    group, n_heads = whole(where, attention["n_heads_in_group"]), fields.integer("num_attention_heads")
    if n_heads % group:
        raise SpecError(f"{where} is {group} and does not divide num_attention_heads = {n_heads}; correct one of them")
    return changes | {"num_key_value_heads": n_heads // group}
