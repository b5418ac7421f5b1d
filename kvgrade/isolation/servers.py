"""The grader's end of the processes that run answers: a fork server behind its wall, or a process for one session.

Invariant: when `close_session` has said how a session ended, none of its processes and files is left; else `stop` ends them all.
"""

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from kvgrade.isolation import sandbox
from kvgrade.worker import processes
from kvgrade.worker.limits import ENVIRONMENT
from kvlib.errors import SpecError

START = 120.0  # seconds until a fork server has imported torch


class Server:
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
        self._state = self._limits()

    def open(self, order: dict[str, Any]) -> socket.socket:
        """Start a session; the grader's end of its socket. Raises OSError when the server is gone."""
        self._count += 1
        ours, theirs = socket.socketpair()
        with theirs:
            order = {"op": "open", "n": self._count, **order}
            socket.send_fds(self._control, [json.dumps(order).encode()], [theirs.fileno()])
        return ours

    def _limits(self) -> bytes:
        """The server's limits as the system states them: a process of the same user could change them."""
        try:
            return Path(f"/proc/{self._process.pid}/limits").read_bytes()
        except OSError:
            return b""

    def close_session(self, patience: float) -> str:
        """End the session; why it ended, or "" when the server does not say so in time and must be stopped."""
        with contextlib.suppress(OSError):
            self._control.sendall(b"close")
        message = self._read(patience)
        if message is None or message.get("ended") != self._count or message.get("reason") == "left" or self._limits() != self._state:
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


class Direct:
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
