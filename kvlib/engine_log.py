"""Does what vLLM prints when it starts follow from the model? Line by line, with the arithmetic.

A printed GiB is an interval: 3.81 is anything from 3.805 to 3.815. The log follows when one number of blocks in that
interval gives all the numbers that it prints.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from kvlib.engines import ENGINES
from kvlib.engines.log_lines import Lines, read_lines
from kvlib.engines.log_notes import COUNTINGS, Counting, misleading
from kvlib.engines.plan import Ask, checked
from kvlib.engines.vllm import allowance, cache_groups, pool_block
from kvlib.errors import SpecError
from kvlib.i18n import T
from kvlib.readers import load_spec
from kvlib.spec import ModelSpec
from kvlib.units import GiB

HALF = Fraction(5, 1000)
"""vLLM prints GiB with two decimals."""


@dataclass(frozen=True, slots=True)
class Check:
    """One number of the log. key: the same in both languages. verdict: agree or differ."""

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


@dataclass(frozen=True)
class Explanation:
    """The answer of `explain_log`. notes: what a reader of this log may take for something else."""

    model: str
    version: str
    ask: Ask
    block: str
    checks: tuple[Check, ...]
    notes: tuple[str, ...]
    lines: Lines

    @property
    def follows(self) -> bool:
        """Do all numbers of the log follow from the model?"""
        return all(check.agree for check in self.checks)

    def as_dict(self) -> dict:
        """For JSON. label, formula and notes are in the current language."""
        keys = ("key", "label", "logged", "formula", "computed", "agree")
        return {
            "model": self.model, "version": self.version, "follows": self.follows, "block": self.block,
            "tp": self.ask.tp, "pp": self.ask.pp, "kv_dtype": str(self.ask.kv_dtype), "block_size": self.ask.block_size,
            "max_num_batched_tokens": self.ask.max_num_batched_tokens, "max_model_len": self.ask.max_model_len,
            "prefix_caching": self.ask.prefix_caching, "hybrid": self.ask.hybrid,
            "checks": [{key: getattr(check, key) for key in keys} for check in self.checks],
            "notes": list(self.notes), "lines": dict(self.lines.values),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reading:
    """One way in which a version of vLLM may have come to the log's numbers."""

    ask: Ask
    counting: Counting
    block: int
    unit: str
    groups: int
    size: int  # tokens per block, the smallest of all groups
    per_request: int

    def tokens(self, n: int) -> int:
        """The tokens that vLLM prints for a pool of n blocks."""
        return self.counting.tokens(n, self)

    def concurrency(self, n: int) -> str:
        """The requests that it prints."""
        return f"{self.counting.concurrency(n, self):.2f}"


def explain_log(text: str, model: object = None, **given: object) -> Explanation:
    """Compare the start-up log of a vLLM engine with what follows from the model.

    text: the log, or a part of it. model: as for `load_spec`; None takes the name in the log. given: what the log does
    not say: kv_dtype, tp, pp, block_size, max_num_batched_tokens.

    Raises SpecError when the text has no line about the cache, or the model is not known.
    """
    if not isinstance(text, str):
        raise SpecError(f"text is {type(text).__name__}; expected the log as text")
    lines = read_lines(text)
    if not any(name in lines.values for name in ("blocks", "tokens", "concurrency", "memory", "needed")):
        raise SpecError("no line of a vLLM start-up log about its cache in this text; expected one of: # GPU blocks, GPU KV "
                        "cache size, Maximum concurrency, Available KV cache memory, Memory profiling results")  # fmt: skip
    spec = _spec(model, lines)
    readings = _readings(spec, lines, given)
    best = max(readings, key=lambda reading: _score(reading, lines))
    checks = (*_budget(lines), *_checks(best, lines))
    notes = misleading(lines, best, _blocks(best, lines))
    return Explanation(spec.name, lines.version or "", best.ask, f"{best.unit} = {best.block:,} B", checks, notes, lines)


def _spec(model: object, lines: Lines) -> ModelSpec:
    if model is not None:
        return load_spec(model)
    if lines.model is None:
        raise SpecError("the log does not name its model; give model=, or --model")
    try:
        return load_spec(lines.model)
    except SpecError as error:
        raise SpecError(f"the log's model {lines.model!r} is not known here ({error}); give model=, or --model") from error


def _readings(spec: ModelSpec, lines: Lines, given: dict) -> list[Reading]:
    """The ways that fit the version and the wording of the log, the most usual one first."""
    known = {"kv_dtype", "tp", "pp", "block_size", "max_num_batched_tokens"}
    if unknown := sorted(set(given) - known):
        raise SpecError(f"there is no option {unknown[0]!r}; expected one of {', '.join(sorted(known))}")
    given = {name: value for name, value in given.items() if value is not None}
    kv_dtype = lines.kv_dtype if lines.kv_dtype not in (None, "auto") else (lines.dtype or "bf16")
    longest = lines.length or lines.needed_for or lines.max_seq_len or spec.max_position_embeddings or 1
    usual = {"kv_dtype": kv_dtype, "tp": lines.tp or 1, "pp": lines.pp or 1, "block_size": lines.block_size,
             "max_num_batched_tokens": lines.max_num_batched_tokens}  # fmt: skip
    ask = Ask(spec, longest, max_model_len=longest, **(usual | given))
    steps = [ask.max_num_batched_tokens] if ask.max_num_batched_tokens else [8192, 2048, 16384, 512]
    prefix = [lines.prefix_caching] if lines.prefix_caching is not None else [True, False]
    found = {}
    for counting in [c for c in COUNTINGS if c.fits(lines)]:
        hybrid = [False] if lines.hybrid_off or not counting.hybrid else [True, False]
        for step, keep, apart in product(steps, prefix, hybrid):
            options = replace(ask, max_num_batched_tokens=step, prefix_caching=keep, hybrid=apart)
            reading = _reading(checked(options, ENGINES["vllm"]), counting)
            found.setdefault((counting.name, reading.block, reading.groups, reading.size, reading.per_request), reading)
    return list(found.values())


