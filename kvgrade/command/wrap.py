"""Lines of at most so many columns, for text in which Chinese and Latin stand side by side.

Invariant: joined again, the lines hold the same characters, spaces at the breaks apart.
"""

import functools
import re
from collections.abc import Iterator

from rich.cells import cell_len

_WIDE = r"\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef"  # scripts that break anywhere
_PIECES = re.compile(rf"\s+|[{_WIDE}]|[^\s{_WIDE}]+")
_NEVER_FIRST = set("，。、；：！？）」』》〉】…—,.;:!?)]}")
_NEVER_LAST = set("（「『《〈【([{")
_LEAD = re.compile(r"\s*(?:[-*+]\s+|\d+\.\s+|>\s*|#+\s+)?")
_KEPT = re.compile(r"\s*(?:\||```|~~~|\$\$|<)| {4,}\S")


def wrap(text: str, width: int) -> list[str]:
    """One paragraph as lines of at most `width` columns. What is wider than a line and has no place to break is cut."""
    lines, line = [], ""
    for unit in _units(text.strip()):
        if cell_len(line + unit) > width and not unit.isspace():
            if line.strip():
                lines.append(line.rstrip())
            line = ""
            while cell_len(unit) > width:
                head = next(n for n in range(len(unit), 0, -1) if cell_len(unit[:n]) <= width or n == 1)
                lines.append(unit[:head])
                unit = unit[head:]
        line += unit if line or not unit.isspace() else ""
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def wrap_markdown(text: str, width: int) -> Iterator[str]:
    """Markdown whose paragraphs and list items fit `width`; code, tables and formulas on lines of their own stay as they are."""
    for block in _blocks(text.splitlines()):
        if all(cell_len(line) <= width for line in block) or _KEPT.match(block[0]):
            yield from block
            continue
        lead = _LEAD.match(block[0])[0]
        joined = functools.reduce(_join, (line.strip() for line in block[1:]), block[0][len(lead) :])
        first, *rest = wrap(joined, width - len(lead))
        yield lead + first
        yield from (" " * len(lead) + line for line in rest)


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Lines that belong together: a fence, a formula, a paragraph, one item of a list."""
    block: list[str] = []
    fence = ""
    for line in lines:
        mark = next((m for m in ("```", "~~~", "$$") if line.lstrip().startswith(m)), "")
        if fence:
            block.append(line)
            if mark == fence or line.rstrip().endswith(fence):
                fence = ""
                yield block
                block = []
            continue
        begins = mark or not line.strip() or _LEAD.match(line)[0].strip() or _KEPT.match(line)
        if block and (begins or not block[-1].strip() or _KEPT.match(block[-1])):
            yield block
            block = []
        block.append(line)
        if mark and not (mark == "$$" and line.count("$$") > 1):
            fence = mark
    if block:
        yield block


def _join(before: str, after: str) -> str:
    apart = "" if re.search(rf"[{_WIDE}]$", before) and re.match(rf"[{_WIDE}]", after) else " "
    return before + apart + after


def _units(text: str) -> Iterator[str]:
    """What must not be broken: a Latin word or a Han character, with the marks that open before and close behind it."""
    unit = ""
    for piece in _PIECES.findall(text):
        glued = unit and not unit.isspace() and (set(piece) <= _NEVER_FIRST or set(unit) <= _NEVER_LAST) and not piece.isspace()
        if not glued:
            if unit:
                yield unit
            unit = ""
        unit += piece
    if unit:
        yield unit
