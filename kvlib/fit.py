"""The inverse of the formula: how long, how many, on how few cards.

    bytes(N) = constant + Σ over layers of  min(N, cap) · bytes per token

grows by straight pieces that bend where a window or chunk is full, so the longest N is found piece by piece, exactly.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kvlib.budget import Budget, memory_budget, splits
from kvlib.errors import whole
from kvlib.hardware import GPU, load_gpu
from kvlib.kv_formats import token_bytes
from kvlib.memory import kv_growth
from kvlib.spec import ModelSpec

UTILIZATIONS = (1.0, 0.92, 0.9)
"""Everything, and vLLM's default since 0.17 and before."""

MOST_CARDS = 1024
"""Where the search ends for a model without heads, which any number of cards can share."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read the size of a card, and the ledger under it."""

    capacity: str
    utilization: float
    budget: Budget


def longest(spec: ModelSpec, nbytes: int, batch: int = 1, kv_dtype: object = "bf16", tp: int = 1) -> int | None:
    """The most tokens that each of `batch` sequences can have when their cache may take `nbytes` on one of `tp` ranks.

    0 when not one token fits; None when any length does: every layer has a window, a chunk or a state.

    >>> from kvlib import GiB, load_spec
    >>> longest(load_spec("llama-2-70b"), 10 * GiB)
    32768

    Raises SpecError as `kv_bytes` does, and for negative bytes.
    """
    growth = kv_growth(spec, kv_dtype, tp)
    room = whole("nbytes", nbytes, 0) // whole("batch", batch) - growth.constant
    if room < 0:
        return 0
    start, slope = 0, growth.per_token_early
    for cap, stops in _bends(spec, kv_dtype, tp):
        piece = slope * (cap - start)
        if piece > room:
            break
        room, start, slope = room - piece, cap, slope - stops
    return start + room // slope if slope else None


def _bends(spec: ModelSpec, kv_dtype: object, tp: int) -> Iterator[tuple[int, int]]:
    """Each length at which layers stop growing, and the bytes per token that stop there, the shortest first."""
    stops = Counter()
    for layer in spec.layers:
        if layer.cap:  # a window of 0 never grows
            stops[layer.cap] += token_bytes(layer, kv_dtype, tp)
    yield from sorted(stops.items())


def longest_sequence(budget: Budget, sequences: int = 1, block_size: int = 1) -> int | None:
    """The most tokens that each of `sequences` can have beside the weights, in whole blocks; 0 and None as in `longest`."""
    per_card = max(0, budget.left_for_kv) // budget.n_gpus
    found = longest(budget.spec, per_card, sequences, budget.kv_dtype, budget.n_gpus)
    return found and found - found % whole("block_size", block_size)


def fewest_cards(spec: ModelSpec, gpu: str | GPU, n_tokens: int, sequences: int = 1, block_size: int = 1,
                 **options: object) -> int | None:  # fmt: skip
    """The smallest number of cards that holds `sequences` of `n_tokens`, among those that the heads can be split over.

    options: those of `memory_budget`, such as utilization=0.9. None when no such number of cards is enough.

    >>> from kvlib import load_spec
    >>> fewest_cards(load_spec("llama-2-70b"), "h100-80gb", 4096, sequences=32)
    4

    Raises SpecError as `memory_budget` does.
    """
    whole("sequences", sequences)
    for n in range(1, (spec.n_heads or MOST_CARDS) + 1):
        if splits(spec, n) and memory_budget(spec, gpu, n, **options).max_sequences(n_tokens, block_size) >= sequences:
            return n
    return None


def readings(spec: ModelSpec, gpu: str | GPU, n_gpus: int = 1, utilizations: Iterable[float] = UTILIZATIONS,
             **options: object) -> list[Reading]:  # fmt: skip
    """The ledger of `memory_budget` under every reading of the cards' size that is known, the smallest capacity first.

    Raises SpecError as `memory_budget` does.
    """
    return [
        Reading(capacity, utilization, memory_budget(spec, gpu, n_gpus, capacity=capacity, utilization=utilization, **options))
        for capacity in sorted(load_gpu(gpu).capacities, key=load_gpu(gpu).capacity)
        for utilization in utilizations
    ]
