"""The products that kvlib arranges for speed are the plain ones: `model.linear`, and `attention` over a large K and V."""

import pytest
import torch

from kvlib import attention as att
from kvlib.attention import Mask, attention, reference
from kvlib.model import BLOCKS, WORTH_BLOCKS, linear


@pytest.mark.parametrize("shape", [(1, 1), (1,), (), (3, 1)], ids=str)
@pytest.mark.parametrize("biased", [False, True], ids=["plain", "bias"])
@pytest.mark.parametrize("n_out", [1024, 1025], ids=["blocks fit", "blocks do not fit"])
def test_linear_in_blocks_is_the_product_in_float64(shape, biased, n_out):
    generator = torch.Generator().manual_seed(1)
    x, w = torch.randn(*shape, 512, generator=generator), torch.randn(n_out, 512, generator=generator)
    bias = torch.randn(n_out, generator=generator) if biased else None
    assert w.numel() >= WORTH_BLOCKS and (n_out % BLOCKS == 0) == (n_out == 1024)
    expected = x.double() @ w.double().mT + (bias.double() if biased else 0)
    found = linear(x, w, bias)
    assert found.shape == (*shape, n_out)
    assert torch.allclose(found.double(), expected, rtol=0, atol=2e-4)  # sums of 512 numbers, up to 60


@pytest.mark.parametrize("group", [1, 2, 4])
@pytest.mark.parametrize("kv_len", [1, 8, 9, 16, 21])
def test_streamed_attention_is_attention_and_reads_nothing_behind_the_length(monkeypatch, group, kv_len):
    monkeypatch.setattr(att, "MUCH", 0)
    monkeypatch.setattr(att, "SPAN", 8)
    generator = torch.Generator().manual_seed(kv_len)
    q = torch.randn(2, 3 * group, 1, 16, generator=generator)
    k, v = torch.randn(2, 2, 3, kv_len + 5, 16, generator=generator)
    k[:, :, kv_len:] = v[:, :, kv_len:] = torch.nan
    assert att._streams(q.view(2, 3, group, 16), k)
    expected = reference(*(x.double() for x in (q, k[:, :, :kv_len], v[:, :, :kv_len])), None)
    found = attention(q, k, v, Mask.of(kv_len - 1, kv_len), "grouped")
    assert torch.allclose(found.double(), expected, rtol=0, atol=2e-6)


def test_many_queries_small_caches_and_other_dtypes_do_not_stream():
    k = torch.empty(1, 1, 1, 1).expand(1, 8, att.MUCH // 1024, 128)
    assert att._streams(k[:, :, : att.FEW], k)
    assert not att._streams(k[:, :, : att.FEW + 1], k)
    assert not att._streams(k[:, :, :1], k[:, :1])
    assert not att._streams(k[:, :, :1], k.bfloat16())
