"""Parameter counts: every row of LAYOUTS against the model that transformers builds, and what models' cards publish."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from importlib.resources import files

import pytest
import torch
from sweep_cases import MODEL_TYPES, NEEDED
from sweep_probe import make_config
from transformers import AutoModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from weights_sweep import flags, judge, scaled, verdicts

from kvlib import SpecError, load_spec
from kvlib.layouts import LAYOUTS
from kvlib.weights_by_transformers import weights_by_transformers, with_counted_weights

ROWS = [model_type for model_type in (*MODEL_TYPES, "t5", "mt5") if model_type in LAYOUTS]


def test_every_row_counts_as_transformers_does_by_default_scaled_down_and_with_flags_flipped(capsys):
    counts, wrong, unread = Counter(), [], []
    for model_type in ROWS:
        default = NEEDED.get(model_type, {})
        cases = [default, scaled(model_type), *flags(model_type)]
        found = list(verdicts(model_type, iter(cases)))
        counts.update(verdict for _, verdict, _ in found)
        wrong += [(model_type, arguments, why) for arguments, verdict, why in found if verdict == "wrong"]
        if "right" not in {verdict for _, verdict, _ in found}:
            unread.append(model_type)
    with capsys.disabled():
        print(f"\nweights of {len(ROWS)} classes: " + " / ".join(f"{x} {counts[x]}" for x in ("right", "refused", "wrong")))
    assert not wrong
    assert not unread


@pytest.mark.parametrize("model_type", ROWS)
def test_an_absent_field_means_what_it_means_to_the_class_or_leaves_the_weights_unknown(model_type):
    """Each field of the default config dropped once; what decides the KV heads is held in test_families."""
    needed = NEEDED.get(model_type, {})
    fields = make_config(model_type, **needed).to_dict() | ({"head_dim": 128} if model_type == "glm4_moe" else {})
    params = load_spec(fields, encoder_tokens=0).n_params
    for name in fields.keys() - {"model_type", "num_key_value_heads", *needed}:
        try:
            spec = load_spec({k: v for k, v in fields.items() if k != name}, encoder_tokens=0)
        except SpecError:
            continue
        assert spec.weights is None or spec.n_params == params, name


def test_a_wrong_count_is_called_wrong():
    """The comparison can fail: kvlib is told of twice as many experts."""
    config = make_config("mixtral", num_local_experts=4)
    assert judge(config)[0] == "right"
    told = config.to_dict
    config.to_dict = lambda: told() | {"num_local_experts": 8}
    assert judge(config)[0] == "wrong"


VISION_TEXT = [model_type for model_type in LAYOUTS if model_type.endswith("_text") and model_type not in ROWS]


@pytest.mark.parametrize("model_type", VISION_TEXT)
def test_text_decoders_of_vision_models_count_as_their_own_class_and_a_head(model_type):
    """transformers builds them only inside the whole model, so the decoder is built alone here."""
    config = CONFIG_MAPPING[model_type](num_hidden_layers=5, vocab_size=1001, tie_word_embeddings=False)
    with torch.device("meta"):
        decoder = AutoModel.from_config(config)
    head = config.vocab_size * config.hidden_size
    assert load_spec(config.to_dict()).n_params == sum(p.numel() for p in decoder.parameters()) + head


def test_a_model_type_without_a_row_says_so():
    spec = load_spec({"model_type": "brand-new", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4})
    assert spec.weights is None
    assert "brand-new" in spec.unknown_weights
    with pytest.raises(SpecError, match="brand-new.*weight_bytes"):
        _ = spec.n_active_params


def test_a_field_that_decides_a_width_and_is_absent_is_named():
    config = make_config("llama").to_dict()
    del config["intermediate_size"]
    assert "intermediate_size is absent" in load_spec(config).unknown_weights


def test_a_width_of_its_own_for_every_layer_is_read():
    """Gemma-3n lists one feed-forward width per layer."""
    config = make_config("gemma3n_text", num_hidden_layers=5, num_kv_shared_layers=0).to_dict()
    config |= {"intermediate_size": [10, 20, 30, 40, 50], "layer_types": ["full_attention"] * 5}
    widths = {w.shape[0]: w.count for w in load_spec(config).weights if w.name == "mlp.up_proj"}
    assert widths == {10: 1, 20: 1, 30: 1, 40: 1, 50: 1}
    with pytest.raises(SpecError, match="intermediate_size has 4 entries"):
        load_spec(config | {"intermediate_size": [10, 20, 30, 40]})


def test_recurrent_layers_that_no_row_describes_leave_the_weights_unknown():
    config = make_config("llama", num_hidden_layers=4).to_dict()
    config |= {"layer_types": ["linear_attention"] * 3 + ["full_attention"], "linear_num_value_heads": 4, "linear_num_key_heads": 2,
               "linear_key_head_dim": 16, "linear_value_head_dim": 16, "linear_conv_kernel_dim": 4}  # fmt: skip
    spec = load_spec(config)
    assert spec.weights is None
    assert "recurrent" in spec.unknown_weights and "'llama'" in spec.unknown_weights


BASE_MOE = {"model_type": "qwen3_moe", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
            "head_dim": 16, "intermediate_size": 128, "vocab_size": 100, "num_experts": 4, "num_experts_per_tok": 2,
            "moe_intermediate_size": 32, "tie_word_embeddings": False}  # fmt: skip


@pytest.mark.parametrize(("field", "values", "wrong"), [
    ("mlp_layer_types", ["moe", "dense"], "'moe'"), ("mlp_layer_types", ["dense", None], "None"),
    ("moe_layer_freq", [0, 2], "2"), ("moe_layer_freq", [[1], 0], r"\[1\]"),
])  # fmt: skip
def test_a_list_of_sparse_layers_has_no_third_word(field, values, wrong):
    with pytest.raises(SpecError, match=f"{field} has the entry {wrong}; expected"):
        load_spec(BASE_MOE | {field: values})
    for words in (["dense", "sparse"], ["sparse", "sparse"]):
        given = words if field == "mlp_layer_types" else [int(word == "sparse") for word in words]
        experts = [w for w in load_spec(BASE_MOE | {field: given}).weights if w.name == "experts.up_proj"]
        assert sum(w.count for w in experts) == 4 * words.count("sparse")


def test_numbers_that_are_lists_of_equal_entries_are_read_and_others_leave_the_weights_unknown():
    """Hunyuan's configs list the experts per token of every layer."""
    config = make_config("hunyuan_v1_moe", num_hidden_layers=3, head_dim=128, num_experts=4, moe_topk=2).to_dict()
    assert load_spec(config | {"moe_topk": [2, 2, 2]}).n_active_params == load_spec(config).n_active_params
    uneven = load_spec(config | {"moe_topk": [1, 2, 2]})
    assert uneven.weights is None
    assert "moe_topk differs" in uneven.unknown_weights


