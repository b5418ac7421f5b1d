"""Hidden tests of `left-for-kv`: against the ledger in exact fractions, card by card."""

from fractions import Fraction
from math import ceil, floor

from hidden_lenient import whole

from kvgrade.testing import prop

UNITS = {"B": 1, "GB": 1000**3, "MiB": 1024**2, "GiB": 1024**3}


def ledger(n_gpus, capacity, unit, n_params, weight_bits=16, runtime_gb=3, utilization_percent=100, activation_bytes=0):
    total = 0
    for _card in range(n_gpus):
        total += floor(Fraction(capacity * UNITS[unit]) * Fraction(utilization_percent, 100))
        total -= runtime_gb * UNITS["GB"]
    total -= ceil(Fraction(n_params * weight_bits, 8)) + activation_bytes
    return max(total, 0)


def fitting(t, unit="GB", bits=16, n_gpus=None):
    """(n_gpus, capacity, unit, n_params, weight_bits): between a tenth and two fifths of the cards are weights."""
    n_gpus, gigabytes = n_gpus or t.integer(2, 8), t.integer(40, 200)
    capacity = gigabytes * 1000**3 // UNITS[unit] + t.integer(1, 9)
    n_params = n_gpus * gigabytes * t.integer(100, 400) * 10**6 * 8 // bits + t.integer(1, 10**6)
    return n_gpus, capacity, unit, n_params, bits


@prop(4, zh="總容量扣掉一份權重", en="all cards less one copy of the weights")
def capacity_and_weights(t):
    for _ in range(5):
        case = *fitting(t), 0
        t.equal(whole(t.answer(*case)), ledger(*case))


@prop(2, zh="每張卡都扣執行環境", en="the runtime comes off every card")
def runtime(t):
    for runtime_gb in (1, 2, 3, 5):
        case = fitting(t)
        t.equal(whole(t.answer(*case, runtime_gb)), ledger(*case, runtime_gb))
    t.equal(whole(t.answer(*case[:4])), ledger(*case[:4]))  # with the defaults


@prop(2, zh="四種單位，執行環境永遠用 10⁹", en="all four units, and the runtime always in 10⁹")
def units(t):
    for unit in UNITS:
        case = *fitting(t, unit), 0
        t.equal(whole(t.answer(*case)), ledger(*case))
        case = *fitting(t, unit, n_gpus=1), t.integer(2, 6)  # a single card: how many pay for it is judged above
        t.equal(whole(t.answer(*case)), ledger(*case))


@prop(2, zh="使用比例乘在總容量上，啟動值另外扣", en="the utilization is one of the whole capacity; activations come off too")
def utilization(t):
    for percent in (90, 92, 100, t.integer(80, 99)):
        case = fitting(t, t.choice("GiB", "B", "MiB"))
        rest = {"runtime_gb": 0, "utilization_percent": percent, "activation_bytes": t.integer(1, 4 * 10**9)}
        t.equal(whole(t.answer(*case, **rest)), ledger(*case, **rest))
    for percent in (1, 2, t.integer(3, 49), 50):  # small models: something is left
        n_gpus, capacity, unit, n_params, bits = fitting(t, t.choice("GiB", "B", "MiB"))
        case, rest = (n_gpus, capacity, unit, n_params // 1000, bits, 0), {"utilization_percent": percent}
        t.equal(whole(t.answer(*case, **rest)), ledger(*case, **rest))


@prop(1, zh="權重的位元數，不足 1 位元組就進位", en="the bits of the weights, with a fraction of a byte rounded up")
def weight_bits(t):
    for bits in (4, 8, 16, 3, 5):
        n_gpus, capacity, unit, n_params, _ = fitting(t, bits=bits)
        for odd in (n_params // 8 * 8, n_params // 8 * 8 + 1, n_params // 8 * 8 + 7):
            t.equal(whole(t.answer(n_gpus, capacity, unit, odd, bits, 0)), ledger(n_gpus, capacity, unit, odd, bits, 0))


@prop(1, zh="放不下就是 0", en="0 where the model does not fit")
def does_not_fit(t):
    n_gpus, capacity, unit, n_params, _ = fitting(t)
    t.equal(whole(t.answer(n_gpus, capacity, unit, 40 * n_params, 16, 0)), 0)
    exact = ledger(n_gpus, capacity, unit, n_params, 16, 0)
    for used in (exact, exact + 1, exact - 1):
        got = t.answer(n_gpus, capacity, unit, n_params, 16, 0, activation_bytes=used)
        t.equal(whole(got), ledger(n_gpus, capacity, unit, n_params, 16, 0, activation_bytes=used))


@prop(1, zh="結果是 int，數字很大時仍然精確，而且不跑迴圈", en="an int, exact for huge numbers, without a loop")
def huge(t):
    many = 10**15 + t.integer(1, 10**6)
    for capacity, unit in ((many, "GiB"), (many * 10**9 + 2 * t.integer(0, 10**6) + 1, "B")):  # no float holds the second
        case = 10**6 + 1, capacity, unit, 10**20 + 1, 4, 0, 93, 12_345
        got, _work = t.answer.counted(*case, lines=500)
        n_gpus, capacity, unit, n_params, bits, runtime, percent, used = case
        one = ledger(1, capacity, unit, 1, 8, runtime, percent) + 1  # of a card, without the weights
        t.equal(got, n_gpus * one - (n_params * bits + 7) // 8 - used)


@prop(2, zh="不合理的輸入會丟出 ValueError", en="impossible input raises ValueError")
def errors(t):
    n_gpus, capacity, _, n_params, _ = fitting(t)
    for unit in ("KB", "gb", "TiB", "", " GB", "GiB ", "Gb", "MIB", "GB\n"):
        t.raises("ValueError", lambda unit=unit: t.answer(n_gpus, capacity, unit, n_params),
                 zh="單位不認得時", en="for an unknown unit")  # fmt: skip
    for percent in (0, -5, 101, 920):
        t.raises("ValueError", lambda p=percent: t.answer(n_gpus, capacity, "GB", n_params, utilization_percent=p),
                 zh="使用比例不在範圍內時", en="for a percentage out of range")  # fmt: skip
