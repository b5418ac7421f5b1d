"""vLLM's start-up logs as people posted them, and logs written by a small pool that counts as vLLM does."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlib import Layer, ModelSpec, SpecError, load_spec
from kvlib.engine_log import explain_log
from kvlib.engines.log_counting import COUNTINGS
from kvlib.engines.log_lines import PATTERNS, read_lines
from kvlib.engines.log_model import key
from kvlib.i18n import language, set_language
from kvlib.sources import presets, shipped

# vllm#10517: RTX 3090, Llama-3.1-8B, vLLM 0.6.4
SHORT = """\
Loading model weights took 14.9888 GB
Memory profiling results: total_gpu_memory=23.58GiB initial_memory_usage=15.34GiB peak_torch_memory=17.06GiB \
memory_usage_post_profile=15.35GiB non_torch_memory=0.35GiB kv_cache_size=3.81GiB gpu_memory_utilization=0.90
# GPU blocks: 1952, # CPU blocks: 2048
Maximum concurrency for 20000 tokens per request: 1.56x
"""
LONG = """\
Memory profiling results: total_gpu_memory=23.58GiB initial_memory_usage=15.34GiB peak_torch_memory=17.98GiB \
memory_usage_post_profile=15.35GiB non_torch_memory=0.35GiB kv_cache_size=2.89GiB gpu_memory_utilization=0.90
# GPU blocks: 1478, # CPU blocks: 2048
Maximum concurrency for 29000 tokens per request: 0.82x
The model's max seq len (29000) is larger than the maximum number of tokens that can be stored in KV cache (23648).
"""


def computed(explanation) -> dict[str, str]:
    return {check.key: check.computed for check in explanation.checks}


def test_the_log_of_issue_10517():
    explanation = explain_log(SHORT, "llama-3.1-8b")
    assert explanation.follows
    assert explanation.blocks == 1952
    assert explanation.reading.tokens(1952) == 31_232
    assert computed(explanation) == {"memory": "3.81 GiB", "blocks": "1,948–1,953", "concurrency": "1.56"}
    assert [c.formula for c in explanation.checks] == ["23.58 × 0.90 − 17.06 − 0.35", "3.81 GiB / 2,097,152 B",
                                                       "1,952 × 16 / 20,000"]  # fmt: skip


def test_its_second_start():
    for text in (LONG, SHORT + LONG):
        explanation = explain_log(text, "llama-3.1-8b")
        assert explanation.follows
        assert computed(explanation) == {"memory": "2.89 GiB", "blocks": "1,477–1,482", "tokens": "23,648",
                                         "concurrency": "0.82"}  # fmt: skip
        assert any("does not start" in note for note in explanation.notes)
    assert any("2 starts" in note for note in explanation.notes)


def test_every_printed_number_is_held_to_the_model():
    for old, new, wrong in [("1952", "1954", {"blocks"}), ("1.56x", "1.57x", {"concurrency"}),
                            ("3.81GiB", "3.99GiB", {"memory", "blocks"}), ("17.06", "16.06", {"memory"})]:  # fmt: skip
        assert old in SHORT
        checks = explain_log(SHORT.replace(old, new), "llama-3.1-8b").checks
        assert {check.key for check in checks if not check.agree} == wrong
    assert not explain_log(SHORT, "llama-3.2-3b").follows  # the log of another model


def test_the_ledger_of_0_6_6_and_later():
    # a worker of a 16-card run (vllm#14447), of which the lines about its size are not in the thread
    text = """the current vLLM instance can use total_gpu_memory (23.58GiB) x gpu_memory_utilization (0.99) = 23.35GiB
    model weights take 21.21GiB; non_torch_memory takes 0.20GiB; PyTorch activation peak memory takes 0.37GiB; \
the rest of the memory reserved for KV Cache is 1.57GiB.
    # cuda blocks: 803, # CPU blocks: 2048"""
    explanation = explain_log(text, "llama-3.1-8b")
    assert explanation.checks[0].formula == "23.58 × 0.99 − 21.21 − 0.37 − 0.20"
    assert explanation.follows


