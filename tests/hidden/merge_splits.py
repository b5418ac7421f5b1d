"""Hidden tests of `merge-splits`."""

import torch
from hidden_lenient import cast

from kvgrade.testing import prop

DOUBLE = torch.float64


def merged(out, lse):
    """float64: each output times its share of Σ exp(lse); where every split is empty, 0 and −inf."""
    out, lse = out.double(), lse.double()
    want, total = torch.zeros_like(out[0]), torch.full_like(lse[0], -torch.inf)
    for index in torch.cartesian_prod(torch.arange(lse.shape[1]), torch.arange(lse.shape[2])).tolist():
        b, h = index
        full = [s for s in range(len(lse)) if lse[s, b, h] > -torch.inf]
        if full:
            top = max(lse[s, b, h] for s in full)
            weights = [(lse[s, b, h] - top).exp() for s in full]
            want[b, h] = sum(w * out[s, b, h] for w, s in zip(weights, full, strict=True)) / sum(weights)
            total[b, h] = top + sum(weights).log()
    return want, total


def case(t, n_splits, dtype=torch.float32, scale=2.0, offset=0.0):
    """Random splits: outputs (n_splits, B, n_heads, head_dim) and log-sum-exps in eighths, exact in float32."""
    shape = (n_splits, t.integer(1, 4), t.integer(1, 9), t.choice(1, 3, 16, 30))
    lse = (t.normal(*shape[:3], dtype=DOUBLE, scale=scale) * 8).round() / 8 + offset
    return t.normal(*shape, dtype=dtype), lse.to(dtype)


def check(t, out, lse, times=1.0, any_dtype=True):
    got = t.answer(out, lse)
    t.expect(isinstance(got, tuple) and len(got) == 2, zh="要傳回兩個張量（輸出與 log-sum-exp）組成的 tuple",
             en="it must return a tuple of two tensors, output and log-sum-exp")  # fmt: skip
    for have, want in zip(got, merged(out, lse), strict=True):
        t.close(cast(have, out.dtype) if any_dtype else have, want, dtype=out.dtype, times=times)


@prop(2, zh="兩段合併等於整段", en="two splits merge into the whole")
def two(t):
    for _ in range(3):
        check(t, *case(t, 2))


@prop(2, zh="段數任意；一段就是它自己", en="takes any number of splits; one split is itself")
def any_number(t):
    for n_splits in (1, 3, 7, 30, t.integer(50, 100)):
        check(t, *case(t, n_splits))


@prop(2, zh="空的段權重是 0，輸出是 NaN 或無限大也無妨", en="an empty split weighs 0, also when its output is NaN or infinite")
def empty_splits(t):
    for n_splits in (2, 3, 7):
        out, lse = case(t, n_splits)
        for b in range(lse.shape[1]):
            for h in range(lse.shape[2]):
                s = t.integer(0, n_splits - 1)
                lse[s, b, h], out[s, b, h] = -torch.inf, t.choice(torch.nan, 0.0, torch.nan)
        s = t.integer(0, n_splits - 1)
        lse[s, 0, 0], out[s, 0, 0] = -torch.inf, torch.nan
        check(t, out, lse)
        for anything in (torch.inf, -torch.inf, torch.nan, 1e30):
            out[s, 0, 0] = anything
            check(t, out, lse)


@prop(1, zh="全是空的段：輸出 0，log-sum-exp 是 −inf", en="all splits empty: output 0 and log-sum-exp −inf")
def all_empty(t):
    out, lse = case(t, 3)
    lse[:, -1, -1], out[:, -1, -1] = -torch.inf, torch.nan
    check(t, out, lse)
    for anything in (torch.nan, torch.inf):
        check(t, torch.full_like(out, anything), torch.full_like(lse, -torch.inf))


@prop(1, zh="分數很大或很小都不會溢位", en="neither overflows nor underflows for large scores")
def large(t):
    for offset in (300.0, -300.0):
        check(t, *case(t, 3, offset=offset), times=10)
    for dtype, times in ((DOUBLE, 10), (torch.float32, 50)):  # rows and heads far apart: each needs a maximum of its own
        b, h = torch.meshgrid(torch.arange(3), torch.arange(4), indexing="ij")
        for low in (b % 2, h % 2, (b + h) % 2):
            lse = (t.normal(3, 3, 4, dtype=DOUBLE, scale=2.0) * 8).round() / 8 + torch.where(low == 1, -1990.0, 1990.0)
            check(t, t.normal(3, 3, 4, 5, dtype=dtype), lse.to(dtype), times=times)


@prop(1, zh="合併的結果還能再合併", en="what was merged can be merged again")
def again(t):
    out, lse = case(t, 5)
    halves = [t.answer(out[:2], lse[:2]), t.answer(out[2:], lse[2:])]
    got = t.answer(torch.stack([h[0] for h in halves]), torch.stack([h[1] for h in halves]))
    for have, want in zip(got, merged(out, lse), strict=True):
        t.close(cast(have), want)


@prop(1, zh="dtype 不變、輸入不動、形狀不合要拒絕", en="keeps the dtype, leaves its input alone, refuses wrong shapes")
def manners(t):
    for dtype in (DOUBLE, torch.float32):
        check(t, *case(t, 4, dtype=dtype), any_dtype=False)
    out, lse = case(t, 3)
    lse[1, 0, 0] = -torch.inf
    held, held_lse = t.hold(out), t.hold(lse)
    t.answer(held, held_lse)
    t.unchanged(held, out, "out")
    t.unchanged(held_lse, lse, "lse")
    out, lse = t.normal(3, 2, 4, 5), t.normal(3, 2, 4)
    fewer = [lse[:2], lse[:1], lse[:, :1], lse[:, :, :1], lse[:, :, :3], lse[0], lse.transpose(1, 2), lse[..., None], out]
    for wrong in (*((out, x) for x in fewer), (out[:, :1], lse), (out[:, :, :1], lse), (out[:0], lse[:0])):
        t.raises("ValueError", lambda wrong=wrong: t.answer(*wrong), zh="形狀不合，或一段也沒有時",
                 en="when the shapes do not fit, or there is no split")  # fmt: skip
