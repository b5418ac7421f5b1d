"""The right answers for every shipped model, and the traps that known calculators fall into. All sizes in bytes, bf16."""

from collections import Counter

import pytest
from models_table import ANSWERS, FIELDS

from kvlib import GiB, SpecError, kv_bytes, kv_growth, load_spec, presets
from kvlib.sources import shipped

NEED_AN_ENCODER = {"bart-large-cnn": 12 * 16 * 128 * 2, "t5-small": 6 * 8 * 128 * 2}  # bytes per token, encoder's included


def config_of(preset: str, **changes: object) -> dict:
    """The preset's config with fields replaced; `...` removes a field."""
    config = shipped(preset)["config"] | changes
    return {field: value for field, value in config.items() if value is not ...}


def text_of(preset: str) -> dict:
    """The fields of the preset's text decoder, and the tying that may stay on top."""
    config = shipped(preset)["config"]
    return config.get("text_config", config) | {k: config[k] for k in ("tie_word_embeddings",) if k in config}


def early(model: str | dict, kv_dtype: str = "bf16", **given: object) -> int:
    return kv_growth(load_spec(model, **given), kv_dtype=kv_dtype).per_token_early


def test_every_preset_has_its_right_answer():
    assert sorted([*ANSWERS, *NEED_AN_ENCODER]) == presets()
    assert len(presets()) >= 62


@pytest.mark.parametrize("preset", presets())
def test_a_preset_says_what_it_is_and_where_its_fields_were_read(preset):
    data = shipped(preset)
    assert set(data) == {"name", "hub_id", "source", "config"}
    assert data["name"].lower() == preset
    assert data["hub_id"] in data["source"]
    assert data["config"]["architectures"] and data["config"]["model_type"]


@pytest.mark.parametrize(("preset", "answer"), ANSWERS.items(), ids=ANSWERS)
def test_a_preset_gives_the_right_bytes(preset, answer):
    spec = load_spec(preset)
    growth = kv_growth(spec, kv_dtype="bf16")
    _, *expected, n_tokens, total = answer
    assert [growth.per_token_early, growth.per_token_late, growth.capped, growth.constant] == expected
    assert kv_bytes(spec, n_tokens=n_tokens, batch=1, kv_dtype="bf16") == total


@pytest.mark.parametrize("preset", [p for p, answer in ANSWERS.items() if answer[0]])
def test_a_preset_gives_the_right_number_of_parameters(preset):
    assert f"{load_spec(preset).n_params / 1e9:.3f}" == ANSWERS[preset][0]


@pytest.mark.parametrize(("preset", "row"), FIELDS.items(), ids=FIELDS)
def test_a_preset_has_the_fields_of_the_config_table(preset, row):
    n_layers, hidden, n_heads, n_kv_heads, head_dim, vocab, tied, longest = row
    spec, text = load_spec(preset), text_of(preset)
    assert (spec.n_layers, spec.hidden_size, spec.n_heads) == (n_layers, hidden, n_heads)
    assert text["vocab_size"] == vocab
    assert text.get("tie_word_embeddings", tied) == tied
    assert spec.max_position_embeddings == longest
    kept = {(layer.n_kv_heads, layer.k_dim, layer.v_dim) for layer in spec.layers if layer.values_per_token}
    assert kept == {(n_kv_heads, head_dim, head_dim) if head_dim else (0, 0, 0)}


# --- head_dim ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "naive"), [("gemma-1-7b", 344_064), ("gemma-3-27b", 666_624), ("qwen3-32b", 163_840),
                                               ("gpt-oss-20b", 34_560), ("mistral-small-3-24b", 204_800)])  # fmt: skip
def test_an_explicit_head_dim_wins_over_hidden_size_by_heads(preset, naive):
    c = config_of(preset)
    derived = c["hidden_size"] // c["num_attention_heads"]
    assert 2 * c["num_hidden_layers"] * c["num_key_value_heads"] * derived * 2 == naive
    assert early(c) == ANSWERS[preset][1] != naive


@pytest.mark.parametrize("head_dim", [None, 0, ...], ids=["null", "zero", "absent"])
def test_a_head_dim_of_nothing_means_derived(head_dim):
    assert early(config_of("llama-3-8b", head_dim=head_dim)) == 131_072


