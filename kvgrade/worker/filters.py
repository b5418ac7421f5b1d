"""What a process may still ask of the Linux kernel: files by path (Landlock), calls by number (seccomp). Needs no privileges.

Invariant: a filter holds for the process and all its descendants, and none of them can take it off.
"""

import ctypes
import os
import platform
import struct
from collections.abc import Iterable

from kvgrade.worker.linux import libc, no_new_privileges, ok, prctl

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every architecture
_READ = 0b1101  # execute, read a file, list a folder
_FILE_RIGHTS = 0b111 | 1 << 14 | 1 << 15  # those that make sense for what is no folder: and truncate, ioctl
_FS_BITS = {1: 13, 2: 14, 3: 15, 4: 15}


def landlock_version() -> int:
    """The version of the interface; 0 where there is none."""
    if libc is None or platform.system() != "Linux":
        return 0
    return max(0, libc.syscall(_CREATE, None, ctypes.c_size_t(0), 1))


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
    rules = ok(libc.syscall(_CREATE, attr, ctypes.c_size_t(len(attr)), 0), "landlock")
    for paths, rights in ((readable, _READ), (writable, all_rights)):
        for path in paths:
            try:
                fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue  # what is not there needs no right
            allowed = rights & all_rights & (-1 if os.path.isdir(path) else _FILE_RIGHTS)
            try:
                ok(libc.syscall(_ADD, rules, 1, struct.pack("=Qi", allowed, fd), 0), f"landlock {path}")
            finally:
                os.close(fd)
    no_new_privileges()
    ok(libc.syscall(_RESTRICT, rules, 0), "landlock")
    os.close(rules)


# Calls that no answer needs: on other processes of the same user, on mounts and namespaces, the kernel's rarer parts, and what
# Landlock leaves to a file's owner (modes, times, attributes)
_DENIED = {
    "x86_64": {"ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "pidfd_getfd": 438, "setpriority": 141,
               "sched_setparam": 142, "sched_setscheduler": 144, "sched_setaffinity": 203, "sched_setattr": 314, "ioprio_set": 251,
               "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161,
               "open_by_handle_at": 304, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "io_uring_setup": 425,
               "keyctl": 250, "add_key": 248, "request_key": 249, "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94,
               "fchownat": 260, "fchmodat": 268, "fchmodat2": 452, "utime": 132, "utimes": 235, "futimesat": 261, "utimensat": 280,
               "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198,
               "fremovexattr": 199, "setxattrat": 463, "removexattrat": 466},
    "aarch64": {"ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "pidfd_getfd": 438, "setpriority": 140,
                "sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122, "sched_setattr": 274, "ioprio_set": 30,
                "unshare": 97, "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51,
                "open_by_handle_at": 265, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "io_uring_setup": 425,
                "keyctl": 219, "add_key": 217, "request_key": 218, "fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "fchownat": 54,
                "fchown": 55, "utimensat": 88, "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14,
                "lremovexattr": 15, "fremovexattr": 16, "setxattrat": 463, "removexattrat": 466},
}  # fmt: skip
# Calls allowed with one first argument only: limits of this process itself, sockets within this machine
_ONE_ARGUMENT = {"x86_64": {302: 0, 41: 1}, "aarch64": {261: 0, 198: 1}}
_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050001, 0x80000000  # refuse: EPERM


def can_seccomp() -> bool:
    """Whether `seccomp` knows this machine's calls by number."""
    return platform.system() == "Linux" and platform.machine() in _ARCHITECTURE


def seccomp() -> None:
    """From now on: no network, no limits or priorities of other processes, no tracing, mounts or namespaces, no change of a
    file's mode, owner or times."""
    machine = platform.machine()
    program = [(_LOAD, 0, 0, 4), (_IF_EQUAL, 1, 0, _ARCHITECTURE[machine]), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    program += [(_IF_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _REFUSE)]  # x86's second set of numbers
    for number in _DENIED[machine].values():
        program += [(_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE)]
    for number, allowed in _ONE_ARGUMENT[machine].items():
        program += [(_IF_EQUAL, 0, 4, number), (_LOAD, 0, 0, 16), (_IF_EQUAL, 0, 1, allowed), (_RETURN, 0, 0, _ALLOW),
                    (_RETURN, 0, 0, _REFUSE)]  # fmt: skip
    program.append((_RETURN, 0, 0, _ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    whole = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    no_new_privileges()
    prctl(22, 2, ctypes.addressof(whole))  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
