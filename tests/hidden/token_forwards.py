"""Hidden tests of `token-forwards`."""

from kvgrade.testing import prop


@prop(4, zh="次數正確", en="counts right")
def counts(t):
    for _ in range(10):
        p, n = t.integer(1, 1000), t.integer(1, 1000)
        t.equal(t.answer(p, n), (sum(p + i for i in range(n)), p + n - 1))