@pytest.mark.parametrize("preset", ["glm-4.5", "llama-3-8b"])
def test_a_head_dim_that_does_not_come_out_whole_raises(preset):
    glm_4_5 = config_of(preset, num_hidden_layers=92, hidden_size=5120, num_attention_heads=96, head_dim=...)  # 53.33
    with pytest.raises(SpecError, match="head_dim"):
        load_spec(glm_4_5)
    assert early(glm_4_5 | {"head_dim": 128}) == 376_832


@pytest.mark.parametrize("name", ["attention_head_dim", "kv_channels"])
def test_head_dim_has_other_names(name):
    assert early(config_of("mistral-small-3-24b", head_dim=..., **{name: 128})) == 163_840


def test_nemotron_h_publishes_one_of_them():
    assert config_of("nemotron-h-56b")["attention_head_dim"] == 128
    assert early(config_of("nemotron-h-56b", attention_head_dim=64)) == ANSWERS["nemotron-h-56b"][1] // 2


@pytest.mark.parametrize(("preset", "decoy"), [("glm-5", 64), ("kimi-linear-48b-a3b", 72)])
def test_the_head_dim_of_a_latent_config_is_a_decoy(preset, decoy):
    assert config_of(preset)["head_dim"] == decoy
    assert early(config_of(preset, head_dim=decoy + 8)) == early(config_of(preset, head_dim=...)) == ANSWERS[preset][1]


def test_v_may_be_narrower_than_k_and_window_layers_may_have_their_own_heads():
    kinds = Counter((layer.n_kv_heads, layer.k_dim, layer.v_dim) for layer in load_spec("mimo-v2-flash").layers)
    assert kinds == {(4, 192, 128): 9, (8, 192, 128): 39}


def test_global_layers_may_have_heads_of_their_own():
    kinds = Counter((layer.window, layer.n_kv_heads, layer.k_dim) for layer in load_spec("gemma-4-26b-a4b").layers)
    assert kinds == {(1024, 8, 256): 25, (None, 2, 512): 5}


# --- KV heads ---------------------------------------------------------------------------------------------------------


def test_llama_2_70b_with_multi_head_attention_is_10_gib_at_4096_tokens():
    spec = load_spec(config_of("llama-2-70b", num_key_value_heads=64))
    assert kv_bytes(spec, n_tokens=4096, batch=1, kv_dtype="bf16") == 10 * GiB


def test_multi_query_is_one_head_whatever_num_kv_heads_says():
    c = config_of("falcon-7b")
    assert (c["num_kv_heads"], c["num_attention_heads"]) == (71, 71)
    assert 71 * early(c) == 2 * 32 * 71 * 64 * 2
    assert early(c | {"multi_query": False}) == 71 * early(c)


def test_the_new_decoder_architecture_has_the_kv_heads_it_names_multi_query_or_not():
    c = config_of("falcon-40b")
    assert c["multi_query"] and c["new_decoder_architecture"]
    assert early(c) == 8 * early(c | {"new_decoder_architecture": False}) == 122_880


@pytest.mark.parametrize("kv_heads", [None, ...], ids=["null", "absent"])
def test_no_kv_heads_means_multi_head_attention(kv_heads):
    assert early(config_of("llama-2-70b", num_key_value_heads=kv_heads)) == 8 * 327_680


def test_kv_heads_that_are_null_may_be_named_layer_by_layer():
    c = config_of("nemotron-super-49b-v1")
    assert c["num_key_value_heads"] is None
    assert sum(layer.values_per_token > 0 for layer in load_spec(c).layers) == 49
    assert early(c) == 49 * 4096


@pytest.mark.parametrize(("change", "less"), [({"no_op": True}, 4096), ({"replace_with_linear": True}, 4096),
                                              ({"n_heads_in_group": 16}, 2048)], ids=str)  # fmt: skip
def test_a_block_of_a_searched_architecture_may_hold_nothing_or_fewer_heads(change, less):
    first, *others = config_of("nemotron-super-49b-v1")["block_configs"]
    first = first | {"attention": first["attention"] | change}
    assert early(config_of("nemotron-super-49b-v1", block_configs=[first, *others])) == 200_704 - less


