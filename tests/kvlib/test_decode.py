"""Prefill, decode steps and generation against a float64 Llama without a cache, one sequence at a time."""

import functools
from collections import Counter

import float64_oracle as oracle
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlib import SpecError
from kvlib.attention import IMPLEMENTATIONS
from kvlib.cache import CacheError, GrowingCache
from kvlib.decode import Sampling, decode_step, generate, prefill, stream
from kvlib.model import Llama, LlamaConfig, shapes

CONFIG = LlamaConfig(n_layers=3, n_heads=4, n_kv_heads=2, head_dim=6, hidden_size=20, intermediate_size=28,
                     vocab_size=40, max_position_embeddings=64)  # fmt: skip
GENERATOR = torch.Generator().manual_seed(0)
WEIGHTS = {
    name: torch.randn(shape, generator=GENERATOR, dtype=torch.float64) / (shape[-1] ** 0.5 if len(shape) == 2 else 1)
    for name, shape in shapes(CONFIG).items()
}
MODEL = Llama(CONFIG, WEIGHTS)
tokens, slow = st.integers(0, 39), settings(max_examples=25, deadline=None)
prompts = st.lists(st.lists(tokens, min_size=1, max_size=9), min_size=1, max_size=4)


@functools.cache
def uncached(*row):
    """The logits after each token of `row`, (n, vocab_size), in float64 and without a cache."""
    freqs = oracle.frequencies(CONFIG.head_dim, CONFIG.rope_theta)
    return oracle.full_forward(WEIGHTS, row, CONFIG.n_heads, CONFIG.n_kv_heads, freqs, CONFIG.rms_norm_eps)


def right(logits, rows):
    """Are these the logits after the last token of each row? To 1e-10, finite."""
    return torch.allclose(logits, torch.stack([uncached(*row)[-1] for row in rows]), rtol=0, atol=1e-10)


def poison(cache):
    """NaN in every slot that holds no token."""
    for row, n in enumerate(cache.lengths):
        cache.k[:, row, :, n:] = cache.v[:, row, :, n:] = float("nan")
    return cache


def new_cache(batch, capacity=40):
    """Longer than what it will hold."""
    return poison(MODEL.new_cache(batch, capacity))


def greedy(prompt, n):
    """n tokens, each chosen by a full forward."""
    row = list(prompt)
    for _ in range(n):
        row.append(int(uncached(*row)[-1].argmax()))
    return row[len(prompt) :]


# ---- the same as without a cache -------------------------------------------------------------------------------------


@given(prompts, st.integers(1, 10), st.data())
@slow
def test_prefill_in_any_chunks_and_steps_equal_a_full_forward(rows, chunk, data):
    """Properties 1, 2, 3, 6 and 13: ragged rows, every chunking, NaN behind every row and again between steps."""
    cache = new_cache(len(rows))
    found = [prefill(MODEL, cache, rows, chunk)]
    for _ in range(3):
        assert cache.lengths == tuple(map(len, rows))
        new = data.draw(st.lists(tokens, min_size=len(rows), max_size=len(rows)))
        found.append(decode_step(MODEL, poison(cache), torch.tensor(new)))
        rows = [[*row, token] for row, token in zip(rows, new, strict=True)]
    for b, row in enumerate(rows):
        assert torch.allclose(torch.stack(found)[:, b], uncached(*row)[-4:], rtol=0, atol=1e-10)


@given(st.lists(prompts.filter(lambda rows: len(rows) > 1).map(lambda rows: rows[:2]), min_size=1, max_size=4))
@slow
def test_prompts_that_continue_a_history_equal_a_full_forward(pieces):
    """Properties 1 and 2: two rows, each of several pieces of any length."""
    cache, rows = new_cache(2), [[], []]
    for piece in pieces:
        rows = [row + new for row, new in zip(rows, piece, strict=True)]
        assert right(prefill(MODEL, poison(cache), piece), rows)


@pytest.mark.parametrize("impl", [name for name in IMPLEMENTATIONS if name != "triton"])
def test_every_position_is_the_same_under_every_attention(impl):
    """Property 6: all logits of a chunk on a history, not its last ones only."""
    row, cache = list(range(3, 15)), new_cache(1)
    for part in (row[:5], row[5:6], row[6:]):
        n = cache.length
        logits = MODEL.logits(MODEL.forward(torch.tensor([part]), cache, impl=impl))
        assert torch.allclose(logits[0], uncached(*row)[n : n + len(part)], rtol=0, atol=1e-10)


