"""Work, counted: multiplications, bytes that tensor operations write, and lines of the answer that run. Never the clock.

The count is made in the answer's own process. It decides the efficiency property alone: values are judged elsewhere.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

OWN = ("__answer__", "__main__")  # modules whose lines count: the answer, graded apart or in a notebook


class TooMuchWork(RuntimeError):
    """The answer ran more of its own lines than the check allows."""


@dataclass
class Work:
    """flops: of matrix products, 2 per multiply-add. bytes_written: of the results of operations that are no views.
    lines: of the answer's own source that ran (only when asked for)."""

    flops: int = 0
    bytes_written: int = 0
    lines: int = 0

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


class _Counter(TorchDispatchMode):
    def __init__(self, work: Work) -> None:
        super().__init__()
        self.work = work

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        packet = func._overloadpacket
        if packet in flop_registry:
            self.work.flops += int(flop_registry[packet](*args, **(kwargs or {}), out_val=out))
        if not func.is_view:
            outs = out if isinstance(out, (tuple, list)) else (out,)
            self.work.bytes_written += sum(prod(o.shape) * o.element_size() for o in outs if isinstance(o, torch.Tensor))
        return out


@contextmanager
def counting(what: dict) -> Iterator[Work]:
    """Count while the block runs. `what`: {"lines": n} also counts lines and stops the answer after n of them."""
    work, limit = Work(), what.get("lines")

    def trace(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_globals.get("__name__") not in OWN:
            return None
        if event == "line":
            work.lines += 1
            if work.lines > limit:
                raise TooMuchWork(f"more than {limit:,} lines")
        return trace

    with _Counter(work):
        if limit is None:
            yield work
            return
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            yield work
        finally:
            sys.settrace(before)
