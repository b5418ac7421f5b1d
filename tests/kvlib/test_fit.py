"""The inverse questions, against brute force: the answer fits, and one more does not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlib import GB, Layer, ModelSpec, SpecError, kv_bytes, load_spec, memory_budget
from kvlib.fit import fewest_cards, longest, longest_sequence, readings

layers = st.lists(
    st.builds(
        Layer,
        n_kv_heads=st.sampled_from([0, 1, 2, 4]),
        k_dim=st.integers(0, 3),
        v_dim=st.integers(0, 3),
        token_bytes=st.integers(0, 3),
        window=st.none() | st.integers(0, 30),
        chunk=st.none() | st.integers(1, 30),
        cross_tokens=st.integers(0, 3),
        state_bytes=st.integers(0, 20),
    ),
    min_size=1,
    max_size=5,
).map(lambda found: ModelSpec("toy", tuple(found), n_heads=4, hidden_size=1))


@settings(max_examples=300)
@given(layers, st.integers(0, 2000), st.integers(1, 4), st.sampled_from(["bf16", "fp8", "fp8/int4"]), st.sampled_from([1, 2, 4]))
def test_longest_is_the_last_length_that_fits(spec, nbytes, batch, kv_dtype, tp):
    fitting = [n for n in range(2100) if kv_bytes(spec, n, batch, kv_dtype, tp) <= nbytes]
    found = longest(spec, nbytes, batch, kv_dtype, tp)
    if found is None:
        assert len(fitting) == 2100  # one byte per token at least would have stopped it
    else:
        assert found == (fitting[-1] if fitting else 0)


@pytest.mark.parametrize("model", ["llama-2-70b", "gemma-3-27b", "deepseek-v3", "jamba-v0.1", "mistral-7b-v0.1", "gemma-3n-e4b"])
@pytest.mark.parametrize("sequences", [1, 3])
def test_the_longest_sequence_of_a_budget_fills_it(model, sequences):
    b = memory_budget(load_spec(model), "h200-141gb", 16 if model == "deepseek-v3" else 4)
    found = longest_sequence(b, sequences)
    if found is None:
        assert model == "mistral-7b-v0.1", "all of its layers have a window"
        assert b.max_sequences(10**9) >= sequences
    else:
        assert b.max_sequences(found) >= sequences > b.max_sequences(found + 1)


def test_llama_2_70b_on_two_h100():
    # 160e9 − 137,953,296,384 of weights − 6e9 of runtime = 16,046,703,616 B, of 327,680 B per token
    assert longest_sequence(memory_budget(load_spec("llama-2-70b"), "h100-80gb", 2)) == 48_970


def test_what_does_not_fit_has_no_tokens():
    spec = load_spec("llama-2-70b")
    assert longest_sequence(memory_budget(spec, "t4-16gb")) == 0
    assert longest(load_spec("jamba-v0.1"), 8_716_288 - 1) == 0, "its state alone is larger"
    assert longest(load_spec("jamba-v0.1"), 8_716_288 + 16_384) == 1


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 40_000), st.integers(1, 40), st.sampled_from(["decimal", "binary", "reported"]),
       st.sampled_from(["llama-2-70b", "deepseek-v3", "qwen2.5-7b", "falcon-7b"]))  # fmt: skip
def test_fewest_cards_is_the_first_number_that_holds_them(n_tokens, sequences, capacity, model):
    spec = load_spec(model)
    found = fewest_cards(spec, "h100-80gb", n_tokens, sequences, capacity=capacity)
    holds = []
    for n in range(1, spec.n_heads + 1):
        try:
            if memory_budget(spec, "h100-80gb", n, capacity=capacity).max_sequences(n_tokens) >= sequences:
                holds.append(n)
        except SpecError:
            continue  # the heads cannot be split over n cards
    assert found == (holds[0] if holds else None)


def test_a_model_without_heads_may_take_any_number_of_cards():
    spec = ModelSpec("state only", (Layer(state_bytes=10 * GB),), n_heads=0, hidden_size=1)
    assert fewest_cards(spec, "t4-16gb", 1, 1, weight_bytes=0) == 1
    # n cards of 16 GB keep 3 GB of runtime and a whole state of 10 GB each: 3 GB per card are left for the weights
    assert fewest_cards(spec, "t4-16gb", 1, 1, weight_bytes=30 * GB) == 10


def test_readings_are_all_capacities_at_all_utilizations():
    found = readings(load_spec("llama-2-70b"), "h100-80gb", 2, utilizations=(1.0, 0.9))
    assert [(r.capacity, r.utilization) for r in found] == [
        (c, u) for c in ("decimal", "reported", "binary") for u in (1.0, 0.9)]  # fmt: skip
    assert [r.budget.max_sequences(4096) for r in found] == [11, 0, 19, 6, 20, 7]


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda spec: longest(spec, -1), "nbytes"),
        (lambda spec: longest(spec, 1, batch=0), "batch"),
        (lambda spec: fewest_cards(spec, "h100-80gb", 0), "n_tokens"),
        (lambda spec: fewest_cards(spec, "h100", 1), "h100"),
        (lambda spec: fewest_cards(spec, "h100-80gb", 1, 0), "sequences"),
        (lambda spec: readings(spec, "h100-80gb", 1, utilizations=(1.5,)), "utilization"),
    ],
)
def test_a_wrong_argument_is_named(call, names):
    with pytest.raises(SpecError, match=names):
        call(load_spec("llama-2-70b"))
