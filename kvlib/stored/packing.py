"""How many bytes one linear map takes: what every quantisation method here answers."""

from collections.abc import Callable
from dataclasses import dataclass

Bytes = Callable[[int, int], int]
"""Bytes of one linear map from its (out, in)."""

FP32, FP16, INT32, INT64 = 4, 2, 4, 8


@dataclass(frozen=True, slots=True)
class Packing:
    """How a method stores one linear map, which modules it leaves alone, and whether it packs only the experts.

    only: names of the modules that it packs at all; empty: whichever it can.
    """

    matrix: Bytes
    skipped: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    only_experts: bool = False
    head_too: bool = False


def ceil_div(n: int, block: int) -> int:
    """Blocks that hold n."""
    return -(-n // block)


def n_groups(into: int, size: int) -> int:
    """Groups along the input; -1 is one for all of it."""
    return 1 if size == -1 else ceil_div(into, size)
