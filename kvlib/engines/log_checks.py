"""A log's numbers against a pool of a given number of blocks."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from kvlib.engines.groups import cache_groups
from kvlib.engines.log_counting import Reading
from kvlib.engines.log_lines import Lines
from kvlib.engines.vllm import pool_block
from kvlib.i18n import T
from kvlib.units import GiB

HALF = Fraction(5, 1000)
"""vLLM prints GiB with two decimals."""

SPREAD = Fraction(1, 10)
"""How much less than the printed memory another rank may plausibly have left. Within it nobody can tell such a rank from a
model that is wrong by as little; beyond it the model is wrong."""

Number = int | float | list[int]


@dataclass(frozen=True, slots=True)
class Check:
    """One number of the log. key: memory, blocks, tokens, concurrency, needed or block_size, in both languages.

    logged, computed: as text; logged_value, computed_value: in `unit`, as numbers, or [least, most]. tests_model: could
    another model make it differ? explained: it differs, by as much as the notes say. undecided: it differs, by what another rank,
    which did not print its memory, or another model would both explain.
    """

    key: str
    label: str
    unit: str
    logged: str
    formula: str
    computed: str
    agree: bool
    logged_value: Number
    computed_value: Number
    tests_model: bool = False
    explained: bool = False
    undecided: bool = False

    @property
    def verdict(self) -> str:
        """In words, in the current language."""
        if self.undecided:
            return T("無法判斷", "cannot tell")
        if self.explained:
            return T("有解釋", "explained")
        return T("相符", "agree") if self.agree else T("不符", "differ")


def verdict(checks: Iterable[Check]) -> str:
    """follows, explained, untested (the log agrees with itself, and would with other models), undecided or differs."""
    checks = list(checks)
    if not all(check.agree or check.explained or check.undecided for check in checks):
        return "differs"
    if any(check.undecided for check in checks):
        return "undecided"
    if not any(check.tests_model for check in checks):
        return "untested"
    return "follows" if all(check.agree for check in checks) else "explained"


def _interval(text: str, block: int) -> range:
    """The whole blocks that may be in a printed GiB."""
    middle = Fraction(text)
    return range(max(0, int((middle - HALF) * GiB // block)), int((middle + HALF) * GiB // block) + 1)


def pool_blocks(x: Reading, lines: Lines) -> int | None:
    """The number of blocks that explains most of the log, None where it does not tell."""
    return max(x.candidates(lines), key=lambda n: sum(c.agree for c in pool_checks(x, lines, n)), default=None)


def pool_checks(x: Reading, lines: Lines, n: int | None) -> list[Check]:
    """The log against a pool of n blocks."""
    checks = [_block_size(x, lines)] if lines.attention_block is not None else []
    if lines.memory is not None and n is not None:
        checks.append(_blocks(x, lines, n))
    shaped = x.counting.evenly and (x.groups, x.per_request) != (1, -(-x.ask.max_model_len // x.size))
    both = shaped and None not in (lines.tokens, lines.concurrency)  # then their ratio is the model's
    if lines.tokens is not None:
        times = lines.context_parallel or 1
        formula, tokens = x.token_formula(n) + (f" × {times}" if times > 1 else ""), times * x.tokens(n)
        checks.append(Check("tokens", T("token 數", "tokens"), "tokens", f"{lines.tokens:,}", formula, f"{tokens:,}",
                            lines.tokens == tokens, lines.tokens, tokens, both))  # fmt: skip
    if lines.concurrency is not None and not lines.context_parallel:
        requests = f"{x.requests(n):.2f}"
        checks.append(Check("concurrency", T("並行數", "concurrency"), "requests", lines.concurrency, x.request_formula(n),
                            requests, lines.concurrency == requests, float(lines.concurrency), float(requests), both))  # fmt: skip
    return [*checks, _needed(x, lines)] if lines.needed is not None else checks


def _block_size(x: Reading, lines: Lines) -> Check:
    return Check("block_size", T("每塊 token", "tokens per block"), "tokens", f"{lines.attention_block:,}", x.unit,
                 f"{x.size:,}", lines.attention_block == x.size, lines.attention_block, x.size, tests_model=True)  # fmt: skip


def _blocks(x: Reading, lines: Lines, n: int) -> Check:
    fits = _interval(lines.memory, x.block)
    source = "" if lines.blocks is not None else T("（反推）", " (as printed)")
    return Check("blocks", T("區塊", "blocks") + source, "blocks", f"{n:,}", f"{lines.memory} GiB / {x.block:,} B",
                 f"{fits[0]:,}" + (f"–{fits[-1]:,}" if len(fits) > 1 else ""), n in fits, n, [fits[0], fits[-1]],
                 tests_model=lines.override != n,
                 explained=n not in fits and lines.override == n,
                 undecided=lines.override != n and less_on_another_rank(x, lines, n))  # fmt: skip


def _needed(x: Reading, lines: Lines) -> Check:
    need = Fraction(x.per_request * x.block, GiB)
    agree = _printed_as(lines.needed, need)
    return Check("needed", T("一個請求", "one request"), "GiB", f"{lines.needed} GiB", f"{x.per_request:,} × {x.block:,} B",
                 f"{float(need):.2f} GiB", agree, float(lines.needed), round(float(need), 2), tests_model=True,
                 explained=not agree and needed_by_all_stages(x, lines) is not None)  # fmt: skip


def _printed_as(text: str, gib: Fraction) -> bool:
    return abs(gib - Fraction(text)) <= HALF


def less_on_another_rank(x: Reading, lines: Lines, n: int | None) -> bool:
    """May n blocks be less than the printed memory because a rank that did not print its own has a little less?"""
    if n is None or lines.memory is None or lines.memories >= x.ask.tp * x.ask.pp:
        return False
    held = Fraction(n * x.block, GiB)
    return Fraction(lines.memory) * (1 - SPREAD) <= held < Fraction(lines.memory) - HALF


def needed_by_all_stages(x: Reading, lines: Lines) -> Fraction | None:
    """GiB of one request in all pipeline stages together, where the log's “needed” is that and not one stage's."""
    if x.ask.pp == 1 or lines.needed is None:
        return None
    one_stage = replace(x.ask, pp=1)
    need = Fraction(x.per_request * pool_block(one_stage, cache_groups(one_stage))[1], GiB)
    return need if _printed_as(lines.needed, need) else None


def budget_check(lines: Lines) -> list[Check]:
    """The memory left for the cache, out of what the profiling run found."""
    used = [n for n in (lines.peak or lines.weights, lines.activations, lines.non_torch) if n is not None]
    if None in (lines.total, lines.utilization, lines.memory, lines.peak or lines.weights):
        return []
    share = Fraction(lines.utilization)
    left = Fraction(lines.total) * share - sum(map(Fraction, used))
    off = HALF * (share + len(used) + 1)  # every printed GiB may be half a step off
    formula = " − ".join([f"{lines.total} × {lines.utilization}", *used])
    return [Check("memory", T("留給快取", "left for the cache"), "GiB", f"{lines.memory} GiB", formula,
                  f"{float(left):.2f} GiB", abs(left - Fraction(lines.memory)) <= off, float(lines.memory),
                  round(float(left), 2))]  # fmt: skip
