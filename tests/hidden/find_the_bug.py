"""Hidden tests of `find-the-bug`: one property per bug, on inputs that show no other, so that each one mended gains points.

Invariant: whatever other bugs are left, a property holds if and only if its own is mended (tests/grading proves it).
"""

import torch
from hidden_oracle import attention

from kvgrade.session import AnswerRaised
from kvgrade.testing import prop


class Twin:
    """The answer beside what it must hold. `n_heads` = `n_kv_heads` hides the bug of heads, a capacity that is just filled
    that of the tail, and `helped` that of a length that never moves: it is put right where it is not."""

    def __init__(self, t, n_layers=1, batch=2, n_kv_heads=1, group=1, dim=None, capacity=8, helped=True):
        self.t, self.n_layers, self.helped = t, n_layers, helped
        self.form = batch, n_kv_heads, group, dim or n_kv_heads * group  # dim = n_heads hides the bug of the scale
        self.held = [[] for _ in range(n_layers)]
        self.answer = t.answer.keep(n_layers, batch, n_kv_heads * group, n_kv_heads, self.form[3], capacity)

    def new(self):
        batch, heads, group, dim = self.form
        return self.t.normal(batch, heads * group, 1, dim), *(self.t.normal(batch, heads, 1, dim) for _ in range(2))

    def token(self, compare=True, new=None, times=1):
        """A step through all layers; `new`: its q, k and v."""
        for layer in range(self.n_layers):
            q, k, v = new or self.new()
            self.held[layer].append((k, v))
            got = self.answer.call("step", layer, q, k, v)
            if compare:
                keys, values = (torch.cat(kind, 2) for kind in zip(*self.held[layer], strict=True))
                self.t.close(got, attention(q, keys, values), times=times)
        self.answer.call("advance")
        self.put_right()

    def put_right(self):
        """Set the length where it is another: how it moves is what two properties are about, and the others are not."""
        if self.helped and self.answer.attr("length") != len(self.held[0]):
            self.answer.keep("__setattr__", "length", len(self.held[0]))

    def back_to(self, n):
        """Only the first n tokens are left, whatever truncate does: that is what one property is about."""
        self.held = [tokens[:n] for tokens in self.held]
        try:
            self.answer.call("truncate", n)
        except AnswerRaised:
            pass
        self.put_right()

    def tokens(self, n, compare=False):
        for _ in range(n - 1):
            self.token(compare)
        self.token()


@prop(1, zh="第一個 token 的輸出正確", en="the first token comes out right", needs=())
def first(t):
    twin = Twin(t, capacity=1)
    twin.token()


@prop(2, zh="長度每個 token 前進 1，先前的 token 都還在", en="the length grows by 1 per token, and earlier tokens stay")
def advances(t):
    for n in (2, 3, 30):
        twin = Twin(t, capacity=n, helped=False)
        t.equal(twin.answer.attr("length"), 0)
        twin.tokens(n)  # compared when the buffer is just filled
        t.equal(twin.answer.attr("length"), n)
    for n_layers in (2, 3):
        twin = Twin(t, n_layers, capacity=5, helped=False)
        for n in range(1, 6):
            twin.token(compare=False)
            t.equal(twin.answer.attr("length"), n)


@prop(2, zh="滿了就丟出 ValueError，什麼都不改", en="when full it raises ValueError and changes nothing")
def full(t):
    for n_layers, capacity in ((1, 1), (2, 4)):
        twin = Twin(t, n_layers, capacity=capacity)
        for _ in range(capacity):
            twin.token(compare=False)
        for layer in range(n_layers):
            t.raises("ValueError", lambda i=layer, w=twin: w.answer.call("step", i, *w.new()), zh="快取滿了時", en="when the cache is full")
        t.equal(twin.answer.attr("length"), capacity)
    twin = Twin(t, capacity=5)
    for _ in range(5):
        twin.token(compare=False)
    t.raises("ValueError", lambda: twin.answer.call("step", 0, *twin.new()), zh="快取滿了時", en="when the cache is full")
    twin.back_to(4)
    twin.token()  # over the first 4, which the refusal left alone


@prop(1, zh="每一層各有各的快取，預先配置好", en="each layer has a cache of its own, preallocated")
def layers(t):
    for n_layers in (2, 3):
        twin = Twin(t, n_layers, capacity=3)
        twin.tokens(3)
    _, work = t.answer.counted(3, 2, 2, 1, 8, 100)
    t.expect(work.bytes_written >= 3 * 2 * (2 * 100 * 8) * 4, zh="__init__ 沒有為每一層配置 capacity 格的 K 與 V",
             en="__init__ does not allocate K and V of `capacity` slots for each layer")  # fmt: skip


@prop(1, zh="沒寫過的格子不影響結果", en="slots never written do not reach the result")
def filled_part(t):
    for capacity in (2, 30):
        twin = Twin(t, capacity=capacity)
        twin.token()
    twin = Twin(t, capacity=9)
    for _ in range(9):
        twin.token()
    for zero in range(3):  # a slot is filled also where q, k or v is 0
        twin = Twin(t, capacity=4)
        for _ in range(2):
            twin.token(new=tuple(x * (i != zero) for i, x in enumerate(twin.new())))
        twin.token()
    for left in (1, 3):  # what is behind the length may have been written once
        twin = Twin(t, capacity=9)
        for _ in range(6):
            twin.token(compare=False)
        twin.back_to(left)
        twin.token()


@prop(1, zh="每個查詢頭讀的是自己那一組的 KV 頭", en="each query head reads the KV head of its group")
def heads(t):
    for n_kv_heads, group in ((2, 2), (3, 2), (2, 3), (1, 4)):
        Twin(t, n_kv_heads=n_kv_heads, group=group, capacity=1).token()


@prop(1, zh="分數的縮放正確", en="the scores are scaled right")
def scale(t):
    for n_kv_heads, dim in ((2, 8), (1, 16), (3, 2)):
        twin = Twin(t, n_kv_heads=n_kv_heads, dim=dim, capacity=3)
        twin.tokens(3)
    for sign in (1, -1):  # scores of several hundred, whole numbers that float32 holds
        twin = Twin(t, dim=16, capacity=3)
        for n in range(3):
            q, k = ((t.tokens(2, 1, 1, 16, vocab=4) + 12).float() for _ in "qk")
            twin.token(compare=n == 2, new=(sign * q, k, twin.new()[2]), times=10)


@prop(1, zh="truncate(n) 之後剩下前 n 個 token", en="after truncate(n) the first n tokens are left")
def truncates(t):
    for n in (3, 1, 4, 0):
        twin = Twin(t, capacity=4)
        for _ in range(4):
            twin.token(compare=False)
        twin.answer.call("truncate", n)
        twin.held = [tokens[:n] for tokens in twin.held]
        t.equal(twin.answer.attr("length"), n)
        if n < 4:
            twin.tokens(4 - n)
        t.equal(twin.answer.attr("length"), 4)
