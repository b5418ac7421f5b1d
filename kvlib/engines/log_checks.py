"""A log's numbers against a pool of a given number of blocks."""

from dataclasses import dataclass
from fractions import Fraction

from kvlib.engines.log_counting import Reading
from kvlib.engines.log_lines import Lines
from kvlib.i18n import T
from kvlib.units import GiB

HALF = Fraction(5, 1000)
"""vLLM prints GiB with two decimals."""


@dataclass(frozen=True, slots=True)
class Check:
    """One number of the log. key: memory, blocks, tokens, concurrency, needed or block_size, in both languages."""

    key: str
    label: str
    logged: str
    formula: str
    computed: str
    agree: bool

    @property
    def verdict(self) -> str:
        """In words, in the current language."""
        return T("相符", "agree") if self.agree else T("不符", "differ")


def _interval(text: str, block: int) -> range:
    """The whole blocks that may be in a printed GiB."""
    middle = Fraction(text)
    return range(max(0, int((middle - HALF) * GiB // block)), int((middle + HALF) * GiB // block) + 1)


def pool_blocks(x: Reading, lines: Lines) -> int:
    """The number of blocks that explains most of the log."""
    return max(x.candidates(lines), key=lambda n: sum(check.agree for check in pool_checks(x, lines, n)), default=0)


def pool_checks(x: Reading, lines: Lines, n: int) -> list[Check]:
    """The log against a pool of n blocks."""
    checks = []

    def check(key: str, label: str, logged: str, formula: str, computed: str) -> None:
        checks.append(Check(key, label, logged, formula, computed, logged == computed))

    if lines.attention_block is not None:
        check("block_size", T("每塊 token", "tokens per block"), f"{lines.attention_block:,}", x.unit, f"{x.size:,}")
    if lines.memory is not None and n:
        fits = _interval(lines.memory, x.block)
        source = "" if lines.blocks is not None else T("（反推）", " (as printed)")
        checks.append(Check("blocks", T("區塊", "blocks") + source, f"{n:,}", f"{lines.memory} GiB / {x.block:,} B",
                            f"{fits[0]:,}" + (f"–{fits[-1]:,}" if len(fits) > 1 else ""), n in fits))  # fmt: skip
    if lines.tokens is not None:
        times = lines.context_parallel or 1
        formula = x.token_formula(n) + (f" × {times}" if times > 1 else "")
        check("tokens", T("token 數", "tokens"), f"{lines.tokens:,}", formula, f"{times * x.tokens(n):,}")
    if lines.concurrency is not None and not lines.context_parallel:
        check("concurrency", T("並行數", "concurrency"), lines.concurrency, x.request_formula(n), f"{x.requests(n):.2f}")
    if lines.needed is not None:
        need = Fraction(x.per_request * x.block, GiB)
        checks.append(Check("needed", T("一個請求", "one request"), f"{lines.needed} GiB",
                            f"{x.per_request:,} × {x.block:,} B", f"{float(need):.2f} GiB",
                            abs(need - Fraction(lines.needed)) <= HALF))  # fmt: skip
    return checks


def budget_check(lines: Lines) -> list[Check]:
    """The memory left for the cache, out of what the profiling run found."""
    used = [n for n in (lines.peak or lines.weights, lines.activations, lines.non_torch) if n is not None]
    if None in (lines.total, lines.utilization, lines.memory, lines.peak or lines.weights):
        return []
    share = Fraction(lines.utilization)
    left = Fraction(lines.total) * share - sum(map(Fraction, used))
    off = HALF * (share + len(used) + 1)  # every printed GiB may be half a step off
    formula = " − ".join([f"{lines.total} × {lines.utilization}", *used])
    return [Check("memory", T("留給快取", "left for the cache"), f"{lines.memory} GiB", formula, f"{float(left):.2f} GiB",
                  abs(left - Fraction(lines.memory)) <= off)]  # fmt: skip
