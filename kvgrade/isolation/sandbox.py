"""The outer wall of level 2: which kind this machine has, and the command that starts a program behind it.

Kinds: "bubblewrap"; "namespaces" (the same of Linux's own calls, see worker.walls); "container" (the teacher says that the
container around us is the wall); "none", which is level 1. Invariant: behind a wall there is Python, torch and kvgrade/worker,
read-only, and an empty scratch folder: no book, no home, no network.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import torch

from kvgrade.worker import filters, walls
from kvlib.errors import SpecError

KINDS = ("bubblewrap", "namespaces", "container", "none")
VARIABLE = "KVGRADE_SANDBOX"  # one of KINDS, to choose by hand
WORKER = Path(__file__).resolve().parent.parent / "worker"
INSIDE = "/kvgrade-worker"  # where the worker folder lies behind a wall
OURS = ("kvlib", "kvgrade", "__editable__.kvlib", "__editable___kvlib")
SCRATCH = "/kvgrade-scratch"  # the one folder to write to behind a wall; no /tmp there: Python itself may lie below it
SCRATCH_SIZE = 512 << 20  # bytes
PLACES = ("/tmp", "/mnt", "/media", "/srv", "/var/tmp", "/opt")  # where a new root can be put together


@dataclass(frozen=True)
class Python:
    """What an answer's process needs of this installation: paths that exist, none below another."""

    executable: str
    packages: tuple[str, ...]  # folders on sys.path that torch and its friends are imported from
    read: tuple[str, ...]  # everything that must be readable
    links: tuple[str, ...]  # symbolic links of the root that lead into it, such as /lib
    hide: tuple[str, ...]  # folders in it that are ours


