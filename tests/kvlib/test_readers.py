"""Reading configs: what is read, what is refused, and that the refusal names the field and the way out."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlib import Layer, ModelSpec, SpecError, kv_bytes, load_spec, presets
from kvlib.sources import MODELS

BASE = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 8,
    "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 100, "max_position_embeddings": 512,
}  # fmt: skip


def caps(config: dict) -> list[int | None]:
    return [layer.cap for layer in load_spec(config).layers]


def test_every_preset_loads_and_names_its_source():
    assert len(presets()) >= 17
    for name in presets():
        spec = load_spec(name, encoder_tokens=0)
        assert spec.source and spec.n_layers and spec.n_params


def test_a_spec_passes_through_and_takes_no_overrides():
    spec = load_spec("llama-2-7b")
    assert load_spec(spec) is spec
    with pytest.raises(SpecError, match=r"dataclasses\.replace"):
        load_spec(spec, num_key_value_heads=1)


def test_overrides_replace_single_fields():
    assert load_spec(BASE, num_key_value_heads=8).n_kv_heads == 8


def test_a_nested_text_config_is_read():
    nested = {"model_type": "whole", "text_config": BASE, "tie_word_embeddings": True}
    assert load_spec(nested).layers == load_spec(BASE).layers
    assert load_spec(nested).n_params == load_spec(BASE, tie_word_embeddings=True).n_params


def test_a_decoder_may_be_nested_twice_and_under_another_name():
    nested = {"thinker_config": {"text_config": BASE, "vision_config": {"hidden_size": 3}}}
    assert load_spec(nested).layers == load_spec({"llm_config": BASE}).layers == load_spec(BASE).layers


def test_an_unknown_model_type_is_read_generically_and_says_so():
    spec = load_spec(BASE | {"model_type": "brand-new"})
    assert spec.layers == load_spec(BASE).layers
    assert "brand-new" in spec.notes[0]
    with pytest.raises(SpecError, match="weight_bytes"):
        _ = spec.n_params


@pytest.mark.parametrize(
    ("name", "alias"),
    [("num_hidden_layers", "n_layer"), ("hidden_size", "n_embd"), ("num_attention_heads", "n_head"),
     ("num_key_value_heads", "num_kv_heads")],
)  # fmt: skip
def test_aliases_are_read_and_may_not_contradict(name, alias):
    renamed = {k: v for k, v in BASE.items() if k != name} | {alias: BASE[name]}
    assert load_spec(renamed).layers == load_spec(BASE).layers
    with pytest.raises(SpecError, match=f"{name}.*{alias}.*contradict"):
        load_spec(BASE | {alias: BASE[name] + 1})


def test_window_patterns():
    window = {"sliding_window": 16}
    kinds = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]
    assert caps(BASE | window | {"model_type": "new", "layer_types": kinds}) == [None, 16, 16, None]
    assert caps(BASE | window | {"model_type": "mistral"}) == [16] * 4
    assert caps(BASE | window | {"model_type": "mistral", "use_sliding_window": False}) == [16] * 4
    assert caps(BASE | window | {"model_type": "gemma2", "head_dim": 8}) == [16, None, 16, None]
    gemma3 = BASE | window | {"model_type": "gemma3_text", "head_dim": 8, "num_hidden_layers": 7}
    assert caps(gemma3) == [16] * 5 + [None, 16]
    assert caps(gemma3 | {"sliding_window_pattern": 3}) == [16, 16, None] * 2 + [16]
    qwen = BASE | window | {"model_type": "qwen2", "max_window_layers": 3}
    assert caps(qwen) == [None] * 4
    assert caps(qwen | {"use_sliding_window": True}) == [None] * 3 + [16]


def test_a_window_that_no_context_fills_is_full_attention():
    phi = BASE | {"model_type": "phi3", "sliding_window": 1024}
    assert caps(phi) == [None] * 4
    assert caps(BASE | {"model_type": "mistral", "sliding_window": 512}) == [512] * 4


@pytest.mark.parametrize("model_type", ["llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text", "new"])
def test_no_window_means_every_layer_grows(model_type):
    config = BASE | {"model_type": model_type, "sliding_window": None, "head_dim": 8}
    assert caps(config) == [None] * 4


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"num_hidden_layers": None}, "num_hidden_layers is null"),
        ({"num_hidden_layers": -1}, "num_hidden_layers is -1"),
        ({"num_hidden_layers": True}, "num_hidden_layers is True"),
        ({"num_key_value_heads": [2, 2]}, r"num_key_value_heads is \[2, 2\]"),
        ({"num_key_value_heads": 3}, "num_key_value_heads is 3 and does not divide num_attention_heads = 8"),
        ({"num_key_value_heads": None, "model_type": "mistral", "sliding_window": None}, "num_key_value_heads is null"),
        ({"hidden_size": "64"}, "hidden_size is '64'"),
        ({"hidden_size": 60}, "add head_dim"),
        ({"head_dim": None, "model_type": "qwen3"}, "head_dim is null"),
        ({"model_type": "qwen3"}, "head_dim is absent"),
        ({"head_dim": 8.0}, "head_dim is 8.0"),
        ({"vocab_size": "32k"}, "vocab_size is '32k'"),
        ({"model_type": "mistral"}, "sliding_window is absent"),
        ({"model_type": "gpt_oss", "head_dim": 8}, "sliding_window is absent"),
        ({"model_type": "jamba", "attn_layer_period": 8}, "attn_layer_offset is absent"),
        ({"model_type": "jamba"}, "nothing says which of the 4 layers are which"),
        ({"model_type": "llama4_text", "head_dim": 8}, "attention_chunk_size is absent"),
        ({"model_type": "deepseek_v3"}, "kv_lora_rank is absent"),
        ({"model_type": "new", "cache_quantum": 3}, "cache_quantum = 3 may change what its cache holds"),
        ({"model_type": "bert"}, "reads in both directions"),
        ({"model_type": "gemma3_text", "use_bidirectional_attention": True}, "use_bidirectional_attention is True"),
        ({"model_type": "new", "is_encoder_decoder": True}, "give encoder_tokens"),
        ({"num_hidden_layers": 10**9}, "at most"),
        ({"model_type": "new", "num_kv_shared_layers": 5}, "num_kv_shared_layers is 5 and num_hidden_layers is 4"),
        ({"model_type": "new", "num_kv_shared_layers": 4}, "no earlier layer of its kind"),
        ({"model_type": ["llama"]}, r"model_type is \['llama'\]"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings is 'no'"),
        ({"layer_types": ["full_attention"]}, "layer_types"),
        ({"layer_types": ["mamba"] * 4}, "no field says what state"),
        ({"layer_types": ["retention"] * 4}, "'retention'"),
        ({"layer_types": ["sliding_attention"] * 4, "model_type": "new"}, "add sliding_window"),
        ({"sliding_window": 16, "model_type": "new"}, "add layer_types"),
        ({"sliding_window": 16}, "model_type 'llama' has no windows"),
        ({"sliding_window": "4k", "model_type": "mistral"}, "sliding_window is '4k'"),
        ({"model_type": "qwen2", "sliding_window": 16, "use_sliding_window": True}, "max_window_layers"),
        ({"model_type": "new", "kv_lora_rank": 16}, "qk_rope_head_dim"),
    ],
)
def test_what_decides_the_answer_and_is_wrong_is_named(change, names):
    with pytest.raises(SpecError, match=names):
        load_spec(BASE | change)


@pytest.mark.parametrize("field", ["num_hidden_layers", "hidden_size", "num_attention_heads"])
def test_an_absent_field_is_named(field):
    with pytest.raises(SpecError, match=f"{field} is absent"):
        load_spec({k: v for k, v in BASE.items() if k != field})


def test_absent_kv_heads_of_an_unknown_type_are_said_to_be_read_as_multi_head():
    config = {k: v for k, v in BASE.items() if k != "num_key_value_heads"} | {"model_type": "new"}
    spec = load_spec(config)
    assert spec.n_kv_heads == BASE["num_attention_heads"]
    assert "KV heads are absent" in " ".join(spec.notes)


@pytest.mark.parametrize("model", [None, 123, ["llama-2-7b"], "x" * 5000])
def test_what_names_no_model_is_refused(model):
    with pytest.raises(SpecError, match="model is"):
        load_spec(model)


def test_a_layer_shares_only_with_one_that_keeps_a_cache():
    with pytest.raises(SpecError, match="layer 0 is shared_with 99"):
        ModelSpec("toy", (Layer(shared_with=99),), n_heads=1, hidden_size=1)
    with pytest.raises(SpecError, match=r"Layer\.n_kv_heads is -1"):
        Layer(n_kv_heads=-1)


def test_files_that_are_no_config_are_refused(tmp_path):
    broken, array = tmp_path / "broken.json", tmp_path / "array.json"
    broken.write_text("{")
    array.write_text("[1]")
    with pytest.raises(SpecError, match="is not JSON"):
        load_spec(broken)
    with pytest.raises(SpecError, match="holds a list"):
        load_spec(array)
    with pytest.raises(SpecError, match="neither a file"):
        load_spec(tmp_path / "nowhere")


junk = st.none() | st.booleans() | st.integers(-5, 10**12) | st.floats() | st.text(max_size=5) | st.lists(st.integers())


@given(st.sampled_from(presets()), st.data())
def test_a_damaged_config_is_refused_or_read_never_crashes(preset, data):
    config = json.loads((MODELS / f"{preset}.json").read_text(encoding="utf-8"))["config"]
    field = data.draw(st.sampled_from(sorted(config)))
    config = {k: v for k, v in config.items() if k != field} | data.draw(st.just({}) | st.just({field: data.draw(junk)}))
    if config.get("num_hidden_layers", 0) and str(config["num_hidden_layers"]).isdigit():
        config["num_hidden_layers"] = min(int(config["num_hidden_layers"]), 200)
    try:
        spec = load_spec(config)
    except SpecError:
        return
    assert isinstance(spec, ModelSpec)
    assert kv_bytes(spec, 1000) >= 0


# --- Hub ids ----------------------------------------------------------------------------------------------------------


class _Hub:
    """A Hub that answers with one config, or not at all."""

    def __init__(self, config: object) -> None:
        self.config, self.urls = config, []

    def get(self, url: str, **_options: object) -> "_Hub":
        self.urls.append(url)
        return self

    def raise_for_status(self) -> None:
        if isinstance(self.config, Exception):
            raise self.config

    def json(self) -> object:
        return self.config


@pytest.fixture
def hub(monkeypatch):
    client = pytest.importorskip("huggingface_hub")

    def answering(config: object) -> _Hub:
        fake = _Hub(config)
        monkeypatch.setattr(client, "get_session", lambda: fake)
        monkeypatch.setattr(client, "try_to_load_from_cache", lambda *_: None)
        return fake

    return answering


def test_a_hub_id_that_is_a_preset_is_read_from_what_is_shipped(hub):
    fake = hub({})
    assert load_spec("meta-llama/Llama-2-70b-hf").layers == load_spec("llama-2-70b").layers
    assert not fake.urls


def test_another_hub_id_is_fetched_once(hub):
    fake = hub(BASE)
    spec = load_spec("someone/some-model")
    assert spec.layers == load_spec(BASE).layers
    assert (spec.name, spec.source) == ("some-model", "config.json of someone/some-model")
    assert len(fake.urls) == 1 and fake.urls[0].endswith("someone/some-model/resolve/main/config.json")


@pytest.mark.parametrize(("config", "says"), [(ConnectionError("no route"), "no route"), ([1], "holds a list")])
def test_a_hub_that_does_not_help_says_why_and_what_to_do(hub, config, says):
    hub(config)
    with pytest.raises(SpecError, match=says):
        load_spec("someone/some-model")


def test_without_the_hub_client_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(SpecError, match="pip install huggingface_hub"):
        load_spec("someone/some-model")


# --- notes and overrides ----------------------------------------------------------------------------------------------


def test_an_override_replaces_the_field_under_whatever_name_it_stands_there():
    gpt = {"model_type": "gpt2", "n_layer": 4, "n_embd": 64, "n_head": 8, "vocab_size": 100, "n_positions": 512}
    assert load_spec(gpt, num_hidden_layers=2).n_layers == load_spec(gpt, n_layers=2).n_layers == 2
    assert load_spec(BASE, n_kv_heads=4).n_kv_heads == 4
    assert load_spec("whisper-large-v3", num_hidden_layers=4).n_layers == 4


def test_an_override_that_decides_nothing_is_named():
    blocks = [{"attention": {"n_heads_in_group": 4}}] * 4
    searched = BASE | {"model_type": "nemotron-nas", "block_configs": blocks, "num_key_value_heads": None}
    assert "num_key_value_heads changes no number" in " ".join(load_spec(searched, num_key_value_heads=4).notes)
    assert not load_spec(BASE, num_key_value_heads=4).notes
    assert not load_spec(BASE, num_key_value_heads=2).notes


def test_a_decoy_of_another_class_changes_nothing_and_cannot_be_set():
    decoys = {"v_head_dim": 4, "multi_query": True, "kv_lora_rank": 8, "num_kv_shared_layers": 2, "use_cla": True,
              "attention_chunk_size": 4, "decoder_layers": 2}  # fmt: skip
    assert load_spec(BASE | decoys).layers == load_spec(BASE).layers
    with pytest.raises(SpecError, match="no field 'kv_lora_rank' is read for model_type 'llama'"):
        load_spec(BASE, kv_lora_rank=8)


def test_a_known_type_with_code_of_its_own_is_guarded_too():
    custom = BASE | {"auto_map": {"AutoConfig": "configuration_x.X"}}
    assert load_spec(custom).layers == load_spec(BASE).layers
    with pytest.raises(SpecError, match="cache_quantum = 3"):
        load_spec(custom | {"cache_quantum": 3})


def test_latent_attention_can_be_switched_off():
    plain = {k: v for k, v in BASE.items() if k != "vocab_size"} | {"model_type": "deepseek_v2", "use_mla": False}
    assert load_spec(plain | {"kv_lora_rank": None, "v_head_dim": 0}).layers == load_spec(BASE).layers


def test_what_a_spec_leaves_out_is_noted():
    assert "text decoder only" in load_spec({"text_config": BASE}).notes[0]
    jamba = load_spec("jamba-v0.1")
    assert "recurrent state is not given" in jamba.notes[0]
    assert load_spec("jamba-v0.1", mamba_ssm_dtype="float32").notes == ()


def test_a_deeply_nested_file_is_refused(tmp_path):
    (tmp_path / "config.json").write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(SpecError, match="is not JSON"):
        load_spec(tmp_path)


@pytest.mark.parametrize("name", [
    "initial_kv_window", "infinite_attention_window", "normal_window_size", "rope_window", "partial_kv_layers",
    "moe_attention_heads", "expert_kv_heads", "kv_bias_cache_tokens", "scaled_kv_heads", "num_memory_tokens", "loop_count",
])  # fmt: skip
def test_a_field_that_may_change_the_cache_of_an_unknown_type_is_not_passed_over(name):
    with pytest.raises(SpecError, match=f"{name} = 3 may change"):
        load_spec(BASE | {"model_type": "new", name: 3})


@pytest.mark.parametrize("name", [
    "attention_dropout", "attention_bias", "use_qk_norm", "attn_logit_softcapping", "query_pre_attn_scalar", "rope_local_base_freq",
    "attention_probs_dropout_prob", "shared_expert_intermediate_size", "n_shared_experts", "_attn_implementation", "n_group",
    "attention_softmax_in_fp32", "num_logits_to_keep", "attention_multiplier", "chunk_size_feed_forward", "use_cache",
])  # fmt: skip
def test_an_ordinary_field_of_an_unknown_type_is_no_reason_to_refuse(name):
    assert load_spec(BASE | {"model_type": "new", name: 3}).layers == load_spec(BASE).layers


def test_a_path_is_never_a_preset_and_a_mistyped_one_no_hub_id(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpt-2").mkdir()
    (tmp_path / "gpt-2" / "config.json").write_text(json.dumps(BASE))
    assert load_spec(tmp_path / "gpt-2").layers == load_spec("./gpt-2").layers == load_spec(BASE).layers
    assert load_spec("gpt-2").name == "GPT-2"
    for wrong in ("gpt-2/llama.json", "gpt-2/nothing", "configs/llama.json", "https://example.com/x/y"):
        with pytest.raises(SpecError, match=f"model is '{wrong}': neither a file"):
            load_spec(wrong)


@pytest.mark.parametrize("per_layer", [[1], {"0": 5}, {"99": {"head_dim": 4}}, {"first": {}}], ids=str)
def test_fields_of_single_layers_that_make_no_sense_are_refused(per_layer):
    with pytest.raises(SpecError, match="per_layer_config"):
        load_spec(BASE | {"per_layer_config": per_layer})
