"""python -I -S walls.py PLAN PROGRAM…: the sandbox of level 2 made of Linux namespaces, where bubblewrap is not installed.

PLAN is JSON: "read", the paths to show read-only; "show", [source, target] pairs shown read-only elsewhere; "links" to make anew;
"hide", folders to show empty; "scratch", the one folder to write to, and its "size" in bytes; "root", a folder to put all this
together on, above none of the sources.
Invariant: PROGRAM sees these paths and nothing else, no network, no other process; it ends when this process is told to or ends.
"""

import json
import os
import signal
import sys
import types

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
    quiet, root = linux.MS_NOSUID | linux.MS_NODEV, plan["root"]
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("tmpfs", root, "tmpfs", quiet, "size=1m,mode=755")
    for source, target in [*((path, path) for path in plan["read"]), *plan["show"]]:
        _show(source, root + target)
    for device in DEVICES:
        _bind(device, root + device)
    for path in plan["links"]:
        os.symlink(os.readlink(path), root + path)
    for path in plan["hide"]:
        linux.mount("tmpfs", root + path, "tmpfs", quiet | linux.MS_RDONLY, "size=4096,mode=555")
    os.makedirs(f"{root}/proc")
    linux.mount("proc", f"{root}/proc", "proc", quiet | linux.MS_NOEXEC)
    os.makedirs(root + plan["scratch"])
    linux.mount("tmpfs", root + plan["scratch"], "tmpfs", quiet, f"size={plan['size']},nr_inodes=20000,mode=1777")
    linux.mount("none", root, None, linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | quiet)
    os.chdir(root)
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
