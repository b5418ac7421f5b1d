"""Sessions in processes of their own: a pool of places for them.

Invariant: whatever an answer does, its place is as good as new for the next one.
"""

import contextlib
import os
import queue
import random
import socket
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from kvgrade.exercises import Exercise
from kvgrade.isolation import sandbox
from kvgrade.isolation.servers import START, Direct, Server
from kvgrade.isolation.transport import Limits, Remote, printable
from kvgrade.session import Session
from kvgrade.worker import filters, frames, linux, processes
from kvgrade.worker.host import GIVEN
from kvlib.errors import SpecError

__all__ = ["Limits", "Pool", "open_session"]
PATIENCE = 900.0  # seconds to wait for a place
_FOLDER = "kvgrade-pool-"  # and the number of its grader's process
_UIDS = range(61184, 65520)  # users that nobody is: those systemd gives to services while they run


class Pool:
    """`jobs` places for sessions, each with a fork server of its own. Thread-safe; a thread that asks for a session waits until
    a place is free. Use as a context manager.

    `level`: 1 or 2. `kind`: one of sandbox.KINDS, or None for the best here. `mode`: "fork" (torch is imported once per place;
    Linux), "fresh" (once per session) or "direct" (the same without a process that looks after it: Windows); None: what
    the platform has. `landlock=False` leaves out that wall of level 1.
    Raises SpecError where the level is not to be had.
    """

    def __init__(self, level: int = 1, jobs: int = 1, kind: str | None = None, *, mode: str | None = None,
                 limits: Limits | None = None, landlock: bool = True) -> None:  # fmt: skip
        self.level, self.kind, self.jobs = level, sandbox.choose(level, kind), jobs
        self.mode = mode or {"linux": "fork", "win32": "direct"}.get(sys.platform, "fresh")
        self.limits = limits or Limits()
        self.starts = 0  # fork servers started so far
        self._landlock = landlock and filters.landlock_version() > 0
        self._places: queue.SimpleQueue[Server | Direct | None] = queue.SimpleQueue()
        self._open: set[Session] = set()
        self._lock = threading.Lock()
        self._folder = ""

    def __enter__(self) -> Self:
        _sweep()
        self._folder = tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-")
        os.chmod(self._folder, 0o711)
        if self.kind in ("none", "container") and sys.platform == "linux" and not self._landlock:
            linux.dumpable(False)  # else an answer of the same user could read seeds and references in our memory
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
        try:
            server = self._places.get(timeout=PATIENCE)
        except queue.Empty:
            raise SpecError(f"none of the pool's {self.jobs} places became free in {PATIENCE:.0f} s; close sessions that are over, "
                            "or make a pool with more jobs") from None  # fmt: skip
        try:
            server, sock = self._start(server, limits)
        except BaseException:
            self._places.put(None)
            raise
        session = Session(Remote(sock, limits, lambda: self._give_back(server, session)))
        with self._lock:
            self._open.add(session)
        return session

    def _start(self, server: Server | Direct | None, limits: Limits) -> tuple[Server | Direct, socket.socket]:
        """A server and a session of it that is ready; a server that does not answer is replaced, once."""
        for attempt in (1, 2):
            fresh, sock = server is None, None
            server = server or self._server()
            try:
                sock = server.open(self._order(limits))
                message, _ = frames.receive(sock, 0, time.monotonic() + START)
                if "ready" in message:
                    return server, sock
                problem = printable(message.get("failed"))
            except (OSError, frames.Lost) as error:
                problem = str(error)
            if sock:
                sock.close()
            server.stop()
            server = None
            if fresh and attempt == 2:
                break
        raise SpecError(f"the process that runs answers cannot be confined here (level {self.level}, {self.kind}): {problem}")

    def _server(self) -> Server | Direct:
        self.starts += 1
        options = {"pool": self.name, "paths": sandbox.python().packages, "preload": self.mode == "fork",
                   "scratch": self._folder, "inner": self.kind in ("bubblewrap", "namespaces")}  # fmt: skip
        if self.mode == "direct":
            return Direct(self._folder, options)
        if options["inner"] and os.geteuid() == 0:
            options["uid"] = random.SystemRandom().choice(_UIDS)
        return Server(self.kind, self._folder, options)

    def _order(self, limits: Limits) -> dict[str, Any]:
        order: dict[str, Any] = {"limits": asdict(limits)}
        if self.kind in ("none", "container") and sys.platform == "linux":
            if os.geteuid() == 0:
                order["uid"] = random.SystemRandom().choice(_UIDS)
                order["keep"] = [] if sandbox.readable_by_all() else [linux.CAP_DAC_READ_SEARCH]
            if self._landlock:
                order["readable"] = [*sandbox.python().read, str(sandbox.WORKER)]
        return order

    def _give_back(self, server: Server | Direct, session: Session) -> str:
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


def _sweep() -> None:
    """Remove the folders of our own graders that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*-*"):
        pid = path.name.removeprefix(_FOLDER).partition("-")[0]
        with contextlib.suppress(OSError):
            if os.name == "posix" and pid.isdigit() and path.lstat().st_uid == os.getuid() and not _runs(int(pid)):
                processes.remove_tree(str(path))


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