@given(st.lists(tokens, min_size=1, max_size=8), prompts, st.integers(0, 4))
@slow
def test_a_row_of_a_batch_equals_the_row_alone(row, mates, where):
    """Property 13: all batch mates, all padding patterns; greedy tokens and logits."""
    where = min(where, len(mates))
    batch = [*mates[:where], row, *mates[where:]]
    alone, together = new_cache(1), new_cache(len(batch))
    a, b = prefill(MODEL, alone, [row]), prefill(MODEL, together, batch)
    for token in generate(MODEL, batch, 4)[where]:
        assert torch.allclose(b[where], a[0], rtol=0, atol=1e-12)
        assert token == int(a[0].argmax())
        a = decode_step(MODEL, alone, torch.tensor([token]))
        b = decode_step(MODEL, together, torch.full((len(batch),), token))


def test_a_growing_cache_gives_the_same_logits():
    row, cache = [7, 8, 9, 7], GrowingCache(3, 2, 2, 6, dtype=torch.float64)
    assert right(prefill(MODEL, cache, [row, row[::-1]], chunk=3), [row, row[::-1]])
    for token in (1, 2, 3):
        row = [*row, token]
        logits = decode_step(MODEL, cache, torch.tensor([token, token]))
        assert torch.allclose(logits[0], uncached(*row)[-1], rtol=0, atol=1e-10)


# ---- going back ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [0, 1, 4, 5, 6])
@pytest.mark.parametrize("kind", ["contiguous", "growing"])
def test_decoding_after_truncate_equals_a_fresh_prefix(kind, keep):
    """Property 14."""
    cache = new_cache(1) if kind == "contiguous" else GrowingCache(3, 1, 2, 6, dtype=torch.float64)
    row = [11, 22, 33, 4, 5, 6]
    prefill(MODEL, cache, [row])
    cache.truncate(keep)
    for token in (9, 8):
        row = [*row[:keep], token]
        keep += 1
        assert right(decode_step(MODEL, cache, torch.tensor([token])), [row])


def test_rows_can_be_cut_each_to_its_own_length():
    """Property 14, as speculative decoding does it."""
    cache, rows = new_cache(3), [[1, 2, 3, 4], [5, 6], [7, 8, 9]]
    prefill(MODEL, cache, rows)
    cache.truncate((1, 2, 0))
    rows = [[1, 39, 38], [5, 6, 3], [30, 31, 32, 33]]
    assert right(prefill(MODEL, poison(cache), [[39, 38], [3], [30, 31, 32, 33]]), rows)


@given(prompts)
@slow
def test_a_reset_cache_gives_identical_results(rows):
    """Property 16: to the bit, after other rows and an unfinished step."""
    cache = new_cache(len(rows))
    first = prefill(MODEL, cache, rows)
    cache.append(0, *torch.randn(2, len(rows), 2, 3, 6, dtype=torch.float64))
    cache.reset()
    assert cache.lengths == (0,) * len(rows)
    assert torch.equal(prefill(MODEL, cache, rows), first)


def test_a_chunked_prefill_that_does_not_fit_leaves_no_chunk_behind():
    cache = new_cache(2, capacity=5)
    with pytest.raises(CacheError, match="capacity of 5"):
        prefill(MODEL, cache, [[1, 2], [1, 2, 3, 4, 5, 6]], chunk=2)
    assert cache.lengths == (0, 0)


def test_an_overflow_in_the_middle_of_generation_is_refused():
    """Property 17: never silent, and what was there is still right."""
    cache = new_cache(1, capacity=6)
    found = []
    with pytest.raises(CacheError, match=r"\[6\] \+ \[1\] tokens exceed the capacity of 6"):
        for (token,) in stream(MODEL, [[20, 21, 22]], 9, cache=cache):
            found.append(token)
    assert found == greedy([20, 21, 22], 4)
    cache.truncate(5)
    assert right(decode_step(MODEL, cache, torch.tensor([17])), [[20, 21, 22, *found[:2], 17]])


# ---- generation ------------------------------------------------------------------------------------------------------


@given(prompts, st.integers(1, 5), st.none() | st.integers(1, 4))
@slow
def test_greedy_tokens_are_those_of_full_forwards(rows, n, chunk):
    """Property 6, tokens."""
    assert generate(MODEL, rows, n, chunk=chunk) == [greedy(row, n) for row in rows]


