"""Every implementation of attention against float64 loops, one query after the other."""

import float64_oracle as oracle
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlib import SpecError
from kvlib.attention import IMPLEMENTATIONS, Mask, attention

IMPLS = ["auto", *(name for name in IMPLEMENTATIONS if name != "triton")]  # the kernel has tests of its own
every_impl = pytest.mark.parametrize("impl", IMPLS)
NAN = float("nan")

# Largest difference to float64 on inputs of size 1. Equality is claimed in float64 and float32; 16-bit numbers have 8
# (bf16) or 11 (fp16) significant bits and may differ by a rounding of the output and of the inputs of each product.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 3e-2, torch.float16: 4e-3}


def make(batch=2, n_heads=4, n_kv_heads=2, q_len=1, kv_len=9, head_dim=8, dtype=torch.float64, seed=0):
    """q, k and v, all different: a swap of k and v shows."""
    generator = torch.Generator().manual_seed(seed)
    sizes = ((n_heads, q_len), (n_kv_heads, kv_len), (n_kv_heads, kv_len))
    return [torch.randn(batch, *size, head_dim, generator=generator, dtype=torch.float64).to(dtype) for size in sizes]


def close(found, expected, dtype=torch.float64):
    return found.dtype == dtype and torch.allclose(found.double(), expected, rtol=0, atol=TOLERANCE[dtype])


@every_impl
@given(st.data())
@settings(max_examples=30, deadline=None)
def test_any_queries_on_any_history_equal_float64_loops(impl, data):
    """Properties 1 and 3. Rows differ in history and in new tokens; every slot behind a row's length holds NaN."""
    batch, q_len = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 5))
    n_kv_heads, group = data.draw(st.sampled_from([1, 2, 3])), data.draw(st.sampled_from([1, 2, 4]))
    starts = data.draw(st.lists(st.integers(0, 12), min_size=batch, max_size=batch))
    lengths = [s + data.draw(st.integers(0, q_len)) for s in starts]
    slots = max(1, *lengths) + data.draw(st.integers(0, 3))
    q, k, v = make(batch, n_kv_heads * group, n_kv_heads, q_len, slots)
    expected = oracle.attend(q, k, v, starts, lengths)
    for b, n in enumerate(lengths):
        k[b, :, n:] = v[b, :, n:] = NAN
    assert close(attention(q, k, v, Mask.of(tuple(starts), tuple(lengths)), impl), expected)


@every_impl
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(("start", "q_len"), [(0, 1), (0, 6), (40, 1), (40, 2), (40, 6)])
def test_every_dtype_keeps_its_stated_tolerance(impl, dtype, start, q_len):
    """Property 11."""
    q, k, v = make(q_len=q_len, kv_len=start + q_len, dtype=dtype)
    expected = oracle.attend(q, k, v, [start] * 2, [start + q_len] * 2)
    assert close(attention(q, k, v, Mask.of(start, start + q_len), impl), expected, dtype)


@every_impl
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_the_result_does_not_depend_on_where_k_and_v_lie(impl, dtype):
    """Property 8, as far as a row lies in one piece: other rows, heads and slots around it, the same bits."""
    q, k, v = make(batch=3, kv_len=37, dtype=dtype)
    home = attention(q, k, v, Mask.of(36, 37), impl)
    store = torch.full((5, 4, 64, 8), NAN, dtype=dtype)
    where = torch.tensor([4, 0, 2])
    for x in (k, v):
        store[where, :2, :37] = x
        moved = store.clone()[where][:, :2, :37]
        (k, v) = (moved, v) if x is k else (k, moved)
    assert not k.is_contiguous()
    assert torch.equal(attention(q, k, v, Mask.of(36, 37), impl), home)


@every_impl
def test_without_a_mask_every_query_sees_every_key(impl):
    q, k, v = make(q_len=3, kv_len=7)
    assert close(attention(q, k, v, impl=impl), oracle.attend(q, k, v, [7] * 2, [7] * 2))


@every_impl
def test_queries_of_zero_return_the_mean_of_what_is_stored(impl):
    """Property 4, around every power of two up to 1024."""
    _, k, v = make(batch=1, kv_len=1030)
    q = torch.zeros(1, 4, 1, 8, dtype=torch.float64)
    for length in sorted({n for power in range(11) for n in range(2**power - 1, 2**power + 2) if n}):
        mean = v[:, :, :length].mean(2, keepdim=True).repeat_interleave(2, dim=1)
        assert close(attention(q, k, v, Mask.of(length - 1, length), impl), mean)


