"""What a process does to itself before it runs a learner's code: no files, no rights, no room beyond what it was given.

Invariant: after `only_file` the only open file besides /dev/null is the socket to the grader. What the platform cannot do is left
out; `sandbox.describe` says so to the teacher.
"""

import os
import socket
import sys
import tempfile
from typing import Any

from kvgrade.worker import filters, linux

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "USER": "student", "LOGNAME": "student", "TRITON_INTERPRET": "1",
               **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR")}}  # fmt: skip


def confine(order: dict[str, Any], scratch: str, now: dict[str, int]) -> None:
    """Confine this process. `order`: the grader's limits (see remote.Limits), and
    `uid`, `keep`, `readable` (see remote); `now`: from in_use(). Raises OSError when a wall that was ordered cannot be built."""
    os.environ.update(HOME=scratch, TMPDIR=scratch, TEMP=scratch, TMP=scratch)
    tempfile.tempdir = None
    os.chdir(scratch)
    _rlimits(order["limits"], now if order.get("uid") is None else {**now, "processes": 0})
    if order.get("uid") is not None:
        linux.become(order["uid"], order.get("keep") or ())
    if order.get("readable"):
        devices = ("/dev/null", "/dev/zero", "/dev/full")
        filters.landlock([*order["readable"], "/dev/urandom", "/dev/random", "/proc"], [scratch, *devices])
    if sys.platform == "linux":
        linux.no_new_privileges()
        linux.dumpable(False)
        if filters.can_seccomp():
            filters.seccomp()


def only_file(sock: socket.socket) -> socket.socket:
    """Close every file but the socket, now under another number; standard input and output go nowhere."""
    if os.name != "posix":
        return sock
    fd = sock.detach()
    null = os.open(os.devnull, os.O_RDWR)
    fd = os.dup2(fd, max(fd, null) + 1) if fd < 4 else fd  # out of the way of 0 to 3
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.dup2(fd, 3, inheritable=False)
    os.closerange(4, os.sysconf("SC_OPEN_MAX") if sys.platform != "linux" else 1 << 20)
    return socket.socket(fileno=3)


def _rlimits(limits: dict[str, Any], now: dict[str, int]) -> None:
    if os.name != "posix":
        return
    import resource

    wanted = {"CORE": 0, "FSIZE": limits["file"], "NOFILE": limits["open_files"], "CPU": int(limits["cpu"])}
    if sys.platform == "linux":
        wanted |= {"AS": now["size"] + limits["memory"], "NPROC": now["processes"] + limits["processes"]}
        wanted |= {"MEMLOCK": 0, "MSGQUEUE": 0}
    for name, value in wanted.items():
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is None:
            continue
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(kind, (value, value))
        except (OSError, ValueError):
            continue  # a limit that the platform does not have


def in_use() -> dict[str, int]:
    """This process's address space in bytes, and how many threads its user runs already: the system's limits count them too."""
    if sys.platform != "linux":
        return {}
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    count = 0
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == os.getuid():
                count += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue
    return {"size": size, "processes": count}