PUBLISHED = {
    "nemotron-super-49b-v1": 49_867_145_216,  # safetensors parameters of nvidia/Llama-3_3-Nemotron-Super-49B-v1
    "bart-large-cnn": 406_290_432,
    "t5-small": 60_506_624,
    "whisper-large-v3": 1_543_490_560,  # safetensors parameters of openai/whisper-large-v3
}


@pytest.mark.parametrize("preset", PUBLISHED)
def test_presets_that_no_causal_lm_class_stands_for_count_as_published(preset):
    assert load_spec(preset, encoder_tokens=None if "nemotron" in preset else 0).n_params == PUBLISHED[preset]


@pytest.mark.parametrize(("preset", "billions"), [("hunyuan-large", 389), ("minimax-m1-80k", 456), ("kimi-k2", 1026)])
def test_rows_of_classes_outside_transformers_count_the_billions_that_were_published(preset, billions):
    assert round(load_spec(preset).n_params / 1e9) == billions


ACTIVE = {
    # billions that a token goes through, as published; what the publisher leaves out
    "mixtral-8x7b": (12.9, ()),  # Mistral, "Mixtral of experts"
    "mixtral-8x22b": (39.1, ()),  # Mistral, "Cheaper, better, faster, stronger"
    "deepseek-v3": (37.0, ("embedding",)),  # DeepSeek-V3's report; 36.6 without the embedding, 37.6 with it
    "deepseek-v2-lite": (2.4, ("embedding",)),  # DeepSeek-V2's report
    "deepseek-v2": (21.0, ("embedding",)),  # DeepSeek-V2's report
    "kimi-k2": (32.0, ("embedding",)),  # Kimi K2's report
    "qwen3-30b-a3b": (3.3, ()),  # Qwen3's model card
    "qwen3-235b-a22b": (22.0, ()),  # Qwen3's model card
    "gpt-oss-20b": (3.61, ("embedding",)),  # gpt-oss model card: unembedding counted, embedding not
    "gpt-oss-120b": (5.13, ("embedding",)),
    "minimax-m1-80k": (45.9, ("embedding", "head")),  # MiniMax-M1's report
    "llama-4-scout": (17.0, ()),  # Llama 4's model card
    "llama-4-maverick": (17.0, ()),
    "glm-4.5": (32.0, ("embedding", "head")),  # GLM-4.5's report
    "jamba-v0.1": (12.0, ()),  # Jamba's report
}
CLOSE = 0.025  # reports round to the billion or a tenth of it


