"""The files of a folder or a zip, found or unpacked safely.

Invariant: no name out of an archive ever becomes a path: what is unpacked lies under numbers in a folder of ours, regular files of
the wanted kinds only. Counts, sizes and ratios are checked before the work, and again while it is done.
"""

import io
import os
import stat
import time
import unicodedata
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from kvgrade.outcome import Message
from kvgrade.submission.cells import MAX_BYTES
from kvlib.errors import SpecError

WANTED = (".ipynb", ".py", ".yml")
MAX_FILES = 20_000
MAX_TOTAL = 2_000_000_000  # bytes unpacked from one archive
MAX_RATIO = 200  # unpacked / packed, above a megabyte
MAX_INNER = 50_000_000  # bytes of a zip inside a zip
MAX_INNER_FILES = 200
MAX_DIRECTORY = 64_000_000  # bytes of a zip's list of contents; a learner's zip may have a hundredth

_SKIPPED = {".ipynb_checkpoints", "__MACOSX", "__pycache__", ".git", ".venv"}
_BROKEN = (zipfile.BadZipFile, OSError, EOFError, zlib.error, RuntimeError, NotImplementedError, ValueError, MemoryError)


@dataclass(frozen=True)
class File:
    """One file: the parts of its name as handed in, where it is now, and when it was changed.

    `outer`: how many of the parts, from the left, are not of the learner's own making: for a file out of a zip that a learner
    handed in, those up to that zip's name.
    """

    parts: tuple[str, ...]
    path: Path
    changed: tuple[int, ...]
    outer: int

    @property
    def name(self) -> str:
        return "/".join(self.parts)


@dataclass
class Found:
    """Files, and what was left out."""

    files: list[File] = field(default_factory=list)
    problems: list[Message] = field(default_factory=list)
    total: int = 0  # bytes unpacked
    unpacked: int = 0  # files

    def leave_out(self, id: str, name: str) -> None:
        self.problems.append(Message(id, {"file": name[:200]}))


def find(source: Path, scratch: Path) -> Found:
    """The submitted files in a folder or zip; what must be unpacked goes to `scratch`. Raises SpecError."""
    found = Found()
    if source.is_dir():
        _walk(source, scratch, found)
    elif source.is_file() and zipfile.is_zipfile(source):
        with source.open("rb") as file:
            if not _unpack(file, (), scratch, found, inner=False):
                raise SpecError(f"{source.name} cannot be read as a zip; download it again")
    else:
        raise SpecError(f"{source} is no folder and no zip; give the folder or the zip that your LMS let you download")
    found.files.sort(key=lambda f: f.parts)
    return found


def _walk(folder: Path, scratch: Path, found: Found) -> None:
    for root, folders, names in os.walk(folder):
        here = Path(root)
        for name in [name for name in folders if (here / name).is_symlink()]:
            found.leave_out("archive-link", (here / name).relative_to(folder).as_posix())
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not (here / name).is_symlink())
        for name in sorted(names):
            path = here / name
            parts = path.relative_to(folder).parts
            if not _wanted(name) and not name.lower().endswith(".zip"):
                continue
            if path.is_symlink() or not path.is_file():
                found.leave_out("archive-link", "/".join(parts))
            elif len(found.files) >= MAX_FILES:
                raise SpecError(f"{folder.name} holds more than {MAX_FILES:,} files; give the folder of submissions alone")
            elif _wanted(name):
                changed = time.localtime(path.stat().st_mtime)[:6]
                found.files.append(File(_nfc(parts), path, tuple(changed), len(parts)))
            else:
                with path.open("rb") as file:
                    _inner(file, path.stat().st_size, _nfc((*parts[:-1], path.stem)), "/".join(parts), scratch, found)


