"""Hidden tests of `tpot-floor`."""

from fractions import Fraction
from itertools import product

from kvgrade.testing import prop


def question(t, **fixed):
    """A random model, context and card."""
    n_kv_heads = t.integer(1, 16)
    asked = {
        "n_params": t.integer(10**9, 4 * 10**11), "n_layers": t.integer(2, 128), "n_heads": n_kv_heads * t.integer(2, 16),
        "n_kv_heads": n_kv_heads, "head_dim": t.choice(64, 80, 96, 112, 128, 256), "n_tokens": t.integer(1000, 200_000),
        "batch": t.integer(2, 300), "n_gpus": t.integer(2, 16), "gb_per_s": t.integer(300, 8000),
    }  # fmt: skip
    return asked | fixed


def floor(a, weight_bytes=2, kv_bytes=2):
    """Milliseconds, exactly."""
    kv = 2 * a["n_layers"] * a["n_kv_heads"] * a["head_dim"] * a["n_tokens"] * a["batch"] * Fraction(kv_bytes)
    nbytes = a["n_params"] * Fraction(weight_bytes) + kv
    return float(1000 * nbytes / (a["n_gpus"] * Fraction(a["gb_per_s"]) * 10**9))


@prop(3, zh="一張卡、一個序列的下限", en="the floor of one sequence on one card")
def one_sequence(t):
    for _ in range(5):
        asked = question(t, batch=1, n_gpus=1)
        t.close(t.answer(**asked), floor(asked))


@prop(2, zh="批次：權重讀一次，每個序列各讀自己的 KV", en="a batch reads the weights once, and each sequence its own KV")
def a_batch(t):
    for _ in range(5):
        asked = question(t, n_gpus=1)
        t.close(t.answer(**asked), floor(asked))


@prop(2, zh="好幾張卡同時讀", en="several cards read at the same time")
def cards(t):
    for _ in range(5):
        asked = question(t, batch=1)
        t.close(t.answer(**asked), floor(asked))


@prop(1, zh="權重與 KV 可以是不同的型別，頻寬可以有小數", en="weights and KV may have different types, and the bandwidth a fraction")
def types(t):
    for sizes in product((0.5, 1, 2, 4), repeat=2):
        asked = question(t, gb_per_s=t.integer(300, 8000) + t.choice(0.25, 0.5, 0.75))
        t.close(t.answer(**asked, weight_bytes=sizes[0], kv_bytes=sizes[1]), floor(asked, *sizes))
    slow = question(t, gb_per_s=0.5)
    t.close(t.answer(**slow), floor(slow))


@prop(1, zh="不合理的引數要拒絕", en="refuses arguments that make no sense")
def refused(t):
    counts = ("n_params", "n_layers", "n_kv_heads", "head_dim", "batch", "n_gpus")
    wrong = [*product(counts, (0, -1, -t.integer(2, 9))), *product(("gb_per_s", "weight_bytes", "kv_bytes"), (0, 0.0, -0.5, -1))]
    for name, value in [*wrong, ("n_tokens", -1), ("n_tokens", -t.integer(2, 9))]:
        asked = question(t, **{name: value})
        t.raises("ValueError", lambda asked=asked: t.answer(**asked),
                 zh=f"{name} 不合理時", en=f"when {name} makes no sense")  # fmt: skip
    asked = question(t, n_tokens=0, batch=1, n_gpus=1)
    t.close(t.answer(**asked), floor(asked))


@prop(1, zh="是一條公式，不是迴圈", en="is a formula and no loop")
def a_formula(t):
    for n_tokens, batch in ((t.integer(10**8, 10**9), t.integer(10**4, 10**5)), (1000, 10**15), (10**15, 3), (10**15, 10**15)):
        asked = question(t, n_tokens=n_tokens, batch=batch)  # so many sequences cannot be listed in any memory
        got, _work = t.answer.counted(**asked, lines=1000)
        t.close(got, floor(asked))
