"""Published right answers per model, and the traps that known calculators fall into. All sizes in bytes, bf16."""

import json
from importlib.resources import files

import pytest

from kvlib import GiB, SpecError, kv_bytes, kv_growth, load_spec, presets

# preset: billions of parameters, bytes per token early, late, capped part, N, KV at N
ANSWERS = {
    "llama-2-7b": ("6.738", 524_288, 524_288, 0, 4096, 2_147_483_648),
    "llama-2-13b": ("13.016", 819_200, 819_200, 0, 4096, 3_355_443_200),
    "llama-2-70b": ("68.977", 327_680, 327_680, 0, 4096, 1_342_177_280),
    "llama-3-8b": ("8.030", 131_072, 131_072, 0, 8192, 1_073_741_824),
    "llama-3-70b": ("70.554", 327_680, 327_680, 0, 8192, 2_684_354_560),
    "llama-3.1-8b": ("8.030", 131_072, 131_072, 0, 131_072, 16 * GiB),
    "llama-3.1-70b": ("70.554", 327_680, 327_680, 0, 131_072, 40 * GiB),
    "llama-3.1-405b": ("405.853", 516_096, 516_096, 0, 131_072, 67_645_734_912),
    "mistral-7b-v0.1": ("7.242", 131_072, 0, 536_870_912, 32_768, 536_870_912),
    "mistral-7b-v0.3": ("7.248", 131_072, 131_072, 0, 32_768, 4_294_967_296),
    "qwen2.5-7b": ("7.616", 57_344, 57_344, 0, 32_768, 1_879_048_192),
    "qwen2.5-72b": ("72.706", 327_680, 327_680, 0, 32_768, 10_737_418_240),
    "qwen3-8b": ("8.191", 147_456, 147_456, 0, 40_960, 6_039_797_760),
    "qwen3-32b": ("32.762", 262_144, 262_144, 0, 40_960, 10_737_418_240),
    "gemma-2-9b": ("9.242", 344_064, 172_032, 704_643_072, 8192, 2_113_929_216),
    "gemma-3-27b": ("27.009", 507_904, 81_920, 436_207_616, 131_072, 11_173_625_856),
    "gpt-oss-20b": ("20.915", 49_152, 24_576, 3_145_728, 131_072, 3_224_371_200),
    "gpt-oss-120b": ("116.829", 73_728, 36_864, 4_718_592, 131_072, 4_836_556_800),
    "deepseek-v3": ("671.026", 70_272, 70_272, 0, 131_072, 9_210_691_584),
}


def shipped(preset: str) -> dict:
    return json.loads(files("kvlib").joinpath("models", f"{preset}.json").read_text(encoding="utf-8"))


def config_of(preset: str, **changes: object) -> dict:
    """The preset's config with fields replaced; `...` removes a field."""
    config = shipped(preset)["config"] | changes
    return {field: value for field, value in config.items() if value is not ...}


def early(config: dict) -> int:
    return kv_growth(load_spec(config), kv_dtype="bf16").per_token_early


def test_every_preset_has_its_right_answer():
    assert sorted(ANSWERS) == presets()


@pytest.mark.parametrize("preset", ANSWERS)
def test_a_preset_says_what_it_is_and_where_its_fields_were_read(preset):
    data = shipped(preset)
    assert set(data) == {"name", "hub_id", "source", "config"}
    assert data["name"].lower() == preset
    assert data["hub_id"] in data["source"]


@pytest.mark.parametrize(("preset", "answer"), ANSWERS.items(), ids=ANSWERS)
def test_a_preset_gives_the_right_answers(preset, answer):
    spec = load_spec(preset)
    growth = kv_growth(spec, kv_dtype="bf16")
    billions, early, late, capped, n_tokens, total = answer
    assert f"{spec.n_params / 1e9:.3f}" == billions
    assert (growth.per_token_early, growth.per_token_late, growth.capped) == (early, late, capped)
    assert growth.constant == 0
    assert kv_bytes(spec, n_tokens=n_tokens, batch=1, kv_dtype="bf16") == total


