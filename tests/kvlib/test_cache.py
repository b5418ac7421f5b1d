"""The cache contract: what append returns, against lists of tokens, and every way in which a wrong call is refused."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlib import kv_bytes, load_spec
from kvlib.cache import CacheError, ContiguousCache, GrowingCache

L, B, H, D, CAPACITY = 3, 2, 2, 4, 5  # layers, batch, KV heads, head_dim, tokens per row
both_kinds = pytest.mark.parametrize("kind", [ContiguousCache, GrowingCache])


def make(kind=ContiguousCache, **options):
    """A cache whose unwritten slots hold NaN."""
    cache = kind(L, B, H, D, **({"capacity": CAPACITY} if kind is ContiguousCache else {}), **options)
    for x in (*cache.k, *cache.v):
        x.fill_(float("nan"))
    return cache


def new_tokens(q_len, seed=0):
    """K and V of one step for each layer, no two numbers alike: (L, B, H, q_len, D) twice."""
    return torch.randn(2, L, B, H, q_len, D, generator=torch.Generator().manual_seed(seed))


def step(cache, k, v, n_new=None):
    """One whole step; returns what append gave, per layer."""
    found = [cache.append(i, k[i], v[i], n_new) for i in range(L)]
    cache.advance(k.shape[3] if n_new is None else n_new)
    return found


def state(cache):
    """All there is to see from outside, bytes included; NaN equals NaN."""
    stored = [x.clone().view(torch.int32) for x in (*cache.k, *cache.v)]
    return cache.lengths, cache.nbytes, cache._next_layer, cache._pending, [x.tolist() for x in stored]


# ---- what is stored --------------------------------------------------------------------------------------------------

steps = st.tuples(st.just("step"), st.integers(1, 4), st.lists(st.integers(0, 4), min_size=B, max_size=B))
cuts = st.tuples(st.just("truncate"), st.lists(st.integers(0, CAPACITY), min_size=B, max_size=B))
dropped = st.tuples(st.just("drop"), st.integers(1, L))


@both_kinds
@given(st.lists(st.one_of(steps, steps, steps, cuts, dropped, st.just(("reset",))), min_size=5, max_size=15))
@settings(max_examples=60, deadline=None)
def test_any_sequence_of_calls_equals_lists_of_tokens(kind, calls):
    """Properties 14 to 17: every append returns the kept tokens and the new ones, K apart from V, row from row, layer
    from layer; a refused call is forgotten, an unfinished step is dropped, and slots behind a row stay unwritten.
    """
    cache, rows = make(kind), [[] for _ in range(B)]  # rows: per row, tokens as (2, L, H, D)
    for seed, (what, *args) in enumerate(calls):
        if what == "step":
            q_len, n_new = args
            n_new = [min(n, q_len) for n in n_new] if kind is ContiguousCache else [q_len] * B
            kv, before = new_tokens(q_len, seed), state(cache)
            if kind is ContiguousCache and any(len(row) + n > CAPACITY for row, n in zip(rows, n_new, strict=True)):
                with pytest.raises(CacheError, match="exceed the capacity of 5"):
                    step(cache, *kv, n_new)
                assert state(cache) == before
                continue
            found = step(cache, *kv, n_new)
            for b, n in enumerate(n_new):
                rows[b] += [kv[:, :, b, :, t] for t in range(n)]
            for layer, both in enumerate(found):
                for which, x in enumerate(both):
                    assert x.shape == (B, H, max(map(len, rows)), D)
                    for b, row in enumerate(rows):
                        assert all(torch.equal(x[b, :, t], token[which, layer]) for t, token in enumerate(row))
        elif what == "truncate":
            counts = [min(n, len(row)) for n, row in zip(args[0], rows, strict=True)]
            counts = counts if kind is ContiguousCache else [min(counts)] * B
            cache.truncate(counts)
            rows = [row[:n] for row, n in zip(rows, counts, strict=True)]
        elif what == "drop":
            if max(map(len, rows)) < CAPACITY:
                for layer in range(args[0]):
                    cache.append(layer, *new_tokens(1, seed)[:, layer])
            cache.truncate(cache.lengths)
        else:
            cache.reset()
            rows = [[] for _ in range(B)]
        assert cache.lengths == tuple(map(len, rows))


def test_padding_is_written_nowhere():
    """Property 12: a step of 3 and 1 tokens changes those slots and no other, as it does on a history."""
    cache = make()
    step(cache, *new_tokens(2), n_new=[2, 0])
    step(cache, *new_tokens(3), n_new=[1, 3])
    for x in (cache.k, cache.v):
        written = ~x.isnan().all(-1)  # (L, B, H, CAPACITY)
        assert torch.equal(written, (torch.arange(CAPACITY) < 3).expand_as(written))
    before = state(cache)[-1]
    step(cache, *new_tokens(2), n_new=[0, 0])
    assert state(cache)[-1] == before


@both_kinds
def test_lengths_move_once_per_step_after_the_last_layer(kind):
    """Property 17."""
    cache = make(kind)
    for n_steps in (1, 2):
        for layer, (k, v) in enumerate(zip(*new_tokens(2), strict=True)):
            cache.append(layer, k, v)
            assert cache.lengths == (2 * n_steps - 2,) * B
        cache.advance(2)
        assert cache.length == 2 * n_steps


def test_length_is_refused_when_rows_differ():
    cache = make()
    step(cache, *new_tokens(2), n_new=torch.tensor([2, 1]))
    assert cache.lengths == (2, 1)
    with pytest.raises(CacheError, match=r"different lengths \(2, 1\); read cache.lengths"):
        _ = cache.length


@both_kinds
def test_the_cache_neither_aliases_nor_changes_what_it_is_given(kind):
    cache, given_kv = make(kind), new_tokens(2)
    kept = given_kv.clone()
    step(cache, *given_kv)
    assert torch.equal(given_kv, kept)
    given_kv.fill_(7)
    found = step(cache, *new_tokens(1))
    for layer, both in enumerate(found):
        assert all(torch.equal(x[:, :, :2], kept[which, layer]) for which, x in enumerate(both))


def test_a_contiguous_cache_never_moves():
    cache = make()
    where = cache.k.data_ptr(), cache.v.data_ptr(), cache.nbytes
    for seed in range(2):
        found = step(cache, *new_tokens(2, seed))
    cache.truncate(1)
    cache.reset()
    assert (cache.k.data_ptr(), cache.v.data_ptr(), cache.nbytes) == where
    assert found[0][0].data_ptr() == where[0]  # append returns views


# ---- what it costs ---------------------------------------------------------------------------------------------------

SPEC = load_spec({"model_type": "llama", "num_hidden_layers": L, "num_attention_heads": 4 * H, "num_key_value_heads": H,
                  "head_dim": D, "hidden_size": 99, "intermediate_size": 9, "vocab_size": 9})  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_nbytes_equal_the_formula_with_kv_heads(dtype):
    """Property 9: all slots of a preallocated cache, the tokens held of a growing one."""
    assert make(dtype=dtype).nbytes == kv_bytes(SPEC, CAPACITY, B, dtype)
    growing = make(GrowingCache, dtype=dtype)
    for tokens in (3, 4, 9):
        step(growing, *new_tokens(tokens - growing.length).to(dtype))
        assert growing.nbytes == kv_bytes(SPEC, tokens, B, dtype)
    growing.truncate(2)
    assert growing.nbytes == kv_bytes(SPEC, 2, B, dtype)
    growing.reset()
    assert growing.nbytes == 0


@pytest.mark.parametrize(("prompt", "n_steps"), [(1, 0), (5, 1), (5, 20)])
def test_a_growing_cache_copies_a_square_of_its_length(prompt, n_steps):
    """Each step writes all tokens so far: P, P + 1, …, P + n; in closed form (n + 1) · P + n · (n + 1) / 2 tokens."""
    cache = make(GrowingCache)
    step(cache, *new_tokens(prompt))
    for _ in range(n_steps):
        step(cache, *new_tokens(1))
    tokens = (n_steps + 1) * prompt + n_steps * (n_steps + 1) // 2
    assert cache.bytes_copied == kv_bytes(SPEC, tokens, B, "fp32")


# ---- what is refused -------------------------------------------------------------------------------------------------


def kv(q_len=1, batch=B, heads=H, head_dim=D, **options):
    return torch.zeros(batch, heads, q_len, head_dim, **options)


WRONG = {
    "first layer skipped": (lambda c: c.append(1, kv(), kv()), "layer 1, but layer 0 is due"),
    "negative layer": (lambda c: c.append(-1, kv(), kv()), "layer -1, but layer 0 is due"),
    "advance before anything": (lambda c: c.advance(1), "after 0 of 3 layers"),
    "wrong batch": (lambda c: c.append(0, kv(batch=3), kv(batch=3)), r"k has shape \(3, 2, 1, 4\)"),
    "query heads": (lambda c: c.append(0, kv(heads=8), kv(heads=8)), r"k has shape \(2, 8, 1, 4\)"),
    "wrong head_dim": (lambda c: c.append(0, kv(head_dim=8), kv(head_dim=8)), r"k has shape \(2, 2, 1, 8\)"),
    "three dimensions": (lambda c: c.append(0, kv()[0], kv()[0]), r"k has shape \(2, 1, 4\)"),
    "v of a wrong shape": (lambda c: c.append(0, kv(), kv(batch=1)), r"v has shape \(1, 2, 1, 4\)"),
    "wrong dtype": (lambda c: c.append(0, kv().double(), kv().double()), "k is torch.float64 on cpu; the cache holds"),
    "v of a wrong dtype": (lambda c: c.append(0, kv(), kv().half()), "v is torch.float16 on cpu"),
    "wrong device": (lambda c: c.append(0, kv(device="meta"), kv(device="meta")), "float32 on meta; .*float32 on cpu"),
    "more keys than values": (lambda c: c.append(0, kv(2), kv(1)), "k has 2 tokens and v has 1"),
    "no tokens": (lambda c: c.append(0, kv(0), kv(0)), "at least 1"),
    "n_new above q_len": (lambda c: c.append(0, kv(2), kv(2), [3, 2]), r"n_new is \[3, 2\]"),
    "n_new below 0": (lambda c: c.append(0, kv(2), kv(2), [-1, 2]), "n_new is -1"),
    "n_new for other rows": (lambda c: c.append(0, kv(2), kv(2), [1, 1, 1]), "n_new has 3 numbers"),
    "n_new no whole number": (lambda c: c.append(0, kv(2), kv(2), [0.9, 2]), "n_new is 0.9"),
    "truncate beyond": (lambda c: c.truncate(3), r"truncate to \[3, 3\] of \[2, 2\]"),
    "truncate one row beyond": (lambda c: c.truncate([2, 3]), r"truncate to \[2, 3\]"),
    "truncate below 0": (lambda c: c.truncate(-1), "n is -1"),
    "truncate to no whole number": (lambda c: c.truncate(2.9), "n is 2.9"),
    "truncate to a bool": (lambda c: c.truncate(True), "n is True"),
    "truncate other rows": (lambda c: c.truncate([1]), "n has 1 numbers"),
}
WRONG_IN_A_STEP = {
    "layer repeated": (lambda c: c.append(0, kv(), kv()), "layer 0, but layer 1 is due"),
    "layer skipped": (lambda c: c.append(2, kv(), kv()), "layer 2, but layer 1 is due"),
    "advance too early": (lambda c: c.advance(1), "after 1 of 3 layers"),
    "other q_len than layer 0": (lambda c: c.append(1, kv(2), kv(2)), r"appends \[2, 2\].*layer 0 appended \[1, 1\]"),
}
WRONG_AFTER_THE_LAST_LAYER = {
    "advance by too many": (lambda c: c.advance(2), r"advance by \[2, 2\], but this step appended \[1, 1\]"),
    "advance by too few": (lambda c: c.advance(0), r"advance by \[0, 0\]"),
    "advance other rows": (lambda c: c.advance([1]), "n_new has 1 numbers"),
    "advance one row otherwise": (lambda c: c.advance([1, 0]), r"advance by \[1, 0\]"),
    "no advance": (lambda c: c.append(0, kv(), kv()), r"layer 0, but advance\(\) is due"),
    "one layer too many": (lambda c: c.append(3, kv(), kv()), r"layer 3, but advance\(\) is due"),
}
ONLY_GROWING = {
    "ragged append": (lambda c: c.append(0, kv(2), kv(2), [2, 1]), "takes all 2 tokens of every row: use a Contiguous"),
    "padding": (lambda c: c.append(0, kv(2), kv(2), [1, 1]), r"n_new is \[1, 1\]; a GrowingCache takes all 2 tokens"),
    "ragged truncate": (lambda c: c.truncate([1, 2]), "keeps all rows alike: use a ContiguousCache"),
}
ONLY_CONTIGUOUS = {
    "overflow": (lambda c: c.append(0, kv(6), kv(6)), r"\[2, 2\] \+ \[6, 6\] tokens exceed the capacity of 5"),
    "overflow of one row": (lambda c: c.append(0, kv(6), kv(6), [1, 6]), r"\[1, 6\] tokens exceed"),
}
CASES = [
    pytest.param(kind, layers_done, *case, id=f"{name}-{kind.__name__}")
    for layers_done, cases, kinds in (
        (0, WRONG, (ContiguousCache, GrowingCache)),
        (1, WRONG_IN_A_STEP, (ContiguousCache, GrowingCache)),
        (L, WRONG_AFTER_THE_LAST_LAYER, (ContiguousCache, GrowingCache)),
        (0, ONLY_GROWING, (GrowingCache,)),
        (0, ONLY_CONTIGUOUS, (ContiguousCache,)),
    )
    for kind in kinds
    for name, case in cases.items()
]


@pytest.mark.parametrize(("kind", "layers_done", "wrong_call", "says"), CASES)
def test_a_wrong_call_is_refused_changes_nothing_and_the_step_goes_on(kind, layers_done, wrong_call, says):
    """Property 17."""
    cache, history, new = make(kind), new_tokens(2), new_tokens(1, seed=1)
    step(cache, *history)
    found = [cache.append(i, new[0, i], new[1, i]) for i in range(layers_done)]
    before = state(cache)
    with pytest.raises(CacheError, match=says):
        wrong_call(cache)
    assert state(cache) == before
    found += [cache.append(i, new[0, i], new[1, i]) for i in range(layers_done, L)]
    cache.advance(1)
    assert cache.lengths == (3, 3)
    for layer, both in enumerate(found):
        assert all(torch.equal(x, torch.cat([history, new], 4)[which, layer]) for which, x in enumerate(both))


def test_ragged_steps_must_agree_between_layers():
    cache = make()
    cache.append(0, kv(2), kv(2), [2, 1])
    with pytest.raises(CacheError, match=r"layer 1 appends \[1, 2\] tokens per row, layer 0 appended \[2, 1\]"):
        cache.append(1, kv(2), kv(2), [1, 2])
    with pytest.raises(CacheError, match=r"layer 1 appends \[2, 2\]"):
        cache.append(1, kv(2), kv(2))


def test_a_full_cache_refuses_one_more_token_and_keeps_all():
    cache = make()
    step(cache, *new_tokens(CAPACITY))
    before = state(cache)
    with pytest.raises(CacheError, match="stop, truncate, or build a larger cache"):
        step(cache, *new_tokens(1))
    assert state(cache) == before
    cache.truncate(CAPACITY - 1)
    step(cache, *new_tokens(1))
    assert cache.length == CAPACITY


@pytest.mark.parametrize("name", ["n_layers", "batch", "n_kv_heads", "head_dim", "capacity"])
@pytest.mark.parametrize("value", [0, -1, 1.0, True])
def test_sizes_are_whole_numbers(name, value):
    sizes = {"n_layers": L, "batch": B, "n_kv_heads": H, "head_dim": D, "capacity": CAPACITY}
    with pytest.raises(CacheError, match=f"{name} is {value}"):
        ContiguousCache(**sizes | {name: value})