@pytest.mark.parametrize("preset", ACTIVE)
def test_active_parameters_are_those_that_the_publisher_names(preset):
    published, left_out = ACTIVE[preset]
    active = sum(w.n_active_params for w in load_spec(preset).weights if w.part not in left_out)
    assert active / 1e9 == pytest.approx(published, rel=CLOSE)


@pytest.mark.parametrize("top_k", [1, 3, 8])
def test_only_the_routed_experts_depend_on_how_many_a_token_uses(top_k):
    """8 experts of 3 · 40 · 16 values in each of 3 layers, and nothing else, are left out."""
    config = make_config("mixtral", num_hidden_layers=3, hidden_size=16, num_attention_heads=4, num_key_value_heads=2,
                         intermediate_size=40, num_local_experts=8, num_experts_per_tok=top_k)  # fmt: skip
    spec = load_spec(config.to_dict())
    assert spec.n_params - spec.n_active_params == 3 * (8 - top_k) * 3 * 40 * 16


def test_all_parameters_of_a_dense_model_are_active():
    spec = load_spec("llama-3-8b")
    assert spec.n_active_params == spec.n_params


@pytest.mark.parametrize("preset", ["qwen3-30b-a3b", "llama-3.2-1b", "gpt-oss-20b", "nemotron-h-56b"])
def test_counting_in_the_built_model_gives_what_the_row_gives(preset):
    """The way out for a class without a row, held against classes that have one."""
    config = json.loads(files("kvlib").joinpath("models", f"{preset}.json").read_text(encoding="utf-8"))["config"]
    by_row = load_spec(preset)
    counted = with_counted_weights(replace(by_row, weights=None), config)
    assert counted.n_params == by_row.n_params
    assert "transformers" in counted.notes[-1]


def test_counting_in_the_built_model_knows_which_experts_a_token_uses():
    config = make_config("mixtral", num_hidden_layers=3, num_local_experts=8, num_experts_per_tok=2).to_dict()
    weights, active_known = weights_by_transformers(config)
    assert active_known
    assert sum(w.n_active_params for w in weights) == load_spec(config).n_active_params


@pytest.mark.parametrize(("model_type", "changes", "known"), [
    ("gpt_oss", {}, True), ("qwen3_moe", {}, True), ("deepseek_v3", {"num_hidden_layers": 4}, True), ("llama", {}, True),
    ("mixtral", {"num_experts_per_tok": None}, False),  # how many a token uses is not said
    ("jetmoe", {}, False),  # experts, of attention too, in tensors whose names do not say so
])  # fmt: skip
def test_active_parameters_are_told_only_where_every_expert_is_known(model_type, changes, known):
    changes = {"num_hidden_layers": 2} | changes
    config = make_config(model_type, **{k: v for k, v in changes.items() if v is not None}).to_dict()
    config = {k: v for k, v in config.items() if changes.get(k, v) is not None}
    by_row = load_spec(config, encoder_tokens=0)
    weights, active_known = weights_by_transformers(config)
    assert active_known == known
    if known and by_row.weights:
        assert sum(w.n_active_params for w in weights) == by_row.n_active_params
    if not known:
        counted = with_counted_weights(by_row, config)
        assert counted.n_params and counted.n_active_params is None


def test_a_class_without_a_row_can_be_counted_all_the_same():
    """RWKV-4 with two layers of 5 h² and 2 · h · 4h values and 11 vectors each, two embeddings, and four norm vectors."""
    config, h, vocab = make_config("rwkv", num_hidden_layers=2).to_dict(), 4096, 50277
    counted = sum(w.n_params for w in weights_by_transformers(config)[0])
    assert counted == 2 * (5 * h * h + 2 * h * 4 * h + 11 * h) + 2 * vocab * h + 4 * h


def test_a_model_type_that_transformers_does_not_know_either_is_refused():
    with pytest.raises(SpecError, match="brand-new.*weight_bytes"):
        weights_by_transformers({"model_type": "brand-new"})


def test_kvlib_starts_without_transformers():
    """Reading a preset and counting its weights imports neither torch nor transformers."""
    program = "import sys, kvlib; kvlib.load_spec('gpt-oss-120b').n_params; print([m for m in ('torch', 'transformers') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == "[]"