@functools.cache
def python() -> Python:
    """The interpreter beneath any virtual environment, and its packages."""
    executable = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    home = Path(torch.__file__).resolve().parent.parent
    packages = [p for p in sys.path if Path(p).name in ("site-packages", "dist-packages") and os.path.isdir(p)]
    if not any(Path(p).resolve() == home for p in packages):
        packages.append(str(home))
    system = [p for p in ("/lib", "/lib64", "/lib32", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/nix/store")
              if os.path.exists(p)]  # fmt: skip
    links = tuple(p for p in system if os.path.islink(p))
    read = [executable, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib").replace(sys.prefix, sys.base_prefix),
            *packages, *(p for p in system if p not in links)]  # fmt: skip
    read += [os.path.realpath(p) for p in read]
    read += _libraries()
    kept: list[str] = []
    for path in sorted({p for p in read if os.path.exists(p)}, key=len):
        if not any(_below(path, other) for other in kept):
            kept.append(path)
    hide = [str(p) for folder in packages for p in Path(folder).iterdir() if p.is_dir() and p.name.startswith(OURS)]
    return Python(executable, tuple(packages), tuple(kept), links, tuple(hide))


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _place(sources: list[str]) -> str:
    """A folder to mount the new root on that hides nothing of what is to be shown in it."""
    return next((p for p in PLACES if os.path.isdir(p) and not any(_below(source, p) for source in sources)), PLACES[0])


def _libraries() -> list[str]:
    """Shared libraries that this process has loaded, wherever they lie."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return []
    return sorted({part[-1] for line in lines if ".so" in (part := line.split(None, 5))[-1] and part[-1].startswith("/")})


@functools.cache
def readable_by_all() -> bool:
    """Whether any user of this machine could run this Python: it need not, where the grader is root."""
    paths = [*python().packages, sysconfig.get_path("stdlib"), torch.__file__, os.__file__]
    folders = {str(parent) for path in paths for parent in Path(path).resolve().parents}
    return _others_may(paths) and all(os.stat(folder).st_mode & 0o001 for folder in folders)


def _others_may(paths: list[str]) -> bool:
    return all(os.stat(path).st_mode & 0o004 and (os.stat(path).st_mode & 0o001 or os.path.isfile(path)) for path in paths)


def command(kind: str, options: dict) -> list[str]:
    """The command that starts worker/main.py with these options, behind a wall of this kind."""
    py = python()
    base = [py.executable, "-I", "-S", "-X", "utf8"]
    if kind in ("container", "none"):
        return [*base, str(WORKER / "main.py"), json.dumps(options)]
    program = [*base, f"{INSIDE}/main.py", json.dumps({**options, "scratch": SCRATCH})]
    if kind == "namespaces":
        plan = {"root": _place([*py.read, str(WORKER)]), "read": py.read, "show": [[str(WORKER), INSIDE]], "links": py.links,
                "hide": py.hide, "scratch": SCRATCH, "size": SCRATCH_SIZE}  # fmt: skip
        return [*base, str(WORKER / "walls.py"), json.dumps(plan), *program]
    root = os.geteuid() == 0
    spaces = ["--unshare-pid", "--unshare-ipc", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    rights = ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if root else ["--unshare-user"]
    args = ["bwrap", *spaces, *rights, "--as-pid-1", "--new-session"]
    for folder in dict.fromkeys(str(parent) for path in (*py.read, *walls.DEVICES) for parent in reversed(Path(path).parents) if parent.name):
        args += ["--perms", "0755", "--dir", folder]  # else as closed as outside, such as /root
    for path in py.read:
        args += ["--ro-bind", path, path]
    for path in py.links:
        args += ["--symlink", os.readlink(path), path]
    for path in py.hide:
        args += ["--tmpfs", path, "--remount-ro", path]
    for path in walls.DEVICES:
        args += ["--dev-bind", path, path]
    args += ["--ro-bind", str(WORKER), INSIDE, "--proc", "/proc", "--perms", "1777", "--size", str(SCRATCH_SIZE), "--tmpfs", SCRATCH]
    return [*args, "--remount-ro", "/", "--chdir", "/", *program]


@functools.cache
def works(kind: str) -> bool:
    """Whether a wall of this kind can be built here: tried with a Python that does nothing."""
    if kind in ("container", "none"):
        return True
    if sys.platform != "linux" or (kind == "bubblewrap" and not shutil.which("bwrap")):
        return False
    if os.geteuid() == 0 and not _others_may([*python().packages, sysconfig.get_path("stdlib"), torch.__file__]):
        return False  # behind the wall root becomes a user that cannot read it
    *start, _main, _options = command(kind, {})
    try:
        done = subprocess.run([*start, "-c", "print(6 * 7)"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                              check=False)  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return False
    return done.stdout.strip() == b"42"


def choose(level: int, kind: str | None = None) -> str:
    """The kind of wall for a level. Raises SpecError where this machine has none for level 2."""
    if level == 1:
        return "none"
    if level != 2:
        raise SpecError(f"level {level}: expected 1 (a process of its own) or 2 (and a sandbox)")
    kind = kind or os.environ.get(VARIABLE) or None
    if kind is not None and kind not in KINDS:
        raise SpecError(f"sandbox {kind!r}: expected one of {', '.join(KINDS)}")
    for candidate in KINDS[:2] if kind is None else (kind,):
        if candidate != "none" and works(candidate):
            return candidate
    raise SpecError(
        f"no sandbox ({kind or 'bubblewrap or Linux namespaces'}) works here, so level 2 is not to be had: install bubblewrap, "
        f"or run kvgrade in a container of its own and say so with {VARIABLE}=container, or use level 1"
    )


def best_level() -> tuple[int, str]:
    """The highest level of this machine, and its kind of wall."""
    try:
        return 2, choose(2)
    except SpecError:
        return 1, "none"


def describe(level: int, kind: str) -> dict[str, str]:
    """One sentence per language: what stands between the answers and this machine, and what does not."""
    if level == 2 and kind == "container":
        return {"zh-TW": "第 2 級：由外層的容器隔離（依你的設定）；答案仍讀得到容器裡的檔案",
                "en": "level 2: the container around it is the wall, as you said; files in the container can be read"}  # fmt: skip
    if level == 2:
        name = {"bubblewrap": "bubblewrap", "namespaces": "Linux namespaces"}[kind]
        return {"zh-TW": f"第 2 級：獨立行程加上沙箱（{name}）：看不到其他檔案、網路與行程",
                "en": f"level 2: a process of its own in a sandbox ({name}): no other files, network or processes"}  # fmt: skip
    if filters.landlock_version():
        return {"zh-TW": "第 1 級：獨立行程，由核心擋下其他檔案（Landlock）；沒有沙箱",
                "en": "level 1: a process of its own, other files closed by the kernel (Landlock); no sandbox"}  # fmt: skip
    return {"zh-TW": "第 1 級：獨立行程；答案仍可能讀取你的檔案、使用網路，只用來批改你信得過的人",
            "en": "level 1: a process of its own; an answer can still read your files and use the network: grade people you trust"}  # fmt: skip
