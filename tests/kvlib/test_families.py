"""A field that a config leaves out means what its transformers class makes of it, or the reading refuses.

For every config class that transformers has a causal language model for: each field of the default config that the reading
asks for is left out in turn, the class fills in what it would, and both must be read alike.
"""

import warnings

import pytest
from transformers import CONFIG_MAPPING, logging
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from kvlib import SpecError, load_spec
from kvlib.config.family_table import FAMILIES
from kvlib.config.fields import ALIASES, STRONGER

logging.set_verbosity_error()
TYPES = sorted((set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES) | set(FAMILIES)) & set(CONFIG_MAPPING))
MEANT = {*ALIASES, *STRONGER, *(name for names in ALIASES.values() for name in names),
         *(name for names in STRONGER.values() for name in names)}  # fmt: skip
DECIDING = MEANT | {
    "layer_types", "layers_block_type", "use_sliding_window", "attention_chunk_size", "kv_lora_rank", "qk_rope_head_dim",
    "v_head_dim", "num_kv_shared_layers", "full_attention_interval", "attn_layer_period", "attn_layer_offset",
    "attn_layer_indices", "full_attn_idxs", "per_layer_config", "block_types", "attention_layers", "attention_types",
    "multi_query", "new_decoder_architecture", "index_head_dim", "indexer_types", "conv_L_cache", "lru_width",
    "sliding_window_pattern", "global_attn_every_n_layers", "max_window_layers", "num_global_key_value_heads",
    "global_head_dim", "swa_num_key_value_heads", "swa_head_dim", "cross_attention_layers", "layer_group_size",
}  # fmt: skip


def filled_in(model_type: str, given: dict) -> dict | None:
    """The config that the class makes of `given`; None when it cannot."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return CONFIG_MAPPING[model_type](**given).to_dict()
        except Exception:  # noqa: BLE001  # whatever the class objects to
            return None


def layers(config: dict) -> tuple | None:
    """What is read, or None when the reading refuses."""
    try:
        return load_spec(config, encoder_tokens=3).layers
    except SpecError:
        return None


@pytest.mark.parametrize("model_type", TYPES)
def test_an_absent_field_means_what_the_class_makes_of_it_or_is_refused(model_type):
    whole = filled_in(model_type, {})
    if whole is None or isinstance(whole.get("text_config"), dict) or layers(whole) is None:
        pytest.skip("its default config is not read")
    wrong = []
    for name in sorted(DECIDING & set(whole)):
        rest = {k: v for k, v in whole.items() if k != name}
        read, meant = layers(rest), filled_in(model_type, rest)
        if read is not None and meant is not None and read != layers(meant):
            wrong.append(name)
    assert not wrong


BASE = {"hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 32,
        "num_hidden_layers": 12, "vocab_size": 1000, "max_position_embeddings": 4096}  # fmt: skip
WINDOW = {"sliding_window": 128}
CHANGES = {
    "nothing": {},
    "a window": WINDOW,
    "a window above some layers": WINDOW | {"use_sliding_window": True, "max_window_layers": 5},
    "a window switched off": WINDOW | {"use_sliding_window": False, "max_window_layers": 5},
    "a window no context fills": {"sliding_window": 5000},
    "a pattern": WINDOW | {"sliding_window_pattern": 3},
    "head_dim null": {"head_dim": None},
    "KV heads null": {"num_key_value_heads": None},
    "sharing": WINDOW | {"num_kv_shared_layers": 4},
    "chunks": {"attention_chunk_size": 64},
    "multi-query": {"multi_query": True},
    "a width of V": {"v_head_dim": 16},
    "cross-layer attention": {"use_cla": True, "cla_share_factor": 2},
    "an inner width": {"intermediate_size": 1024},
}
UNREAL = {"dbrx", "trocr"}  # their classes keep a second copy of a field, which such a mixture contradicts


@pytest.mark.parametrize("model_type", sorted(set(FAMILIES) & set(CONFIG_MAPPING) - UNREAL))
def test_a_feature_means_what_the_class_makes_of_it_or_is_refused(model_type):
    """The same small config with one feature, read as it stands and as the class fills it in: no decoy is read."""
    wrong = []
    for name, change in CHANGES.items():
        given = BASE | change
        read, meant = layers(given | {"model_type": model_type}), filled_in(model_type, given)
        meant = None if meant is None else layers(meant)
        if read is not None and meant is not None and read != meant:
            wrong.append(name)
    assert not wrong
