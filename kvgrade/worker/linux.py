"""Calls to the Linux kernel that Python has no name for: prctl, unshare, mount, capabilities, Landlock.

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

_libc = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None


def _ok(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _prctl(option: int, value: int) -> None:
    _ok(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), "prctl")


def dumpable(on: bool) -> None:
    """Whether processes of the same user may look into this one."""
    _prctl(_DUMPABLE, int(on))


def subreaper() -> None:
    """Orphans among the descendants become children of this process, so that they can be found."""
    _prctl(_SUBREAPER, 1)


def die_with_parent() -> None:
    """Be killed when the parent ends."""
    _prctl(_DEATHSIG, 9)


def no_new_privileges() -> None:
    """No setuid program gives this process or its descendants anything."""
    _prctl(_NO_NEW_PRIVS, 1)


def unshare(flags: int) -> None:
    """Leave namespaces."""
    _ok(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """mount(2)."""
    _ok(_libc.mount(source.encode(), target.encode(), kind and kind.encode(), ctypes.c_ulong(flags), data.encode()),
        f"mount {target}")  # fmt: skip


def pivot_root_here() -> None:
    """Make the working directory, a mount point, the root; the old root is gone."""
    _ok(_libc.syscall(_PIVOT_ROOT[platform.machine()], b".", b"."), "pivot_root")
    _ok(_libc.umount2(b".", 2), "umount")  # MNT_DETACH
    os.chdir("/")


def set_capabilities(keep: Iterable[int] = ()) -> None:
    """Give up every capability but these."""
    bits = sum(1 << n for n in keep)
    low, high = bits & 0xFFFFFFFF, bits >> 32
    header = struct.pack("Ii", 0x20080522, 0)
    _ok(_libc.capset(header, struct.pack("6I", low, low, 0, high, high, 0)), "capset")


def become(uid: int, keep: Iterable[int] = ()) -> None:
    """Become another user for good, with no groups and no capability but these."""
    keep = tuple(keep)
    if keep:
        _prctl(_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    set_capabilities(keep)


def map_self(uid: int, gid: int) -> None:
    """After unshare(CLONE_NEWUSER): the same user inside as outside."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


# Landlock: what this process and its descendants may do to files, by path, for any user and without privileges

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every architecture
_READ = 0b1101  # execute, read a file, list a folder
_FILE_RIGHTS = 0b111 | 1 << 14 | 1 << 15  # those that make sense for what is no folder: and truncate, ioctl
_FS_BITS = {1: 13, 2: 14, 3: 15, 4: 15}


def landlock_version() -> int:
    """The version of the interface; 0 where there is none."""
    if _libc is None or platform.system() != "Linux":
        return 0
    return max(0, _libc.syscall(_CREATE, None, ctypes.c_size_t(0), 1))


def landlock(readable: Iterable[str], writable: Iterable[str]) -> None:
    """From now on: files below `readable` may be read and run, those below `writable` everything, others nothing; no TCP (from
    version 4), no signals to processes outside (from version 6)."""
    version = landlock_version()
    if not version:
        raise OSError("no Landlock in this kernel")
    all_rights = (1 << _FS_BITS.get(version, 16)) - 1
    fields = [all_rights, 0b11 if version >= 4 else 0, 0b11 if version >= 6 else 0]
    fields = fields[: 1 if version < 4 else 2 if version < 6 else 3]
    attr = struct.pack(f"{len(fields)}Q", *fields)
    rules = _ok(_libc.syscall(_CREATE, attr, ctypes.c_size_t(len(attr)), 0), "landlock")
    for paths, rights in ((readable, _READ), (writable, all_rights)):
        for path in paths:
            try:
                fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue  # what is not there needs no right
            allowed = rights & all_rights & (-1 if os.path.isdir(path) else _FILE_RIGHTS)
            try:
                _ok(_libc.syscall(_ADD, rules, 1, struct.pack("=Qi", allowed, fd), 0), f"landlock {path}")
            finally:
                os.close(fd)
    no_new_privileges()
    _ok(_libc.syscall(_RESTRICT, rules, 0), "landlock")
    os.close(rules)
