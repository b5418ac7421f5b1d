"""How versions of vLLM count tokens and requests for their log, and the ways in which a log may have come about."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from math import ceil, floor

from kvlib.engines import ENGINES
from kvlib.engines.log_lines import Lines
from kvlib.engines.options import checked
from kvlib.engines.plan import Ask
from kvlib.engines.vllm import allowance, cache_groups, pool_block, stored
from kvlib.errors import SpecError

STEPS = (8192, 2048, 16384, 1024, 4096, 512)
"""max_num_batched_tokens to try when the log does not print it: defaults of several versions and cards first."""


@dataclass(frozen=True, slots=True)
class Counting:
    """One way to count. first, last: the versions (major, minor) that count so.

    v1: is it the engine of 0.9 and later? There windows keep less, groups of layers share the blocks, one of which is never
    handed out, and the number of blocks is not printed. ahead: does a window keep the tokens of more than one step in flight?
    evenly: are the tokens those of blocks shared evenly among the groups, whatever a request takes?
    """

    name: str
    first: tuple[int, int]
    last: tuple[int, int]
    v1: bool
    ahead: bool
    evenly: bool
    tokens: Callable[[int, "Reading"], int]
    token_formula: Callable[[int, "Reading"], str]

    def fits(self, lines: Lines) -> bool:
        """Could the log be of a version that counts so? Its wording decides, then its version."""
        if lines.blocks is not None:  # printed up to 0.8 alone, and by the old engine as long as it was there
            return not self.v1
        if lines.version is None:
            return self.ahead or not lines.one_line
        major, minor = re.match(r"(\d+)\.(\d+)", lines.version).groups()  # of 0.10rc1: 0 and 10
        return self.first <= (int(major), int(minor)) <= self.last


@dataclass(frozen=True, slots=True)
class Reading:
    """One way in which vLLM may have come to the log's numbers.

    block: bytes of one block of the pool, unit: how they come about. groups: of layers. size: tokens per block, the
    fewest of all groups. per_request: blocks of a request of max_model_len.
    """

    ask: Ask
    counting: Counting
    block: int
    unit: str
    groups: int
    size: int
    per_request: int

    def tokens(self, n: int) -> int:
        """The tokens that vLLM prints for a pool of n blocks."""
        return self.counting.tokens(n, self)

    def token_formula(self, n: int) -> str:
        """The same as arithmetic."""
        return self.counting.token_formula(n, self)

    def requests(self, n: int) -> float:
        """The requests of max_model_len that it prints."""
        return n / self.per_request if self.counting.v1 else n * self.size / self.ask.max_model_len

    def request_formula(self, n: int) -> str:
        """The same as arithmetic."""
        if self.counting.v1:
            return f"{n:,} / {self.per_request:,}"
        return f"{n:,} × {self.size} / {self.ask.max_model_len:,}"

    def candidates(self, lines: Lines) -> range:
        """The numbers of blocks that give the printed blocks, tokens or requests, whichever the log has first."""
        if lines.blocks is not None:
            return range(lines.blocks, lines.blocks + 1)
        if lines.tokens is not None:
            return self._with_tokens(lines.tokens // (lines.context_parallel or 1))
        if lines.concurrency is not None:
            one, requests = self.requests(1), float(lines.concurrency)
            first, last = max(0, ceil((requests - 0.005) / one)), floor((requests + 0.005) / one)
            return range(first, min(last, first + 999) + 1) or range(last, first + 1)  # or the two nearest
        return range(0)

    def _with_tokens(self, tokens: int) -> range:
        """All pools that print `tokens`, or the largest that prints fewer: their tokens grow with their blocks."""
        low, high = 0, max(1, tokens) * self.groups * self.per_request + 1
        while low < high:  # the first that prints at least `tokens`
            middle = (low + high) // 2
            low, high = (low, middle) if self.tokens(middle) >= tokens else (middle + 1, high)
        end = low
        while self.tokens(end) == tokens:
            end += 1
        return range(low, end) if end > low else range(max(0, low - 1), low)


def _capacity(n: int, x: Reading) -> int:
    return int(x.requests(n) * x.ask.max_model_len)


def _capacity_formula(n: int, x: Reading) -> str:
    return f"⌊{n:,} / {x.per_request:,} × {x.ask.max_model_len:,}⌋"


COUNTINGS = (
    Counting("plain", (0, 0), (0, 8), False, False, False, lambda n, x: n * x.size, lambda n, x: f"{n:,} × {x.size}"),
    Counting("shared", (0, 9), (0, 23), True, False, True, lambda n, x: n // x.groups * x.size,
             lambda n, x: f"{n:,} × {x.size}" if x.groups == 1 else f"⌊{n:,} / {x.groups}⌋ × {x.size:,}"),
    Counting("capacity", (0, 21), (0, 27), True, False, False, _capacity, _capacity_formula),
    Counting("ahead", (0, 25), (9, 0), True, True, False, _capacity, _capacity_formula),
)  # fmt: skip
"""Read in vLLM 0.5.4, 0.6.3, 0.6.4, 0.6.6, 0.7.3, 0.8.5, 0.9.2, 0.10.2, 0.11.2, 0.14.0, 0.18.0, 0.20.0, 0.24.0, 0.28.0
and 0.33.0: v1/core/kv_cache_utils.py, and executor/ before it. Versions between two that differ may count as either."""


def readings(ask: Ask, lines: Lines) -> list[Reading]:
    """The ways that fit the version and the wording of the log, the most usual one first."""
    steps = [ask.max_num_batched_tokens] if ask.max_num_batched_tokens else STEPS
    prefix = [True, False] if lines.prefix_caching is None else [lines.prefix_caching]
    formats = dict.fromkeys((stored(ask).kv_dtype, ask.kv_dtype))  # which one, the cards decide
    found = {}
    for counting in (c for c in COUNTINGS if c.fits(lines)):
        hybrid = [False] if lines.hybrid_off or not counting.v1 else [True, False]
        for kept, apart, keep, step in product(formats, hybrid, prefix, steps):
            options = replace(ask, kv_dtype=kept, max_num_batched_tokens=step, prefix_caching=keep, hybrid=apart)
            reading = _reading(checked(options, ENGINES["vllm"]), counting)
            found.setdefault((counting, reading.block, reading.groups, reading.size, reading.per_request), reading)
    if not found:
        raise SpecError(f"the log is of vLLM {lines.version}, and kvlib does not know how that version counts")
    return list(found.values())


def _reading(ask: Ask, counting: Counting) -> Reading:
    groups = cache_groups(ask)
    if not groups:
        raise SpecError(f"{ask.spec.name} keeps no cache, so this log cannot be its own; give another model")
    _, block, unit = pool_block(ask, groups)
    steps = None if counting.ahead else 1
    per_request = sum(allowance(group[0][1], ask.max_model_len, ask, steps)[0] for group in groups)
    sizes = [c.block_size for group in groups for _, c in group if c.kind != "state"]
    return Reading(ask, counting, block, unit, len(groups), min(sizes, default=ask.block_size), per_request)
