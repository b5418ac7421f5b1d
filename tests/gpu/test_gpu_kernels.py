"""The kernels on a GPU, against float64: what interpreter and emulation cannot show, compiled code and its launch."""

import os

import pytest
import torch

from kvlib.attention import Mask, attention
from kvlib.kernels import HEAD_DIMS, available, cuda
from tests.kernels.decode_cases import GPU_TOLERANCE, assert_close, case, int32, oracle

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1", reason="CUDA: not run here"
)
needs_nvcc = pytest.mark.skipif(cuda.find_nvcc() is None, reason="nvcc is not here")
KERNELS = ["triton", pytest.param("cuda", marks=needs_nvcc)]


@pytest.fixture(params=KERNELS)
def decode_attention(request):
    if request.param == "cuda":
        return cuda.decode_attention
    pytest.importorskip("triton")
    from kvlib.kernels.split_k import decode_attention

    return decode_attention


@pytest.mark.parametrize("dtype", GPU_TOLERANCE, ids=str)
@pytest.mark.parametrize("head_dim", HEAD_DIMS)
def test_equals_float64_at_ragged_lengths_over_nan(decode_attention, dtype, head_dim):
    lengths = int32(0, 1, 63, 64, 65, 127, 129, 700, device="cuda")
    q, k, v = case(8, 16, 2, 700, head_dim, dtype, "cuda")
    expected = oracle(q, k, v, lengths)
    for row, length in enumerate(lengths.tolist()):
        k[row, :, length:] = v[row, :, length:] = torch.nan
    for n_splits in (1, 2, 7, 40, None):
        assert_close(decode_attention(q, k, v, lengths, n_splits), expected, GPU_TOLERANCE)


@pytest.mark.parametrize("group", [1, 2, 7, 8, 16])
def test_query_heads_read_their_own_kv_head(decode_attention, group):
    q, k, v = case(2, 3 * group, 3, 300, 128, torch.bfloat16, "cuda")
    lengths = int32(300, 33, device="cuda")
    assert_close(decode_attention(q, k, v, lengths), oracle(q, k, v, lengths), GPU_TOLERANCE)


def test_long_rows_and_large_buffers(decode_attention):
    """100,003 tokens, and a buffer of more than 2³¹ elements, so that row offsets need 64 bits."""
    lengths = int32(100_003, 5, 131_072, device="cuda")
    q, k, v = case(3, 8, 1, 8, 128, torch.float16, "cuda")
    k = torch.empty(3, 1, 2**23, 128, dtype=torch.float16, device="cuda")[:, :, :131_072].normal_()
    v = torch.empty(3, 1, 2**23, 128, dtype=torch.float16, device="cuda")[:, :, :131_072].normal_()
    assert_close(decode_attention(q, k, v, lengths), oracle(q, k, v, lengths), GPU_TOLERANCE)


def test_zero_queries_give_the_mean_of_the_stored_values(decode_attention):
    lengths = int32(1, 31, 32, 33, 64, 127, 128, 129, device="cuda")
    q, k, v = case(8, 2, 1, 130, 64, device="cuda")
    mean = torch.stack([v[row, :, :n].mean(1, keepdim=True) for row, n in enumerate(lengths.tolist())])
    mean = mean.expand(-1, 2, -1, -1)
    torch.testing.assert_close(decode_attention(q * 0, k, v, lengths), mean, rtol=0, atol=1e-5)


@pytest.mark.parametrize("n_splits", [1, 3])
def test_writes_its_outputs_only(decode_attention, monkeypatch, n_splits):
    guarded, guard, plain = [], 1 << 16, torch.empty

    def empty(*size, dtype, device):
        buffer = torch.full((torch.Size(size).numel() + 2 * guard,), 12345.0, dtype=dtype, device=device)
        guarded.append((buffer, buffer.clone()))
        return buffer[guard:-guard].view(size)

    q, k, v = case(2, 14, 2, 70, 80, torch.bfloat16, "cuda")
    lengths, before = int32(70, 1, device="cuda"), [x.clone() for x in (q, k, v)]
    monkeypatch.setattr(torch, "empty", empty)
    decode_attention(q, k, v, lengths, n_splits)
    monkeypatch.setattr(torch, "empty", plain)
    for buffer, canary in guarded:
        assert torch.equal(buffer[:guard], canary[:guard]) and torch.equal(buffer[-guard:], canary[-guard:])
    assert guarded and all(torch.equal(a, b) for a, b in zip(before, (q, k, v), strict=True))


def test_equal_input_gives_equal_bits(decode_attention):
    q, k, v = case(4, 16, 2, 5000, 128, torch.bfloat16, "cuda")
    lengths = int32(5000, 1, 4097, 128, device="cuda")
    first = decode_attention(q, k, v, lengths)
    assert all(torch.equal(first, decode_attention(q, k, v, lengths)) for _ in range(5))


@needs_nvcc
@pytest.mark.parametrize("dtype", GPU_TOLERANCE, ids=str)
def test_the_twins_agree(dtype):
    split_k = pytest.importorskip("kvlib.kernels.split_k")
    q, k, v = case(3, 16, 2, 3000, 128, dtype, "cuda")
    lengths = int32(3000, 1, 2049, device="cuda")
    assert_close(split_k.decode_attention(q, k, v, lengths), cuda.decode_attention(q, k, v, lengths), GPU_TOLERANCE)


def test_auto_takes_the_kernel_for_one_query_and_not_for_more():
    if not available():
        pytest.skip(available().reason)
    q, k, v = case(2, 8, 2, 300, 64, torch.float16, "cuda")
    mask = Mask((299, 6), (300, 7))
    assert torch.equal(attention(q, k, v, mask), attention(q, k, v, mask, impl="triton"))
    q = q.expand(-1, -1, 3, -1)
    assert torch.equal(attention(q, k, v, Mask.of(297, 300)), attention(q, k, v, Mask.of(297, 300), impl="grouped"))
