"""What engines reserve and allocate: published numbers, and oracles that hand out memory token by token."""

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache, QuantizedCache, StaticCache

from kvlib import Layer, ModelSpec, SpecError, kv_bytes, load_spec
from kvlib.engines import ENGINES, admission, allocation
from kvlib.engines.groups import cache_groups
from kvlib.engines.plan import Ask, last_first, middle_first
from kvlib.i18n import language, set_language

HEADS = {"n_kv_heads": 8, "k_dim": 64, "v_dim": 64}  # 2,048 B per token in bf16


def model(*layers: Layer) -> ModelSpec:
    return ModelSpec("test", layers, n_heads=16, hidden_size=1024, max_position_embeddings=131072)


def bytes_of(plan, key: str) -> int:
    return sum(line.nbytes for line in plan.lines if line.key == key)


# vLLM: blocks


def test_4097_tokens_are_257_blocks():
    plan = admission(load_spec("llama-2-70b"), 4097)
    assert (plan.blocks, plan.nbytes) == (257, 1_347_420_160)


@pytest.mark.parametrize("tp", [8, 16])
def test_above_the_kv_heads_every_rank_keeps_one(tp):
    spec = load_spec("llama-3-8b")
    assert admission(spec, 16, tp=tp).nbytes // 16 == 16_384
    assert admission(spec, 1, "sglang", tp=tp).nbytes // 2 == 16_384  # one token and the spare page of one token


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_latent_is_whole_on_every_rank(engine):
    spec = load_spec("deepseek-v3")
    assert len({admission(spec, 4096, engine, tp=tp).nbytes for tp in (1, 8, 16)}) == 1


def test_the_packed_latent_and_the_index_keys_of_a_page():
    latent = Layer(latent=576, latent_rope=64)
    assert admission(model(latent), 64, kv_dtype="fp8_ds_mla").nbytes == 64 * 656
    indexed = Layer(latent=576, latent_rope=64, index_bytes=132)
    assert admission(model(indexed), 64, kv_dtype="fp8_ds_mla").nbytes == 64 * (656 + 132)


def hand_out(n_tokens: int, block_size: int) -> int:
    """A block is taken whenever the next token finds none with room."""
    blocks = room = 0
    for _ in range(n_tokens):
        if not room:
            blocks, room = blocks + 1, block_size
        room -= 1
    return blocks