def _unpack(file: io.IOBase, above: tuple[str, ...], scratch: Path, found: Found, inner: bool) -> bool:
    """Unpack an open zip; `above`: the parts of the name that it stands for. False when it cannot be read."""
    try:
        if _directory_bytes(file) > MAX_DIRECTORY // (100 if inner else 1):
            return False
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            if len(infos) > (MAX_INNER_FILES if inner else MAX_FILES):
                return False
            for info in infos:
                _take(archive, info, above, scratch, found, inner)
    except _BROKEN:
        return False
    return True


def _take(archive: zipfile.ZipFile, info: zipfile.ZipInfo, above: tuple[str, ...], scratch: Path, found: Found,
          inner: bool) -> None:  # fmt: skip
    name = _decoded(info)
    parts = PurePosixPath(name.replace("\\", "/")).parts
    is_zip = name.lower().endswith(".zip") and not inner
    if info.is_dir() or not parts or set(parts) & _SKIPPED or not (_wanted(parts[-1]) or is_zip):
        return
    mode = info.external_attr >> 16
    limit = MAX_INNER if is_zip else MAX_BYTES
    if parts[0].startswith("/") or ".." in parts or ":" in parts[0]:
        found.leave_out("archive-outside", name)
    elif mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        found.leave_out("archive-link", name)
    elif info.flag_bits & 1:
        found.leave_out("archive-encrypted", name)
    elif info.file_size > limit or (info.file_size > 1_000_000 and info.file_size > MAX_RATIO * max(1, info.compress_size)):
        found.leave_out("archive-too-large", name)
    else:
        try:
            path = _copy(archive, info, limit, scratch, found)
        except _BROKEN:
            found.leave_out("archive-broken", name)
            return
        if path is None:
            found.leave_out("archive-too-large", name)
        elif is_zip:
            with path.open("rb") as file:
                _inner(file, path.stat().st_size, _nfc((*parts[:-1], Path(parts[-1]).stem)), name, scratch, found)
            path.unlink()
        else:
            found.files.append(File((*above, *_nfc(parts)), path, tuple(info.date_time), len(above) or len(parts)))


def _copy(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int, scratch: Path, found: Found) -> Path | None:
    """Unpack one member, or None when it holds more than it says or than is allowed."""
    found.unpacked += 1
    path, size = scratch / f"{found.unpacked:06}{Path(info.filename).suffix.lower()}", 0
    with archive.open(info) as packed, path.open("wb") as out:
        while block := packed.read(1 << 16):
            size += len(block)
            found.total += len(block)
            if size > limit or found.total > MAX_TOTAL:
                out.close()
                path.unlink()
                return None
            out.write(block)
    return path


def _inner(file: io.IOBase, size: int, above: tuple[str, ...], name: str, scratch: Path, found: Found) -> None:
    """A zip that a learner handed in: its files are that learner's."""
    if size > MAX_INNER or not _unpack(file, above, scratch, found, inner=True):
        found.leave_out("archive-broken", name)


def _directory_bytes(file: io.IOBase) -> int:
    """How long a zip's list of contents says it is: read before anything is made of it."""
    file.seek(0, os.SEEK_END)
    end = file.tell()
    file.seek(max(0, end - 65_557))
    tail = file.read()
    file.seek(0)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) < at + 22:
        return 0
    return int.from_bytes(tail[at + 12 : at + 16], "little")


def _decoded(info: zipfile.ZipInfo) -> str:
    """The member's name. Without the UTF-8 flag zipfile reads it as cp437: take it back, and try UTF-8, then Big5 (cp950)."""
    if info.flag_bits & 0x800 or info.filename.isascii():
        return info.filename
    try:
        raw = info.filename.encode("cp437")
    except UnicodeEncodeError:
        return info.filename
    for encoding in ("utf-8", "cp950"):
        try:
            name = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        if encoding == "utf-8" or all(c.isascii() or "\u3000" <= c <= "\u9fff" or "\uff00" <= c <= "\uffef" for c in name):
            return name
    return info.filename


def _wanted(name: str) -> bool:
    return name.lower().endswith(WANTED) and not name.startswith("._")


def _nfc(parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(unicodedata.normalize("NFC", part) for part in parts)


