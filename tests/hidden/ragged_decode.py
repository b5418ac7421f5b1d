"""Hidden tests of `ragged-decode`: every row is judged alone, whatever its mates are."""

import torch
from hidden_oracle import attend_row, rope

from kvgrade.testing import TOLERANCE, prop

NAN = float("nan")


class Case:
    """Rows of given lengths, their caches on the answer's side, with `tail` where nothing is stored."""

    def __init__(self, t, lengths, active=None, capacity=None, dtype=torch.float32, tail=1.0, n_kv_heads=None):
        self.t, self.lengths, self.dtype = t, lengths, dtype
        self.active = [True] * len(lengths) if active is None else active
        self.heads = n_kv_heads or t.integer(1, 3)
        self.group, self.dim, self.theta = t.integer(1, 3), t.choice(4, 6), t.choice(100.0, 1_000.0, 500_000.0)
        capacity = capacity or max(lengths) + t.integer(1, 4)
        self.new = [t.normal(len(lengths), h, self.dim, dtype=dtype) for h in (self.heads * self.group, self.heads, self.heads)]
        self.before = [t.normal(len(lengths), self.heads, capacity, self.dim, dtype=dtype) for _ in range(2)]
        for buffer in self.before:
            for row, n in zip(buffer, lengths, strict=True):
                row[:, n:] = tail
        self.caches = [t.hold(buffer) for buffer in self.before]

    def call(self, *, new=None, lengths=None, active=None):
        return self.t.answer(
            *(new or self.new), *self.caches, torch.tensor(self.lengths) if lengths is None else lengths,
            torch.tensor(self.active) if active is None else active, self.theta,
        )  # fmt: skip

    def turned(self, b, n):
        """This row's new q and k at position n, and its v, float64."""
        q, k, v = (x[b].double() for x in self.new)
        return (torch.stack([rope(head, n, self.theta) for head in x]) for x in (q, k)), v

    def want(self):
        """The output, and the caches after the step."""
        out = torch.zeros(self.new[0].shape, dtype=torch.float64)
        after = [buffer.double() for buffer in self.before]
        for b, n in enumerate(self.lengths):
            if self.active[b]:
                (q, k), v = self.turned(b, n)
                after[0][b, :, n], after[1][b, :, n] = k, v
                keys, values = (buffer[b, :, : n + 1] for buffer in after)
                for h in range(len(q)):
                    out[b, h] = attend_row(q[h], keys[h // self.group], values[h // self.group])
        return out, after

    def check(self, times=3):
        want, _ = self.want()
        self.t.close(self.call(), want, self.dtype, times)

    def check_caches(self):
        t, (_, after) = self.t, self.want()
        for got, want, before in zip((c.value() for c in self.caches), after, self.before, strict=True):
            written = torch.zeros(before.shape, dtype=torch.bool)
            for b, n in enumerate(self.lengths):
                written[b, :, n : n + 1] = self.active[b]
            old, new = got.masked_fill(written, 0), before.masked_fill(written, 0)
            same = (old == new) | (old.isnan() & new.isnan())
            t.expect(bool(same.all()), zh="動到了不該動的格子", en="a slot that must stay was changed")
            t.close(got.double()[written], want[written], torch.float64, 5 * TOLERANCE[self.dtype] / TOLERANCE[torch.float64])


@prop(4, zh="長度相同的各列，輸出正確", en="rows of one length come out right")
def even(t):
    for n, batch in ((0, 2), (3, 2), (t.integer(4, 12), 3), (30, 2), (5, 1)):
        Case(t, [n] * batch, n_kv_heads=2 if n == 3 else None).check()


@prop(4, zh="長度不同的各列，各自正確", en="rows of different lengths come out right, each for itself")
def ragged(t):
    Case(t, [2, 7, 4], n_kv_heads=2).check()
    Case(t, [9, 0]).check()
    for _ in range(3):
        Case(t, [t.integer(0, 12) for _ in range(t.integer(2, 4))]).check()
    Case(t, [1, 100, 31]).check()
    Case(t, [3, 6, 1], dtype=torch.float64).check()


@prop(2, zh="每一列寫進自己的下一格，其他都不動", en="each row writes its own next slot, and nothing else changes")
def writes(t):
    for lengths in ([0, 5, 2], [t.integer(0, 9) for _ in range(3)], [4, 4]):
        case = Case(t, lengths)
        held = [t.hold(x) for x in (*case.new, torch.tensor(lengths), torch.tensor(case.active))]
        case.call(new=held[:3], lengths=held[3], active=held[4])
        case.check_caches()
        originals = (*case.new, torch.tensor(lengths), torch.tensor(case.active))
        for name, tensor, original in zip(("q", "k", "v", "lengths", "active"), held, originals, strict=True):
            t.unchanged(tensor, original, name)


@prop(2, zh="結束的列不寫也不輸出，其他列照常", en="rows that have ended write nothing and give 0, and the others go on")
def ended(t):
    for lengths, active in (([3, 6, 2], [True, False, True]), ([0, 4], [False, True]), ([5, 5], [False, False])):
        case = Case(t, lengths, active)
        case.check()
        case.check_caches()
        for tail in (NAN, float("inf"), -float("inf")):  # what an ended row holds, times 0, is no 0
            Case(t, lengths, active, tail=tail).check()
    case = Case(t, [4, 5, 2], [True, False, False], dtype=torch.float64)
    case.check()
    case.check_caches()
    case = Case(t, [8, 3, 0], [False, True, False], capacity=8)  # a full row that has ended
    case.check()
    case.check_caches()


@prop(1, zh="沒寫過的格子、別列的內容，放什麼都不影響", en="what lies in slots not written, or in other rows, does not matter")
def strangers(t):
    for tail in (NAN, float("inf"), -float("inf"), 1e4, 0.0):
        case = Case(t, [2, 9, 5], tail=tail)
        case.check()
        case.check_caches()
    case = Case(t, [4, 6, 3])
    case.before[0][1], case.before[1][1] = NAN, NAN
    case.caches = [t.hold(buffer) for buffer in case.before]
    case.new = [x.clone() for x in case.new]
    for x in case.new:
        x[1] = NAN
    want, _ = Case.want(case)
    got = case.call()
    t.expect(isinstance(got, torch.Tensor) and got.shape == want.shape, zh="輸出的形狀不對", en="the output has a wrong shape")
    t.close(got[[0, 2]], want[[0, 2]], times=3)


@prop(1, zh="分數大到幾百、各列差很遠，也不會溢位", en="does not overflow for scores of several hundred, nor where rows are far apart")
def large(t):
    for signs in ((1, -1), (-1, -1), (1, 1), (-1, 1)):
        case = Case(t, [t.integer(2, 9), t.integer(2, 9)])
        q, k, _ = case.new
        for b, sign in enumerate(signs):  # number 0 of q is 2, that of every key before its rotation this:
            size = sign * t.integer(200, 250) * case.dim**0.5
            q[b, :, 0], k[b, :, 0] = 2, size
            first = torch.zeros(case.dim, dtype=torch.float64)
            first[0] = size
            case.before[0][b, :, : case.lengths[b]] += rope(first, case.lengths[b], case.theta).float()
        case.caches = [t.hold(buffer) for buffer in case.before]
        case.check(times=50)


@prop(1, zh="有列滿了就丟出 ValueError，什麼都不改", en="when a row is full it raises ValueError and changes nothing")
def full(t):
    for lengths, active in (([2, 6], None), ([6, 2, 1], None), ([6], None), ([6, 1, 6], [False, True, True])):
        case = Case(t, lengths, active, capacity=6)
        t.raises("ValueError", case.call, zh="有一列已經滿了時", en="when a row is full")
        for cache, before in zip(case.caches, case.before, strict=True):
            now = cache.value()
            t.expect(bool(((now == before) | (now.isnan() & before.isnan())).all()),
                     zh="丟出例外之前已經改了快取", en="the cache was changed before the exception")  # fmt: skip
    Case(t, [5, 5], capacity=6).check()
