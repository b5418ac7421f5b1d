"""Hidden tests of `attend-one-row`: against float64, head by head, with the softmax written out."""

import math

import torch
from hidden_lenient import cast

from kvgrade.testing import prop


def oracle(q, k, v):
    rows = []
    for one, keys, values in zip(q.double(), k.double(), v.double(), strict=True):
        scores = torch.stack([(one * key).sum() for key in keys]) / math.sqrt(len(one))
        weights = (scores - scores.max()).exp()
        rows.append((weights[:, None] * values).sum(0) / weights.sum())
    return torch.stack(rows)


def inputs(t, n_heads, kv_len, head_dim, dtype=torch.float32, scale=1.0):
    return (t.normal(n_heads, head_dim, dtype=dtype, scale=scale),
            t.normal(n_heads, kv_len, head_dim, dtype=dtype, scale=scale),
            t.normal(n_heads, kv_len, head_dim, dtype=dtype))  # fmt: skip


@prop(5, zh="與 float64 參考答案一致，長度從 1 到 255", en="agrees with the float64 reference, lengths from 1 to 255")
def agrees(t):
    for kv_len in (3, 1, 2, 4, 30, 100, 255):
        q, k, v = inputs(t, t.integer(2, 4), kv_len, t.choice(3, 8, 15, 64))
        t.close(cast(t.answer(q, k, v)), oracle(q, k, v))
    q, k, v = inputs(t, 1, t.integer(5, 9), t.choice(2, 5))
    t.close(cast(t.answer(q, k, v)), oracle(q, k, v))


@prop(2, zh="q 為 0 時是 V 的平均", en="q = 0 gives the mean of V")
def zero_query(t):
    for kv_len in (1, 2, 16, 17, 100):
        q, k, v = inputs(t, t.integer(1, 3), kv_len, t.choice(4, 7))
        t.close(cast(t.answer(torch.zeros_like(q), k, v)), v.double().mean(1))
    q, k = q / 2**14, k * 2**14  # a small q is not a q of 0
    t.close(cast(t.answer(q, k, v)), oracle(q, k, v))


@prop(2, zh="每個頭只看自己的 K 與 V", en="each head looks at its own K and V")
def heads_apart(t):
    n_heads, kv_len, head_dim = t.integer(2, 5), t.integer(2, 9), t.choice(2, 5, 8)
    q, k, v = inputs(t, n_heads, kv_len, head_dim)
    v = torch.arange(n_heads, dtype=v.dtype)[:, None, None].expand_as(v) * 10 + t.normal(n_heads, 1, 1)
    v = v.expand(n_heads, kv_len, head_dim).contiguous()
    t.close(cast(t.answer(q, k, v)), v[:, 0].double())


@prop(2, zh="分數很大時不溢位", en="large scores do not overflow")
def large_scores(t):
    q, k, v = inputs(t, 3, 30, 16, torch.float64, scale=25.0)
    t.close(cast(t.answer(q, k, v), torch.float64), oracle(q, k, v), dtype=torch.float64)
    for sign in (1.0, -1.0):  # whole numbers and √16: every score is exact in float32 as well
        q = t.tokens(2, 16, vocab=16).float() + 10
        k = sign * (t.tokens(2, 9, 16, vocab=16).float() + 10)
        v = t.normal(2, 9, 16)
        t.close(cast(t.answer(q, k, v)), oracle(q, k, v), times=10)  # a logsumexp near 2500 is rounded by 1e-4


@prop(2, zh="回傳輸入的 dtype：float64、float32、bfloat16", en="returns the dtype of its inputs: float64, float32, bfloat16")
def dtypes(t):
    for dtype in (torch.float64, torch.float32):
        q, k, v = inputs(t, 2, t.integer(3, 40), 8, dtype)
        t.close(t.answer(q, k, v), oracle(q, k, v), dtype=dtype)
    q, k, v = inputs(t, 2, t.integer(3, 40), 8, torch.bfloat16)
    t.close(t.answer(q, k, v), oracle(q, k, v), dtype=torch.bfloat16, times=2)


@prop(1, zh="不改動輸入", en="leaves its inputs alone")
def inputs_unchanged(t):
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        given = inputs(t, 2, t.integer(10, 40), 5, dtype)  # √5: to multiply and divide again gives other bits
        held = [t.hold(x) for x in given]
        t.answer(*held)
        for name, there, here in zip("qkv", held, given, strict=True):
            t.unchanged(there, here, name)


@prop(1, zh="只做一列的工作", en="does the work of one row")
def one_row_of_work(t):
    n_heads, kv_len, head_dim = 3, t.integer(600, 700), 16
    q, k, v = inputs(t, n_heads, kv_len, head_dim)
    got, work = t.answer.counted(q, k, v)
    numbers = n_heads * kv_len * head_dim  # of K; a row takes 4 operations for each
    frugal = work.flops <= 2 * 4 * numbers and work.bytes_written <= 20 * numbers * 4
    t.expect(frugal, zh="它做了比一列多得多的乘法或暫存", en="it multiplies or stores far more than one row needs")
    t.close(cast(got), oracle(q, k, v))
