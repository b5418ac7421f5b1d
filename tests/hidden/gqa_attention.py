"""Hidden tests of `gqa-attention`."""

import hidden_oracle as oracle
import torch
from hidden_lenient import cast

from kvgrade.testing import TOLERANCE, prop

SHAPES = [(2, 4, 2, 1, 5, 8), (2, 6, 2, 3, 4, 3), (1, 6, 3, 2, 30, 4), (3, 4, 4, 2, 3, 5), (2, 5, 1, 1, 100, 8), (1, 1, 1, 1, 1, 1)]


def case(t, batch, n_heads, n_kv_heads, q_len, kv_len, dim, dtype=torch.float32):
    q = t.normal(batch, n_heads, q_len, dim, dtype=dtype)
    return q, *(t.normal(batch, n_kv_heads, kv_len, dim, dtype=dtype) for _ in range(2))


def some_mask(t, batch, q_len, kv_len):
    """Random, and no query sees nothing."""
    mask = torch.rand(batch, 1, q_len, kv_len, generator=torch.Generator().manual_seed(t.integer(0, 10**9))) < 0.5
    for b in range(batch):
        for i in range(q_len):
            mask[b, 0, i, t.integer(0, kv_len - 1)] = True
    return mask


@prop(4, zh="與 float64 的參考答案一致", en="agrees with a float64 reference")
def agrees(t):
    for shape in SHAPES:
        q, k, v = case(t, *shape)
        t.close(cast(t.answer(q, k, v)), oracle.attention(q, k, v))
    q, k, v = case(t, 2, 4, 2, 2, 9, 4)
    t.close(cast(t.answer(q * 8, k, v)), oracle.attention(q * 8, k, v))