def _reading(ask: Ask, counting: Counting) -> Reading:
    groups = cache_groups(ask)
    if not groups:
        raise SpecError(f"{ask.spec.name} keeps no cache, so this log cannot be its own; give another model")
    _, block, unit = pool_block(ask, groups)
    flying = ask.max_num_batched_tokens * (ask.pp + 1 if counting.ahead else 1)
    per_request = sum(allowance(group[0][1], ask.max_model_len, flying)[0] for group in groups)
    sizes = [c.block_size for group in groups for _, c in group if c.kind != "state"]
    return Reading(ask, counting, block, unit, len(groups), min(sizes, default=ask.block_size), per_request)


def _interval(text: str, block: int) -> range:
    """Whole blocks in a printed GiB."""
    middle = Fraction(text)
    return range(int((middle - HALF) * GiB // block), int((middle + HALF) * GiB // block) + 1)


def _candidates(reading: Reading, lines: Lines) -> range:
    """The numbers of blocks that the log leaves open."""
    if lines.blocks is not None:
        return range(lines.blocks, lines.blocks + 1)
    if lines.tokens is not None:
        return reading.counting.blocks(_tokens(lines), reading)
    return _interval(lines.memory, reading.block) if lines.memory else range(1)


def _tokens(lines: Lines) -> int:
    return lines.tokens // (lines.context_parallel or 1)


def _blocks(reading: Reading, lines: Lines) -> int:
    """The number of blocks that explains most of the log."""
    return max(_candidates(reading, lines), key=lambda n: sum(c.agree for c in _checks(reading, lines, n)), default=0)


def _score(reading: Reading, lines: Lines) -> int:
    checks = _checks(reading, lines)
    return sum(check.agree for check in checks) - len(checks)


def _checks(reading: Reading, lines: Lines, n: int | None = None) -> list[Check]:
    n = _blocks(reading, lines) if n is None else n
    checks = []
    if lines.attention_block is not None:
        size = reading.size
        checks.append(_check("block_size", T("區塊大小", "block size"), f"{lines.attention_block:,}", reading.unit, f"{size:,}"))
    if lines.memory is not None and n:
        fits = _interval(lines.memory, reading.block)
        label = T("區塊", "blocks")
        checks.append(Check("blocks", label, f"{n:,}", f"{lines.memory} GiB / {reading.block:,} B",
                            f"{fits[0]:,}" if len(fits) == 1 else f"{fits[0]:,}–{fits[-1]:,}", n in fits))  # fmt: skip
    if lines.tokens is not None:
        times = lines.context_parallel or 1
        formula = reading.counting.token_formula(n, reading) + (f" × {times}" if times > 1 else "")
        checks.append(_check("tokens", T("token", "tokens"), f"{lines.tokens:,}", formula, f"{times * reading.tokens(n):,}"))
    if lines.concurrency is not None:
        formula = reading.counting.concurrency_formula(n, reading)
        checks.append(_check("concurrency", T("並行請求", "concurrency"), lines.concurrency, formula, reading.concurrency(n)))
    if lines.needed is not None:
        need = Fraction(reading.per_request * reading.block, GiB)
        checks.append(Check("needed", T("一個請求", "one request"), f"{lines.needed} GiB",
                            f"{reading.per_request:,} × {reading.block:,} B", f"{float(need):.2f} GiB",
                            abs(need - Fraction(lines.needed)) <= HALF))  # fmt: skip
    return checks


def _check(key: str, label: str, logged: str, formula: str, computed: str) -> Check:
    return Check(key, label, logged, formula, computed, logged == computed)


def _budget(lines: Lines) -> list[Check]:
    """The memory left for the cache, out of what the profiling run found."""
    used = [v for v in (lines.weights, lines.peak, lines.activations, lines.non_torch) if v is not None]
    if None in (lines.total, lines.utilization, lines.memory) or not used or lines.peak is None and lines.weights is None:
        return []
    share = Fraction(lines.utilization)
    left = Fraction(lines.total) * share - sum(map(Fraction, used))
    off = HALF * (share + len(used) + 1)  # every printed number may be half a step off
    formula = f"{lines.total} × {lines.utilization} − " + " − ".join(used)
    return [Check("memory", T("留給快取", "left for the cache"), f"{lines.memory} GiB", formula, f"{float(left):.2f} GiB",
                  abs(left - Fraction(lines.memory)) <= off)]  # fmt: skip
