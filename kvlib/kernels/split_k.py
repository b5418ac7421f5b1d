"""Decode attention in Triton: split-K ("flash-decoding") with grouped heads, and the merge of its splits.

    out[b, h] = Σ_j softmax_j(q[b, h] · k[b, g, j] / √head_dim) v[b, g, j],   j < lengths[b],   g = h // group

One query per row offers batch · n_kv_heads independent pieces of work, too few to fill a GPU. So the keys of a row are
cut into splits as well; each split gives a softmax over its own keys and their log-sum-exp, and a second kernel weighs
the splits.

Invariant: a slot at or behind its row's length is never read, and K and V are read once for all heads of a group.
Source: Dao, Haziza, Massa and Sizov, "Flash-Decoding for long-context inference", 2023.
"""

from functools import lru_cache
from math import ceil, log2, sqrt
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from kvlib.errors import SpecError, whole
from kvlib.kernels import check_decode

INTERPRETED = bool(triton.knobs.runtime.interpret)  # decided when triton is imported, for the whole process
LOG2E = tl.constexpr(1.4426950408889634)  # a GPU has 2ˣ, not eˣ: softmax in base 2, log-sum-exp given in base e


class Config(NamedTuple):
    """block: tokens per tile. warps: of 32 threads. stages: one tile is in use while stages − 1 are on their way."""

    block: int
    warps: int
    stages: int

    @property
    def options(self) -> dict:
        """What the compiler is told."""
        return {"num_warps": self.warps, "num_stages": self.stages, "enable_fp_fusion": True}


# (padded head_dim, bytes per element) → tiles of 16 KiB. Two buffers of K and of V are 64 KiB, so that three programs
# share an SM of 228 KiB, and the bytes on their way are several times bandwidth · latency (H200: 4.8 TB/s · 0.8 µs over
# 132 SMs = 28 KiB). Chosen by this arithmetic and by what the compiler reports; not tuned on a GPU.
CONFIGS = {
    (64, 2): Config(128, 4, 3), (128, 2): Config(64, 4, 3), (256, 2): Config(32, 4, 3),
    (64, 4): Config(64, 4, 3), (128, 4): Config(32, 4, 3), (256, 4): Config(16, 8, 3),
}  # fmt: skip
PROGRAMS_PER_SM, START_TOKENS, MAX_SPLITS = 3, 64, 128  # START_TOKENS: starting and merging a split, in tokens read


