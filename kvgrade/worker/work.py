"""Work, counted: multiplications, bytes that tensor operations write, and lines of the answer that run. Never the clock.

The count is made in the answer's own process, and whoever sets out to can work uncounted (in another thread, in a loop inside
C). It decides the efficiency property alone: values are judged elsewhere.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

# in-place operations that return all of a tensor and write as much of it as the argument at this place holds
WRITES_A_PART = {torch.ops.aten.index_put_: 2, torch.ops.aten._index_put_impl_: 2, torch.ops.aten.index_copy_: 3,
                 torch.ops.aten.scatter_: 3}  # fmt: skip
LIBRARIES = tuple({sys.prefix, sys.base_prefix, os.path.dirname(os.path.dirname(torch.__file__)), os.path.dirname(__file__),
                   "<frozen"})  # lines of code that stands there do not count; everything else is the answer's


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
        if (place := WRITES_A_PART.get(packet)) is not None and len(args) > place and isinstance(args[place], torch.Tensor):
            self.work.bytes_written += args[place].numel() * out.element_size()
        elif not func.is_view:
            outs = out if isinstance(out, (tuple, list)) else (out,)
            self.work.bytes_written += sum(prod(o.shape) * o.element_size() for o in outs if isinstance(o, torch.Tensor))
        return out


@contextmanager
def counting(what: dict) -> Iterator[Work]:
    """Count while the block runs. `what`: {"lines": n} also counts lines and stops the answer after n of them."""
    work, limit = Work(), what.get("lines")

    def trace(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename.startswith(LIBRARIES):
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
        torch.empty(0)  # the first operation under a mode imports torch._dynamo, with thousands of lines that have no file
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            yield work
        finally:
            sys.settrace(before)
