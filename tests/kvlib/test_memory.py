"""The per-layer sum: exact answers, and the laws that it obeys. The oracle adds up token by token and layer by layer."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlib import KVGrowth, Layer, ModelSpec, SpecError, kv_bytes, kv_growth, kv_terms, load_spec

BYTES = {"fp32": 4, "bf16": 2, "fp8": 1}

layers = st.builds(
    Layer,
    n_kv_heads=st.integers(0, 8),
    k_dim=st.integers(1, 64),
    v_dim=st.integers(1, 64),
    latent=st.integers(0, 64),
    index_bytes=st.integers(0, 200),
    window=st.none() | st.integers(0, 50),
    chunk=st.none() | st.integers(1, 50),
    cross_tokens=st.integers(0, 20),
    state_bytes=st.integers(0, 1000),
)
tokens, batches, dtypes = st.integers(0, 200), st.integers(1, 5), st.sampled_from(list(BYTES))


def spec_of(*some_layers: Layer) -> ModelSpec:
    return ModelSpec("toy", tuple(some_layers), n_heads=8, hidden_size=8)


def count_one_by_one(spec: ModelSpec, n_tokens: int, batch: int, kv_dtype: str) -> int:
    """Walks over sequences, layers, tokens and heads and counts what each layer still needs."""
    total = 0
    for _ in range(batch):
        for layer in spec.layers:
            total += layer.state_bytes
            kept = [age for age in range(n_tokens)  # age 0 is the newest token
                    if (layer.window is None or age < layer.window) and (layer.chunk is None or age < layer.chunk)]  # fmt: skip
            for _token in [*kept, *range(layer.cross_tokens)]:
                total += layer.index_bytes + layer.latent * BYTES[kv_dtype]
                for _head in range(layer.n_kv_heads):
                    total += (layer.k_dim + layer.v_dim) * BYTES[kv_dtype]
    return total


@given(st.lists(layers, min_size=1, max_size=4), tokens, batches, dtypes)
def test_the_sum_equals_counting_one_by_one(some, n_tokens, batch, kv_dtype):
    spec = spec_of(*some)
    assert kv_bytes(spec, n_tokens, batch, kv_dtype) == count_one_by_one(spec, n_tokens, batch, kv_dtype)


@given(st.lists(layers, min_size=1, max_size=3), st.lists(layers, min_size=1, max_size=3), tokens, batches)
def test_additive_over_layers(a, b, n_tokens, batch):
    whole = kv_bytes(spec_of(*a, *b), n_tokens, batch)
    assert whole == kv_bytes(spec_of(*a), n_tokens, batch) + kv_bytes(spec_of(*b), n_tokens, batch)


@given(st.lists(layers, min_size=1, max_size=3), tokens, tokens, batches)
def test_monotone_in_tokens(some, n, m, batch):
    low, high = sorted((n, m))
    assert kv_bytes(spec_of(*some), low, batch) <= kv_bytes(spec_of(*some), high, batch)


@given(st.lists(layers, min_size=1, max_size=3), st.integers(1, 20), st.integers(1, 5), batches)
def test_linear_in_tokens_batch_and_width_below_all_windows(some, n_tokens, times, batch):
    nothing = {"window": None, "chunk": None, "state_bytes": 0, "cross_tokens": 0, "index_bytes": 0}
    free = spec_of(*(replace(layer, **nothing) for layer in some))
    one = kv_bytes(free, n_tokens)
    assert kv_bytes(free, n_tokens * times) == one * times
    assert kv_bytes(free, n_tokens, batch) == one * batch
    assert kv_bytes(free, n_tokens, kv_dtype="fp32") == 2 * one == 4 * kv_bytes(free, n_tokens, kv_dtype="fp8")


@given(st.lists(layers, min_size=1, max_size=3), st.sampled_from(["bf16", "int4_per_token_head", "fp8/bf16"]))
def test_growth_says_what_the_sum_does(some, kv_dtype):
    spec, growth = spec_of(*some), kv_growth(spec_of(*some), kv_dtype)
    assert kv_bytes(spec, 0, kv_dtype=kv_dtype) == growth.constant
    assert kv_bytes(spec, 1, kv_dtype=kv_dtype) == growth.per_token_early + growth.constant
    assert kv_bytes(spec, 1001, kv_dtype=kv_dtype) - kv_bytes(spec, 1000, kv_dtype=kv_dtype) == growth.per_token_late
    assert kv_bytes(spec, 1000, kv_dtype=kv_dtype) == 1000 * growth.per_token_late + growth.capped + growth.constant


def test_cross_attention_and_state_are_kept_once_per_sequence_and_whatever_its_length():
    layer = Layer(n_kv_heads=2, k_dim=4, v_dim=4, window=0, cross_tokens=1500, state_bytes=100)
    assert kv_growth(spec_of(layer)) == KVGrowth(0, 0, 0, 1500 * 2 * 8 * 2 + 100)
    assert kv_bytes(spec_of(layer), 10_000, batch=3) == 3 * (1500 * 32 + 100)
    assert kv_bytes(spec_of(layer), 1, kv_dtype="fp8") == 1500 * 16 + 100  # a KV dtype does not shrink a state
    assert kv_bytes(spec_of(layer), 1, tp=2) == 1500 * 16 + 100
    assert kv_bytes(spec_of(layer, replace(layer, shared_with=0, state_bytes=0)), 5) == kv_bytes(spec_of(layer), 5)


def test_a_decoder_that_also_reads_an_encoder_keeps_both():
    layer = Layer(n_kv_heads=2, k_dim=4, v_dim=4, cross_tokens=30)
    assert kv_bytes(spec_of(layer), 7) == (7 + 30) * 32
    assert kv_growth(spec_of(layer)) == KVGrowth(32, 32, 0, 960)


def test_index_keys_are_kept_in_every_format():
    layer = Layer(latent=576, latent_rope=64, index_bytes=132)
    assert kv_bytes(spec_of(layer), 10) == 10 * (1152 + 132)
    assert kv_bytes(spec_of(layer), 10, kv_dtype="fp8_ds_mla", tp=8) == 10 * (656 + 132)


def test_a_term_says_what_a_token_is():
    (term,) = kv_terms(load_spec("llama-3-8b"), 100, batch=2, kv_dtype="q8_0/q4_0", tp=16)
    assert (term.n_layers, term.retained, term.values, term.token_bytes) == (32, 100, 256, 4 * 34 + 4 * 18)
    assert term.nbytes == 32 * 2 * 100 * term.token_bytes


@given(st.integers(0, 5), st.integers(0, 7))
def test_tensor_parallel_ranks_never_hold_less_than_one_head(log_heads, log_tp):
    heads, tp = 2**log_heads, 2**log_tp
    spec = spec_of(Layer(n_kv_heads=heads, k_dim=4, v_dim=4))
    one_head = kv_bytes(spec_of(Layer(n_kv_heads=1, k_dim=4, v_dim=4)), 10)
    assert kv_bytes(spec, 10, tp=tp) == max(1, heads // tp) * one_head


@given(st.lists(layers, min_size=1, max_size=3).map(lambda some: [replace(x, n_kv_heads=4) for x in some]),
       st.sampled_from([1, 2, 4, 8]))  # fmt: skip
def test_growth_of_a_rank_says_what_its_sum_does(some, tp):
    spec, growth = spec_of(*some), kv_growth(spec_of(*some), tp=tp)
    assert kv_bytes(spec, 1, tp=tp) - kv_bytes(spec, 0, tp=tp) == growth.per_token_early
    assert kv_bytes(spec, 1000, tp=tp) == 1000 * growth.per_token_late + growth.capped + growth.constant


def test_every_rank_holds_the_whole_latent():
    spec = load_spec("deepseek-v3")
    assert kv_bytes(spec, 100, tp=8) == kv_bytes(spec, 100)


def test_tensor_parallelism_that_cannot_share_out_the_heads_is_refused():
    with pytest.raises(SpecError, match="tp is 3"):
        kv_bytes(load_spec("llama-2-70b"), 1, tp=3)


def test_a_layer_that_shares_another_ones_cache_keeps_nothing():
    own = Layer(n_kv_heads=2, k_dim=4, v_dim=4)
    assert kv_bytes(spec_of(own, replace(own, shared_with=0)), 10) == kv_bytes(spec_of(own), 10)
    assert kv_growth(spec_of(own, replace(own, shared_with=0))) == kv_growth(spec_of(own))


@pytest.mark.parametrize(("dtype", "per_token"), [("fp32", 655_360), ("bf16", 327_680), ("float16", 327_680),
                                                 ("fp8", 163_840), ("int8", 163_840), ("int4", 81_920)])  # fmt: skip
def test_a_token_of_llama_2_70b_in_every_dtype(dtype, per_token):
    assert kv_bytes(load_spec("llama-2-70b"), 1, kv_dtype=dtype) == per_token


def test_half_a_byte_is_rounded_up_for_every_token():
    assert kv_bytes(spec_of(Layer(n_kv_heads=1, k_dim=1, v_dim=2)), 10, kv_dtype="int4") == 10 * (1 + 1)


def test_terms_put_equal_layers_together_and_add_up():
    spec = load_spec("gemma-3-27b")
    terms = kv_terms(spec, 131_072)
    assert [(t.n_layers, t.retained) for t in terms] == [(52, 1024), (10, 131_072)]
    assert sum(t.nbytes for t in terms) == kv_bytes(spec, 131_072) == 11_173_625_856


def test_the_answers_of_the_interview():
    spec = load_spec("llama-2-70b")
    assert kv_bytes(spec, n_tokens=4096) == 1_342_177_280
    assert kv_bytes(spec, n_tokens=4096, batch=32) == 42_949_672_960
    assert kv_bytes(load_spec("llama-2-70b", num_key_value_heads=64), n_tokens=4096) == 10 * 2**30


def test_a_torch_dtype_is_read_by_its_text():
    torch = pytest.importorskip("torch")
    spec = load_spec("llama-3-8b")
    assert kv_bytes(spec, 8192, kv_dtype=torch.bfloat16) == kv_bytes(spec, 8192, kv_dtype="bf16") == 2**30


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        ({"n_tokens": -1}, "n_tokens"),
        ({"n_tokens": 1.5}, "n_tokens"),
        ({"n_tokens": True}, "n_tokens"),
        ({"batch": 0}, "batch"),
        ({"kv_dtype": "fp7"}, "fp7"),
        ({"kv_dtype": "bf16/fp7"}, "fp7"),
        ({"kv_dtype": "fp8_ds_mla"}, "fp8_ds_mla"),
        ({"tp": 0}, "tp"),
    ],
)
def test_a_wrong_argument_is_named(wrong, names):
    with pytest.raises(SpecError, match=names):
        kv_bytes(load_spec("llama-2-7b"), **{"n_tokens": 1, **wrong})
