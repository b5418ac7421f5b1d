"""Sessions in processes of their own: a pool of fork servers, and the transport that believes nothing it receives.

Invariant: a reply is used only if it carries the call's unguessable id, has the form of a reply and keeps to every limit; whatever
else happens, the session is lost with a reason, its processes and files are gone, and the pool is as good as new.
"""

import contextlib
import json
import os
import queue
import random
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from typing import Any, Self

from kvgrade import sandbox
from kvgrade.exercises import Exercise
from kvgrade.session import Session, SessionLost
from kvgrade.worker import frames, linux, processes
from kvgrade.worker.host import GIVEN
from kvgrade.worker.limits import ENVIRONMENT
from kvlib.errors import SpecError

START = 120.0  # seconds until a fork server has imported torch
_UIDS = range(61184, 65520)  # users that nobody is: those systemd gives to services while they run


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

    def __init__(self, sock: socket.socket, limits: Limits, end: Any) -> None:
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
        text = {key: _text(error.get(key)) for key in ("type", "text", "trace")}
        if text["type"] == "MemoryError" or (text["type"] == "RuntimeError" and "allocate memory" in text["text"]):
            raise _Memory
        return {"error": {**text, "bases": [_text(base)[:100] for base in bases[:20]] if isinstance(bases, list) else []}}
    checked = {"value": reply.get("value")}
    if "work" in reply:
        work = reply["work"]
        if not isinstance(work, dict) or not all(type(n) is int and 0 <= n < 1 << 63 for n in work.values()):
            raise frames.Lost("protocol")
        checked["work"] = work
    return checked


def _text(value: Any) -> str:
    text = value[:5000] if isinstance(value, str) else ""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


class _Server:
    """One fork server behind its wall."""

    def __init__(self, kind: str, folder: str, options: dict[str, Any]) -> None:
        self._control, theirs = socket.socketpair()
        self._buffer, self._count, self.ended = b"", 0, None
        self._log = open(os.path.join(folder, f"log-{secrets.token_hex(4)}"), "w+b")  # noqa: SIM115
        try:
            self._process = subprocess.Popen(
                sandbox.command(kind, {**options, "control": theirs.fileno()}), pass_fds=[theirs.fileno()], cwd=folder,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._log, env=ENVIRONMENT, start_new_session=True,
            )  # fmt: skip
        finally:
            theirs.close()
        hello = self._read(START)
        if hello is None or "hello" not in hello:
            self._log.seek(0)
            text = self._log.read(4000).decode(errors="replace").strip()
            self.stop()
            raise SpecError(f"the process that runs answers does not start ({kind}): {text[-500:] or 'it says nothing'}")
        self.inner = bool(hello["inner"])

    def open(self, order: dict[str, Any]) -> socket.socket:
        """Start a session; the grader's end of its socket. Raises OSError when the server is gone."""
        self._count += 1
        ours, theirs = socket.socketpair()
        with theirs:
            order = {"op": "open", "n": self._count, **order}
            socket.send_fds(self._control, [json.dumps(order).encode()], [theirs.fileno()])
        return ours

    def pid(self) -> int:
        """The process that was started (for tests)."""
        return self._process.pid

    def close_session(self, patience: float) -> str:
        """End the session; why it ended, or "" when the server does not say so in time and must be stopped."""
        with contextlib.suppress(OSError):
            self._control.sendall(b"close")
        message = self._read(patience)
        if message is None or message.get("ended") != self._count or message.get("reason") == "left":
            return ""
        return str(message["reason"])

    def stop(self) -> None:
        """End the server and everything below it."""
        self._control.close()  # at which it ends what it runs, and itself
        try:
            self._process.wait(8)
        except subprocess.TimeoutExpired:
            processes.end_tree(self._process.pid)
            self._process.wait()
        self._log.close()

    def _read(self, patience: float) -> dict[str, Any] | None:
        deadline = time.monotonic() + patience
        while b"\n" not in self._buffer:
            self._control.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                part = self._control.recv(1 << 16)
            except OSError:
                return None
            if not part:
                return None
            self._buffer += part
        self._control.settimeout(None)
        line, _, self._buffer = self._buffer.partition(b"\n")
        message = json.loads(line)
        return message if isinstance(message, dict) else None


class _Direct:
    """One session in a process started for it: where there is no fork."""

    inner = False

    def __init__(self, folder: str, options: dict[str, Any]) -> None:
        self._folder, self._options = folder, options

    def open(self, order: dict[str, Any]) -> socket.socket:
        """Start the process; the grader's end of its socket."""
        ours, theirs = socket.socketpair()
        self._scratch = tempfile.mkdtemp(prefix="s-", dir=self._folder)
        windows = os.name == "nt"
        with theirs:
            options = {**self._options, "order": {"limits": order["limits"]}, "scratch": self._scratch}
            options["direct"] = len(theirs.share(os.getpid())) if windows else theirs.fileno()
            self._process = subprocess.Popen(
                sandbox.command("none", options), pass_fds=[] if windows else [theirs.fileno()], cwd=self._scratch,
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env={**(os.environ if windows else {}), **ENVIRONMENT}, start_new_session=not windows,
            )  # fmt: skip
            if windows:
                self._process.stdin.write(theirs.share(self._process.pid))
            self._process.stdin.close()
        return ours

    def close_session(self, patience: float) -> str:
        """End the process; "": never to be used again."""
        processes.end_tree(self._process.pid)
        self._process.kill()
        self._process.wait(patience)
        shutil.rmtree(self._scratch, ignore_errors=True)
        return ""

    def stop(self) -> None:
        """Nothing is left."""