# model_type, layers, hidden, query heads, kv heads, head_dim, vocab, tied, ffn, max pos, more fields,
# then billions of parameters, early, N, KV at N
OTHERS = {
    "Llama-3.2-1B": ("llama", 16, 2048, 32, 8, 64, 128256, True, 8192, 131_072, {},
                     "1.236", 32_768, 131_072, 4_294_967_296),
    "Llama-3.2-3B": ("llama", 28, 3072, 24, 8, 128, 128256, True, 8192, 131_072, {},
                     "3.213", 114_688, 131_072, 15_032_385_536),
    "SmolLM2-135M": ("llama", 30, 576, 9, 3, None, 49152, True, 1536, 8192, {},
                     "0.135", 23_040, 8192, 188_743_680),
    "Mistral-Small-3-24B": ("mistral", 40, 5120, 32, 8, 128, 131072, False, 32768, 32_768,
                            {"sliding_window": None}, "23.572", 163_840, 32_768, 5_368_709_120),
    "Mistral-Large-2407": ("mistral", 88, 12288, 96, 8, None, 32768, False, 28672, 131_072,
                           {"sliding_window": None}, "122.610", 360_448, 131_072, 47_244_640_256),
    "Qwen3-0.6B": ("qwen3", 28, 1024, 16, 8, 128, 151936, True, 3072, 40_960, {},
                   "0.596", 114_688, 40_960, 4_697_620_480),
    "Gemma-1-2B": ("gemma", 18, 2048, 8, 1, 256, 256000, True, 16384, 8192, {},
                   "2.506", 18_432, 8192, 150_994_944),
    "Gemma-1-7B": ("gemma", 28, 3072, 16, 16, 256, 256000, True, 24576, 8192, {},
                   "8.538", 458_752, 8192, 3_758_096_384),
    "Gemma-2-2B": ("gemma2", 26, 2304, 8, 4, 256, 256000, True, 9216, 8192, {"sliding_window": 4096},
                   "2.614", 106_496, 8192, 654_311_424),
    "Gemma-3-1B": ("gemma3_text", 26, 1152, 4, 1, 256, 262144, True, 6912, 32_768, {"sliding_window": 512},
                   "1.000", 26_624, 32_768, 145_752_064),
    "Gemma-3-4B": ("gemma3_text", 34, 2560, 8, 4, 256, 262208, True, 10240, 131_072, {"sliding_window": 1024},
                   "3.880", 139_264, 131_072, 2_805_989_376),
    "Gemma-3-12B": ("gemma3_text", 48, 3840, 16, 8, 256, 262208, True, 15360, 131_072, {"sliding_window": 1024},
                    "11.766", 393_216, 131_072, 8_925_478_912),
}  # fmt: skip


@pytest.mark.parametrize("row", OTHERS.values(), ids=OTHERS)
def test_a_config_that_is_no_preset_gives_the_right_answers_too(row):
    model_type, layers, hidden, heads, kv_heads, head_dim, vocab, tied, ffn, positions, more, *answers = row
    spec = load_spec({"model_type": model_type, "num_hidden_layers": layers, "hidden_size": hidden,
                      "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": head_dim,
                      "vocab_size": vocab, "tie_word_embeddings": tied, "intermediate_size": ffn,
                      "max_position_embeddings": positions, **more})  # fmt: skip
    billions, per_token, n_tokens, total = answers
    assert f"{spec.n_params / 1e9:.3f}" == billions
    assert kv_growth(spec, kv_dtype="bf16").per_token_early == per_token
    assert kv_bytes(spec, n_tokens=n_tokens, batch=1, kv_dtype="bf16") == total


# --- head_dim ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "naive"), [("gemma-3-27b", 666_624), ("qwen3-32b", 163_840),
                                               ("gpt-oss-20b", 34_560)])  # fmt: skip
def test_an_explicit_head_dim_wins_over_hidden_size_by_heads(preset, naive):
    c = config_of(preset)
    derived = c["hidden_size"] // c["num_attention_heads"]
    assert 2 * c["num_hidden_layers"] * c["num_key_value_heads"] * derived * 2 == naive
    assert early(c) == ANSWERS[preset][1] != naive


@pytest.mark.parametrize("head_dim", [None, 0, ...], ids=["null", "zero", "absent"])
def test_a_head_dim_of_nothing_means_derived(head_dim):
    assert early(config_of("llama-3-8b", head_dim=head_dim)) == 131_072


def test_a_head_dim_that_does_not_come_out_whole_raises():
    glm_4_5 = config_of("llama-3-8b", num_hidden_layers=92, hidden_size=5120, num_attention_heads=96)  # 53.33
    with pytest.raises(SpecError, match="head_dim"):
        load_spec(glm_4_5)
    assert early(glm_4_5 | {"head_dim": 128}) == 376_832


# --- KV heads ---------------------------------------------------------------------------------------------------------