@every_impl
@pytest.mark.parametrize(("n_heads", "n_kv_heads"), [(6, 6), (6, 3), (6, 2), (6, 1), (12, 4)])
@pytest.mark.parametrize("q_len", [1, 3])
def test_each_query_head_reads_the_kv_head_of_its_group(impl, n_heads, n_kv_heads, q_len):
    """Property 5: KV head g holds the constant g."""
    q, k, v = make(n_heads=n_heads, n_kv_heads=n_kv_heads, q_len=q_len, kv_len=8)
    v[:] = torch.arange(n_kv_heads).view(1, -1, 1, 1)
    read = attention(q, k, v, Mask.of(8 - q_len, 8), impl)
    expected = torch.tensor([float(h // (n_heads // n_kv_heads)) for h in range(n_heads)]).view(1, -1, 1, 1)
    assert close(read, expected.expand(2, -1, q_len, 8).double())


@every_impl
def test_a_long_history_equals_float64_loops(impl):
    """Property 10."""
    q, k, v = make(batch=1, q_len=2, kv_len=40_003, dtype=torch.float32)
    expected = oracle.attend(q, k, v, [40_000], [40_002])
    assert close(attention(q, k, v, Mask.of(40_000, 40_002), impl), expected, torch.float32)


@every_impl
def test_keys_far_from_zero_do_not_overflow(impl):
    """Scores of ±500: exp overflows in float32, softmax must not. The largest score takes all."""
    q, k, v = make(batch=1, n_heads=2, q_len=1, kv_len=3, head_dim=4, dtype=torch.float32)
    q[:], k[:] = 1, torch.tensor([-250.0, 250.0, 0.0]).view(3, 1)
    assert torch.equal(attention(q, k, v, impl=impl)[0, :, 0], v[0, :, 1])


@every_impl
@pytest.mark.parametrize("shape", [(5,), (3, 5), (1, 3, 1), (4, 1, 5), (2, 1, 3, 5), (2, 4, 3, 5), (2, 1, 1, 1)])
def test_a_boolean_mask_broadcasts(impl, shape):
    q, k, v = make(q_len=3, kv_len=5)
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(1)) < 0.6
    sees = mask.expand(2, 4, 3, 5)
    expected = torch.zeros_like(q)
    for b, h, i in sees.any(-1).nonzero().tolist():
        keep = sees[b, h, i]
        one = q[b : b + 1, h : h + 1, i : i + 1], *(x[b : b + 1, h // 2 : h // 2 + 1, keep] for x in (k, v))
        expected[b, h, i] = oracle.attend(*one, [5], [int(keep.sum())])
    assert close(attention(q, k, v, mask, impl), expected)


@every_impl
def test_a_key_that_no_query_of_its_row_sees_may_be_nan(impl):
    """Property 3, for a boolean mask: key 1 of row 0, keys 3 and 4 of row 1. Row 1's last query sees nothing at all."""
    q, k, v = make(q_len=2, kv_len=5)
    mask = torch.ones(2, 1, 2, 5, dtype=torch.bool)
    mask[0, :, :, 1] = mask[1, :, :, 3:] = mask[1, :, 1] = False
    clean = attention(q, k, v, mask, impl)
    k[0, :, 1] = v[0, :, 1] = k[1, :, 3:] = v[1, :, 3:] = NAN
    assert close(attention(q, k, v, mask, impl), clean)
    assert not clean[1, :, 1].any()


@every_impl
def test_lengths_in_a_tensor_mean_what_they_mean_in_a_mask(impl):
    q, k, v = make(batch=3)
    expected = oracle.attend(q, k, v, [9] * 3, [9, 1, 4])
    k[1, :, 1:] = v[2, :, 4:] = NAN
    assert close(attention(q, k, v, torch.tensor([9, 1, 4], dtype=torch.int32), impl), expected)


@every_impl
def test_the_inputs_stay_as_they_are(impl):
    """Property 12."""
    inputs = make(q_len=2)
    before = [x.clone() for x in inputs]
    out = attention(*inputs, Mask.of((3, 6), (5, 8)), impl)
    out.fill_(NAN)
    assert all(map(torch.equal, inputs, before))


@given(st.integers(1, 4), st.integers(0, 6), st.integers(0, 9), st.integers(1, 8))
def test_a_mask_hides_nothing_exactly_when_every_key_is_visible(q_len, start, length, kv_len):
    mask = Mask.of(start, length)
    assert mask.hides_nothing(kv_len) == bool(mask.visible(q_len, kv_len).all())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"q": torch.zeros(2, 4, 8)}, r"q \(2, 4, 8\)"),
        ({"q": torch.zeros(3, 4, 1, 8)}, r"q \(3, 4, 1, 8\)"),
        ({"q": torch.zeros(2, 5, 1, 8)}, "n_kv_heads dividing n_heads"),
        ({"q": torch.zeros(2, 4, 1, 6)}, "do not fit"),
        ({"v": torch.zeros(2, 2, 8, 8)}, r"v \(2, 2, 8, 8\)"),
        ({"v": torch.zeros(2, 2, 9, 8).half()}, "expected one dtype"),
        ({"mask": torch.zeros(9)}, "expected torch.bool"),
        ({"mask": torch.ones(8, dtype=torch.bool)}, r"broadcasts to \(2, 4, 1, 9\)"),
        ({"mask": torch.ones(3, dtype=torch.int32)}, r"expected \(2,\) and 1 query"),
        ({"mask": Mask.of((1, 2, 3), 9)}, "3 starts"),
        ({"mask": Mask.of(8, (9, 9, 9))}, "3 lengths"),
        ({"mask": Mask.of(9, 10)}, "lengths up to 10, but k and v have 9 slots"),
        ({"impl": "flash"}, "'flash'; expected auto"),
    ],
)
def test_what_does_not_fit_together_is_refused(change, says):
    q, k, v = make(dtype=torch.float32)
    with pytest.raises(SpecError, match=says):
        attention(**{"q": q, "k": k, "v": v} | change)