@triton.jit(do_not_specialize=["kv_len"])  # it grows with every token: one compiled kernel for all values
def split_kernel(q, k, v, lengths, out, lse, scale, kv_len,
                 q_row, q_head, k_row, k_head, k_token, v_row, v_head, v_token,
                 HEAD_DIM: tl.constexpr, DIM: tl.constexpr, GROUP: tl.constexpr, HEADS: tl.constexpr,
                 BLOCK: tl.constexpr, DOT: tl.constexpr):  # fmt: skip
    """One program per (split, KV head, row). out: (batch, n_heads, n_splits, HEAD_DIM); lse: without HEAD_DIM."""
    split, kv_head, row = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2).to(tl.int64)
    n_splits, n_kv_heads = tl.num_programs(0), tl.num_programs(1)

    length = tl.minimum(tl.load(lengths + row), kv_len)
    share = tl.cdiv(tl.cdiv(length, BLOCK), n_splits) * BLOCK  # tokens of one split, whole tiles
    begin = split * share
    end = tl.minimum(begin + share, length)

    d = tl.arange(0, DIM)  # DIM, HEADS: HEAD_DIM and GROUP rounded up to what a tile can be
    g = tl.arange(0, HEADS)
    n = tl.arange(0, BLOCK)
    real = (g < GROUP)[:, None] & (d < HEAD_DIM)[None, :]
    head = kv_head * GROUP + g
    queries = tl.load(q + row * q_row + head[:, None] * q_head + d[None, :], mask=real, other=0.0).to(DOT)
    k += row * k_row + kv_head * k_head + d[None, :]
    v += row * v_row + kv_head * v_head + d[None, :]

    top = tl.full((HEADS,), float("-inf"), tl.float32)  # running maximum of the scores,
    total = tl.zeros((HEADS,), tl.float32)  # sum of 2^(score − top),
    acc = tl.zeros((HEADS, DIM), tl.float32)  # and the same sum weighted by V
    for start in range(begin, end, BLOCK):
        token = (start + n).to(tl.int64)[:, None]
        stored = (token < end) & (d < HEAD_DIM)[None, :]
        keys = tl.load(k + token * k_token, mask=stored, other=0.0).to(DOT)  # (BLOCK, DIM)
        scores = tl.dot(queries, tl.trans(keys), input_precision="tf32x3") * (scale * LOG2E)  # (HEADS, BLOCK)
        scores = tl.where((start + n < end)[None, :], scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(top - higher)  # what was summed under the old maximum
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + token * v_token, mask=stored, other=0.0).to(DOT)  # (BLOCK, DIM)
        acc = tl.dot(weights.to(DOT), values, acc * shrink[:, None], input_precision="tf32x3")
        top = higher

    some = total > 0  # an empty split has the sum 0: it gives 0 and the log-sum-exp −∞, which is the weight 0
    acc = acc / tl.where(some, total, 1.0)[:, None]
    slot = (row * n_kv_heads * GROUP + head) * n_splits + split
    tl.store(out + slot[:, None] * HEAD_DIM + d[None, :], acc.to(out.dtype.element_ty), mask=real)
    log_sum = tl.where(some, top + tl.log2(tl.where(some, total, 1.0)), float("-inf")) / LOG2E
    tl.store(lse + slot, log_sum, mask=g < GROUP)


@triton.jit(do_not_specialize=["n_splits"])
def merge_kernel(part, lse, out, n_splits, HEAD_DIM: tl.constexpr, DIM: tl.constexpr, BLOCK: tl.constexpr):
    """One program per (row, head): out = Σ_s softmax_s(lse) part[s]. part: (batch · n_heads, n_splits, HEAD_DIM)."""
    head = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, DIM)
    top = tl.full((), float("-inf"), tl.float32)
    total = tl.full((), 0.0, tl.float32)
    acc = tl.zeros((DIM,), tl.float32)
    for start in range(0, n_splits, BLOCK):
        s = start + tl.arange(0, BLOCK)
        sums = tl.load(lse + head * n_splits + s, mask=s < n_splits, other=float("-inf"))
        higher = tl.maximum(top, tl.max(sums, 0))
        safe = tl.where(higher == float("-inf"), 0.0, higher)  # −∞ − −∞ would be NaN
        weights, shrink = tl.exp2((sums - safe) * LOG2E), tl.exp2((top - safe) * LOG2E)
        where = (head * n_splits + s)[:, None] * HEAD_DIM + d[None, :]
        parts = tl.load(part + where, mask=(s < n_splits)[:, None] & (d < HEAD_DIM)[None, :], other=0.0)
        acc = acc * shrink + tl.sum(weights[:, None] * parts, 0)
        total = total * shrink + tl.sum(weights, 0)
        top = higher
    acc = acc / tl.where(total > 0, total, 1.0)
    tl.store(out + head * HEAD_DIM + d, acc.to(out.dtype.element_ty), mask=d < HEAD_DIM)


def merge_splits(out: Tensor, lse: Tensor) -> Tensor:
    """The merge in torch: Σ_s softmax_s(lse) out[s]. out: (…, n_splits, head_dim), lse: (…, n_splits) → (…, head_dim).

    A split with lse −∞ weighs 0; where all are −∞, the result is 0.
    """
    top = lse.amax(-1, keepdim=True)
    weights = (lse - top.masked_fill(top == -torch.inf, 0)).exp()
    return (weights[..., None, :] @ out)[..., 0, :] / weights.sum(-1, keepdim=True).masked_fill(top == -torch.inf, 1)


