"""A learner's file as cells: text and metadata, nothing executed, outputs never looked at.

Invariant: whatever bytes come in, out come cells of plain text or an `Unreadable` that says what is wrong. Every size is
checked before the work that it would cause. Plain `json`, not `nbformat`: one malformed cell must not cost the others.
"""

import json
import re
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kvgrade.messages import say
from kvgrade.outcome import Message
from kvlib.errors import SpecError
from kvlib.i18n import LANGUAGES

MAX_BYTES = 20_000_000
MAX_CELLS = 2_000
MAX_DEPTH = 64
MAX_CODE = 500_000  # characters of all code cells
MAX_CELL = 200_000  # characters of one cell's source

_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_PY_CELL = re.compile(r"^(?=#\s*%%)|(?<!# %%\n)^(?=#\s*kvgrade:)", re.MULTILINE)  # `# %%` above a marker is the same cell


class Unreadable(SpecError):
    """A file that cannot be read as a submission. `message`: what is wrong, for the catalogue."""

    def __init__(self, id: str, **fields: Any) -> None:
        self.message = Message(id, fields)
        super().__init__(say(id, fields))


@dataclass(frozen=True)
class Cell:
    """One cell. `number`: its place in the file, from 1; in a Python file the line at which it begins. `kind`: "code",
    "markdown", … `part`: where a cell was taken apart."""

    number: int
    kind: str
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)
    part: int = 0
    unit: str = "cell"  # what `number` counts: "cell" or "line"

    @property
    def where(self) -> dict[str, str]:
        """Its place in words."""
        return place(self.number, self.unit)

    @property
    def key(self) -> tuple[int, int]:
        """Orders the cells of a file."""
        return self.number, self.part

    def with_text(self, text: str, part: int = 0) -> "Cell":
        """The same cell with other text."""
        return replace(self, text=text, part=part)

    def about(self, name: str) -> dict[str, Any]:
        """What a tool noted in its metadata, whatever form that has."""
        found = self.metadata.get(name)
        return found if isinstance(found, dict) else {}


def place(number: int, unit: str = "cell") -> dict[str, str]:
    """A place in a file, in words, per language."""
    return {lang: say(f"place-{unit}", {"number": number}, lang) for lang in LANGUAGES}


def read_cells(path: Path) -> tuple[list[Cell], list[Message]]:
    """The cells of a notebook (.ipynb, nbformat 4) or of a Python file, and what was wrong with some. Raises Unreadable."""
    if path.suffix.lower() not in (".ipynb", ".py"):
        raise Unreadable("file-kind", file=path.name)
    text = _text(path)
    return _notebook(text) if path.suffix.lower() == ".ipynb" else _python(text)


def unreadable(path: Path, error: OSError) -> Message:
    """Why the system gives no file, in our own words."""
    known = {FileNotFoundError: "file-absent", PermissionError: "file-forbidden"}.get(type(error))
    return Message(known, {"file": path.name}) if known else Message("file-unreadable", {"why": type(error).__name__})


def _text(path: Path) -> str:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("file-kind", file=path.name)
        if status.st_size > MAX_BYTES:
            raise Unreadable("file-too-large", size=f"{status.st_size:,}", limit=f"{MAX_BYTES:,}")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        message = unreadable(path, error)
        raise Unreadable(message.id, **message.fields) from None
    if len(data) > MAX_BYTES:
        raise Unreadable("file-too-large", size=f"{len(data):,}", limit=f"{MAX_BYTES:,}")
    if b"\0" in data:
        raise Unreadable("file-nul")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise Unreadable("file-not-utf8") from None


def _notebook(text: str) -> tuple[list[Cell], list[Message]]:
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        depth += match[0] in "[{"
        depth -= match[0] in "]}"
        if depth > MAX_DEPTH:
            raise Unreadable("file-nested", limit=MAX_DEPTH)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError, MemoryError):
        raise Unreadable("file-not-json") from None
    if not isinstance(data, dict) or not isinstance(data.get("nbformat"), int):
        raise Unreadable("file-not-notebook")
    if data["nbformat"] != 4:
        raise Unreadable("file-nbformat", got=str(data["nbformat"])[:20])
    raw = data.get("cells")
    if not isinstance(raw, list):
        raise Unreadable("file-not-notebook")
    if len(raw) > MAX_CELLS:
        raise Unreadable("file-too-many-cells", got=f"{len(raw):,}", limit=f"{MAX_CELLS:,}")
    cells, problems = [], []
    for number, item in enumerate(raw, start=1):
        if cell := _cell(number, item):
            cells.append(cell)
        else:
            problems.append(Message("cell-malformed", {"cell": place(number)}))
    return _bounded(cells), problems


def _bounded(cells: list[Cell]) -> list[Cell]:
    if len(cells) > MAX_CELLS:
        raise Unreadable("file-too-many-cells", got=f"{len(cells):,}", limit=f"{MAX_CELLS:,}")
    if (code := sum(len(cell.text) for cell in cells if cell.kind == "code")) > MAX_CODE:
        raise Unreadable("file-too-much-code", got=f"{code:,}", limit=f"{MAX_CODE:,}")
    return cells


def _cell(number: int, item: Any) -> Cell | None:
    if not isinstance(item, dict) or not isinstance(item.get("cell_type"), str):
        return None
    source = item.get("source")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str) or len(source) > MAX_CELL or not _is_text(source):
        return None
    metadata = item.get("metadata")
    return Cell(number, item["cell_type"], source.replace("\r\n", "\n"), metadata if isinstance(metadata, dict) else {})


def _is_text(source: str) -> bool:
    return "\0" not in source and not any("\ud800" <= c <= "\udfff" for c in source)


def _python(text: str) -> tuple[list[Cell], list[Message]]:
    """A Python file's cells begin at the lines `# kvgrade: ID` and `# %%`."""
    cells, problems = [], []
    line = 1
    for part in _PY_CELL.split(text):
        number, line = line, line + part.count("\n")
        if len(part) > MAX_CELL:
            problems.append(Message("cell-malformed", {"cell": place(number, "line")}))
        elif part.strip():
            kind = "markdown" if re.match(r"#\s*%%.*\[(?:markdown|raw)\]", part) else "code"
            cells.append(Cell(number, kind, part, unit="line"))
    return _bounded(cells), problems
