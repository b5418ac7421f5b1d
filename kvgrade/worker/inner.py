"""The inner wall of level 2: each session is process 1 of a world of its own, inside the sandbox that holds the fork server.

Invariant: after `enter`, no process outside the session can be seen or signalled, and everything written, in the scratch folder
or beside it, goes with the session.
"""

import contextlib
import os

from kvgrade.worker import linux


def enter(scratch: str, size: int) -> None:
    """Fork into new user, process, mount and IPC namespaces; returns in process 1 of them, the caller's process waits for it
    and exits. Raises OSError where the system does not allow it."""
    uid, gid = os.getuid(), os.getgid()
    linux.dumpable(True)  # else the maps below belong to root
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWPID | linux.CLONE_NEWNS | linux.CLONE_NEWIPC)
    linux.map_self(uid, gid)
    pid = os.fork()
    if pid:
        os.closerange(0, 1 << 16)
        _, status = os.waitpid(pid, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    linux.die_with_parent()
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    shared = os.path.dirname(scratch)  # where other sessions have theirs: this one sees a folder of its own in its place
    linux.mount("tmpfs", shared, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, f"size={size},nr_inodes=20000,mode=700")
    os.mkdir(scratch, 0o700)
    _proc()
    linux.set_capabilities()


def _proc() -> None:
    """A /proc of our own; where the kernel refuses one, an empty folder in its place."""
    flags = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
    try:
        linux.mount("proc", "/proc", "proc", flags)
        with contextlib.suppress(OSError), open("/proc/sys/user/max_user_namespaces", "w") as file:
            file.write("0")  # no namespaces within namespaces
    except OSError:
        linux.mount("tmpfs", "/proc", "tmpfs", flags, "size=4096,mode=555")


def works(scratch: str) -> bool:
    """Whether `enter` works here: tried in a process of its own."""
    pid = os.fork()
    if pid == 0:
        try:
            enter(os.path.join(scratch, "try"), 1 << 20)  # in its own mount namespace: nobody else's scratch folder
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