@given(st.integers(0, 500), st.sampled_from([1, 3, 16, 64]), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_full_layers_take_the_blocks_that_are_handed_out_token_by_token(n_tokens, block_size, batch):
    plan = admission(model(*[Layer(**HEADS)] * 3), n_tokens, block_size=block_size, batch=batch)
    assert plan.blocks == batch * hand_out(n_tokens, block_size)
    assert plan.nbytes == plan.blocks * 3 * block_size * 2048


def peak_of_a_window(n_tokens: int, window: int, step: int, size: int, lag: int) -> int:
    """Most blocks that a windowed layer holds while a prompt is read in steps; blocks are freed `lag` steps late."""
    held, peak, done = set(), 0, [0] * (lag + 1)
    for start in range(0, n_tokens, step):
        end = min(start + step, n_tokens)
        skipped = max(0, done[-1 - lag] - window + 1)
        held = {b for b in held if b >= skipped // size} | set(range(start // size, -(-end // size)))
        peak, done = max(peak, len(held)), [*done, end]
    return peak


@given(st.integers(1, 900), st.integers(1, 200), st.integers(1, 120), st.sampled_from([1, 4, 16]))
@settings(max_examples=150, deadline=None)
def test_a_window_never_holds_more_blocks_than_it_was_admitted_with(n_tokens, window, step, size):
    plan = admission(model(Layer(**HEADS, window=window)), n_tokens, block_size=size, max_num_batched_tokens=step)
    assert peak_of_a_window(n_tokens, window, step, size, lag=1) <= plan.blocks <= hand_out(n_tokens, size)


def test_the_allowance_of_a_window_is_reached():
    plans = [(n, admission(model(Layer(**HEADS, window=65)), n, max_num_batched_tokens=37)) for n in range(300, 900)]
    gaps = {plan.blocks - peak_of_a_window(n, 65, 37, 16, lag=1) for n, plan in plans}
    assert min(gaps) == 0


def test_the_arithmetic_of_a_window_says_where_its_tokens_come_from():
    plan = admission(load_spec("gemma-3-27b"), 131_072)
    sliding = next(line for line in plan.lines if line.key == "sliding")
    assert sliding.formula.startswith("6 × (⌈(1,024 − 1 + 2 × 8,192)/16⌉ + 1) = 6,534 ×")
    chunked = admission(model(Layer(**HEADS, chunk=8192)), 100_000, max_num_batched_tokens=2048, pp=1)
    assert chunked.lines[0].formula.startswith("⌈(8,192 + 2 × 2,048)/16⌉ =")
    assert admission(model(Layer(**HEADS, window=1024)), 100).lines[0].formula.startswith("⌈100/16⌉ =")  # all tokens fit


def test_window_and_chunk_allowances():
    # (1,024 − 1 + 2 · 2,048) / 16 = 319.94 → 320, and one; the chunk: (8,192 + 2 · 2,048) / 16 = 768
    window, chunk = model(Layer(**HEADS, window=1024)), model(Layer(**HEADS, chunk=8192))
    assert admission(window, 100_000, max_num_batched_tokens=2048).blocks == 321
    assert admission(chunk, 100_000, max_num_batched_tokens=2048).blocks == 768
    assert admission(window, 100, max_num_batched_tokens=2048).blocks == 7  # never more than all tokens need


def test_without_the_hybrid_manager_a_window_takes_all_blocks():
    plan = admission(model(Layer(**HEADS, window=128), Layer(**HEADS)), 50_000, hybrid=False)
    assert plan.nbytes == 2 * math.ceil(50_000 / 16) * 16 * 2048


# vLLM: groups


@pytest.mark.parametrize(("sliding", "full", "groups", "longest"), [
    (52, 10, 7, 10),  # Gemma-3-27B: six groups of up to nine, one of ten
    (12, 12, 2, 12),  # gpt-oss-20b
    (12, 13, 2, 13),  # the same with a draft layer: padded to 13, not split into 12 and 1
    (36, 12, 4, 12),  # Llama-4-Scout's proportions
    (20, 30, 3, 20),  # at one and a half times it is split: 20 + 15 + 15
])  # fmt: skip
def test_groups_are_of_equal_length(sliding, full, groups, longest):
    spec = model(*[Layer(**HEADS, window=512)] * sliding, *[Layer(**HEADS)] * full)
    found = cache_groups(Ask(spec, 1, block_size=16))
    assert (len(found), max(map(len, found))) == (groups, longest)
    assert sorted(i for group in found for i, _ in group) == list(range(sliding + full))
    assert admission(spec, 16).nbytes == groups * longest * 16 * 2048  # a block is as wide as the widest group


def test_a_block_of_attention_grows_until_its_page_holds_the_state():
    # printed by vLLM for Qwen3.5 (pull request 37467): 528 tokens, and states padded by 0.76 %
    state = Layer(state_bytes=2_146_304)
    found = cache_groups(Ask(model(*[state] * 3, Layer(n_kv_heads=4, k_dim=256, v_dim=256)), 1, block_size=16))
    caches = {cache.kind: cache for group in found for _, cache in group}
    assert caches["full"].block_size == 528
    assert caches["state"].page == caches["full"].page == 528 * 4096
    assert round(100 * (caches["state"].page / 2_146_304 - 1), 2) == 0.76


def test_states_in_the_model_s_dtype_make_a_block_of_544_tokens_in_qwen3_next():
    # 36 states of 1,097,728 B and 12 layers of 2,048 B per token: ⌈1,097,728 / (16 · 2,048)⌉ = 34 blocks of 16 tokens
    plan = admission(load_spec("qwen3-next-80b-a3b"), 4096)
    assert plan.blocks == 3 * 2 + math.ceil(4096 / 544)
    assert plan.nbytes == plan.blocks * 12 * 544 * 2048 == 187_170_816


def test_pages_that_are_no_multiple_are_padded_to_the_largest():
    small, large = Layer(n_kv_heads=3, k_dim=64, v_dim=64), Layer(**HEADS, window=64)
    found = cache_groups(Ask(model(small, large), 1, block_size=16))
    assert {(c.block_size, c.page) for group in found for _, c in group} == {(16, 16 * 2048)}
    half = Layer(n_kv_heads=4, k_dim=64, v_dim=64)
    found = cache_groups(Ask(model(half, large), 1, block_size=16))
    assert {(c.block_size, c.page) for group in found for _, c in group} == {(32, 16 * 2048), (16, 16 * 2048)}


def test_layers_that_read_another_ones_cache_are_in_no_group():
    spec = model(Layer(**HEADS), Layer(**HEADS, shared_with=0))
    assert admission(spec, 16).nbytes == admission(model(Layer(**HEADS)), 16).nbytes


def test_a_state_takes_two_blocks_per_group_only_beside_attention_with_prefixes():
    alone, beside = model(Layer(state_bytes=1000)), model(Layer(state_bytes=1000), Layer(**HEADS))
    assert admission(alone, 5000).nbytes == 1000
    assert bytes_of(admission(beside, 1), "state") == 2 * 16 * 2048
    assert bytes_of(admission(beside, 1, prefix_caching=False), "state") == 16 * 2048


# vLLM: stages and the pool


@pytest.mark.parametrize(("n_layers", "pp", "vllm", "sglang"), [
    (8, 4, [2, 2, 2, 2], [2, 2, 2, 2]), (5, 4, [1, 1, 2, 1], [1, 1, 1, 2]), (7, 4, [2, 2, 2, 1], [1, 2, 2, 2]),
    (61, 2, [31, 30], [30, 31]), (10, 3, [3, 4, 3], [3, 3, 4]),
])  # fmt: skip
def test_layers_of_the_pipeline_stages(n_layers, pp, vllm, sglang):
    assert middle_first(n_layers, pp) == vllm
    assert last_first(n_layers, pp) == sglang


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_the_largest_stage_sizes_a_pipeline(engine):
    spec = model(*[Layer(**HEADS)] * 9, Layer(n_kv_heads=8, k_dim=256, v_dim=256))  # the last one is four times as wide
    plan = admission(spec, 160, engine, pp=2, block_size=16)
    tokens = 160 if engine == "vllm" else 176
    assert plan.stage == 1
    assert plan.nbytes == tokens * (4 * 2048 + 8192)


@given(st.integers(1, 10**10), st.sampled_from(["llama-3-8b", "gpt-oss-20b", "gemma-3-4b", "jamba-v0.1"]))
@settings(max_examples=60, deadline=None)
def test_a_pool_is_whole_blocks_and_at_most_the_memory(pool_bytes, preset):
    plan = allocation(load_spec(preset), 4096, pool_bytes=pool_bytes)
    block = plan.facts["block_bytes"]
    assert plan.nbytes == plan.blocks * block <= pool_bytes < plan.nbytes + block


@pytest.mark.parametrize("preset", ["llama-3-8b", "gpt-oss-20b", "gemma-3-4b", "jamba-v0.1", "deepseek-v3"])
def test_the_smallest_pool_serves_the_batch_and_one_block_less_does_not(preset):
    plan = allocation(load_spec(preset), 4096, batch=3)
    need = 3 * plan.facts["blocks_per_request"]
    assert plan.blocks - 1 == need  # one block is never handed out
    assert need * plan.facts["block_bytes"] >= 3 * admission(load_spec(preset), 4096).nbytes


GB = 10**9


@pytest.mark.parametrize(("gb", "words"), [(54, "12 of 64 requests fit"), (1, "vLLM would not start"), (280, None)])
def test_a_pool_that_is_too_small_is_said_to_be(gb, words):
    # 32,768 tokens of 131,072 B are 4.29 GB, so 54 GB hold 12 of them and 280 GB hold all 64
    notes = allocation(load_spec("llama-3.1-8b"), 32_768, batch=64, pool_bytes=gb * GB).notes
    assert any(words in note for note in notes) if words else not notes


def test_the_spare_block_serves_no_request():
    spec, page = model(Layer(**HEADS)), 16 * 2048
    for blocks, words in ((8, "3 of 4 requests fit"), (9, None), (1, "not start")):  # two blocks per request
        notes = allocation(spec, 32, batch=4, pool_bytes=blocks * page).notes
        assert any(words in note for note in notes) if words else not notes


@given(st.integers(1, 40_000), st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_the_requests_that_fit_sglang_are_those_whose_charges_fit(n_slots, batch):
    """Let in one by one: each needs less than what is free in both pools, and takes it."""
    spec = model(Layer(**HEADS), Layer(**HEADS, window=100))
    plan = allocation(spec, 5000, "sglang", batch=batch, pool_bytes=n_slots * 2048)
    one, fit = admission(spec, 5000, "sglang"), 0
    free = [plan.facts["tokens"], plan.facts["window_tokens"]]
    charge = [bytes_of(one, key) // 2048 for key in ("full", "window")]
    while fit < batch and all(c < f for c, f in zip(charge, free, strict=True)):
        free, fit = [f - c for c, f in zip(charge, free, strict=True)], fit + 1
    said = f"{fit} of {batch} requests fit" if fit else "not even one request"
    assert any(said in note for note in plan.notes) == (fit < batch)


@pytest.mark.parametrize("lang", ["en", "zh-TW"])
def test_facts_are_said_in_words(lang):
    before = language()
    try:
        set_language(lang)
        for engine in ENGINES:
            plan = allocation(load_spec("jamba-v0.1" if engine == "sglang" else "gemma-3-27b"), 131_072, engine)
            assert len(plan.fact_texts) == len(set(plan.facts) - {"block_bytes"})
            assert not any("_" in text.replace("n_ctx", "") or "{" in text for text in plan.fact_texts)
        texts = allocation(load_spec("gemma-3-27b"), 131_072).fact_texts
        assert ["14,726" in texts[0], "1.00" in texts[1], "131,080" in texts[2]] == [True] * 3
    finally:
        set_language(before)


# KV formats


@pytest.mark.parametrize(("engine", "kv_dtype", "words"), [
    ("vllm", "q8_0", "'q8_0', which vllm does not store; choose one of fp32, bf16"), ("vllm", "bf16/fp8", "K and V alike"),
    ("llama.cpp", "fp8", "iq4_nl"), ("llama.cpp", "q8_0/int4", "'int4', which llama.cpp"), ("sglang", "int8", "mxfp8"),
    ("transformers", "q4_0", "int4_g64"), ("transformers", "fp8/bf16", "K and V alike"), ("llama.cpp", "nvfp4", "q8_0"),
    ("sglang", "q8_0", "mxfp8"), ("transformers", "int4", "int4_g64"), ("transformers", "int8", "int8_g64"),
])  # fmt: skip
def test_a_format_that_the_engine_does_not_store_is_refused(engine, kv_dtype, words):
    for ask in (admission, allocation):
        with pytest.raises(SpecError) as error:
            ask(load_spec("llama-3-8b"), 100, engine, kv_dtype=kv_dtype)
        assert words in str(error.value)
        assert "--kv-dtype" in str(error.value)


@pytest.mark.parametrize("kv_dtype", ["nvfp4", "int8_per_token_head", "fp8_per_token_head", "int4_per_token_head"])
def test_vllm_stores_a_latent_in_16_or_32_bits_or_fp8(kv_dtype):
    assert admission(load_spec("llama-3-8b"), 100, kv_dtype=kv_dtype).nbytes
    with pytest.raises(SpecError, match=rf"{kv_dtype}', in which vllm does not store a latent.* choose one of .*fp8_ds_mla"):
        admission(load_spec("deepseek-v3"), 100, kv_dtype=kv_dtype)


@pytest.mark.parametrize(("preset", "kv_dtype", "per_token"), [
    ("deepseek-v3.2", "fp8", 512 + 4 * 4 + 64 * 2 + 132), ("deepseek-v3.2", "fp8_ds_mla", 656 + 132),
    ("deepseek-v3.2", "bf16", 1152 + 132), ("deepseek-v3", "fp8", 576), ("deepseek-v3", "fp8_ds_mla", 656),
])  # fmt: skip
def test_fp8_of_a_sparse_latent_is_flashmla_s_own_format(preset, kv_dtype, per_token):
    plan = admission(load_spec(preset), 64, kv_dtype=kv_dtype)
    assert plan.nbytes == 64 * 61 * per_token
    assert any("FlashMLA" in note for note in plan.notes) == (preset == "deepseek-v3.2" and kv_dtype == "fp8")
    assert any("656 B" in rule.text for rule in plan.engine.rules)


def test_a_sparse_latent_of_another_shape_stays_plain_fp8():
    assert admission(model(Layer(latent=320, latent_rope=64, index_bytes=132)), 16, kv_dtype="fp8").nbytes == 16 * (320 + 132)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_formats_that_the_engine_stores_are_answered(engine):
    for name in ENGINES[engine].formats:
        spec = model(Layer(latent=576, latent_rope=64)) if name == "fp8_ds_mla" else load_spec("llama-3-8b")
        assert admission(spec, 128, engine, kv_dtype=name).nbytes >= kv_bytes(spec, 128, 1, name)
    if engine == "llama.cpp":
        assert admission(load_spec("llama-3-8b"), 128, engine, kv_dtype="q8_0/q4_0").nbytes


def test_integers_in_transformers_have_a_scale_and_a_zero_per_64_values():
    values = 32 * 4096 * 2 * 8 * 128
    for name, width in (("int4_g64", values // 2), ("int8_g64", values)):
        plan = admission(load_spec("llama-3-8b"), 4096, "transformers", kv_dtype=name)
        assert plan.nbytes == width + values // 64 * (2 + 2)


def test_a_quantised_cache_is_for_layers_that_keep_all_tokens():
    with pytest.raises(SpecError, match="QuantizedCache"):
        admission(load_spec("gemma-3-27b"), 100, "transformers", kv_dtype="fp8")
    assert any("128 tokens" in note for note in admission(load_spec("llama-3-8b"), 9, "transformers", kv_dtype="int4_g64").notes)


def test_the_fp8_cache_of_transformers_holds_what_admission_says():
    config = AutoConfig.for_model("llama", num_hidden_layers=2, hidden_size=64, intermediate_size=64, num_attention_heads=4,
                                  num_key_value_heads=2, vocab_size=64)  # fmt: skip
    net = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    cache = feed(net, QuantizedCache("fp8", config), 2, [20, 1])
    held = sum(t.nbytes for layer in cache.layers for t, _ in (layer._quantized_keys, layer._quantized_values))
    assert admission(load_spec(config.to_dict()), 21, "transformers", kv_dtype="fp8", batch=2).nbytes == held


# SGLang


def test_the_pool_of_a_printed_sglang_log():
    # vllm#21348: Qwen3-235B, TP 4: 367,404 tokens, K and V 8.23 "GB" (GiB) each
    spec, tokens = load_spec("qwen3-235b-a22b"), 367_404
    one = kv_bytes(spec, 1, tp=4)
    plan = allocation(spec, 4096, "sglang", tp=4, pool_bytes=tokens * one)
    assert plan.facts["tokens"] == tokens
    assert round((plan.nbytes - one) / 2 / 2**30, 2) == 8.23


def test_the_window_pool_has_four_fifths_of_the_tokens():
    spec = model(Layer(**HEADS), Layer(**HEADS, window=128))
    plan = allocation(spec, 4096, "sglang", pool_bytes=10**9, block_size=64)
    full, window = plan.facts["tokens"], plan.facts["window_tokens"]
    assert window == full * 4 // 5 // 64 * 64
    assert plan.nbytes == (full + 64 + window + 64) * 2048
    assert abs(plan.nbytes - 10**9) < 4 * 64 * 2048


@given(st.integers(1, 3000), st.integers(1, 4), st.sampled_from([1, 16, 64]))
@settings(max_examples=60, deadline=None)
def test_the_smallest_sglang_pools_let_the_batch_in(n_tokens, batch, page):
    spec = model(Layer(**HEADS), Layer(**HEADS, window=100))
    pool = allocation(spec, n_tokens, "sglang", batch=batch, block_size=page)
    asked = admission(spec, n_tokens, "sglang", batch=batch, block_size=page)
    assert bytes_of(asked, "full") < pool.facts["tokens"] * 2048
    assert bytes_of(asked, "window") < pool.facts["window_tokens"] * 2048


def test_the_shares_of_sglang_s_pools_are_exact():
    # five tokens of 2,048 B, and four fifths as many in the window pool; 2,048 + 0.8 · 2,048 as a float is a little too much
    plan = allocation(model(Layer(**HEADS), Layer(**HEADS, window=64)), 1, "sglang", pool_bytes=5 * 2048 + 4 * 2048)
    assert (plan.facts["tokens"], plan.facts["window_tokens"]) == (5, 4)


def test_states_take_nine_nineteenths_of_the_memory():
    spec = model(Layer(**HEADS), Layer(state_bytes=10_000))
    plan = allocation(spec, 100, "sglang", pool_bytes=19 * 10**6)
    assert plan.facts["states"] == 899  # 9 MB, less one spare state
    assert plan.facts["tokens"] == 10**7 // 2048
    large = allocation(spec, 100, "sglang", pool_bytes=19 * 10**20 + 18)  # beyond what a float tells apart
    assert large.facts["states"] == 9 * 10**20 // 10_000 - 1


# transformers: the real caches


CONFIGS = {
    "llama": {"model_type": "llama"},
    "mistral": {"model_type": "mistral", "sliding_window": 7},
    "gemma3_text": {"model_type": "gemma3_text", "sliding_window": 5, "head_dim": 16, "num_hidden_layers": 6},
    "gpt_oss": {"model_type": "gpt_oss", "sliding_window": 9, "head_dim": 16, "num_local_experts": 4},
    "falcon": {"model_type": "falcon", "new_decoder_architecture": True, "num_kv_heads": 2},
    "falcon, old": {"model_type": "falcon", "multi_query": True},
    "mpt": {"model_type": "mpt", "attn_config": {"kv_n_heads": 2}},
}


@pytest.fixture(scope="module", params=CONFIGS)
def tiny(request):
    sizes = {"num_hidden_layers": 4, "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4,
             "num_key_value_heads": 2, "vocab_size": 64, "max_position_embeddings": 256}  # fmt: skip
    config = AutoConfig.for_model(**(sizes | CONFIGS[request.param]))
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval(), load_spec(config.to_dict())


def feed(net, cache, batch: int, lengths: list[int]):
    for length in lengths:
        with torch.no_grad():
            net(torch.randint(0, 64, (batch, length)), cache=cache)
    return cache


def tensors(cache):
    return [t for layer in cache.layers for t in (layer.keys, layer.values)]


@pytest.mark.parametrize(("lengths", "batch"), [([3], 1), ([20], 2), ([20, 1, 1], 1), ([6, 1], 3)])
def test_a_dynamic_cache_holds_what_admission_says(tiny, lengths, batch):
    net, spec = tiny
    plan = admission(spec, sum(lengths), "transformers", batch=batch, kv_dtype="fp32")
    cache = feed(net, DynamicCache(config=net.config), batch, lengths)
    assert plan.nbytes == sum(t.nbytes for t in tensors(cache))
    if len(lengths) == 1:  # the views of a prefill keep the whole prompt
        assert plan.facts["bytes_after_prefill"] == sum(t.untyped_storage().nbytes() for t in tensors(cache))


@pytest.mark.parametrize(("longest", "batch"), [(4, 1), (32, 2)])
def test_a_static_cache_holds_what_allocation_says(tiny, longest, batch):
    net, spec = tiny
    plan = allocation(spec, 3, "transformers", max_model_len=longest, batch=batch, kv_dtype="fp32")
    cache = feed(net, StaticCache(config=net.config, max_cache_len=longest), batch, [3])
    assert plan.nbytes == sum(t.untyped_storage().nbytes() for t in tensors(cache))


def test_transformers_copies_k_and_v_of_falcon_40b_to_every_query_head():
    spec = load_spec("falcon-40b")  # 60 layers, 128 query heads of 64, 8 KV heads
    for ask in (admission, allocation):
        plan = ask(spec, 2048, "transformers")
        assert plan.nbytes == 60 * 2 * 128 * 64 * 2 * 2048 == 16 * kv_bytes(spec, 2048)
        assert any("128 query heads" in note for note in plan.notes)
        assert ask(load_spec("falcon-7b"), 2048, "transformers").nbytes == kv_bytes(load_spec("falcon-7b"), 2048)
    assert admission(spec, 2048).nbytes == kv_bytes(spec, 2048)  # vLLM does not


MAMBA_2 = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_n_groups": 1, "mamba_d_conv": 4, "mamba_expand": 2}
HYBRIDS = {
    "jamba": {"mamba_d_state": 8, "mamba_d_conv": 4, "mamba_expand": 2, "attn_layer_period": 2, "attn_layer_offset": 1,
              "num_experts": 2, "num_experts_per_tok": 1},
    "lfm2": {"conv_L_cache": 3, "layer_types": ["conv", "full_attention"]},
    "qwen3_next": {"linear_key_head_dim": 8, "linear_value_head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
                   "linear_conv_kernel_dim": 4, "head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2,
                   "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
                   "layer_types": ["linear_attention", "full_attention"]},
    "bamba": MAMBA_2 | {"attn_layer_indices": [1]},
    "falcon_h1": MAMBA_2 | {"mamba_d_ssm": 128, "head_dim": 16},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model_type", HYBRIDS)
def test_the_states_of_a_hybrid_are_those_of_its_real_cache(model_type):
    sizes = {"num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4,
             "num_key_value_heads": 2, "vocab_size": 64}  # fmt: skip
    config = AutoConfig.for_model(model_type, **(sizes | HYBRIDS[model_type]))
    net = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    cache = feed(net, DynamicCache(config=config), 3, [20])
    states = [t for layer in cache.layers for name in ("conv_states", "recurrent_states") for t in getattr(layer, name, {}).values()]
    held = sum(t.nbytes for t in states if isinstance(t, torch.Tensor))
    spec = load_spec(config.to_dict() | {"dtype": "bfloat16"})
    assert held
    assert bytes_of(admission(spec, 20, "transformers", batch=3), "state") == held
    assert bytes_of(allocation(spec, 20, "transformers", batch=3), "state") == held


@pytest.mark.filterwarnings("ignore")
def test_recurrent_gemma_keeps_no_more_inputs_than_its_convolution_needs():
    config = AutoConfig.for_model("recurrent_gemma", num_hidden_layers=3, hidden_size=64, intermediate_size=64, lru_width=64,
                                  num_attention_heads=4, vocab_size=64, attention_window_size=16)  # fmt: skip
    net = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    with torch.no_grad():
        net(torch.randint(0, 64, (3, 20)))
    states = [t for module in net.modules() for t in map(vars(module).get, ("conv1d_state", "recurrent_states"))]
    held = sum(t.nbytes for t in states if isinstance(t, torch.Tensor))
    spec = load_spec(config.to_dict() | {"dtype": "bfloat16"})
    assert held == bytes_of(admission(spec, 20, "transformers", batch=3), "state") > 0
    one = admission(load_spec("recurrentgemma-2b"), 1, "transformers")
    assert bytes_of(one, "state") == 18 * (2560 * 3 * 2 + 2560 * 4) == 18 * 25_600


# llama.cpp


def test_cells_of_a_llama_cpp_context():
    spec = model(Layer(**HEADS), Layer(**HEADS, window=128))
    one = allocation(spec, 1000, "llama.cpp")  # 1,000 → 1,024 cells; 128 + 512 = 640 → 768
    assert (bytes_of(one, "full"), bytes_of(one, "window")) == (1024 * 2048, 768 * 2048)
    three = allocation(spec, 1000, "llama.cpp", batch=3)  # 3,000 → 3,072; a third of it is 1,024
    assert (bytes_of(three, "full"), bytes_of(three, "window")) == (3 * 1024 * 2048, 3 * 768 * 2048)
    shared = allocation(spec, 1000, "llama.cpp", batch=3, unified=True)  # 3 · 128 + 512 = 896 → 1,024
    assert (bytes_of(shared, "full"), bytes_of(shared, "window")) == (3072 * 2048, 1024 * 2048)
    short = allocation(spec, 200, "llama.cpp")
    assert bytes_of(short, "window") == bytes_of(short, "full") == 256 * 2048


def test_a_llama_cpp_request_takes_cells_within_its_context():
    for n_tokens in (1, 200, 700, 5000):
        spec = load_spec("gpt-oss-20b")
        assert admission(spec, n_tokens, "llama.cpp").nbytes <= allocation(spec, n_tokens, "llama.cpp").nbytes


def test_sequences_that_share_a_buffer_share_its_windows():
    # 52 of Gemma-3-27B's layers have a window of 1,024: 4 windows and a step of 512 are 4,608 cells, for all four together
    spec = load_spec("gemma-3-27b")
    for ask in (admission, allocation):
        plan = ask(spec, 131_072, "llama.cpp", batch=4, unified=True)
        assert plan.nbytes == (52 * 4608 + 10 * 4 * 131_072) * 8192 == 44_912_607_232
    apart = admission(spec, 131_072, "llama.cpp", batch=4)
    assert bytes_of(apart, "window") == 4 * 52 * (1024 + 512) * 8192


@pytest.mark.parametrize(("preset", "layers", "values"), [
    # llama.cpp's n_embd_r + n_embd_s
    ("jamba-v0.1", 28, 8192 * 3 + 8192 * 16), ("lfm2-350m", 10, 1024 * 2),
    ("qwen3-next-80b-a3b", 36, 3 * (2 * 16 * 128 + 32 * 128) + 32 * 128 * 128),
    ("granite-4.0-h-tiny", 36, 3 * (48 * 64 + 2 * 128) + 48 * 64 * 128),
])  # fmt: skip
def test_llama_cpp_keeps_states_in_float32(preset, layers, values):
    for changed in ({}, {"mamba_ssm_dtype": "float32"}):
        plan = allocation(load_spec(preset, **changed), 256, "llama.cpp", batch=2)
        assert bytes_of(plan, "state") == 2 * layers * 4 * values
        assert not any("float32" in note for note in plan.notes)
    assert any("float32" in note for note in allocation(model(Layer(state_bytes=96)), 256, "llama.cpp").notes)


def test_a_state_is_kept_once_per_sequence():
    spec = model(Layer(state_bytes=1000))
    for engine in ("transformers", "llama.cpp"):
        assert allocation(spec, 5000, engine, batch=3).nbytes == 3000


# all engines


def value(formula: str) -> int:
    """What a printed formula comes to."""
    for sign, code in {"×": "*", "−": "-", "⌈": "ceil(", "⌉": ")", "⌊": "floor(", "⌋": ")", ",": "", " B": ""}.items():
        formula = formula.replace(sign, code)
    return eval(formula, {"__builtins__": {}, "ceil": math.ceil, "floor": math.floor})


@pytest.mark.parametrize("engine", ENGINES)
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_every_answer_is_the_sum_of_its_lines_and_covers_what_the_model_needs(engine, data):
    width = st.sampled_from([16, 64, 128])
    caps = st.sampled_from([{}, {"window": 100}, {"chunk": 128}])
    layer = st.builds(lambda heads, k, cap: Layer(heads, k, k, **cap), st.sampled_from([1, 2, 4]), width, caps)
    spec = model(*data.draw(st.lists(layer, min_size=1, max_size=6)))
    n_tokens, batch = data.draw(st.integers(0, 3000)), data.draw(st.integers(1, 3))
    for ask in (admission, allocation):
        steps = {} if engine == "transformers" else {"max_num_batched_tokens": 64}
        plan = ask(spec, n_tokens, engine, batch=batch, **steps)
        answer = plan.as_dict()
        assert answer["bytes"] == plan.nbytes == sum(line["bytes"] for line in answer["lines"])
        assert all(type(line.nbytes) is int and line.nbytes >= 0 for line in plan.lines)
        for line in plan.lines:
            *steps, last = line.formula.split(" = ")
            assert value(last) == line.nbytes
            assert all(value(step) == value(last.split(" × ")[0]) for step in steps)
        spared = kv_bytes(spec, 1, batch) if engine == "transformers" and ask is admission else 0  # W − 1 tokens, not W
        assert plan.nbytes >= kv_bytes(spec, n_tokens, batch) - spared
        json.dumps(answer)


OPTIONS = {
    "vllm": {"kv_dtype": ["bf16", "fp8"], "tp": [1, 2], "pp": [1, 2], "block_size": [None, 16, 64], "hybrid": [True, False],
             "prefix_caching": [True, False], "max_num_batched_tokens": [None, 512]},
    "sglang": {"kv_dtype": ["bf16", "fp8"], "tp": [1, 2], "pp": [1, 3], "block_size": [None, 64], "hybrid": [True, False],
               "prefix_caching": [True, False], "max_num_batched_tokens": [None, 512]},
    "transformers": {"kv_dtype": ["bf16", "fp32"], "tp": [1, 2]},
    "llama.cpp": {"kv_dtype": ["bf16", "q8_0", "q8_0/q4_0"], "unified": [True, False], "hybrid": [True, False],
                  "max_num_batched_tokens": [None, 128, 4096]},
}  # fmt: skip
SAMPLE = ["llama-3-8b", "gemma-3-27b", "gpt-oss-20b", "falcon-40b", "deepseek-v3.2", "jamba-v0.1", "qwen3-next-80b-a3b",
          "lfm2-350m", "starcoder2-3b"]  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_what_is_admitted_fits_into_what_is_allocated(engine, data):
    spec = load_spec(data.draw(st.sampled_from(SAMPLE)))
    options = {name: data.draw(st.sampled_from(values)) for name, values in OPTIONS[engine].items()}
    n_tokens, batch = data.draw(st.integers(0, 200_000)), data.draw(st.integers(1, 9))
    asked = admission(spec, n_tokens, engine, batch=batch, **options)
    assert asked.nbytes <= allocation(spec, n_tokens, engine, batch=batch, **options).nbytes


def test_every_rule_says_where_it_was_read_in_both_languages():
    before = language()
    try:
        for engine in ENGINES.values():
            assert engine.version
            for rule in engine.rules:
                assert rule.where.count(":") >= 1
                set_language("en")
                english = rule.text
                set_language("zh-TW")
                assert rule.text != english
    finally:
        set_language(before)


@pytest.mark.parametrize(("options", "words"), [
    ({"engine": "trt"}, "engine is 'trt'"), ({"engine": None}, "engine is None"), ({"colour": 1}, "colour"),
    ({"tp": 0}, "tp is 0"), ({"pp": 99}, "pp is 99"), ({"batch": -1}, "batch is -1"),
    ({"n_tokens": -1}, "n_tokens (--tokens) is -1"), ({"n_tokens": 1.5}, "n_tokens (--tokens) is 1.5"),
    ({"block_size": 0}, "block_size (--block-size) is 0"), ({"block_size": True}, "block_size"),
    ({"max_num_batched_tokens": 0}, "(--max-batched-tokens) is 0"), ({"max_model_len": 10}, "(--max-model-len) = 10"),
    ({"kv_dtype": "fp7"}, "fp7"), ({"tp": 3}, "tp is 3"), ({"prefix_caching": 1}, "(--no-prefix-caching) is 1"),
    ({"pool_bytes": 5}, "allocation()"), ({"unified": True}, "unified"),
    ({"engine": "transformers", "block_size": 16}, "block_size"), ({"engine": "transformers", "pp": 2}, "pp is 2"),
    ({"engine": "transformers", "tp": 16}, "tp is 16"), ({"engine": "llama.cpp", "tp": 2}, "tp is 2"),
    ({"engine": "sglang", "max_model_len": 100}, "max_model_len"),
])  # fmt: skip
def test_wrong_options_are_named(options, words):
    options = {"n_tokens": 100} | options
    with pytest.raises(SpecError) as error:
        admission(load_spec("llama-3-8b"), options.pop("n_tokens"), options.pop("engine", "vllm"), **options)
    assert words in str(error.value)


def test_pages_that_vllm_cannot_unify_are_refused():
    spec = model(Layer(latent=576), Layer(n_kv_heads=1, k_dim=100, v_dim=100, window=64), Layer(**HEADS, window=64))
    with pytest.raises(SpecError, match="latent page"):
        admission(spec, 100)
    assert admission(spec, 100, hybrid=False).nbytes > 0


@pytest.mark.parametrize("engine", ["sglang", "llama.cpp"])
def test_cross_attention_is_refused_where_its_rule_is_not_known(engine):
    with pytest.raises(SpecError, match="cross-attention"):
        admission(model(Layer(**HEADS, cross_tokens=1500)), 10, engine)


def test_cross_attention_takes_blocks_of_its_own():
    spec = model(Layer(**HEADS, cross_tokens=1500))
    assert admission(spec, 100).nbytes == (math.ceil(1500 / 16) + math.ceil(100 / 16)) * 16 * 2048
    assert allocation(spec, 100, "transformers").nbytes == (1500 + 100) * 2048
