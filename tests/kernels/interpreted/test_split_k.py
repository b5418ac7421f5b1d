"""The Triton kernel, interpreted, against float64: every size it was written for, and what may go wrong silently."""

import random

import pytest
import torch

from kvlib.errors import SpecError
from kvlib.kernels import split_k
from kvlib.kernels.split_k import CONFIGS, MAX_SPLITS, choose_splits, decode_attention
from tests.kernels.decode_cases import HEAD_DIMS, TOLERANCE, assert_close, case, int32, oracle

F32 = torch.float32
BLOCK = CONFIGS[64, 4].block  # most tests: head_dim 64 in float32


@pytest.mark.parametrize("head_dim", HEAD_DIMS)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_equals_float64_at_ragged_lengths(dtype, head_dim):
    block = CONFIGS[split_k.dim(head_dim), dtype.itemsize].block
    capacity = 2 * block + 5
    lengths = int32(1, block - 1, block, block + 1, random.Random(head_dim).randint(2, capacity), capacity)
    q, k, v = case(len(lengths), 4, 2, capacity, head_dim, dtype)
    for n_splits in (1, 2):
        assert_close(decode_attention(q, k, v, lengths, n_splits), oracle(q, k, v, lengths))


@pytest.mark.parametrize("group", [1, 2, 7, 8, 16, 20])
def test_query_heads_read_their_own_kv_head(group):
    q, k, v = case(2, 3 * group, 3, 70, 64)
    lengths = int32(70, 33)
    assert_close(decode_attention(q, k, v, lengths, 2), oracle(q, k, v, lengths))


