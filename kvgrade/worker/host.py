"""Holds one answer and does what the grader asks of it: load, call, get, hold. Knows no test and gives no verdict.

Used in the answer's own process (levels 1 and 2) and in the notebook's kernel (level 0).
"""

import linecache
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch

from kvgrade.worker import wire
from kvgrade.worker.work import counting

ANSWER = "<your answer>"
GIVEN = "<given>"


class NameMissing(NameError):
    """The answer does not define the name that is asked for: its text."""


class Host:
    """Objects by number, and the names that the answer's source defined.

    A request is {"op": …} with packed arguments; the reply {"value": …} or {"error": …}. Whatever the answer raises becomes a
    reply, SystemExit and KeyboardInterrupt included.
    """

    def __init__(self, names: dict[str, Any] | None = None) -> None:
        self.names: dict[str, Any] = names if names is not None else {"__name__": "__answer__"}
        self._kept: dict[int, Any] = {}

    def handle(self, request: dict, blobs: list[bytes]) -> tuple[dict, list[bytes]]:
        """The reply to one request."""
        try:
            do: Callable[..., tuple[Any, dict]] = {"load": self._load, "call": self._call, "get": self._get,
                                                   "hold": self._hold}[request["op"]]  # fmt: skip
            value, extra = do(request, blobs)
            data, out = wire.pack(value, self._keep)
            return {"value": data, **extra}, out
        except wire.WireError as error:
            return {"error": {"type": "WireError", "bases": ["WireError"], "text": str(error), "trace": ""}}, []
        except BaseException as error:
            return {"error": describe(error)}, []

    def _load(self, request: dict, blobs: list[bytes]) -> tuple[Any, dict]:
        """Run source text: {"source": …, "file": ANSWER or GIVEN}. Its definitions become callable by name."""
        source, file = request["source"], request["file"]
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        exec(compile(source, file, "exec"), self.names)
        return None, {}

    def _call(self, request: dict, blobs: list[bytes]) -> tuple[Any, dict]:
        """{"target": name or packed Ref, "method": name or None, "args", "kwargs", "keep", "count"}."""
        target = request["target"]
        if isinstance(target, str):
            if target not in self.names:
                raise NameMissing(target)
            function = self.names[target]
        else:
            function = self._resolve(wire.unpack(target, blobs))
        if request.get("method"):
            function = getattr(function, request["method"])
        args, kwargs = (wire.unpack(request[key], blobs, self._resolve) for key in ("args", "kwargs"))
        work = None
        with ExitStack() as around:
            if isinstance(getattr(function, "__self__", None), torch.Tensor):  # a test pokes at a tensor, however it was made
                around.enter_context(torch.inference_mode())
            if request.get("count"):
                work = around.enter_context(counting(request["count"]))
            value = function(*args, **kwargs)
        return (self._keep(value) if request.get("keep") else value), {"work": work.as_dict()} if work else {}

    def _get(self, request: dict, blobs: list[bytes]) -> tuple[Any, dict]:
        """{"target": packed Ref, "path": [["attr", name] or ["item", key], …]}: the value at the end of the path."""
        value = self._resolve(wire.unpack(request["target"], blobs))
        for kind, key in request["path"]:
            value = getattr(value, key) if kind == "attr" else value[key]
        return value, {}

    def _hold(self, request: dict, blobs: list[bytes]) -> tuple[Any, dict]:
        """{"value": packed}: keep it here, and give a Ref."""
        return self._keep(wire.unpack(request["value"], blobs, self._resolve)), {}

    def _keep(self, value: Any) -> wire.Ref:
        number = len(self._kept)
        self._kept[number] = value
        return wire.Ref(number, type(value).__name__[:100])

    def _resolve(self, ref: wire.Ref) -> Any:
        return self._kept[ref.id]


def describe(error: BaseException) -> dict:
    """An exception as data: its class and bases by name, its text, and the frames that are the answer's own."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in (ANSWER, GIVEN)]
    if isinstance(error, SyntaxError) and error.filename == ANSWER:
        trace = "".join(traceback.format_exception_only(error))
    else:
        trace = "".join(traceback.format_list(frames[-5:]))
    try:
        text = str(error)
    except BaseException:
        text = ""
    bases = [base.__name__ for base in type(error).__mro__ if base is not object]
    return {"type": type(error).__name__[:100], "bases": bases[:20], "text": text[:500], "trace": trace[-4000:]}
