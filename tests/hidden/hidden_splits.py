"""Attention of one query per row over a range of its keys, in float64 and one head at a time: for the tests of chapter 5."""

import torch
from torch import Tensor


def partial(q: Tensor, k: Tensor, v: Tensor, start: int, stop: int) -> tuple[Tensor, Tensor]:
    """q (n_heads, head_dim), k and v (n_kv_heads, max_len, head_dim): the output over keys start … stop − 1 and the
    log-sum-exp of their scores. No key: 0 and −inf."""
    q, k, v = q.double(), k.double(), v.double()
    group = q.shape[0] // k.shape[0]
    out, lse = torch.zeros_like(q), torch.full(q.shape[:1], -torch.inf, dtype=torch.float64)
    for head in range(q.shape[0] if start < stop else 0):
        keys, values = k[head // group, start:stop], v[head // group, start:stop]
        scores = (keys * q[head]).sum(1) / q.shape[1] ** 0.5
        weights = (scores - scores.max()).exp()
        out[head] = (weights[:, None] * values).sum(0) / weights.sum()
        lse[head] = scores.max() + weights.sum().log()
    return out, lse


def decode(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor) -> Tensor:
    """q (batch, n_heads, head_dim), k and v (batch, n_kv_heads, max_len, head_dim): the whole of it."""
    return torch.stack([partial(q[b], k[b], v[b], 0, n)[0] for b, n in enumerate(lengths.tolist())])


def splits(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor, n_splits: int) -> tuple[Tensor, Tensor]:
    """What each split gives when the buffer is cut into parts of ceil(max_len / n_splits): (n_splits, batch, n_heads, …)."""
    size = -(-k.shape[2] // n_splits)
    parts = [
        [partial(q[b], k[b], v[b], s * size, min((s + 1) * size, n)) for b, n in enumerate(lengths.tolist())]
        for s in range(n_splits)
    ]
    return tuple(torch.stack([torch.stack([row[i] for row in part]) for part in parts]) for i in (0, 1))


def poisoned(x: Tensor, lengths: Tensor, tail: float = torch.nan) -> Tensor:
    """A cache (batch, n_kv_heads, max_len, head_dim) with `tail` in every slot that was never written."""
    x = x.clone()
    for row, length in enumerate(lengths.tolist()):
        x[row, :, length:] = tail
    return x


def rounded_once(got: Tensor, want: Tensor) -> bool:
    """Is `got` what float32 arithmetic leaves after one rounding to its dtype? Half a step at each value, and float32's own error."""
    step = torch.finfo(got.dtype).eps * 2.0 ** (torch.frexp(want).exponent - 1)
    return bool(((got.double() - want).abs() <= step / 2 + 2e-5 * max(1.0, float(want.abs().max()))).all())