@pytest.mark.parametrize("alias", ["n_head_kv", "num_kv_heads", "n_kv_heads", "multi_query_group_num", "num_attention_groups"])
def test_kv_heads_have_other_names(alias):
    assert early(config_of("llama-3-8b", num_key_value_heads=..., **{alias: 4})) == 131_072 // 2


def test_kv_heads_may_stand_in_attn_config():
    grouped = config_of("mpt-7b")["attn_config"] | {"kv_n_heads": 8}
    assert early(config_of("mpt-7b", attn_config=grouped)) == 524_288 // 4


@pytest.mark.parametrize(("field", "aliases"), [("num_hidden_layers", ("n_layer", "n_layers", "num_layers")),
                                                ("hidden_size", ("n_embd", "d_model"))])  # fmt: skip
def test_layers_and_hidden_size_have_other_names(field, aliases):
    for alias in aliases:
        c = config_of("llama-3-8b", **{field: ..., alias: config_of("llama-3-8b")[field]})
        assert early(c) == 131_072


def test_kv_heads_that_do_not_divide_the_query_heads_raise():
    with pytest.raises(SpecError, match="num_key_value_heads"):
        load_spec(config_of("llama-2-70b", num_key_value_heads=7))


# --- MLA --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decoy", [{"num_key_value_heads": 1}, {"num_key_value_heads": ...}, {"head_dim": 192},
                                   {"v_head_dim": 64}], ids=str)  # fmt: skip
def test_mla_keeps_one_latent_and_no_heads(decoy):
    assert early(config_of("deepseek-v3", **decoy)) == 61 * (512 + 64) * 2
    assert early("deepseek-v3") not in (4_997_120, 1_748_992, 124_928, 62_464)  # heads expanded, twice, no rotary part …


def test_every_tensor_parallel_rank_holds_the_whole_latent():
    spec = load_spec("deepseek-v3")
    assert kv_bytes(spec, n_tokens=1000, tp=8) == kv_bytes(spec, n_tokens=1000) == 70_272_000


def test_fp8_ds_mla_is_656_bytes_per_token_and_layer():
    assert early("deepseek-v3", "fp8_ds_mla") == 61 * 656


@pytest.mark.parametrize(("preset", "n_layers"), [("deepseek-v3.2", 61), ("glm-5", 78)])
def test_a_sparse_indexer_adds_132_bytes_per_token_and_layer_whatever_the_kv_dtype(preset, n_layers):
    assert early(preset) == n_layers * (1152 + 132)
    assert early(preset, "fp8_ds_mla") == n_layers * (656 + 132)


@pytest.mark.parametrize(("preset", "more"), [("deepseek-v3", 1152), ("glm-4.5", 4096)])
def test_layers_for_multi_token_prediction_count_only_when_asked_for(preset, more):
    assert early(preset, mtp=True) == ANSWERS[preset][1] + more


# --- windows, chunks and other patterns -------------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "n_layers", "grow"), [
    ("mistral-7b-v0.1", 32, []), ("mistral-7b-v0.3", 32, range(32)),
    ("gpt-oss-20b", 24, range(1, 24, 2)), ("exaone-4.0-32b", 64, range(3, 64, 4)),  # layer_types
    ("granite-4.0-h-tiny", 40, [5, 15, 25, 35]), ("qwen3.5-35b-a3b", 40, range(3, 40, 4)),  # layer_types
    ("gemma-3-27b", 62, range(5, 62, 6)),  # sliding_window_pattern
    ("gemma-2-9b", 42, range(1, 42, 2)),  # the class alternates
    ("command-r7b", 32, range(3, 32, 4)), ("llama-4-scout", 48, range(3, 48, 4)),  # the class: every fourth
    ("mimo-v2-flash", 48, [0, 5, 11, 17, 23, 29, 35, 41, 47]),  # hybrid_layer_pattern
    ("minimax-m1-80k", 80, range(7, 80, 8)),  # attn_type_list
    ("nemotron-h-56b", 118, range(7, 107, 11)),  # hybrid_override_pattern
    ("nemotron-3-ultra-550b-a55b", 108, [7, 14, 23, 32, 39, 48, 57, 64, 73, 82, 89, 98]),  # layers_block_type
    ("qwen3-next-80b-a3b", 48, range(3, 48, 4)),  # full_attention_interval
    ("jamba-v0.1", 32, range(4, 32, 8)),  # attn_layer_period, attn_layer_offset
    ("kimi-linear-48b-a3b", 27, [3, 7, 11, 15, 19, 23, 26]),  # full_attn_layers, counted from 1
    ("lfm2-350m", 16, [2, 5, 8, 10, 12, 14]),  # full_attn_idxs, counted from 0
    ("recurrentgemma-2b", 26, []),  # _block_types, repeated
    ("gemma-3n-e4b", 35, [4, 9, 14, 19]),  # layer_types, the last 15 of them shared
    ("nemotron-3-nano-30b-a3b", 52, [5, 12, 19, 26, 33, 42])])  # fmt: skip
