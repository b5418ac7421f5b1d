"""Calls to the Linux kernel that Python has no name for: prctl, unshare, mount, capabilities.

Every function raises OSError where the kernel refuses; the caller decides what that means.
"""

import ctypes
import os
import platform
import struct
from collections.abc import Iterable

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
CAP_DAC_READ_SEARCH = 2
_DEATHSIG, _DUMPABLE, _KEEPCAPS, _SUBREAPER, _NO_NEW_PRIVS = 1, 4, 8, 36, 38
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}

libc = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None


def ok(result: int, what: str) -> int:
    """The result of a call, where it is no error. Raises OSError."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def prctl(option: int, value: int, more: int = 0) -> None:
    """prctl(2)."""
    ok(libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(more), 0, 0), "prctl")


def dumpable(on: bool) -> None:
    """Whether processes of the same user may look into this one."""
    prctl(_DUMPABLE, int(on))


def subreaper() -> None:
    """Orphans among the descendants become children of this process, so that they can be found."""
    prctl(_SUBREAPER, 1)


def die_with_parent() -> None:
    """Be killed when the parent ends."""
    prctl(_DEATHSIG, 9)


def no_new_privileges() -> None:
    """No setuid program gives this process or its descendants anything."""
    prctl(_NO_NEW_PRIVS, 1)


def unshare(flags: int) -> None:
    """Leave namespaces."""
    ok(libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """mount(2)."""
    ok(libc.mount(source.encode(), target.encode(), kind and kind.encode(), ctypes.c_ulong(flags), data.encode()),
        f"mount {target}")  # fmt: skip


def pivot_root_here() -> None:
    """Make the working directory, a mount point, the root; the old root is gone."""
    ok(libc.syscall(_PIVOT_ROOT[platform.machine()], b".", b"."), "pivot_root")
    ok(libc.umount2(b".", 2), "umount")  # MNT_DETACH
    os.chdir("/")


def set_capabilities(keep: Iterable[int] = ()) -> None:
    """Give up every capability but these."""
    bits = sum(1 << n for n in keep)
    low, high = bits & 0xFFFFFFFF, bits >> 32
    header = struct.pack("Ii", 0x20080522, 0)
    ok(libc.capset(header, struct.pack("6I", low, low, 0, high, high, 0)), "capset")


def become(uid: int, keep: Iterable[int] = ()) -> None:
    """Become another user for good, with no groups and no capability but these."""
    keep = tuple(keep)
    if keep:
        prctl(_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    set_capabilities(keep)


def map_self(uid: int, gid: int) -> None:
    """After unshare(CLONE_NEWUSER): the same user inside as outside."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