def test_windows_count_with_their_allowance_from_0_9_on():
    # vllm pull request 19029, before and after: all layers of StarCoder2-3B have a window of 4,096
    before = "GPU KV cache size: 2,198,512 tokens\nMaximum concurrency for 16,384 tokens per request: 134.19x"
    after = before.replace("134.19", "178.68")
    assert explain_log(before, "starcoder2-3b").reading.counting.name == "plain"
    explanation = explain_log(after, "starcoder2-3b")
    assert explanation.follows
    assert computed(explanation)["concurrency"] == "178.68"
    assert [c.formula for c in explanation.checks] == ["137,407 × 16", "137,407 / 769"]
    assert any("max_num_batched_tokens" in note for note in explanation.notes)  # taken as 8,192


def test_a_hybrid_pool_of_0_24():
    # club-3090#612: Qwen3.6-35B-A3B, of the shape of Qwen3.5-35B-A3B, fp8 cache
    text = """non-default args: {'dtype': 'bfloat16', 'max_model_len': 131072, 'kv_cache_dtype': 'fp8', \
'enable_prefix_caching': True, 'max_num_batched_tokens': 8192, 'max_num_seqs': 1}
Initializing a V1 LLM engine (v0.24.0) with config: model='~/qwen', dtype=torch.bfloat16, max_seq_len=131072
[gpu_worker.py:508] Available KV cache memory: 5.98 GiB
[kv_cache_utils.py:2146] GPU KV cache size: 567,978 tokens
[kv_cache_utils.py:2147] Maximum concurrency for 131,072 tokens per request: 4.33x"""
    explanation = explain_log(text, "qwen3.5-35b-a3b")
    assert explanation.follows
    assert explanation.blocks == 299
    assert computed(explanation)["tokens"] == "567,978"
    assert any("in short requests" in note for note in explanation.notes)


def test_a_hybrid_log_up_to_0_20_understates_its_tokens():
    # vllm#40691: Qwen3.5-27B, vLLM 0.19.0: the two lines do not fit together, and both follow
    spec = ModelSpec("Qwen3.5-27B", (*[Layer(state_bytes=61_440 + 48 * 128 * 128 * 4)] * 48,
                                     *[Layer(n_kv_heads=4, k_dim=256, v_dim=256)] * 16), 24, 5120)  # fmt: skip
    text = """Initializing a V1 LLM engine (v0.19.0) with config: max_seq_len=32768, enable_prefix_caching=False,
GPU KV cache size: 290,864 tokens
Maximum concurrency for 32,768 tokens per request: 33.04x"""
    explanation = explain_log(text, spec)
    assert explanation.follows
    assert [c.formula for c in explanation.checks] == ["⌊1,487 / 4⌋ × 784", "1,487 / 45"]
    assert any("vllm#40691" in note and f"{1487 / 45 * 32768:,.0f}"[:5] in note for note in explanation.notes)


def test_the_states_of_qwen3_next_are_in_the_model_s_dtype():
    # vllm#26646: two ranks, fp8 cache; states in fp32 would make a block of 2,096 tokens and other numbers
    text = """Initializing a V1 LLM engine (v0.11.0) with config: model='Qwen/Qwen3-Next-80B-A3B-Instruct', dtype=torch.bfloat16, \
max_seq_len=215040, tensor_parallel_size=2, kv_cache_dtype=fp8
GPU KV cache size: 90,048 tokens
Maximum concurrency for 215,040 tokens per request: 1.66x"""
    explanation = explain_log(text)
    assert explanation.verdict == "follows"
    assert [c.formula for c in explanation.checks] == ["⌊338 / 4⌋ × 1,072", "338 / 204"]
    in_fp32 = load_spec("qwen3-next-80b-a3b", mamba_ssm_dtype="float32")
    assert explain_log(text, in_fp32).verdict == "differs"


@pytest.mark.parametrize(("per_token", "kept"), [(656 + 132, "fp8_ds_mla"), (576 + 132, "fp8"), (1152 + 132, None)])
def test_the_cards_decide_how_fp8_of_a_sparse_latent_is_stored(per_token, kept):
    text = f"""engine (v0.30.0) with config: model='deepseek-ai/DeepSeek-V3.2', kv_cache_dtype=fp8, max_seq_len=65536
Available KV cache memory: {10_000 * 64 * 61 * per_token / 2**30:.2f} GiB
GPU KV cache size: 640,000 tokens
'block_size': 64"""
    explanation = explain_log(text)
    assert explanation.follows == (kept is not None)
    assert kept is None or explanation.as_dict()["kv_dtype"] == kept