def test_each_kv_head_of_constant_v_comes_back_whole():
    q, k, v = case(2, 8, 4, 70, 64)
    v = (10.0 ** torch.arange(8)).view(2, 4, 1, 1).expand_as(v).contiguous()
    expected = v[:, :, :1].repeat_interleave(2, dim=1)
    torch.testing.assert_close(decode_attention(q, k, v, int32(70, 9)), expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("n_splits", [1, 3])
def test_slots_at_and_behind_the_length_are_never_read(n_splits):
    lengths = int32(1, BLOCK, BLOCK + 1, 2 * BLOCK - 1)
    q, k, v = case(4, 4, 2, 2 * BLOCK + 9, 64)
    clean = decode_attention(q, k, v, lengths, n_splits)
    for row, length in enumerate(lengths.tolist()):
        k[row, :, length:] = v[row, :, length:] = torch.nan
    out = decode_attention(q, k, v, lengths, n_splits)
    assert out.isfinite().all() and torch.equal(out, clean)


def test_slots_behind_the_view_are_never_read():
    """A length beyond kv_len counts as kv_len, whatever the buffer holds behind the view."""
    q, k, v = case(2, 4, 2, 100, 64)
    k[:, :, 70:] = v[:, :, 70:] = torch.nan
    out = decode_attention(q, k[:, :, :70], v[:, :, :70], int32(71, 95), 3)
    assert_close(out, oracle(q, k, v, int32(70, 70)))


@pytest.mark.parametrize("n_splits", [1, 2])
def test_zero_queries_give_the_mean_of_the_stored_values(n_splits):
    lengths = int32(1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 1)
    q, k, v = case(len(lengths), 2, 1, 2 * BLOCK + 1, 64)
    mean = torch.stack([v[row, :, :n].mean(1, keepdim=True) for row, n in enumerate(lengths)]).expand(-1, 2, -1, -1)
    torch.testing.assert_close(decode_attention(torch.zeros_like(q), k, v, lengths, n_splits), mean, rtol=0, atol=1e-6)


def test_the_number_of_splits_does_not_matter():
    """Splits 7 and 40 leave empty ones in every row, in the row of length 1 all but one."""
    q, k, v = case(3, 4, 2, 3 * BLOCK + 1, 64)
    lengths = int32(1, 2 * BLOCK, 3 * BLOCK + 1)
    expected = oracle(q, k, v, lengths)
    for n_splits in (1, 2, 3, 7, 40, None):
        assert_close(decode_attention(q, k, v, lengths, n_splits), expected)


@pytest.mark.parametrize("n_splits", [1, 2])
def test_an_empty_row_gives_zero_and_leaves_the_others_alone(n_splits):
    q, k, v = case(3, 2, 1, 70, 64)
    lengths = int32(0, 70, 0)
    out = decode_attention(q, k, v, lengths, n_splits)
    assert (out[[0, 2]] == 0).all()
    assert_close(out, oracle(q, k, v, lengths))


@pytest.mark.parametrize("factor", [100.0, 1e4])
def test_large_scores_do_not_overflow(factor):
    q, k, v = case(2, 2, 1, 3 * BLOCK, 64)
    q, lengths = q * factor, int32(3 * BLOCK, 5)
    out = decode_attention(q, k, v, lengths, 3)
    torch.testing.assert_close(out.double(), oracle(q, k, v, lengths), rtol=0, atol=2e-6 * factor)


def test_views_of_a_larger_buffer_are_read_in_place():
    """A layer of a preallocated cache, a (batch, token, head) layout, and q cut from a joint projection."""
    lengths = int32(40, 12)
    q = torch.randn(2, 1, 8, 64).transpose(1, 2)[:, 2:6]
    k = torch.randn(3, 2, 2, 90, 64)[1, :, :, :50]
    v = torch.randn(2, 90, 2, 64).transpose(1, 2)[:, :, 5:55]
    assert_close(decode_attention(q, k, v, lengths, 2), oracle(q, k, v, lengths))


@pytest.mark.parametrize("name", ["q", "k", "v"])
@pytest.mark.parametrize("axis", [0, 1, 2], ids=["rows", "heads", "tokens"])
def test_addresses_have_64_bits(name, axis):
    """Strides of 2³⁰ elements fit in 32 bits; 2 · 2³⁰ does not. Untouched pages of the buffer take no memory."""
    sizes = [(3, 1, 8, 64), (1, 3, 8, 64), (1, 1, 3, 64)][axis]
    batch, heads, kv_len, _ = sizes
    given = dict(zip("qkv", case(batch, heads, heads, kv_len, 64, torch.float16), strict=True))
    lengths = int32(*[kv_len] * batch)
    expected = oracle(**given, lengths=lengths)
    try:
        buffer = torch.empty(2**31 + 4096, dtype=torch.float16)
    except RuntimeError:
        pytest.skip("this system does not reserve 4 GiB of address space")
    strides = [1536, 512, 64, 1]
    strides[axis] = 2**30
    given[name] = buffer.as_strided(given[name].shape, strides).copy_(given[name])
    assert_close(decode_attention(**given, lengths=lengths), expected)


@pytest.mark.parametrize("head_dim", [64, 80])
@pytest.mark.parametrize("n_splits", [1, 3])
def test_writes_its_outputs_only(monkeypatch, head_dim, n_splits):
    """All buffers that the launcher allocates stand between canaries; inputs do not change; all of out is written."""
    guarded, guard, plain = [], 4096, torch.empty

    def empty(*size, dtype, device):
        buffer = torch.full((torch.Size(size).numel() + 2 * guard,), 12345.0, dtype=dtype, device=device)
        guarded.append(buffer)
        return buffer[guard:-guard].view(size)

    q, k, v = case(2, 6, 2, 70, head_dim)
    lengths, before = int32(70, 1), [x.clone() for x in (q, k, v)]
    monkeypatch.setattr(torch, "empty", empty)
    out = decode_attention(q, k, v, lengths, n_splits)
    monkeypatch.setattr(torch, "empty", plain)
    assert len(guarded) == (2 if n_splits == 1 else 3)
    for buffer in guarded:
        assert (buffer[:guard] == 12345).all() and (buffer[-guard:] == 12345).all()
        assert (buffer[guard:-guard] != 12345).all()
    assert all(torch.equal(a, b) for a, b in zip(before, (q, k, v), strict=True)) and lengths.tolist() == [70, 1]
    assert_close(out, oracle(q, k, v, lengths))


@pytest.mark.parametrize("n_splits", [1, 2])
def test_products_in_the_cache_dtype_stay_within_its_rounding(monkeypatch, n_splits):
    """What a GPU does: multiply 16-bit tiles, add in float32. Interpreted for float16, whose products are right."""
    specialise = split_k.specialise
    monkeypatch.setattr(split_k, "specialise", lambda *sizes: specialise(*sizes, wide=False))
    q, k, v = case(2, 4, 2, 300, 64, torch.float16)
    lengths = int32(300, 129)
    out = decode_attention(q, k, v, lengths, n_splits)
    torch.testing.assert_close(out.double(), oracle(q, k, v, lengths), rtol=2**-11, atol=2**-11)


def test_sums_are_kept_in_float32(monkeypatch):
    """300 equal weights on values near 1000: their sum is beyond float16's largest number, their mean is not."""
    specialise = split_k.specialise
    monkeypatch.setattr(split_k, "specialise", lambda *sizes: specialise(*sizes, wide=False))
    q, k, v = case(1, 2, 1, 300, 64, torch.float16)
    q, v, lengths = q * 0, v + 1000, int32(300)
    out = decode_attention(q, k, v, lengths, 1)
    torch.testing.assert_close(out.double(), oracle(q, k, v, lengths), rtol=2**-10, atol=0)


def test_splits_fill_the_gpu_and_are_never_more_than_tiles():
    assert choose_splits(1, 8, 32_768, 64, 132) > 32  # 8 programs on 132 SMs: cut
    assert choose_splits(512, 8, 32_768, 64, 132) <= 8  # 4,096 programs: at most a better last wave
    assert choose_splits(1, 1, 131_072, 64, 132) == MAX_SPLITS
    assert choose_splits(1, 8, 1, 64, 132) == choose_splits(1, 8, 64, 64, 132) == 1
    for batch in (1, 3, 8, 64):
        for kv_len in (1, 64, 65, 1000, 131_072):
            for n_sms in (1, 108, 132):
                assert 1 <= choose_splits(batch, 8, kv_len, 64, n_sms) <= min(-(-kv_len // 64), MAX_SPLITS)


def test_what_does_not_fit_is_refused():
    q, k, v = case(2, 4, 2, 10, 64)
    n = int32(10, 3)
    refused = [
        ("do not fit", (q.expand(-1, -1, 2, -1), k, v, n)),
        ("do not fit", (q[:, :3], k, v, n)),
        ("do not fit", (q, k, v[:, :, :9], n)),
        ("do not fit", (q[:1], k, v, n)),
        ("head_dim is 32", (q[..., :32], k[..., :32], v[..., :32], n)),
        ("expected one of float32", (q, k.half(), v, n)),
        ("expected one of float32", (q.double(), k.double(), v.double(), n)),
        ("expected int32", (q, k, v, n.long())),
        ("expected int32", (q, k, v, n[:1])),
        ("must be contiguous", (q, k.mT.contiguous().mT, v, n)),
        ("n_splits is 0", (q, k, v, n, 0)),
    ]
    for words, arguments in refused:
        with pytest.raises(SpecError, match=words):
            decode_attention(*arguments)