@prop(2, zh="每個查詢頭讀的是自己那一組的 KV 頭", en="each query head reads the KV head of its group")
def groups(t):
    for n_kv_heads, group in ((2, 2), (2, 4), (3, 2), (4, 3), (5, 1), (1, 6)):
        batch, q_len, kv_len, dim = t.integer(1, 3), t.integer(1, 3), t.integer(1, 9), t.integer(1, 5)
        q, k, _ = case(t, batch, n_kv_heads * group, n_kv_heads, q_len, kv_len, dim)
        each = torch.tensor(t.rng.sample(range(1, 100), batch * n_kv_heads), dtype=torch.float32).view(batch, n_kv_heads, 1, 1)
        want = torch.stack([each[:, h // group] for h in range(n_kv_heads * group)], 1).expand(q.shape)
        t.close(cast(t.answer(q, k, each.expand(k.shape).contiguous())), want.double())


@prop(2, zh="q 是 0 時，輸出是所見之值的平均", en="for a q of 0 the output is the mean of the values seen")
def mean(t):
    for kv_len in (1, 2, 3, 31, 32, 33, 255):
        _, k, v = case(t, 2, 4, 2, 1, kv_len, 4)
        want = v.double().mean(2, keepdim=True)
        t.close(cast(t.answer(torch.zeros(2, 4, 1, 4), k, v)), torch.stack([want[:, h // 2] for h in range(4)], 1))


@prop(2, zh="被遮住的鍵不影響結果", en="hidden keys do not reach the result")
def masks(t):
    for batch, n_heads, n_kv_heads, q_len, kv_len, dim in ((2, 4, 2, 3, 7, 4), (3, 6, 3, 1, 30, 3), (1, 4, 1, 5, 5, 8), (2, 3, 3, 2, 2, 4)):
        q, k, v = case(t, batch, n_heads, n_kv_heads, q_len, kv_len, dim)
        mask = some_mask(t, batch, q_len, kv_len)
        want = oracle.attention(q, k, v, mask[:, 0])
        t.close(cast(t.answer(q, k, v, mask)), want)
        unseen = ~mask.any(2).view(batch, 1, kv_len, 1)
        t.close(cast(t.answer(q, k, v.masked_fill(unseen, 1e30), mask)), want)
        t.close(cast(t.answer(q, k.masked_fill(unseen, 1e4), v.masked_fill(unseen, -1e4), mask)), want)
    q, k, v = case(t, 2, 4, 2, 3, 6, 4)
    t.close(cast(t.answer(q, k, v, torch.ones(2, 1, 3, 6, dtype=torch.bool))), oracle.attention(q, k, v))


def whole_numbers(t, *shape):
    """From 12 to 15: with a head_dim of 16, scores that are exact in float32."""
    return t.tokens(*shape, vocab=4).float() + 12


@prop(1, zh="分數的絕對值很大、各列相差很遠時仍然正確", en="right for scores of large size, in rows far apart")
def large_scores(t):
    for size, batch, n_heads, n_kv_heads, q_len, kv_len in ((1, 2, 4, 2, 4, 30), (32, 3, 6, 2, 2, 9), (1, 2, 2, 2, 1, 5)):
        signs = torch.arange(batch * n_heads * q_len).view(batch, n_heads, q_len, 1) % 2 * 2.0 - 1  # every other row below 0
        q = whole_numbers(t, batch, n_heads, q_len, 16) * size * (signs if q_len > 1 else t.choice(1.0, -1.0))
        k, v = whole_numbers(t, batch, n_kv_heads, kv_len, 16), t.normal(batch, n_kv_heads, kv_len, 16)
        for mask in (None, some_mask(t, batch, q_len, kv_len)):
            want = oracle.attention(q, k, v, None if mask is None else mask[:, 0])
            t.close(cast(t.answer(q, k, v, mask)), want, times=10 if size == 1 else 100)  # a logsumexp is rounded like its size


@prop(1, zh="q、k、v、mask 在記憶體裡不連續也可以", en="q, k, v and mask need not be contiguous in memory")
def views(t):
    def view(x):
        """The same values, laid out token by token."""
        return t.hold(x.transpose(1, 2).contiguous()).keep("transpose", 1, 2)

    for shape in ((2, 4, 2, 3, 7, 4), (3, 6, 3, 1, 9, 5)):
        q, k, v = case(t, *shape)
        mask = some_mask(t, shape[0], shape[3], shape[4])
        t.close(cast(t.answer(view(q), view(k), view(v))), oracle.attention(q, k, v))
        wide = t.hold(torch.stack([mask, ~mask], -1)).keep("select", -1, 0)
        t.close(cast(t.answer(view(q), view(k), view(v), wide)), oracle.attention(q, k, v, mask[:, 0]))


@prop(2, zh="沒有把 K、V 複製成每個查詢頭一份", en="K and V are not copied once per query head")
def no_copies(t):
    for n_kv_heads, group in ((2, 8), (1, 12)):
        batch = t.integer(2, 3)
        q, k, v = case(t, batch, n_kv_heads * group, n_kv_heads, 1, 255, 128)
        for mask in (None, some_mask(t, batch, 1, 255)):
            got, work = t.answer.counted(q, k, v, mask)
            t.expect(work.bytes_written <= 3 * (k.nbytes + v.nbytes),
                     zh="張量運算寫出的位元組超過 K、V 的 3 倍：找找看 repeat、expand 之後的 matmul，或不只一次的 dtype 轉換",
                     en="tensor operations wrote more than 3 times the bytes of K and V: look for a repeat, an expand before a "
                        "matmul, or a dtype converted more than once")  # fmt: skip
            t.close(cast(got), oracle.attention(q, k, v, None if mask is None else mask[:, 0]))


@prop(1, zh="輸出的 dtype 與 q 相同，不改動輸入", en="returns the dtype of q, and leaves its inputs alone")
def dtypes(t):
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        inputs = case(t, 2, 4, 2, 2, 7, 4, dtype)
        mask = some_mask(t, 2, 2, 7)
        held = [t.hold(x) for x in (*inputs, mask)]
        # sums of 7 numbers near 1, each rounded: a few times the spacing
        t.close(t.answer(*held), oracle.attention(*inputs, mask[:, 0]), dtype, 3 if TOLERANCE[dtype] > 1e-3 else 1)
        for name, tensor, original in zip(("q", "k", "v", "mask"), held, (*inputs, mask), strict=True):
            t.unchanged(tensor, original, name)
