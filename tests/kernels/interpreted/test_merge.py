"""The merge of splits: log-sum-exp weights, in Triton and in torch, against a softmax over everything at once."""

import pytest
import torch
import triton
import triton.language as tl

from kvlib.kernels.split_k import merge_kernel, merge_splits


def split_softmax(scores: torch.Tensor, values: torch.Tensor, sizes: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs and log-sum-exps of the pieces, in float64. A piece of size 0 gives 0 and −∞."""
    outs, sums = [], []
    for s, v in zip(scores.split(sizes, -1), values.split(sizes, -2), strict=True):
        outs.append((s.softmax(-1)[..., None] * v).sum(-2))
        sums.append(s.logsumexp(-1))
    return torch.stack(outs, -2), torch.stack(sums, -1)


def triton_merge(part: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
    *heads, n_splits, head_dim = part.shape
    out = torch.full((*heads, head_dim), torch.nan)
    grid = (lse[..., 0].numel(),)
    merge_kernel[grid](part.contiguous(), lse.contiguous(), out, n_splits, HEAD_DIM=head_dim, DIM=128, BLOCK=16)
    return out


@pytest.mark.parametrize("sizes", [[5], [3, 2], [0, 5, 0], [1] * 16, [1] * 17, [2, 0] * 20], ids=str)
@pytest.mark.parametrize("offset", [0.0, 1e4, -1e4])
def test_merging_splits_is_one_softmax(sizes, offset):
    scores = torch.randn(2, 3, sum(sizes), dtype=torch.float64) * 4 + offset
    values = torch.randn(2, 3, sum(sizes), 80, dtype=torch.float64)
    whole = (scores.softmax(-1)[..., None] * values).sum(-2)
    part, lse = split_softmax(scores, values, sizes)
    torch.testing.assert_close(merge_splits(part, lse), whole, rtol=0, atol=1e-9)
    error = 2e-6 if not offset else 4e-3  # float32 holds a log-sum-exp near 10⁴ to 5e-4
    torch.testing.assert_close(triton_merge(part.float(), lse.float()).double(), whole, rtol=0, atol=error)


def test_splits_that_are_all_empty_give_zero():
    part, lse = torch.zeros(2, 17, 80), torch.full((2, 17), -torch.inf)
    assert (merge_splits(part, lse) == 0).all() and (triton_merge(part, lse) == 0).all()


@triton.jit
def product(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(out + at, tl.dot(tl.load(x + at), tl.load(y + at)))


def test_canary_interpreted_products_of_bf16_are_wrong():
    """Why the kernel widens bf16 before it multiplies, and why a pass of one that does not would mean nothing.

    If this fails, the interpreter has learned bf16: `split_k.specialise` need not widen any more.
    """
    x, y, out = torch.randn(16, 16).bfloat16(), torch.randn(16, 16).bfloat16(), torch.zeros(16, 16)
    product[(1,)](x, y, out, 16)
    assert not torch.allclose(out, x.float() @ y.float(), atol=1e-2)
    x, y = x.half(), y.half()
    product[(1,)](x, y, out, 16)
    torch.testing.assert_close(out, x.float() @ y.float(), rtol=0, atol=1e-5)
