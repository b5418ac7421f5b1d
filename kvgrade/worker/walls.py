"""python -I -S walls.py PLAN PROGRAM…: the sandbox of level 2 made of Linux namespaces, where bubblewrap is not installed.

PLAN is JSON: "read", the paths to show read-only; "show", [source, target] pairs shown read-only elsewhere; "size", bytes of /tmp.
Invariant: PROGRAM sees these paths and nothing else, no network, no other process; it ends when this process is told to or ends.
"""

import json
import os
import signal
import sys
import types

ROOT = "/tmp"  # where the new root is put together: any folder will do
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def main() -> None:
    """Build the walls, then become PROGRAM as process 1 inside them."""
    plan, program = json.loads(sys.argv[1]), sys.argv[2:]
    uid, gid = os.getuid(), os.getgid()
    spaces = linux.CLONE_NEWNS | linux.CLONE_NEWPID | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS
    linux.unshare(spaces | (linux.CLONE_NEWUSER if uid else 0))
    if uid:
        linux.map_self(uid, gid)
    pid = os.fork()
    if pid:
        signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGKILL))
        os.closerange(3, 1 << 16)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 0xFF)
    linux.die_with_parent()
    new_root(plan)
    if uid:
        linux.set_capabilities()  # root needs them once more, to become another user
    os.execv(program[0], program)


def new_root(plan: dict) -> None:
    """Put a root together from read-only views, and enter it."""
    quiet = linux.MS_NOSUID | linux.MS_NODEV
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("tmpfs", ROOT, "tmpfs", quiet, "size=1m,mode=755")
    for source, target in [*((path, path) for path in plan["read"]), *plan["show"]]:
        _show(source, ROOT + target)
    for device in DEVICES:
        _bind(device, ROOT + device)
    for path in plan["links"]:
        os.symlink(os.readlink(path), ROOT + path)
    for path in plan["hide"]:
        linux.mount("tmpfs", ROOT + path, "tmpfs", quiet | linux.MS_RDONLY, "size=4096,mode=555")
    os.makedirs(f"{ROOT}/proc")
    linux.mount("proc", f"{ROOT}/proc", "proc", quiet | linux.MS_NOEXEC)
    os.makedirs(f"{ROOT}/tmp")
    linux.mount("tmpfs", f"{ROOT}/tmp", "tmpfs", quiet, f"size={plan['size']},nr_inodes=20000,mode=1777")
    linux.mount("none", ROOT, None, linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | quiet)
    os.chdir(ROOT)
    linux.pivot_root_here()


def _bind(source: str, target: str) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        open(target, "x").close()
    linux.mount(source, target, None, linux.MS_BIND | linux.MS_REC)


def _show(source: str, target: str) -> None:
    """Bind, read-only. A mount keeps the flags that it has from outside: the kernel would refuse to clear them."""
    _bind(source, target)
    have = os.statvfs(target).f_flag & 0b1111_0000_1110  # nosuid, nodev, noexec; noatime, nodiratime, relatime
    linux.mount("none", target, None, linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV
                | (have & linux.MS_NOEXEC))  # fmt: skip


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    for name, path in (("kvgrade", []), ("kvgrade.worker", [here])):
        module = types.ModuleType(name)
        module.__path__ = path
        sys.modules[name] = module
    from kvgrade.worker import linux

    main()
