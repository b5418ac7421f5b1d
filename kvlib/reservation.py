"""Contiguous reservation under simulated traffic: where the KV slots of a card go.

Before paging, an engine gave each request one contiguous run of slots, sized before its length was known. This replays
that: requests queue first-in-first-out, each is placed in the first gap that is large enough, writes one token per step,
and leaves when done. One slot holds K and V of one token.

Invariant: at every step tokens + later + never + holes = all slots.
"""

import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass

from kvlib.errors import SpecError, whole


@dataclass(frozen=True, slots=True)
class Request:
    """Token counts of a prompt and of the answer that will be generated to it."""

    prompt: int
    output: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Shares of all slots, averaged over the steps with a full queue.

    tokens: hold a token. later: reserved and used before the request ends. never: reserved and never used.
    holes: free, but no gap is large enough for the next request.
    """

    tokens: float
    later: float
    never: float
    holes: float


def chat_traffic(n_requests: int, seed: int, median_prompt: int = 120, median_output: int = 200,
                 spread: float = 1.0, max_len: int = 4096) -> list[Request]:  # fmt: skip
    """Random requests with log-normal lengths: many short ones, a few long ones, none above `max_len` in total."""
    draw = random.Random(seed)

    def length(median: int) -> int:
        return min(max(1, round(median * draw.lognormvariate(0, spread))), max_len // 2)

    return [Request(length(median_prompt), length(median_output)) for _ in range(n_requests)]


def reserve_max(max_len: int) -> Callable[[Request], int]:
    """Every request gets the longest context that is allowed."""
    return lambda _request: max_len


def reserve_power_of_two(request: Request) -> int:
    """The final length rounded up to a power of two: an engine that can guess it within a factor of two."""
    return 1 << (request.prompt + request.output - 1).bit_length()


def reserve_exact(request: Request) -> int:
    """The final length itself: an oracle that knows how long the answer will be."""
    return request.prompt + request.output


@dataclass(slots=True)
class _Running:
    start: int
    size: int
    request: Request
    generated: int = 0


def simulate(requests: Iterable[Request], slots: int, reserve: Callable[[Request], int]) -> Usage:
    """Serve `requests` from `slots` token slots and say where the slots were, while requests were still waiting.

    Raises SpecError when a request would reserve more than all slots, or less than it needs, or when the queue is never
    full (too few requests to say anything).
    """
    whole("slots", slots)
    queue, running, samples = deque(requests), [], []
    while queue:
        while queue and (start := _first_fit(running, size := _size(reserve, queue[0], slots), slots)) is not None:
            running.append(_Running(start, size, queue.popleft()))
            running.sort(key=lambda r: r.start)
        if queue:
            samples.append(_shares(running, slots))
        for r in running:
            r.generated += 1
        running = [r for r in running if r.generated < r.request.output]
    if not samples:
        raise SpecError(f"all requests fit into {slots} slots at once; give more requests or fewer slots")
    return Usage(*(sum(column) / len(samples) for column in zip(*samples, strict=True)))


def _size(reserve: Callable[[Request], int], request: Request, slots: int) -> int:
    size, needed = reserve(request), request.prompt + request.output
    if not needed <= size <= slots:
        raise SpecError(f"a request of {needed} tokens reserves {size} of {slots} slots; expected at least {needed} and "
                        f"at most {slots}")  # fmt: skip
    return size


def _first_fit(running: list[_Running], size: int, slots: int) -> int | None:
    """Start of the first gap of `size` slots between the running requests, which are sorted by start."""
    gap = 0
    for r in running:
        if r.start - gap >= size:
            return gap
        gap = r.start + r.size
    return gap if slots - gap >= size else None


def _shares(running: list[_Running], slots: int) -> tuple[float, ...]:
    tokens = sum(r.request.prompt + r.generated for r in running)
    needed = sum(r.request.prompt + r.request.output for r in running)
    reserved = sum(r.size for r in running)
    usage = Usage(tokens, needed - tokens, reserved - needed, slots - reserved)
    return tuple(n / slots for n in astuple(usage))
