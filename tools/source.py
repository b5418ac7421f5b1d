"""One chapter source, both languages: read it, and say what each language's notebook holds.

Invariants: every prose cell names its language; code cells belong to both languages and are
the same in both, but for the one line that sets ``LANG``; a cell's id depends on that cell
alone, so inserting a cell renames no other.
"""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import jupytext
import nbformat

LANGUAGES = ("en", "zh-TW")
KNOWN_METADATA = {"code": {"tags", "exercise"}, "markdown": {"tags", "lang", "numbers", "exercise"}}
HIDDEN = "figure"  # tag of a cell that is one figure(…) call: built with its source folded away
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}

_LANG_LINE = re.compile(r'^LANG = "en"', re.MULTILINE)
_CJK = "\u3000-\u303f\u4e00-\u9fff\uff00-\uffef"
_WRAPPED_CHINESE = re.compile(rf"(?<=[{_CJK}])\n *(?=\*{{0,2}}[{_CJK}])")
_SWALLOWED = re.compile(r"^(\+\+\+.*|`{3,}\{code-cell.*)$", re.MULTILINE)


class SourceError(Exception):
    """A chapter source that cannot become two notebooks; the message says where and what to do."""


@dataclass(frozen=True)
class Cell:
    """One cell of a source. ``lang`` is None for code, which both languages share."""

    kind: str  # "markdown" or "code"
    text: str
    line: int  # of its first line in the source file
    metadata: dict = field(default_factory=dict)

    @property
    def lang(self) -> str | None:
        return self.metadata.get("lang")

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(self.metadata.get("tags", ()))


@dataclass(frozen=True)
class Source:
    """A parsed chapter source."""

    path: Path
    cells: tuple[Cell, ...]
    metadata: dict = field(default_factory=dict)  # the front matter

    @property
    def slug(self) -> str:
        return self.path.stem

    @classmethod
    def read(cls, path: Path) -> "Source":
        """Parse a MyST source. Raises SourceError with file, line and remedy."""
        text = path.read_text(encoding="utf-8")
        parsed = jupytext.reads(text, fmt="md:myst")
        cells = tuple(_locate(parsed.cells, text))
        for cell in cells:
            if problem := _problem(cell):
                raise SourceError(f"{path}:{cell.line}: {problem}")
        code = [cell for cell in cells if cell.kind == "code"]
        first = code[0] if code else None
        if not first or "parameters" not in first.tags or len(_LANG_LINE.findall(first.text)) != 1:
            raise SourceError(
                f"{path}:{first.line if first else 1}: the first code cell must be tagged "
                '`parameters` and hold the line LANG = "en" once; the builder sets it per language'
            )
        return cls(path, cells, dict(parsed.metadata))

    def notebook(self, lang: str) -> nbformat.NotebookNode:
        """The notebook of one language, without outputs."""
        nb = nbformat.v4.new_notebook(metadata={"kernelspec": dict(KERNELSPEC)})
        seen: Counter[str] = Counter()
        parameters_seen = False
        for cell in self.cells:
            seen[identity := _identity(cell)] += 1
            if cell.lang not in (None, lang):
                continue
            text = cell.text
            if lang == "zh-TW" and cell.kind == "markdown":
                text = _WRAPPED_CHINESE.sub("", text)  # a browser would show the line break as a space
            if cell.kind == "code" and not parameters_seen:
                text, parameters_seen = _LANG_LINE.sub(f'LANG = "{lang}"', text), True
            metadata = dict(cell.metadata)
            if HIDDEN in cell.tags:  # readers see the figure; its words are below it anyway
                metadata["jupyter"] = {"source_hidden": True}
            new = getattr(nbformat.v4, f"new_{cell.kind}_cell")
            copy = "" if seen[identity] == 1 else f"-{seen[identity]}"
            nb.cells.append(new(text, id=identity + copy, metadata=metadata))
        return nb


def _identity(cell: Cell) -> str:
    return hashlib.sha256(f"{cell.kind}\n{cell.text}".encode()).hexdigest()[:12]


def _locate(nodes: list[nbformat.NotebookNode], text: str) -> list[Cell]:
    """jupytext's cells with the line each begins on."""
    cells, position = [], 0
    for node in nodes:
        body = node.source.strip("\n")
        found = text.find(body, position)
        if found >= 0:
            position = found + len(body)
        metadata = {k: v for k, v in node.metadata.items() if k != "lines_to_next_cell"}
        line = text.count("\n", 0, max(found, 0)) + 1
        cells.append(Cell(node.cell_type, body, line, metadata))
    return cells


def _problem(cell: Cell) -> str | None:
    """What is wrong with one cell, or None."""
    if cell.kind not in KNOWN_METADATA:
        return f"a {cell.kind} cell; a chapter has prose and code cells only"
    if unknown := sorted(set(cell.metadata) - KNOWN_METADATA[cell.kind]):
        known = ", ".join(sorted(KNOWN_METADATA[cell.kind]))
        return f"unknown metadata {', '.join(unknown)} on a {cell.kind} cell; known: {known}"
    if cell.kind == "code":
        return None
    if cell.lang not in LANGUAGES:
        given = "no language" if cell.lang is None else f"language {cell.lang!r}"
        return f'prose with {given}; begin it with +++ {{"lang": "en"}} or +++ {{"lang": "zh-TW"}}'
    if swallowed := _SWALLOWED.search(cell.text):
        return (
            f"`{swallowed[1]}` was read as prose; put an empty line before it "
            "(Markdown lets an HTML block run on until one)"
        )
    return None