ROWS = [[17], [30, 2], [20, 21, 22]]


def test_rows_end_with_eos_each_on_its_own_and_then_stay_as_they_are():
    full = [greedy(row, 12) for row in ROWS]
    eos = full[2][2]
    expected = [row[: row.index(eos) + 1] if eos in row else row for row in full]
    assert len({len(row) for row in expected}) == 3
    cache, steps, ended = new_cache(3), [], {}
    for step in stream(MODEL, ROWS, 12, eos=eos, cache=cache):
        steps.append(step)
        for row, stored in ended.items():
            assert step[row] is None
            assert torch.equal(cache.k[:, row], stored)
        new = [row for row, token in enumerate(step) if token == eos]
        ended |= {row: cache.k[:, row].nan_to_num_(0).clone() for row in new}  # NaN would not equal itself
    assert [[t for t in row if t is not None] for row in zip(*steps, strict=True)] == expected
    assert generate(MODEL, ROWS, 12, eos=eos) == expected
    assert cache.lengths == tuple(len(p) + len(new) - 1 for p, new in zip(ROWS, expected, strict=True))


def test_generation_stops_when_every_row_has_ended():
    eos = greedy([1, 2, 3], 1)[0]
    assert list(stream(MODEL, [[1, 2, 3], [1, 2, 3]], 50, eos=eos)) == [[eos, eos]]


def test_the_last_token_is_not_run_again_and_can_be_continued():
    cache = new_cache(1)
    first = generate(MODEL, [[20, 21, 22]], 4, cache=cache)[0]
    assert cache.lengths == (6,)
    assert first + generate(MODEL, [first[-1:]], 3, cache=cache)[0] == greedy([20, 21, 22], 7)


def test_progress_counts_the_steps():
    seen = []
    generate(MODEL, ROWS, 5, progress=seen.append)
    assert seen == [1, 2, 3, 4, 5]


def test_inference_mode_is_on_inside_and_off_outside():
    cache = new_cache(1)
    assert prefill(MODEL, cache, [[1, 2]]).is_inference()
    assert decode_step(MODEL, cache, torch.tensor([1])).is_inference()
    assert MODEL.forward(torch.tensor([[1]]), cache).is_inference()
    trained = Llama(CONFIG, {name: x.clone().requires_grad_() for name, x in WEIGHTS.items()})
    assert not prefill(trained, MODEL.new_cache(1, 4), [[1, 2]]).requires_grad
    for _ in stream(MODEL, ROWS, 3):
        assert not torch.is_inference_mode_enabled()


# ---- sampling --------------------------------------------------------------------------------------------------------


def kept_probabilities(logits, temperature, top_k, top_p):
    """One row in numpy: softmax, the top_k largest and their ties, then largest first until top_p is reached."""
    logits = np.asarray(logits, dtype=np.float64) / temperature
    p = np.exp(logits - logits.max())
    if top_k is not None:
        p[logits < np.sort(logits)[-min(top_k, len(p))]] = 0
    p /= p.sum()
    if top_p is not None:
        kept, mass = np.zeros_like(p), 0.0
        for i in np.argsort(-p):
            if mass >= top_p:
                break
            kept[i], mass = p[i], mass + p[i]
        p = kept / kept.sum()
    return p


distinct = st.lists(st.integers(-40, 40), min_size=2, max_size=9, unique=True).map(lambda xs: [x / 8 for x in xs])


@given(distinct, st.sampled_from([0.3, 1.0, 2.5]), st.none() | st.integers(1, 12), st.none() | st.floats(0.013, 0.997))
@settings(deadline=None)
def test_probabilities_equal_those_of_numpy(logits, temperature, top_k, top_p):
    found = Sampling(temperature, top_k, top_p).probabilities(torch.tensor([logits, logits[::-1]], dtype=torch.float64))
    for row, given_logits in zip(found, (logits, logits[::-1]), strict=True):
        expected = kept_probabilities(given_logits, temperature, top_k, top_p)
        assert np.allclose(row.numpy(), expected, rtol=0, atol=1e-5)
        assert not row[torch.from_numpy(expected) == 0].any()


def test_tied_tokens_are_kept_together_by_top_k_and_one_by_one_by_top_p():
    logits = torch.tensor([[2.0, 2.0, 2.0, 0.0]])
    assert Sampling(1, top_k=2).probabilities(logits)[0].tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])
    assert sorted(Sampling(1, top_p=0.5).probabilities(logits)[0].tolist()) == pytest.approx([0, 0, 0.5, 0.5])