class Pool:
    """`jobs` places for sessions, each with a fork server of its own. Thread-safe; a thread that asks for a session waits until
    a place is free. Use as a context manager.

    `level`: 1 or 2. `kind`: one of sandbox.KINDS, or None for the best here. `mode`: "fork" (torch is imported once per place;
    Linux), "fresh" (once per session) or "direct" (the same without a process that looks after it: Windows); None: what
    the platform has. `walls=False` leaves out what level 1 adds where it can: another user, Landlock.
    Raises SpecError where the level is not to be had.
    """

    def __init__(self, level: int = 1, jobs: int = 1, kind: str | None = None, *, mode: str | None = None,
                 limits: Limits | None = None, landlock: bool = True) -> None:  # fmt: skip
        self.level, self.kind, self.jobs = level, sandbox.choose(level, kind), jobs
        self.mode = mode or {"linux": "fork", "win32": "direct"}.get(sys.platform, "fresh")
        self.limits = limits or Limits()
        self.starts = 0  # fork servers started so far
        self._landlock = landlock and linux.landlock_version() > 0
        self._places: queue.SimpleQueue[_Server | _Direct | None] = queue.SimpleQueue()
        self._open: set[Session] = set()
        self._lock = threading.Lock()
        self._folder = ""

    def __enter__(self) -> Self:
        self._folder = tempfile.mkdtemp(prefix="kvgrade-")
        os.chmod(self._folder, 0o711)
        for _ in range(self.jobs):
            self._places.put(None)
        return self

    def __exit__(self, *_: object) -> None:
        for session in list(self._open):
            session.close()
        for _ in range(self.jobs):
            if server := self._places.get():
                server.stop()
        processes.remove_tree(self._folder)

    @property
    def name(self) -> str:
        """The pool's name, unguessable; it stands in the command line of every process of the pool."""
        return os.path.basename(self._folder)

    def leftovers(self) -> list[str]:
        """Scratch folders that are still there: none, when no session is open."""
        return [name for name in os.listdir(self._folder) if name.startswith("s-")]

    @property
    def description(self) -> dict[str, str]:
        """One sentence per language: what stands between the answers and this machine."""
        return sandbox.describe(self.level, self.kind)

    def open(self, exercise: Exercise, source: str, limits: Limits | None = None) -> Session:
        """A session with the exercise's given code and the answer loaded. Raises AnswerRaised, SessionLost."""
        session = self.session(limits)
        try:
            if exercise.given:
                session.load(exercise.given, GIVEN)
            session.load(source)
        except BaseException:
            session.close()
            raise
        return session

    def session(self, limits: Limits | None = None) -> Session:
        """A session with nothing loaded."""
        limits = limits or self.limits
        server = self._places.get()
        try:
            server, sock = self._start(server, limits)
        except BaseException:
            self._places.put(None)
            raise
        session = Session(Remote(sock, limits, lambda: self._give_back(server, session)))
        with self._lock:
            self._open.add(session)
        return session

    def _start(self, server: "_Server | _Direct | None", limits: Limits) -> "tuple[_Server | _Direct, socket.socket]":
        """A server and a session of it that is ready; a server that does not answer is replaced, once."""
        for attempt in (1, 2):
            fresh = server is None
            server = server or self._server()
            try:
                sock = server.open(self._order(limits))
                message, _ = frames.receive(sock, 0, time.monotonic() + START)
                if "ready" in message:
                    return server, sock
                problem = _text(message.get("failed"))
            except (OSError, frames.Lost) as error:
                problem = str(error)
            server.stop()
            server = None
            if fresh and attempt == 2:
                break
        raise SpecError(f"the process that runs answers cannot be confined here (level {self.level}, {self.kind}): {problem}")

    def _server(self) -> "_Server | _Direct":
        self.starts += 1
        options = {"pool": self.name, "paths": sandbox.python().packages, "preload": self.mode == "fork",
                   "scratch": self._folder, "inner": self.kind in ("bubblewrap", "namespaces")}  # fmt: skip
        if self.mode == "direct":
            return _Direct(self._folder, options)
        if options["inner"] and os.geteuid() == 0:
            options["uid"] = random.SystemRandom().choice(_UIDS)
        return _Server(self.kind, self._folder, options)

    def _order(self, limits: Limits) -> dict[str, Any]:
        order: dict[str, Any] = {"limits": asdict(limits)}
        if self.kind in ("none", "container") and sys.platform == "linux":
            if os.geteuid() == 0:
                order["uid"] = random.SystemRandom().choice(_UIDS)
                order["keep"] = [] if sandbox.readable_by_all() else [linux.CAP_DAC_READ_SEARCH]
            if self._landlock:
                order["readable"] = [*sandbox.python().read, str(sandbox.WORKER)]
        return order

    def _give_back(self, server: "_Server | _Direct", session: Session) -> str:
        """The session is over: end it, and leave its place to the next."""
        with self._lock:
            self._open.discard(session)
        ended = server.close_session(15.0)
        reusable = ended and self.mode == "fork" and (server.inner or self.kind in ("none", "container"))
        if not reusable:
            server.stop()
        self._places.put(server if reusable else None)
        return ended


def open_session(exercise: Exercise, source: str, level: int = 1, pool: Pool | None = None) -> Session:
    """A session with the exercise's given code and the answer loaded, in `pool` or in a pool of its own.

    Raises AnswerRaised (it does not load), SessionLost, SpecError (the level is not to be had).
    """
    if pool is not None:
        return pool.open(exercise, source)
    own = Pool(level).__enter__()
    try:
        session = own.open(exercise, source)
    except BaseException:
        own.__exit__()
        raise
    close = session.close
    session.close = lambda: (close(), own.__exit__())[0]  # type: ignore[method-assign]
    return session
