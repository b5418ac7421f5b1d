"""Hidden tests of `triton-decode`. The answer's kernel runs under Triton's interpreter, about 10 ms per inner iteration: keep
everything small."""

from importlib.util import find_spec

import torch
from hidden_splits import decode, poisoned, rounded_once

from kvgrade.session import AnswerRaised
from kvgrade.testing import prop

CANARY = -77.0
MISSING = {"zh": "這台機器沒有 Triton（只有 Linux 版），這題在這裡無法評分；它是選做題，不計入總分",
           "en": "Triton is not installed here (it exists for Linux only), so this exercise cannot be graded on this machine; "
                 "it is optional and does not count in the total"}  # fmt: skip


def ask(t, q, k, v, lengths, times=1.0, tail=torch.nan):
    """Plain contiguous inputs, `tail` behind the lengths; out is the middle of a larger buffer."""
    buffer = t.hold(torch.full((q.numel() + 200,), CANARY, dtype=q.dtype))
    out = buffer.keep("narrow", 0, 100, q.numel()).keep("view", *q.shape)
    t.answer(q, poisoned(k, lengths, tail), poisoned(v, lengths, tail), lengths, out)
    now = buffer.value()
    got = now[100:-100].reshape(q.shape)
    t.expect(not bool((got == CANARY).all()), zh="out 沒有被寫入", en="nothing was written to out")
    want = decode(q, k, v, lengths)
    t.close(got, want, dtype=q.dtype, times=times)
    t.expect(bool((now[:100] == CANARY).all() and (now[-100:] == CANARY).all()), zh="寫到 out 以外的記憶體了",
             en="it wrote memory outside out")  # fmt: skip
    return got, want


def case(t, batch, group, n_kv_heads, max_len, head_dim, dtype=torch.float32):
    cache = (batch, n_kv_heads, max_len, head_dim)
    k, v = t.normal(*cache, dtype=dtype), t.normal(*cache, dtype=dtype)
    return t.normal(batch, n_kv_heads * group, head_dim, dtype=dtype), k, v


def ints(*lengths):
    return torch.tensor(lengths, dtype=torch.int32)


@prop(4, zh="一列、一個頭、一塊鍵", en="one row, one head, one tile of keys")
def one_row(t):
    q, k, v = case(t, 1, 1, 1, 16, 16)
    if find_spec("triton") is None:
        try:
            t.answer(q, k, v, ints(16), torch.zeros_like(q))
        except AnswerRaised as error:
            if error.type == "NotImplementedError":
                raise
        t.expect(False, **MISSING)
    ask(t, q, k, v, ints(16))


@prop(4, zh="分組；group 與 head_dim 不是 2 的次方也對", en="grouped heads, with group and head_dim that are no powers of 2")
def groups(t):
    for group, head_dim in ((2, 16), (3, t.choice(24, 40)), (t.choice(5, 7), 20)):
        ask(t, *case(t, 1, group, 2, t.integer(3, 15), head_dim), ints(t.integer(2, 3)))


@prop(4, zh="每一列有自己的長度，之後的格子不讀", en="each row has its own length, and slots behind it are not read")
def lengths(t):
    max_len = t.choice(100, 127, 130)
    q, k, v = case(t, 4, 2, 1, max_len, 16)
    q[..., 0], k[..., 0] = 2.0, torch.linspace(-8, 8, max_len)  # scores rise: each tile has a larger maximum than the last
    ask(t, q, k, v, ints(max_len, 1, t.choice(63, 65), t.integer(2, 99)))
    for tail in (torch.inf, -torch.inf):
        ask(t, *case(t, 2, 2, 1, 20, 16), ints(t.integer(2, 15), 1), tail=tail)


@prop(3, zh="讀的是照步幅（stride）的檢視，寫的也只有 out", en="reads views by their strides, and writes to out alone")
def views(t):
    batch, n_kv_heads, group, max_len, head_dim = 2, 2, 2, 20, 16
    q, k, v = case(t, batch, group, n_kv_heads, max_len, head_dim)
    lengths = ints(max_len, t.integer(3, 18))

    def view(x, room):  # as (…, token, head, …) with room for more tokens, seen as x
        wide = torch.full((batch, room, n_kv_heads, head_dim), torch.nan)
        wide[:, :max_len] = x.transpose(1, 2)
        return t.hold(wide).keep("transpose", 1, 2).keep("narrow", 2, 0, max_len)

    queries = t.hold(torch.cat([q, torch.full_like(q, torch.nan)], 1)).keep("narrow", 1, 0, q.shape[1])
    rows = t.hold(torch.full((batch, q.shape[1] + 3, head_dim + 5), CANARY))
    out = rows.keep("narrow", 1, 2, q.shape[1]).keep("narrow", 2, 1, head_dim)
    caches = [view(poisoned(x, lengths), room) for x, room in ((k, 23), (v, 31))]
    t.answer(queries, *caches, lengths, out)
    now = rows.value()
    t.close(now[:, 2:-1, 1:-4], decode(q, k, v, lengths))
    now[:, 2:-1, 1:-4] = CANARY
    t.expect(bool((now == CANARY).all()), zh="寫到 out 以外的記憶體了", en="it wrote memory outside out")


@prop(2, zh="分數很大也不會溢位", en="does not overflow for large scores")
def large(t):
    q, k, v = case(t, 1, 2, 1, 100, 16)
    ask(t, q * 100, k, v, ints(100), times=50)
    q[..., 0], k[..., 0] = 40, t.choice(-40, 40)  # every score near 400, or near -400
    ask(t, q, k, v, ints(100), times=50)


@prop(1, zh="float16 的快取：以 float32 計算", en="float16 caches: computed in float32")
def half(t):
    q, k, v = case(t, 1, 2, 2, 70, 32, torch.float16)
    q[..., 0], k[..., 0] = 30, 56  # scores near 300, where float16 has steps of 0.25
    ask(t, q, k, v, ints(t.integer(65, 70)))
    for length in (t.integer(3, 5), t.integer(6, 12)):
        got, want = ask(t, *case(t, 1, 4, 2, 12, 32, torch.float16), ints(length))
        t.expect(rounded_once(got, want), zh="結果在最後轉回 float16 之前就已經失去精度：有一部分是以 float16 計算的",
                 en="the result has lost precision before its conversion back to float16: some of it was computed in float16")  # fmt: skip


@prop(2, zh="計算都在核心裡", en="the computing is done in the kernel")
def in_the_kernel(t):
    q, k, v = case(t, 1, 32, 1, 256, 16)  # torch's products would be 32 times as large as K; a launch copies it a few times
    out = t.hold(torch.full_like(q, CANARY))
    _, work = t.answer.counted(q, k, v, ints(256), out)
    t.close(out.value(), decode(q, k, v, ints(256)))
    t.expect(work.flops == 0 and work.bytes_written < 24 * (k.nbytes + v.nbytes), zh="有計算是用 torch 做的，不在核心裡",
             en="some of it was computed with torch operations, outside the kernel")  # fmt: skip
    t.expect(work.bytes_written > 0, zh="呼叫的執行緒裡沒有啟動核心",  # a launch under the interpreter copies its arguments
             en="no kernel was launched in the thread that called")  # fmt: skip