def test_the_layers_that_grow_without_end_are_the_right_ones(preset, n_layers, grow):
    layers = load_spec(preset).layers
    assert len(layers) == n_layers
    assert [i for i, layer in enumerate(layers) if layer.values_per_token and layer.cap is None] == list(grow)


def test_a_window_that_is_switched_off_is_no_window():
    assert config_of("qwen2.5-7b")["sliding_window"] == 131_072
    assert kv_growth(load_spec("qwen2.5-7b"), kv_dtype="bf16").capped == 0
    small = load_spec(config_of("qwen2.5-7b", sliding_window=1024, use_sliding_window=False))
    assert kv_bytes(small, n_tokens=32_768, batch=1, kv_dtype="bf16") == 1_879_048_192


@pytest.mark.parametrize("window", [None, 262_144], ids=["null", "above the maximum position"])
def test_a_window_that_never_bites_is_full_attention(window):
    growth = kv_growth(load_spec(config_of("mistral-7b-v0.1", sliding_window=window)), kv_dtype="bf16")
    assert (growth.per_token_late, growth.capped) == (131_072, 0)


@pytest.mark.parametrize("preset", ["phi-3-mini-128k", "phi-4-mini"])
def test_phi_publishes_such_a_window(preset):
    assert config_of(preset)["sliding_window"] == 262_144 > config_of(preset)["max_position_embeddings"]


@pytest.mark.parametrize(("preset", "naive", "gib"), [("gemma-3-27b", 62, "10.406"), ("gpt-oss-120b", 9, "4.504"),
                                                      ("llama-4-scout", 24, "7.125")])  # fmt: skip
def test_windows_and_chunks_make_the_difference_at_131072_tokens(preset, naive, gib):
    spec = load_spec(preset)
    assert kv_growth(spec).per_token_early * 131_072 == naive * GiB
    assert f"{kv_bytes(spec, n_tokens=131_072) / GiB:.3f}" == gib


# --- sharing, hybrids, constants --------------------------------------------------------------------------------------


def test_gemma_3n_keeps_20_of_its_35_layers():
    layers = load_spec("gemma-3n-e4b").layers
    assert [i for i, layer in enumerate(layers) if layer.shared_with is not None] == list(range(20, 35))
    assert all(layers[layer.shared_with].window == layer.window for layer in layers[20:])


def test_no_shared_layer_is_not_every_layer():
    text = config_of("gemma-3n-e4b")["text_config"] | {"num_kv_shared_layers": 0}
    assert early(config_of("gemma-3n-e4b", text_config=text)) == 35 * 2048


@pytest.mark.parametrize("switch", [False, ...], ids=["off", "absent"])
def test_a_share_factor_counts_only_with_its_switch(switch):
    assert early(config_of("hunyuan-large", use_cla=switch)) == 2 * early("hunyuan-large") == 2 * 81_920


@pytest.mark.parametrize("preset", [p for p, answer in ANSWERS.items() if answer[4] and p != "whisper-large-v3"])
def test_a_kv_dtype_does_not_shrink_a_state(preset):
    spec = load_spec(preset)
    assert kv_growth(spec, kv_dtype="fp8").constant == kv_growth(spec, kv_dtype="bf16").constant > 0
    assert kv_growth(spec, kv_dtype="fp8").per_token_early == kv_growth(spec, kv_dtype="bf16").per_token_early // 2


def test_a_state_has_a_dtype_of_its_own():
    text = config_of("qwen3.5-35b-a3b")["text_config"]
    assert text["mamba_ssm_dtype"] == "float32"
    narrow = load_spec(config_of("qwen3.5-35b-a3b", text_config=text | {"mamba_ssm_dtype": "bfloat16"}))
    assert kv_growth(load_spec("qwen3.5-35b-a3b")).constant - kv_growth(narrow).constant == 30 * 32 * 128 * 128 * 2


