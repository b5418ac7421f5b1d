"""Inputs for decode kernels, and a float64 oracle that shares no code with kvlib."""

import torch
from torch import Tensor

HEAD_DIMS = (64, 80, 96, 128, 256)
# Interpreted kernels compute in float32: what is left is that, and rounding the result to q's dtype. That is half an
# ulp; a whole one in bfloat16, to which the interpreter truncates.
TOLERANCE = {
    torch.float32: {"rtol": 0, "atol": 2e-6},
    torch.float16: {"rtol": 2**-11, "atol": 2e-6},
    torch.bfloat16: {"rtol": 2**-7, "atol": 2e-6},
}
# Tensor cores round the softmax weights to the cache's dtype as well; in float32, three TF32 products stand for one.
GPU_TOLERANCE = {
    torch.float32: {"rtol": 0, "atol": 1e-5},
    torch.float16: {"rtol": 2**-10, "atol": 2e-3},
    torch.bfloat16: {"rtol": 2**-7, "atol": 1.6e-2},
}


def case(batch: int, n_heads: int, n_kv_heads: int, kv_len: int, head_dim: int, dtype: torch.dtype = torch.float32,
         device: str = "cpu", seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """q (batch, n_heads, 1, head_dim), and k ≠ v (batch, n_kv_heads, kv_len, head_dim)."""
    generator = torch.Generator().manual_seed(seed)
    sizes = (batch, n_heads, 1, head_dim), *[(batch, n_kv_heads, kv_len, head_dim)] * 2
    q, k, v = (torch.randn(size, generator=generator).to(device, dtype) for size in sizes)
    return q, k, v


def int32(*lengths: int, device: str = "cpu") -> Tensor:
    return torch.tensor(lengths, dtype=torch.int32, device=device)


def oracle(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor) -> Tensor:
    """(batch, n_heads, 1, head_dim) in float64 on the CPU: one row and one head at a time. Length 0 gives 0."""
    q, k, v = (x.cpu().double() for x in (q, k, v))
    group, out = q.shape[1] // k.shape[1], torch.zeros_like(q)
    for row, length in enumerate(lengths.tolist()):
        for head in range(q.shape[1]):
            keys, values = k[row, head // group, :length], v[row, head // group, :length]
            scores = keys @ q[row, head, 0] / q.shape[3] ** 0.5
            if length:
                weights = (scores - scores.max()).exp()
                out[row, head, 0] = (weights[:, None] * values).sum(0) / weights.sum()
    return out


def assert_close(out: Tensor, expected: Tensor, tolerances: dict = TOLERANCE) -> None:
    torch.testing.assert_close(out.cpu().double(), expected.cpu().double(), **tolerances[out.dtype])
