"""Code cells that can be read at a glance, and whose output nbval can compare."""

import re
import statistics
import unicodedata

from tools.lint.problem import Problem
from tools.lint.python import has_han, prints, syntax_error, trailing_semicolons, translations
from tools.lint.quantities import stated
from tools.sheet import role_of
from tools.source import HIDDEN, Cell, Source

MAX_LINES, MEDIAN_LINES, MAX_COLUMNS = 10, 5, 80
MAX_COLUMNS_FOLDED = 100  # of a figure(…) call, which readers do not see
MAX_COLUMNS_PUBLIC = 120  # of public checks, which are in no notebook
MAX_LINES_BY_ROLE = {"given": 40, "starter": 40, "solution": 60, "public": 40}  # an answer is one cell, whole
_SILENCED = re.compile(
    r"nbval-skip|(?:nbval-)?raises-exception|\b(?:NBVAL|PYTEST_VALIDATE)_[A-Z_]+"
)


def lint_code(source: Source, name: str) -> list[Problem]:
    """Length and width of code cells, semicolons, prints, translations."""
    cells = [cell for cell in source.cells if cell.kind == "code"]
    problems = []
    for cell in cells:
        problems += [Problem(f"{name}:{cell.line} (code)", message) for message in _messages(cell, MAX_LINES)]
    median = statistics.median([_length(cell) for cell in cells if HIDDEN not in cell.tags])
    if median > MEDIAN_LINES:
        message = f"the median code cell has {median:g} lines, allowed {MEDIAN_LINES}; split the long ones"
        problems.append(Problem(name, message))
    return problems


def lint_sheet_code(source: Source, name: str) -> list[Problem]:
    """The same for the cells of a sheet, where what is an answer, or stands around one, may be longer."""
    cells = [cell for cell in source.cells if cell.kind == "code"]
    return [Problem(f"{name}:{cell.line} (code)", message)
            for cell in cells for message in _messages(cell, MAX_LINES_BY_ROLE.get(role_of(cell), MAX_LINES))]  # fmt: skip


def _messages(cell: Cell, max_lines: int) -> list[str]:
    messages = []
    if error := syntax_error(cell.text):
        messages.append(f"not Python: {error}")
    if silenced := _SILENCED.search(" ".join((cell.text, *cell.tags))):
        messages.append(
            f"{silenced[0]} hides this cell from nbval; only the tag nbval-ignore-output may"
        )
    if HIDDEN in cell.tags:
        if not cell.text.startswith("figure("):
            messages.append(
                f"tagged {HIDDEN} its source is folded away, so it holds one figure(…) call and nothing else"
            )
    elif (length := _length(cell)) > max_lines:
        messages.append(
            f"{length} lines, allowed {max_lines}; split the cell, or move code to kvlib"
        )
    allowed = MAX_COLUMNS_FOLDED if HIDDEN in cell.tags else MAX_COLUMNS_PUBLIC if "public" in cell.tags else MAX_COLUMNS
    for line in cell.text.splitlines():
        if (width := _columns(line)) > allowed:
            messages.append(
                f"{width} columns, allowed {allowed} (Chinese takes two): {line.strip()}"
            )
    for line in trailing_semicolons(cell.text):
        messages.append(f"trailing ; does not hide output under nbval, write `_ = …`: {line}")
    if (count := prints(cell.text)) > 1:
        messages.append(
            f"{count} prints; keep one per cell, so that one output belongs to one cell"
        )
    for chinese, english in translations(cell.text):
        if has_han(english) and not has_han(chinese):
            messages.append(f"T takes Chinese first, English second: T({chinese!r}, {english!r})")
        elif sorted(stated(chinese)) != sorted(stated(english)):
            messages.append(f"numbers differ in T({chinese!r}, {english!r})")
    return messages


def _length(cell: Cell) -> int:
    return sum(bool(line.strip()) for line in cell.text.splitlines())


def _columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line)
