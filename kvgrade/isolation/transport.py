"""The transport to an answer's process, which believes nothing it receives.

Invariant: a reply is used only if it carries the call's unguessable id, has the form of a reply and keeps to every limit; else
the session is lost, with a reason.
"""

import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kvgrade.session import SessionLost
from kvgrade.worker import frames


@dataclass(frozen=True)
class Limits:
    """What one session may take. Seconds, bytes, counts."""

    call: float = 10.0  # wall clock, one call
    session: float = 60.0  # wall clock, all calls together
    cpu: int = 60  # seconds of one process
    memory: int = 2 << 30
    file: int = 64 << 20  # one file
    disk: int = 256 << 20  # all files
    entries: int = 2_000  # files and folders
    open_files: int = 64
    processes: int = 16  # and threads
    reply: int = 64 << 20  # tensors in one reply


class Remote:
    """A transport to an answer's process. Not for use by several threads at once."""

    def __init__(self, sock: socket.socket, limits: Limits, end: Callable[[], str]) -> None:
        self._sock, self._limits, self._end = sock, limits, end
        self._deadline = time.monotonic() + limits.session
        self._lost: str | None = None

    def ask(self, request: dict, blobs: list[bytes]) -> tuple[dict, list[bytes]]:
        """One request and its reply. Raises SessionLost, now and ever after."""
        if self._lost:
            raise SessionLost(self._lost)
        id = secrets.token_hex(16)
        deadline = min(self._deadline, time.monotonic() + self._limits.call)
        try:
            frames.send(self._sock, {"id": id, "request": request}, blobs, deadline)
            message, out = frames.receive(self._sock, self._limits.reply, deadline)
            if not secrets.compare_digest(str(message.get("id")).encode(), id.encode()):
                raise frames.Lost("protocol")
            return _checked(message.get("reply")), out
        except frames.Lost as lost:
            self._lost = lost.reason
        except _Memory:
            self._lost = "memory"
        ended = self.close()
        if self._lost == "died" and ended in ("memory", "timeout"):
            self._lost = ended
        raise SessionLost(self._lost)

    def close(self) -> str:
        """End the process, and all that it started. Says how it ended."""
        self._sock.close()
        end, self._end = self._end, None
        self._lost = self._lost or "died"
        return end() if end else ""


class _Memory(Exception):
    """The answer ran into its limit of memory."""


def _checked(reply: Any) -> dict:
    """A reply of the right form, with texts that can be printed. Raises frames.Lost, _Memory."""
    if not isinstance(reply, dict):
        raise frames.Lost("protocol")
    if "error" in reply:
        error = reply["error"]
        if not isinstance(error, dict):
            raise frames.Lost("protocol")
        bases = error.get("bases")
        text = {key: printable(error.get(key)) for key in ("type", "text", "trace")}
        if text["type"] == "MemoryError" or (text["type"] == "RuntimeError" and "allocate memory" in text["text"]):
            raise _Memory
        return {"error": {**text, "bases": [printable(base)[:100] for base in bases[:20]] if isinstance(bases, list) else []}}
    checked = {"value": reply.get("value")}
    if "work" in reply:
        work = reply["work"]
        if not isinstance(work, dict) or not all(type(n) is int and 0 <= n < 1 << 63 for n in work.values()):
            raise frames.Lost("protocol")
        checked["work"] = work
    return checked


def printable(value: Any) -> str:
    text = value[:5000] if isinstance(value, str) else ""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