def test_llama_2_70b_with_multi_head_attention_is_10_gib_at_4096_tokens():
    spec = load_spec(config_of("llama-2-70b", num_key_value_heads=64))
    assert kv_bytes(spec, n_tokens=4096, batch=1, kv_dtype="bf16") == 10 * GiB


@pytest.mark.parametrize("kv_heads", [None, ...], ids=["null", "absent"])
def test_no_kv_heads_means_multi_head_attention(kv_heads):
    assert early(config_of("llama-2-70b", num_key_value_heads=kv_heads)) == 8 * 327_680


def test_kv_heads_that_do_not_divide_the_query_heads_raise():
    with pytest.raises(SpecError, match="num_key_value_heads"):
        load_spec(config_of("llama-2-70b", num_key_value_heads=7))


# --- windows ----------------------------------------------------------------------------------------------------------


def test_a_window_that_is_switched_off_is_no_window():
    assert config_of("qwen2.5-7b")["sliding_window"] == 131_072
    assert kv_growth(load_spec("qwen2.5-7b"), kv_dtype="bf16").capped == 0
    small = load_spec(config_of("qwen2.5-7b", sliding_window=1024, use_sliding_window=False))
    assert kv_bytes(small, n_tokens=32_768, batch=1, kv_dtype="bf16") == 1_879_048_192


@pytest.mark.parametrize("window", [None, 262_144], ids=["null", "above the maximum position"])
def test_a_window_that_never_bites_is_full_attention(window):
    growth = kv_growth(load_spec(config_of("mistral-7b-v0.1", sliding_window=window)), kv_dtype="bf16")
    assert (growth.per_token_late, growth.capped) == (131_072, 0)


@pytest.mark.parametrize(("preset", "full_layers"), [
    ("gemma-2-9b", range(1, 42, 2)), ("gemma-3-27b", range(5, 62, 6)), ("gpt-oss-20b", range(1, 24, 2)),
    ("mistral-7b-v0.1", []), ("mistral-7b-v0.3", range(32))])  # fmt: skip
def test_the_full_layers_are_the_right_ones(preset, full_layers):
    assert [i for i, layer in enumerate(load_spec(preset).layers) if layer.window is None] == list(full_layers)


# --- MLA --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decoy", [{"num_key_value_heads": 1}, {"num_key_value_heads": ...}, {"head_dim": 192},
                                   {"v_head_dim": 64}], ids=str)  # fmt: skip
def test_mla_keeps_one_latent_and_no_heads(decoy):
    assert early(config_of("deepseek-v3", **decoy)) == 61 * (512 + 64) * 2


# --- nested, incomplete and malformed ---------------------------------------------------------------------------------


def test_a_nested_text_config_is_descended_and_tying_may_stay_on_top():
    nested = {"model_type": "llava", "text_config": config_of("llama-3-8b", tie_word_embeddings=...),
              "tie_word_embeddings": True}  # fmt: skip
    assert early(nested) == 131_072
    assert load_spec(nested).n_params == load_spec("llama-3-8b").n_params - 128_256 * 4096


def test_gemma_3_as_published_gives_its_cache_and_names_the_field_its_parameters_lack():
    text = config_of("gemma-3-27b", vocab_size=..., max_position_embeddings=..., sliding_window_pattern=...)
    spec = load_spec({"model_type": "gemma3", "text_config": text})
    assert kv_bytes(spec, n_tokens=131_072) == 11_173_625_856
    with pytest.raises(SpecError, match="vocab_size"):
        _ = spec.n_params


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


@pytest.mark.parametrize("value", [[8, 8], "8", -1, True], ids=str)
@pytest.mark.parametrize("field", ["num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
                                   "hidden_size", "intermediate_size", "sliding_window"])  # fmt: skip
def test_a_field_that_is_no_count_raises_and_is_named(field, value):
    with pytest.raises(SpecError, match=field):
        load_spec(config_of("mistral-7b-v0.1", **{field: value}))


# --- what does not decide ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["deepseek-v3", "gemma-2-9b"], ids=["fp8 weights", "float32 weights"])
def test_how_weights_are_stored_does_not_decide_how_the_cache_is(preset):
    spec = load_spec(preset)
    assert kv_bytes(spec, n_tokens=100) == kv_bytes(spec, n_tokens=100, kv_dtype="bf16")


def test_128k_is_two_numbers():
    spec = load_spec("llama-3.1-8b")
    assert kv_bytes(spec, n_tokens=128_000, batch=1, kv_dtype="bf16") == 15.625 * GiB
    assert kv_bytes(spec, n_tokens=131_072, batch=1, kv_dtype="bf16") == 16 * GiB
