"""Timing side by side: the competitors take turns, so that a busy machine slows all of them alike. Compare ratios.

Two clocks. With all cores it is the wall clock: what a user waits, and what other programs on the machine disturb. With
one thread it is that thread's CPU time, which stands still while another program has the core: the steadier one.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping

import torch

MIN_ROUNDS, SLOW = 2, 8


def threads() -> Iterator[tuple[int, Callable[[], float]]]:
    """(threads, clock): one thread with its CPU time, then all cores with the wall clock. Sets torch's threads."""
    for n in sorted({1, os.cpu_count() or 1}):
        torch.set_num_threads(n)
        yield n, time.thread_time if n == 1 else time.perf_counter


def take_turns(runs: Mapping[str, Callable[[], object]], clock: Callable[[], float], seconds: float, *, burst: int = 1,
               before: Mapping[str, Callable[[], object]] | None = None) -> dict[str, list[float]]:  # fmt: skip
    """Seconds per call of each of `runs`, warmed up by the caller: MIN_ROUNDS rounds, then about `seconds` of wall time.

    burst: calls in a row per turn; where there are several, the first is not counted, it finds another's data in the
    caches. before: what to do before a turn, off the clock. Each round begins with another one: nobody always comes
    after the same neighbour's data. After MIN_ROUNDS, whoever is SLOW times slower than the first of `runs` drops
    out: the time goes to those that are close.
    """
    taken: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    end, rounds = 0.0, 0
    while rounds < MIN_ROUNDS or time.perf_counter() < end:
        for i in range(len(names)):
            name = names[(i + rounds) % len(names)]
            if before and name in before:
                before[name]()
            times = []
            for _ in range(burst):
                start = clock()
                runs[name]()
                times.append(clock() - start)
            taken[name] += times[1:] or times
        rounds += 1
        if rounds == MIN_ROUNDS:
            end = time.perf_counter() + seconds
            names = [name for name in runs if min(taken[name]) < SLOW * min(taken[names[0]])]
    return taken


def quantiles(times: list[float]) -> dict[str, float]:
    """min, p25 and p50 in milliseconds. The minimum is the least disturbed run."""
    ordered = sorted(times)
    shares = {"min": 0, "p25": 0.25, "p50": 0.5}
    return {name: round(1e3 * ordered[int(share * len(ordered))], 4) for name, share in shares.items()}
