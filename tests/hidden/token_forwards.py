"""Hidden tests of `token-forwards`: against a count that walks through the steps."""

from hidden_lenient import whole

from kvgrade.testing import prop

BOTH = ("without-a-cache", "with-a-cache")


def walk(n_prompt, n_outputs):
    without = with_cache = 0
    for step in range(n_outputs):
        without += n_prompt + step
        with_cache += 1 if step else n_prompt
    return without, with_cache


def pair(t, got):
    """The two numbers; a list, or a float that is a whole number, costs points elsewhere (`same`)."""
    two = isinstance(got, (tuple, list)) and len(got) == 2
    t.expect(two, zh="應該回傳兩個數字的 tuple", en="it must return a tuple of two numbers")
    return [whole(n) for n in got]


def same(t, got, want):
    pair(t, got)
    t.expect(isinstance(got, tuple), zh="應該回傳 tuple，不是 list", en="it must return a tuple, not a list")
    t.expect(all(type(n) is int for n in got), zh="兩個數字都必須是 int", en="both numbers must be of type int")
    t.equal(got, want)


def generations(t):
    return [(t.integer(2, 9), t.integer(3, 9)), (1, t.integer(2, 30)), (100, 255), (255, 100),
            *((t.integer(1, 2000), t.integer(2, 2000)) for _ in range(5))]  # fmt: skip


@prop(2, zh="沒有快取：與逐步數出來的次數相同", en="without a cache: equals a count of every step")
def without_a_cache(t):
    for n_prompt, n_outputs in generations(t):
        t.equal(pair(t, t.answer(n_prompt, n_outputs))[0], walk(n_prompt, n_outputs)[0])


@prop(2, zh="有快取：與逐步數出來的次數相同", en="with a cache: equals a count of every step", needs=())
def with_a_cache(t):
    for n_prompt, n_outputs in generations(t):
        t.equal(pair(t, t.answer(n_prompt, n_outputs))[1], walk(n_prompt, n_outputs)[1])


@prop(2, zh="只要一個輸出、或一個都不要；回傳兩個 int 的 tuple", en="one output, and none at all; a tuple of two ints", needs=BOTH)
def few_outputs(t):
    for _ in range(3):
        n_prompt = t.integer(1, 5000)
        same(t, t.answer(n_prompt, 1), walk(n_prompt, 1))
        same(t, t.answer(n_prompt, 0), (0, 0))


@prop(2, zh="數字很大時仍然精確，而且不逐步計算", en="exact for huge numbers, without walking the steps", needs=BOTH)
def huge(t):
    for _ in range(4):
        n_prompt, n_outputs = t.integer(10**14, 10**15), t.integer(10**14, 10**15)
        got, _work = t.answer.counted(n_prompt, n_outputs, lines=500)
        first, last = n_prompt, n_prompt + n_outputs - 1  # the terms of the series
        same(t, got, ((first + last) * n_outputs // 2, last))


@prop(2, zh="不合理的輸入會丟出 ValueError", en="impossible input raises ValueError", needs=())
def errors(t):
    for n_prompt, n_outputs in [(0, t.integer(1, 9)), (-t.integer(1, 9), 3), (0, 0)]:
        t.raises("ValueError", lambda p=n_prompt, n=n_outputs: t.answer(p, n),
                 zh="n_prompt 小於 1 時", en="for an n_prompt below 1")  # fmt: skip
    for n_outputs in (-1, -t.integer(2, 9)):
        t.raises("ValueError", lambda n=n_outputs: t.answer(t.integer(1, 9), n),
                 zh="n_outputs 小於 0 時", en="for an n_outputs below 0")  # fmt: skip
