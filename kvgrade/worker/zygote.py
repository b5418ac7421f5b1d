"""Imports torch once (or not at all: then each session does) and forks a process for every session; when the session is over,
nothing of it is left.

Orders come from the grader on one socket, one session at a time; the zygote holds no secret and takes nothing from an answer.
Invariant: "ended" is reported only when every process of the session is dead and its scratch folder is gone.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
from typing import Any

from kvgrade.worker import inner, processes

WATCH = 0.2  # seconds between two looks at what a session uses
TORCH = 1 << 30  # bytes that a session may have to itself where it imports torch
SPARE = 120.0  # seconds on top of the grader's own deadline: this one counts from before torch is imported


def serve(control: socket.socket, options: dict[str, Any]) -> None:
    """Take orders until the grader hangs up: "open" with a socket, then "close", which is answered by "ended"."""
    if sys.platform == "linux":
        from kvgrade.worker import linux

        linux.subreaper()
        linux.dumpable(False)
    if options["preload"]:
        from kvgrade.worker import answer

        answer.preload()
        gc.collect()
        gc.freeze()
    apart = bool(options["inner"]) and inner.works(options["scratch"])
    _tell(control, {"hello": os.getpid(), "inner": apart, "torch": "torch" in sys.modules})
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
        while True:
            data, fds, _, _ = socket.recv_fds(control, 1 << 16, 2)
            if not data:
                return
            order = json.loads(data)
            if order["op"] == "open" and fds:
                _session(control, socket.socket(fileno=fds[0]), order, options, apart)


def _session(control: socket.socket, sock: socket.socket, order: dict[str, Any], options: dict[str, Any], apart: bool) -> None:
    """Run one session to its end."""
    scratch = tempfile.mkdtemp(prefix="s-", dir=options["scratch"])
    if order.get("uid") is not None:
        os.chown(scratch, order["uid"], order["uid"])
    base = TORCH if not options["preload"] else processes.memory([os.getpid()]).bytes if sys.platform == "linux" else 0
    pid = os.fork()
    if pid == 0:
        try:
            os.close(control.fileno())
            from kvgrade.worker import answer  # it imports torch, unless that was done before the fork

            answer.start(sock, order, scratch, options["preload"], apart)
        finally:
            os._exit(70)
    sock.close()
    reason = _watch(control, pid, order["limits"], scratch, base)
    if sys.platform == "linux":
        clean = processes.end_descendants()
    else:
        clean = _end_group(pid)
    with contextlib.suppress(OSError):
        processes.remove_tree(scratch)
    if reason == "hung up" or (reason != "closed" and not control.recv(1 << 16)):
        return
    _tell(control, {"ended": order["n"], "reason": reason if clean else "left"})


def _watch(control: socket.socket, pid: int, most: dict[str, Any], scratch: str, base: int) -> str:
    """Wait until the session ends by itself, is ended by the grader or takes too much. Says which."""
    try:
        done = os.pidfd_open(pid)
    except (AttributeError, OSError):
        done = None
    deadline, look = time.monotonic() + most["session"] + SPARE, time.monotonic() + WATCH
    try:
        while True:
            ready = select.select([control, *([] if done is None else [done])], [], [], WATCH if done is not None else 0.02)[0]
            if control in ready:
                return "closed" if control.recv(1 << 16) else "hung up"
            if done in ready or (done is None and os.waitpid(pid, os.WNOHANG)[0]):
                return "exited"
            if time.monotonic() > deadline:
                return "timeout"
            if time.monotonic() > look and sys.platform == "linux":
                look = time.monotonic() + WATCH
                if processes.memory(processes.descendants(os.getpid()), base).bytes > 1.25 * most["memory"]:
                    return "memory"
                size = processes.folder_size(scratch, most["entries"])
                if size.bytes > most["disk"] or size.count > most["entries"]:
                    return "disk"
    finally:
        if done is not None:
            os.close(done)


def _end_group(pid: int) -> bool:
    """Where the system cannot list descendants: the session's process group."""
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.waitpid(pid, 0)
    return True


def _tell(control: socket.socket, message: dict[str, Any]) -> None:
    control.sendall(json.dumps(message).encode() + b"\n")