def test_a_sliding_model_whose_pages_differ():
    # hf-mem pull request 61: Gemma-4-31B, 24.54 GiB and 26,800 tokens
    layers = (*[Layer(16, 256, 256, window=1024)] * 50, *[Layer(4, 512, 512)] * 10)
    spec = ModelSpec("Gemma-4-31B", layers, 32, 5376, 262144)
    explanation = explain_log("Available KV cache memory: 24.54 GiB\nGPU KV cache size: 26,800 tokens", spec)
    assert explanation.follows
    assert computed(explanation) == {"blocks": "10,049–10,053", "tokens": "26,800"}


def test_one_rank_prints_the_memory_and_another_one_decides():
    # vllm#21348: Qwen3-235B, TP 4
    text = "tensor_parallel_size=4\nAvailable KV cache memory: 8.11 GiB\nGPU KV cache size: 178,880 tokens"
    explanation = explain_log(text, "qwen3-235b-a22b")
    assert (explanation.follows, explanation.verdict) == (None, "undecided")
    assert [check.verdict for check in explanation.checks] == ["cannot tell", "agree"]
    assert "not every rank printed its memory" in explanation.conclusion
    assert any("another rank, which did not print its memory" in note for note in explanation.notes)
    for wrong in (text.replace("178,880", "160,000"), text.replace("178,880", "190,000"), text.replace("4", "1", 1)):
        assert explain_log(wrong, "qwen3-235b-a22b", pp=2 if "=1" in wrong else 1).verdict == "differs"
    all_ranks = "Available KV cache memory: 8.11 GiB\n" * 3 + text
    assert explain_log(all_ranks, "qwen3-235b-a22b").follows is False  # no rank is left that could have had less
    both = explain_log("Available KV cache memory: 8.02 GiB\n" + text, "qwen3-235b-a22b")
    assert both.follows
    assert both.lines.ranks == {"memory": ["8.02", "8.11"]}


def test_a_slightly_smaller_model_is_not_taken_for_a_rank_with_less_memory():
    # 86 layers like those of Llama-3-70B: 10 GiB are 10 · 2³⁰ / (86 · 8,192 B) tokens on one of 8 ranks, in blocks of 16
    tokens = 10 * 2**30 // (86 * 512 * 16) * 16
    text = f"tensor_parallel_size=8\nAvailable KV cache memory: 10.00 GiB\nGPU KV cache size: {tokens:,} tokens"
    explanation = explain_log(text, "llama-3-70b")
    assert (explanation.follows, explanation.verdict) == (None, "undecided")
    assert explain_log("Available KV cache memory: 10.00 GiB\n" * 7 + text, "llama-3-70b").follows is False


@pytest.mark.parametrize(("version", "counts"), [
    ("0.10rc1", {"shared"}), ("0.10.2", {"shared"}), ("0.8.5", {"plain"}), ("0.24.0rc2", {"capacity"}), ("1.0", {"ahead"}),
])  # fmt: skip
def test_a_version_s_letters_are_no_digits(version, counts):
    assert {c.name for c in COUNTINGS if c.fits(read_lines(f"(API server version: {version})"))} == counts


def test_the_memory_that_one_request_needs():
    # vllm#27508: gpt-oss-120b
    text = """To serve at least one request with the models's max seq len (131072), (4.54 GiB KV cache is needed, \
which is larger than the available KV cache memory (1.71 GiB)."""
    explanation = explain_log(text, "gpt-oss-120b", max_num_batched_tokens=1024)
    assert explanation.follows
    # 18 layers share a block: 131,072 / 16 for the full ones, (127 + 1,024) / 16 → 72 and one for the others
    assert explanation.checks[0].formula == f"{8192 + 73:,} × {18 * 16 * 2048:,} B"
    assert not explain_log(text.replace("4.54", "8.00"), "gpt-oss-120b", max_num_batched_tokens=1024).follows
    all_kept = explain_log(text.replace("4.54", "9.00"), "gpt-oss-120b", max_num_batched_tokens=1024)
    assert all_kept.follows
    assert any("keep all tokens" in note for note in all_kept.notes)


def test_the_memory_that_one_request_needs_in_all_stages():
    # vllm#34076: Qwen3-Coder-30B-A3B, of the shape of Qwen3-30B-A3B, in two stages
    text = """pipeline_parallel_size=2
To serve at least one request with the models's max seq len (262144), (24.0 GiB KV cache is needed, which is larger \
than the available KV cache memory (3.18 GiB)."""
    explanation = explain_log(text, "qwen3-30b-a3b")
    assert (explanation.verdict, computed(explanation)["needed"]) == ("explained", "12.00 GiB")
    assert any("24.00 GiB of all 2 stages" in note for note in explanation.notes)
    assert explain_log(text.replace("24.0 ", "12.0 "), "qwen3-30b-a3b").verdict == "follows"
    assert explain_log(text.replace("24.0 ", "18.0 "), "qwen3-30b-a3b").verdict == "differs"


