"""The grader's side of one answer: ask it to load, call, get and hold; get values back, never verdicts.

`Session` says what may be asked. `Local` asks a `Host` in this process (level 0, and our own wrong solutions); the sessions of
`remote` ask a process of its own. Arguments and results are copied on the way, also by `Local`: nothing is shared.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from kvgrade.worker import wire
from kvgrade.worker.host import ANSWER, GIVEN, Host
from kvgrade.worker.work import Work


class AnswerRaised(Exception):
    """The answer raised. `type` and `bases`: class names; `text`: its message; `trace`: the answer's own frames."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        self.type, self.text, self.trace = (str(error.get(key, ""))[:5000] for key in ("type", "text", "trace"))
        self.text = " ".join(self.text.split())  # one line: it cannot look like a report
        self.bases = tuple(map(str, error.get("bases", ())))
        super().__init__(f"{self.type}: {self.text}")


class SessionLost(Exception):
    """The answer's process gave no usable reply. `reason`: "died", "timeout", "memory", "protocol" or "too-large"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Transport(Protocol):
    """Carries one request and brings the reply."""

    def ask(self, request: dict, blobs: list[bytes]) -> tuple[dict, list[bytes]]:
        """Raises SessionLost when no usable reply comes."""
        ...

    def close(self) -> None: ...


class Session:
    """What the grader may ask of an answer, over any transport. Every reply is checked for its form before it is used."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def load(self, source: str, file: str = ANSWER) -> None:
        """Run source text. Raises AnswerRaised, SessionLost."""
        self._ask({"op": "load", "source": source, "file": file}, [])

    def call(self, target: "str | wire.Ref", args: tuple = (), kwargs: Mapping[str, Any] | None = None, *,
             method: str | None = None, keep: bool = False, count: dict | None = None) -> tuple[Any, Work | None]:  # fmt: skip
        """Call a name or a kept object's method: its result, and the work when `count` is given. Raises AnswerRaised,
        SessionLost."""
        packed, blobs = wire.pack([target, list(args), dict(kwargs or {})], _ref_of)
        target, args, kwargs = packed["items"]
        request = {"op": "call", "target": target, "method": method, "args": args, "kwargs": kwargs, "keep": keep,
                   "count": count}  # fmt: skip
        return self._ask(request, blobs)

    def get(self, target: wire.Ref, path: list[tuple[str, Any]]) -> Any:
        """The value at the end of a path of attributes and items. Raises AnswerRaised, SessionLost."""
        packed, blobs = wire.pack(target)
        return self._ask({"op": "get", "target": packed, "path": [list(step) for step in path]}, blobs)[0]

    def hold(self, value: Any) -> wire.Ref:
        """Copy a value to the answer's side and keep it there."""
        packed, blobs = wire.pack(value, _ref_of)
        return self._ask({"op": "hold", "value": packed}, blobs)[0]

    def close(self) -> None:
        """End the answer's process, if it has one."""
        self._transport.close()

    def _ask(self, request: dict, blobs: list[bytes]) -> tuple[Any, Work | None]:
        reply, out = self._transport.ask(request, blobs)
        if not isinstance(reply, dict):
            raise SessionLost("protocol")
        if isinstance(error := reply.get("error"), dict):
            if error.get("type") == "WireError":
                raise SessionLost("too-large" if "bytes" in str(error.get("text")) else "protocol")
            raise AnswerRaised(error)
        try:
            value = wire.unpack(reply.get("value"), out)
            work = {k: int(v) for k, v in reply["work"].items() if k in Work.__annotations__} if "work" in reply else None
        except (wire.WireError, AttributeError, TypeError, ValueError):
            raise SessionLost("protocol") from None
        return value, None if work is None else Work(**work)


class Local:
    """A transport to a `Host` in this process. The values are packed and unpacked all the same."""

    def __init__(self, names: dict[str, Any] | None = None) -> None:
        self._host = Host(names)

    def ask(self, request: dict, blobs: list[bytes]) -> tuple[dict, list[bytes]]:
        return self._host.handle(request, blobs)

    def close(self) -> None:
        """Nothing to end."""


def local(source: str, given: str = "") -> Session:
    """A session in this process with `source` loaded: for solutions and wrong solutions of our own, never for a learner's.

    Raises AnswerRaised when the source does.
    """
    session = Session(Local())
    if given:
        session.load(given, GIVEN)
    session.load(source)
    return session


def _ref_of(value: Any) -> wire.Ref:
    ref = getattr(value, "ref", None)
    if not isinstance(ref, wire.Ref):
        raise wire.WireError(f"a {type(value).__name__} cannot travel")
    return ref
