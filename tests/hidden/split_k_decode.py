"""Hidden tests of `split-k-decode`."""

import torch
from hidden_lenient import cast
from hidden_splits import poisoned, rounded_once, splits

from kvgrade.testing import prop


def case(t, batch, group, n_kv_heads, max_len, head_dim, dtype=torch.float32):
    """q (batch, n_heads, head_dim), and k ≠ v (batch, n_kv_heads, max_len, head_dim)."""
    cache = (batch, n_kv_heads, max_len, head_dim)
    k, v = t.normal(*cache, dtype=dtype), t.normal(*cache, dtype=dtype)
    return t.normal(batch, n_kv_heads * group, head_dim, dtype=dtype), k, v


def full(q, k):
    """Lengths of rows that are full."""
    return torch.full((q.shape[0],), k.shape[2])


def check(t, q, k, v, lengths, n_splits, times=1.0, any_dtype=True, tail=torch.nan):
    """All three results against float64, on a cache that holds `tail` behind the lengths."""
    got = t.answer(q, poisoned(k, lengths, tail), poisoned(v, lengths, tail), lengths, n_splits)
    t.expect(isinstance(got, tuple) and len(got) == 3, zh="要傳回三個張量 (out, part, lse) 組成的 tuple",
             en="it must return a tuple of three tensors (out, part, lse)")  # fmt: skip
    part, lse = splits(q, k, v, lengths, n_splits)
    weights = (lse - lse.amax(0).nan_to_num(neginf=0.0)).exp()
    out = (weights[..., None] * part).sum(0) / weights.sum(0).clamp(min=1)[..., None]
    dtypes = q.dtype, torch.float32, torch.float32
    if any_dtype:  # `half` judges them
        got = [cast(x, dtype) for x, dtype in zip(got, dtypes, strict=True)]
    t.close(got[1], part, times=times)
    t.close(got[2], lse, times=times)
    t.close(got[0], out, dtype=q.dtype, times=times)
    return got[0], out


@prop(4, zh="一段：就是 attention 本身", en="one split is attention itself")
def one_split(t):
    for _ in range(3):
        q, k, v = case(t, 1, 1, t.integer(1, 4), t.integer(1, 100), t.choice(3, 16, 30))
        check(t, q, k, v, full(q, k), 1)


@prop(3, zh="分組：每個查詢頭讀對自己的 KV 頭", en="grouped heads: each query head reads its own KV head")
def groups(t):
    for group in (2, t.integer(3, 8)):
        q, k, v = case(t, 2, group, t.integer(2, 4), t.integer(2, 60), 16)
        v = v * 0 + t.normal(1, v.shape[1], 1, 1) * 3
        check(t, q, k, v, full(q, k), 1)
        check(t, *case(t, 2, group, 3, t.integer(2, 60), 16), torch.tensor([2, 2]), 1)


@prop(4, zh="切成幾段，答案都一樣", en="the result does not depend on the number of splits")
def any_number(t):
    q, k, v = case(t, 2, 2, 2, t.choice(29, 30, 31, 100), 16)
    for n_splits in (1, 2, 3, 7):
        check(t, q, k, v, full(q, k), n_splits)


@prop(2, zh="空的段：輸出 0，log-sum-exp 是 −inf，權重 0", en="an empty split gives 0 and −inf, and weighs 0")
def more_splits_than_keys(t):
    for max_len, n_splits in ((1, 2), (5, 4), (3, t.integer(4, 20))):
        q, k, v = case(t, 1, 2, 2, max_len, 8)
        check(t, q, k, v, full(q, k), n_splits)


@prop(3, zh="每一列有自己的長度，之後的格子不讀", en="each row has its own length, and slots behind it are not read")
def lengths(t):
    for n_splits in (1, 3, 7):
        max_len = t.choice(30, 64, 65)
        q, k, v = case(t, 4, 2, 2, max_len, 16)
        for tail in (torch.nan, torch.inf, -torch.inf):
            check(t, q, k, v, torch.tensor([max_len - 1, 1, 0, t.integer(2, max_len - 2)]), n_splits, tail=tail)


@prop(1, zh="分數很大也不會溢位", en="does not overflow for large scores")
def large(t):
    q, k, v = case(t, 2, 2, 2, 40, 16)
    check(t, q * 100, k, v, full(q, k), 3, times=50)
    q[..., 0], k[..., 0] = 40, t.choice(-40, 40)  # every score near 400, or near -400
    check(t, q, k, v, full(q, k), 3, times=50)


@prop(1, zh="dtype：以 float32 計算，part 與 lse 是 float32，out 與 q 相同", en="dtypes: computed in float32, part and lse in float32, out in that of q")
def half(t):
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        for n_splits in (1, 3, 4):  # √head_dim is no power of 2: nothing can be scaled in 16 bits without loss
            q, k, v = case(t, 2, 2, 2, t.integer(10, 60), t.choice(24, 30, 40), dtype)
            got, want = check(t, q, k, v, full(q, k), n_splits, any_dtype=False)
            t.expect(rounded_once(got, want), zh="out 在最後轉換之前就已經失去精度：有一部分是以 16 位元計算的",
                     en="out has lost precision before its conversion at the end: some of it was computed in 16 bits")  # fmt: skip


@prop(1, zh="不合理的引數要拒絕，輸入不動", en="refuses what makes no sense, and leaves its input alone")
def manners(t):
    q, k, v = case(t, 2, 2, 2, 10, 8)
    wrong = {
        "n_splits": (q, k, v, full(q, k), 0), "n_splits ": (q, k, v, full(q, k), -1), " n_splits": (q, k, v, full(q, k), -10),
        "lengths": (q, k, v, torch.tensor([10, 11]), 2), "lengths ": (q, k, v, torch.tensor([-1, 5]), 2),
        " lengths": (q, k, v, torch.tensor([11, 2]), 1), "q": (q[:, :3], k, v, full(q, k), 2),
        "q ": (q[:, :1], k, v, full(q, k), 2),
    }  # fmt: skip
    for name, args in wrong.items():
        t.raises("ValueError", lambda args=args: t.answer(*args), zh=f"{name.strip()} 不合理時",
                 en=f"when {name.strip()} makes no sense")  # fmt: skip
    held = {name: (t.hold(x), x) for name, x in (("q", q), ("k", k), ("v", v), ("lengths", torch.tensor([10, 4])))}
    t.answer(*(there for there, _ in held.values()), 2)
    for name, (there, here) in held.items():
        t.unchanged(there, here, name)


@prop(1, zh="K、V 沒有攤開，也沒有每一段都重算", en="neither spreads K and V out nor computes everything once per split")
def work(t):
    q, k, v = case(t, 1, 16, 2, 256, 64)  # spread out, either of K and V would be 8 times as large as both
    got, work = t.answer.counted(q, k, v, full(q, k), 8)
    t.close(cast(got[1]), splits(q, k, v, full(q, k), 8)[0])
    needed = 4 * q.numel() * k.shape[2]
    t.expect(work.flops <= 2 * needed, zh="乘法遠多於所需：每個鍵每個查詢頭只要乘一次",
             en="far more multiplications than needed: each key is multiplied once per query head")  # fmt: skip
    t.expect(work.bytes_written <= 5 * (k.nbytes + v.nbytes), zh="寫出的位元組超過 K 與 V 的 5 倍：它們被抄了太多份",
             en="writes more than 5 times the bytes of K and V: they are copied too often")  # fmt: skip