def test_everything_is_kept_by_top_p_1_and_one_token_by_the_smallest():
    logits = 3 * torch.randn(1, 128_256, generator=torch.Generator().manual_seed(0))
    assert torch.equal(Sampling(1, top_p=1.0).probabilities(logits), Sampling(1).probabilities(logits))
    assert Sampling(1, top_p=1e-9).probabilities(logits).nonzero().tolist() == [[0, int(logits.argmax())]]


def test_draws_follow_the_probabilities():
    """χ² of 20,000 draws over 5 kept tokens: with 4 degrees of freedom one seed in 1,000 exceeds 18.5."""
    sampling = Sampling(0.8, top_k=5, seed=3)
    logits = torch.tensor([[0.1, 1.0, -1.0, 0.5, 2.0, -3.0, 0.0, -4.0]])
    counts = Counter(sampling.chooser(torch.device("cpu"))(logits.expand(20_000, -1)).tolist())
    expected = 20_000 * sampling.probabilities(logits)[0].double()
    assert set(counts) == set(expected.nonzero()[:, 0].tolist())
    assert sum((counts[i] - expected[i]) ** 2 / expected[i] for i in counts) < 18.5


def test_a_seed_gives_the_same_tokens_again_and_no_seed_others():
    def tokens_of(seed):
        return generate(MODEL, ROWS, 20, sampling=Sampling(1.5, seed=seed))

    assert tokens_of(1) == tokens_of(1)
    assert tokens_of(1) != tokens_of(2)
    assert tokens_of(None) != tokens_of(None)


def test_greedy_takes_the_first_of_the_largest():
    choose = Sampling().chooser(torch.device("cpu"))
    assert choose(torch.tensor([[0.0, 3.0, 3.0], [5.0, 1.0, 5.0]])).tolist() == [1, 0]


def test_top_k_1_is_greedy():
    assert generate(MODEL, ROWS, 6, sampling=Sampling(2.0, top_k=1)) == generate(MODEL, ROWS, 6)


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [{"temperature": -0.1}, {"top_k": 0}, {"top_p": 0}, {"top_p": 0.0}, {"top_p": 1.1}])
def test_a_wrong_sampling_is_refused(wrong):
    with pytest.raises(SpecError, match="expected temperature ≥ 0, top_k ≥ 1, 0 < top_p ≤ 1"):
        Sampling(**wrong)


@pytest.mark.parametrize(
    ("rows", "chunk", "says"),
    [
        ([[1], []], None, r"2 prompts of lengths \[1, 0\]; expected 2, none empty"),
        ([[1]], None, "1 prompts of lengths"),
        ([[1], [2], [3]], None, "expected 2"),
        ([[1], [2]], 0, "chunk is 0"),
        ([[1], list(range(9))], None, r"\[1, 9\] tokens exceed the capacity of 8"),
    ],
)
def test_wrong_prompts_are_refused_and_change_nothing(rows, chunk, says):
    cache = new_cache(2, capacity=8)
    with pytest.raises(SpecError, match=says):
        prefill(MODEL, cache, rows, chunk)
    assert right(prefill(MODEL, cache, [[1, 2], [3]]), [[1, 2], [3]])


def test_generating_nothing_is_refused():
    with pytest.raises(SpecError, match="max_new_tokens is 0"):
        generate(MODEL, [[1]], 0)
    with pytest.raises(SpecError, match="batch is 0"):
        generate(MODEL, [], 3)


def test_a_growing_cache_refuses_ragged_rows():
    cache = GrowingCache(3, 2, 2, 6, dtype=torch.float64)
    with pytest.raises(CacheError, match="use a ContiguousCache"):
        prefill(MODEL, cache, [[1, 2], [3]])
    assert cache.lengths == (0, 0)


def test_common_slips_are_named():
    with pytest.raises(SpecError, match="one list per row"):
        generate(MODEL, [1, 2, 3], 3)
    with pytest.raises(SpecError, match="token 40"):
        generate(MODEL, [[1, 40]], 3)
    with pytest.raises(SpecError, match=r"shape \(1, 1\)"):
        decode_step(MODEL, new_cache(1), torch.tensor([[1]]))
    with pytest.raises(SpecError, match="temperature"):
        Sampling(temperature=float("nan"))