@pytest.mark.parametrize(("preset", "per_token"), NEED_AN_ENCODER.items())
def test_an_encoder_of_unknown_length_is_asked_for(preset, per_token):
    with pytest.raises(SpecError, match="encoder_tokens"):
        load_spec(preset)
    growth = kv_growth(load_spec(preset, encoder_tokens=1000))
    assert (growth.per_token_early, growth.constant) == (per_token, 1000 * per_token)


# --- nested, incomplete and malformed ---------------------------------------------------------------------------------


def test_a_nested_text_config_is_descended_and_tying_may_stay_on_top():
    nested = {"model_type": "llava", "text_config": config_of("llama-3-8b", tie_word_embeddings=...),
              "tie_word_embeddings": True}  # fmt: skip
    assert early(nested) == 131_072
    assert load_spec(nested).n_params == load_spec("llama-3-8b").n_params - 128_256 * 4096


@pytest.mark.parametrize("preset", ["llama-4-scout", "llama-4-maverick", "gemma-3n-e4b", "gemma-4-26b-a4b", "qwen3.5-35b-a3b",
                                    "ministral-3-3b"])  # fmt: skip
def test_a_preset_that_is_published_nested_is_its_text_decoder(preset):
    assert "text_config" in config_of(preset)
    assert load_spec(preset).layers == load_spec(text_of(preset)).layers


def test_gemma_3_as_published_gives_its_cache_and_names_the_field_its_parameters_lack():
    text = config_of("gemma-3-27b", vocab_size=..., max_position_embeddings=..., sliding_window_pattern=...)
    spec = load_spec({"model_type": "gemma3", "text_config": text})
    assert kv_bytes(spec, n_tokens=131_072) == 11_173_625_856
    with pytest.raises(SpecError, match="vocab_size"):
        _ = spec.n_params


@pytest.mark.parametrize("field", ["num_attention_heads", "num_key_value_heads", "head_dim"])
def test_a_nested_config_that_relies_on_its_class_is_refused_by_the_field_it_lacks(field):
    text = config_of("gemma-3-4b", **{field: ...})
    with pytest.raises(SpecError, match=field):
        load_spec({"model_type": "gemma3", "text_config": text})


@pytest.mark.parametrize("field", ["vocab_size", "intermediate_size"])
def test_a_field_of_the_weights_alone_is_named_when_they_are_counted(field):
    spec = load_spec(config_of("llama-3-8b", **{field: ...}))
    assert kv_bytes(spec, n_tokens=1) == 131_072
    with pytest.raises(SpecError, match=field):
        _ = spec.n_params


@pytest.mark.parametrize("field", ["num_hidden_layers", "num_attention_heads", "hidden_size"])
def test_an_absent_field_raises_and_is_named(field):
    with pytest.raises(SpecError, match=field):
        load_spec(config_of("llama-3-8b", **{field: ...}))


@pytest.mark.parametrize("value", [[8, 8], "8", -2, True], ids=str)
@pytest.mark.parametrize("field", ["num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
                                   "hidden_size", "intermediate_size", "sliding_window"])  # fmt: skip
def test_a_field_that_is_no_count_raises_and_is_named(field, value):
    with pytest.raises(SpecError, match=field):
        load_spec(config_of("mistral-7b-v0.1", **{field: value}))


# --- what does not decide, and units ----------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["deepseek-v3", "minimax-m2.5", "gemma-2-9b", "gpt-oss-20b"],
                         ids=["fp8 weights", "fp8 too", "float32 weights", "mxfp4 experts"])  # fmt: skip
def test_how_weights_are_stored_does_not_decide_how_the_cache_is(preset):
    spec = load_spec(preset)
    assert kv_bytes(spec, n_tokens=100) == kv_bytes(spec, n_tokens=100, kv_dtype="bf16") == 100 * ANSWERS[preset][1]


def test_128k_is_two_numbers():
    spec = load_spec("llama-3.1-8b")
    assert kv_bytes(spec, n_tokens=128_000, batch=1, kv_dtype="bf16") == 15.625 * GiB
    assert kv_bytes(spec, n_tokens=131_072, batch=1, kv_dtype="bf16") == 16 * GiB
