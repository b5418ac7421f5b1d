"""Finds and ends what a learner's code started, and removes what it wrote.

Invariant: when `end_descendants` returns, this process has no descendant left; `remove_tree` follows no link and needs no
recursion, however deep the folders are nested.
"""

import contextlib
import os
import signal
import time
from typing import NamedTuple


class Usage(NamedTuple):
    """Of a tree of processes, or of a folder."""

    count: int
    bytes: int


def descendants(pid: int) -> list[int]:
    """Children, grandchildren and so on; empty where there is no /proc."""
    parents: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        parents.setdefault(parent, []).append(int(name))
    found, front = [], [pid]
    while front:
        front = [child for parent in front for child in parents.get(parent, ())]
        found += front
    return found


def memory(pids: list[int], base: int = 0) -> Usage:
    """Resident bytes of these processes, above `base` each (what they share with the one they were forked from)."""
    total, count, page = 0, 0, os.sysconf("SC_PAGE_SIZE")
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm") as file:
                total += max(0, int(file.read().split()[1]) * page - base)
            count += 1
        except (OSError, IndexError, ValueError):
            continue
    return Usage(count, total)


def end_descendants(patience: float = 10.0) -> bool:
    """Kill and reap every descendant of this process, orphans included where it is a subreaper. False: some are left."""
    deadline = time.monotonic() + patience
    while True:
        pids = descendants(os.getpid())
        for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first: none forks while the others are killed
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                if not pids:
                    return True
                break
        if time.monotonic() > deadline:
            return False
        if pids:
            time.sleep(0.002)


def end_tree(pid: int, patience: float = 5.0) -> None:
    """Kill a process that is not ours to reap in full, its descendants first."""
    deadline = time.monotonic() + patience
    while (pids := descendants(pid)) and time.monotonic() < deadline:
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for child in pids:
                with contextlib.suppress(OSError):
                    os.kill(child, number)
        time.sleep(0.005)
        if all(_is_zombie(child) for child in pids):
            break
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def _is_zombie(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"Z"
    except (OSError, IndexError):
        return True


def folder_size(path: str, most: int) -> Usage:
    """Entries and bytes below a folder; stops counting above `most` entries."""
    total, count, front = 0, 0, [path]
    while front and count <= most:
        try:
            with os.scandir(front.pop()) as entries:
                for entry in entries:
                    count += 1
                    try:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
                        if entry.is_dir(follow_symlinks=False):
                            front.append(entry.path)
                    except OSError:
                        continue
                    if count > most:
                        break
        except OSError:
            continue
    return Usage(count, total)


def remove_tree(path: str) -> None:
    """Remove a folder and all in it. Nested folders are first moved up, so no path grows long."""
    number = 0
    os.chmod(path, 0o700)
    while names := os.listdir(path):
        for name in names:
            full = os.path.join(path, name)
            try:
                if os.path.islink(full) or not os.path.isdir(full):
                    os.unlink(full)
                    continue
                os.chmod(full, 0o700)
                for inner in os.listdir(full):
                    source = os.path.join(full, inner)
                    if os.path.isdir(source) and not os.path.islink(source):
                        number += 1
                        os.chmod(source, 0o700)
                        os.rename(source, os.path.join(path, f".{number}.{os.getpid()}"))
                    else:
                        os.unlink(source)
                os.rmdir(full)
            except FileExistsError:
                continue  # a learner chose the name we move to; the next number is free
            except NotADirectoryError:
                continue
    os.rmdir(path)