@lru_cache
def choose_splits(batch: int, n_kv_heads: int, kv_len: int, block: int, n_sms: int) -> int:
    """The number of splits that ends first, when programs start in waves of n_sms · PROGRAMS_PER_SM.

    A wave lasts as long as one split reads, plus START_TOKENS. The fewest splits win among equals.
    """
    tiles = max(1, ceil(kv_len / block))

    def tokens(splits: int) -> int:
        waves = ceil(batch * n_kv_heads * splits / (n_sms * PROGRAMS_PER_SM))
        return waves * (ceil(tiles / splits) * block + START_TOKENS)

    return min(range(1, MAX_SPLITS + 1), key=tokens)


def decode_attention(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor, n_splits: int | None = None) -> Tensor:
    """Attention of one query per row over the first lengths[b] slots of its cache.

    q: (batch, n_heads, 1, head_dim). k, v: (batch, n_kv_heads, kv_len, head_dim), views of a larger buffer as they are;
    only head_dim must be contiguous. lengths: (batch,) int32 on the same device; more than kv_len counts as kv_len, and
    0 gives 0. n_splits: pieces that a row's keys are cut into; None chooses.
    Returns (batch, n_heads, 1, head_dim) in q's dtype.

    Raises SpecError for shapes, dtypes or devices that do not fit, and without a GPU or the interpreter.
    """
    check_decode(q, k, v, lengths)
    if not (q.is_cuda or INTERPRETED):
        raise SpecError(f"q is on {q.device}; expected CUDA, or TRITON_INTERPRET=1 set before triton is imported")
    batch, n_heads, _, head_dim = q.shape
    n_kv_heads, kv_len = k.shape[1:3]
    config, sizes = CONFIGS[dim(head_dim), q.element_size()], specialise(q.dtype, head_dim, n_heads // n_kv_heads)
    n_sms = torch.cuda.get_device_properties(q.device).multi_processor_count if q.is_cuda else 1
    if n_splits is None:
        n_splits = choose_splits(batch, n_kv_heads, kv_len, config.block, n_sms)

    merged = whole("n_splits", n_splits) > 1  # one split is the result itself: same layout, q's dtype
    part = torch.empty(batch, n_heads, n_splits, head_dim, dtype=torch.float32 if merged else q.dtype, device=q.device)
    lse = torch.empty(batch, n_heads, n_splits, dtype=torch.float32, device=q.device)
    out = part if not merged else torch.empty(batch, n_heads, 1, head_dim, dtype=q.dtype, device=q.device)
    with torch.cuda.device_of(q):
        split_kernel[n_splits, n_kv_heads, batch](
            q, k, v, lengths, part, lse, 1 / sqrt(head_dim), kv_len, *q.stride()[:2], *k.stride()[:3], *v.stride()[:3],
            **sizes, BLOCK=config.block, **config.options)  # fmt: skip
        if merged:
            merge_kernel[(batch * n_heads,)](part, lse, out, n_splits, HEAD_DIM=head_dim, DIM=dim(head_dim), BLOCK=16,
                                             enable_fp_fusion=True)  # fmt: skip
    return out


def dim(head_dim: int) -> int:
    """The power of two that head_dim is padded to."""
    return 1 << ceil(log2(head_dim))


def specialise(dtype: torch.dtype, head_dim: int, group: int, wide: bool = INTERPRETED) -> dict:
    """The kernel's compile-time sizes. Tensor cores multiply the cache's own dtype and add in float32; wide multiplies
    in float32, because the interpreter's products of two bf16 tiles are wrong."""
    own = {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}[dtype]
    heads = max(16, 1 << ceil(log2(group)))  # what the tensor cores' smallest tile holds
    dot = tl.float32 if wide else own
    return {"HEAD_DIM": head_dim, "DIM": dim(head_dim), "GROUP": group, "HEADS": heads, "DOT": dot}