def test_a_log_without_memory_does_not_test_the_model():
    text = "GPU KV cache size: 2,042,016 tokens\nMaximum concurrency for 2,048 tokens per request: 997.08x"
    for model in ("gpt-2", "llama-3.1-8b"):
        explanation = explain_log(text, model)
        assert (explanation.follows, explanation.verdict) == (None, "untested")
        assert "Available KV cache memory" in explanation.conclusion
    assert explain_log(text.replace("997.08", "998.08"), "gpt-2").follows is False
    # 2,042,016 tokens of 36,864 B are 70.11 GiB of GPT-2, and nothing else is that of Llama-3.1-8B
    with_memory = text + "\nAvailable KV cache memory: 70.11 GiB"
    assert explain_log(with_memory, "gpt-2").verdict == "follows"
    assert explain_log(with_memory, "llama-3.1-8b").verdict == "differs"


def test_blocks_set_by_hand_are_explained_and_test_nothing():
    text = "num_gpu_blocks_override=512\nAvailable KV cache memory: 8.00 GiB\nGPU KV cache size: 8,192 tokens"
    explanation = explain_log(text, "llama-3.1-8b")
    assert explanation.verdict == "untested"
    assert "set by hand" in explanation.conclusion


def test_the_refusal_of_a_request_that_is_too_long_is_enough():
    text = ("The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in KV cache "
            "(7344). Try increasing `gpu_memory_utilization`")  # fmt: skip
    explanation = explain_log(text, "llama-3.1-8b")
    assert (explanation.verdict, explanation.blocks) == ("untested", 7344 // 16)
    assert explanation.reading.ask.max_model_len == 32768
    assert any("918.00 MiB" in note and "4.00 GiB" in note for note in explanation.notes)


PRESETS = {
    "meta-llama/Llama-3.1-8B-Instruct": "llama-3.1-8b", "neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8": "llama-3.1-8b",
    "RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16": "llama-3.1-8b", "/mnt/models/Llama-3.1-8B-Instruct": "llama-3.1-8b",
    "google/gemma-3-27b-pt": "gemma-3-27b", "Qwen/Qwen2.5-7B-Instruct-AWQ": "qwen2.5-7b", "gpt2": "gpt-2",
    "meta-llama/Llama-2-7b-chat-hf": "llama-2-7b", "mistralai/Mistral-7B-Instruct-v0.3": "mistral-7b-v0.3",
    "deepseek-ai/DeepSeek-V3-Base": "deepseek-v3", "TheBloke/Llama-2-13B-chat-GPTQ": "llama-2-13b",
}  # fmt: skip


@pytest.mark.parametrize(("name", "preset"), PRESETS.items())
def test_the_model_of_a_log_is_a_preset_whatever_its_tuning(name, preset, monkeypatch):
    monkeypatch.setattr("kvlib.sources._from_hub", lambda repo: pytest.fail(f"{repo} was asked for"))
    explanation = explain_log(f"model='{name}', \nAvailable KV cache memory: 1.00 GiB\n# GPU blocks: 9", max_model_len=2048)
    assert explanation.reading.ask.spec == load_spec(preset)
    assert any(name in note and preset in note for note in explanation.notes)


@pytest.mark.parametrize(("name", "nearest"), [("Qwen/Qwen2.5-14B-Instruct", "qwen2.5-7b"), ("zzz/%", None)])
def test_a_model_that_is_no_preset_is_not_fetched(name, nearest, monkeypatch):
    monkeypatch.setattr("kvlib.sources._from_hub", lambda repo: pytest.fail(f"{repo} was asked for"))
    with pytest.raises(SpecError, match="--model") as error:
        explain_log(f"model='{name}', " + SHORT)
    assert (nearest or "a preset's name") in str(error.value)


def test_no_two_presets_are_taken_for_one_another():
    assert len({key(preset) for preset in presets()}) == len(presets())
    for preset in presets():
        assert key(shipped(preset)["hub_id"]) not in {key(other) for other in presets() if other != preset}


def test_values_are_numbers_or_ranges_in_json():
    checks = {check["key"]: check for check in explain_log(SHORT, "llama-3.1-8b").as_dict()["checks"]}
    assert {k: (c["logged_value"], c["computed_value"], c["unit"]) for k, c in checks.items()} == {
        "memory": (3.81, 3.81, "GiB"), "blocks": (1952, [1948, 1953], "blocks"), "concurrency": (1.56, 1.56, "requests")}  # fmt: skip


def test_blocks_are_null_where_the_log_does_not_tell():
    answer = explain_log("Available KV cache memory: 3.00 GiB\n(4.00 GiB KV cache is needed at least one request with the "
                         "model's max seq len (32768)", "llama-3.1-8b").as_dict()  # fmt: skip
    assert (answer["blocks"], answer["pool_bytes"], answer["verdict"]) == (None, None, "follows")


@pytest.mark.parametrize("kv_dtype", ["q8_0", "q8_0/q4_0", "fp8/bf16"])
def test_a_format_that_vllm_does_not_store_is_refused(kv_dtype):
    with pytest.raises(SpecError, match="vllm"):
        explain_log(SHORT, "llama-3.1-8b", kv_dtype=kv_dtype)


def test_the_enlarged_block_of_a_hybrid():
    spec = ModelSpec("hybrid", (Layer(state_bytes=2_146_304), Layer(4, 256, 256)), 16, 4096, 4096)
    text = "Setting attention block size to 528 tokens to ensure that attention page size is >= mamba page size."
    assert explain_log(text, spec).follows
    assert not explain_log(text.replace("528", "544"), spec).follows


def test_the_config_line_says_how_the_engine_runs():
    text = """Initializing a V1 LLM engine (v0.10.2) with config: model='llama-3-8b', speculative_config=None, \
dtype=torch.float16, max_seq_len=8192, tensor_parallel_size=2, pipeline_parallel_size=1, kv_cache_dtype=fp8_e5m2, \
enable_prefix_caching=True, chunked_prefill_enabled=True
Available KV cache memory: 1.00 GiB
GPU KV cache size: 32,768 tokens
Maximum concurrency for 8,192 tokens per request: 4.00x"""
    explanation = explain_log(text)  # the log names a preset
    assert explanation.follows
    answer = explanation.as_dict()
    assert (answer["model"], answer["version"], answer["tp"], answer["kv_dtype"]) == ("Llama-3-8B", "0.10.2", 2, "fp8")
    assert answer["block_bytes"] == 32 * 16 * 4 * 256
    assert not explain_log(text, tp=1).follows  # what is given replaces what the log says
    assert not explain_log(text, kv_dtype="bf16").follows


def test_the_one_line_of_recent_versions():
    layer = Layer(8, 64, 64)
    spec = ModelSpec("windowed", (layer, Layer(8, 64, 64, window=1024)), 16, 1024, 131072)
    # two steps of 2,048 tokens in flight: ⌈(1,023 + 4,096) / 16⌉ + 1 = 321; the full layer: 1,024
    n, per_request = 5000, 1024 + 321
    text = f"""Chunked prefill is enabled with max_num_batched_tokens=2048.
GPU KV cache size: {int(n / per_request * 16384):,} tokens, Maximum concurrency for 16,384 tokens per request: \
{n / per_request:.2f}x
Available KV cache memory: {n * 16 * 2048 / 2**30:.2f} GiB"""
    explanation = explain_log(text, spec)
    assert explanation.follows
    assert (explanation.blocks, explanation.reading.counting.name) == (n, "ahead")


@given(st.integers(30, 50_000), st.sampled_from(["plain", "shared"]), st.sampled_from([16, 32]),
       st.integers(100, 200_000), st.sampled_from([1, 2, 4]))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_the_log_of_any_pool_of_full_layers_is_reproduced(n, version, size, longest, tp):
    """The other way round: a pool of n blocks prints its lines, and nothing else than n blocks explains them."""
    requests = n * size / longest if version == "plain" else n / -(-longest // size)
    text = f"""engine (v{"0.8.5" if version == "plain" else "0.11.0"}) with config: tensor_parallel_size={tp},
'block_size': {size},
Available KV cache memory: {n * size * 131_072 / tp / 2**30:.2f} GiB
GPU KV cache size: {n * size:,} tokens
Maximum concurrency for {longest:,} tokens per request: {requests:.2f}x"""
    explanation = explain_log(text, load_spec("llama-3-8b"))
    assert explanation.follows
    assert explanation.blocks == n


@pytest.mark.parametrize(("text", "model", "words"), [
    ("hello", "llama-3-8b", "no line of a vLLM"), ("", "llama-3-8b", "no line of a vLLM"),
    ("Maximum concurrency for 8192 tokens per request: 4.61x", "llama-3-8b", "only concurrency"),
    ("Available KV cache memory: 8.11 GiB", "llama-3-8b", "only memory"),
    (SHORT, None, "does not name its model"), (SHORT, "no-such-model", "no-such-model"),
    ("model='/mnt/models/x', " + SHORT, None, "/mnt/models/x"),
    ("kv_cache_dtype=fp7, " + SHORT, "llama-3.1-8b", "fp7"),
    ("tensor_parallel_size=3, " + SHORT, "llama-3.1-8b", "tp is 3"),
    (SHORT, ModelSpec("empty", (Layer(),), 1, 1, 100), "keeps no cache"),
    ("# GPU blocks: 10\nAvailable KV cache memory: 1.00 GiB", ModelSpec("x", (Layer(1, 1, 1),), 1, 1), "max_model_len"),
])  # fmt: skip
def test_what_is_missing_is_named(text, model, words):
    with pytest.raises(SpecError) as error:
        explain_log(text, model)
    assert words in str(error.value)


def test_wrong_arguments_are_named():
    with pytest.raises(SpecError, match="text is bytes"):
        explain_log(b"# GPU blocks: 1", "llama-3-8b")
    with pytest.raises(SpecError, match="colour"):
        explain_log(SHORT, "llama-3.1-8b", colour=1)


def test_an_answer_is_json_and_speaks_both_languages():
    before = language()
    try:
        seen = set()
        for lang in ("en", "zh-TW"):
            set_language(lang)
            answer = explain_log(SHORT, "llama-3.1-8b")
            seen.add(json.dumps(answer.as_dict(), ensure_ascii=False))
            assert {check.verdict for check in answer.checks} == {"agree" if lang == "en" else "相符"}
        assert len(seen) == 2
    finally:
        set_language(before)


ODD = ["", "-1", "1.5", "٣", "9" * 400, "1,952", ",", "1e9"]
NUMBERS = st.one_of(st.integers(0, 10**18).map(str), st.sampled_from(ODD))


@given(st.lists(st.tuples(st.integers(0, 4), NUMBERS), max_size=4),
       st.sampled_from(["llama-3.1-8b", "gpt-oss-20b", "jamba-v0.1"]))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_odd_numbers_are_explained_or_refused(changes, preset):
    places = ["1952", "20000", "1.56", "3.81", "17.06"]
    text = SHORT
    for place, number in changes:
        text = text.replace(places[place], number)
    for log in (text, text.replace("# GPU blocks", "GPU KV cache size").replace("2048\n", "2048 tokens\n")):
        try:
            answer = explain_log(log, preset).as_dict()
        except SpecError:
            continue
        assert answer["blocks"] is None or answer["blocks"] >= 0
        assert answer["follows"] is {"untested": None, "undecided": None, "differs": False}.get(answer["verdict"], True)
        json.dumps(answer)


def test_every_pattern_is_read_from_some_line():
    lines = """vLLM API server version 0.9.2 fp8_ds_mla KV cache format 'model': 'x' dtype=torch.bfloat16
    kv_cache_dtype=fp8
    tensor_parallel_size=1 pipeline_parallel_size=1 block_size=16 max_num_batched_tokens=2048 enable_prefix_caching=True
    max_seq_len=10 Setting attention block size to 528 tokens total_gpu_memory=1.00GiB gpu_memory_utilization=0.90
    model weights take 1.00GiB; non_torch_memory takes 0.10GiB; PyTorch activation peak memory takes 0.10GiB
    peak_torch_memory=1.00GiB kv_cache_size=1.00GiB (1.00 GiB KV cache is needed at least one request with the model's max seq len (10)
    # GPU blocks: 3 GPU KV cache size: 48 tokens, Maximum concurrency for 10 tokens per request: 4.80x
    num_gpu_blocks_override=3 KV cache size by the dcp_world_size 2 weights took 1.00 GB
    max seq len (10) is larger than the maximum number of tokens
    Hybrid KV cache manager is disabled speculative_config=SpeculativeConfig(method='mtp')"""
    assert set(read_lines(lines).values) == set(PATTERNS)
