"""A built notebook is one clean run from top to bottom, fit to be committed and compared."""

import json
import re
from collections.abc import Iterator

from nbformat import NotebookNode

from tools.execute import WIDGET_VIEW
from tools.lint.outputs import texts
from tools.lint.problem import Problem

MAX_BYTES = 500_000
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_PATH = re.compile(
    r"(?<![\w.:/])/(?:home|root|Users|usr|opt|tmp|var|private|mnt|work)/\S+|\b[A-Za-z]:\\\S+"
)


def lint_built(nb: NotebookNode, name: str) -> list[Problem]:
    """Execution counts, errors, warnings, widget state, paths, alternative texts, size."""
    problems = []
    size = len(json.dumps(nb, ensure_ascii=False).encode())
    if size >= MAX_BYTES:
        message = f"{size // 1000} kB, allowed {MAX_BYTES // 1000}; make its figures smaller"
        problems.append(Problem(name, message))
    if "widgets" in nb.metadata:
        problems.append(Problem(name, "holds widget state; build it with python -m tools.build"))
    code = [(i, cell) for i, cell in enumerate(nb.cells, start=1) if cell.cell_type == "code"]
    for count, (index, cell) in enumerate(code, start=1):
        following = [cell for _, cell in code[count : count + 2]]
        messages = [*_run(cell, count), *_outputs(cell), *_static(cell, following)]
        problems += [Problem(f"{name} cell {index}", message) for message in messages]
    return problems


def _run(cell: NotebookNode, count: int) -> Iterator[str]:
    if cell.source and cell.execution_count is None:
        yield "was never run, and nbval would pass it silently; build the notebook"
    elif cell.source and cell.execution_count != count:
        yield f"has execution count {cell.execution_count}, in a clean run {count}; build the notebook"


def _outputs(cell: NotebookNode) -> Iterator[str]:
    for output in cell.outputs:
        if output.output_type == "error":
            yield f"raised {output.ename}; catch what the cell wants to show, and print it"
        if output.get("name") == "stderr":
            yield f"wrote to stderr, often a warning; silence its cause: {output.text.strip()[:80]}"
        data = output.get("data", {})
        if WIDGET_VIEW in data:
            yield "keeps a widget model that dies with its kernel; build the notebook"
        for picture in (kind for kind in data if kind.startswith("image/")):
            if not output.metadata.get(picture, {}).get("alt", "").strip():
                yield f"shows {picture} without a text alternative; use figure(fig, alt=…, caption=…)"
    for text in texts(cell):
        for kind, pattern in (("an address", _ADDRESS), ("an absolute path", _PATH)):
            if found := pattern.search(text):
                yield f"prints {kind}, which differs on every machine: {found[0]}"


def _static(cell: NotebookNode, following: list[NotebookNode]) -> Iterator[str]:
    """A widget shows nothing on GitHub or on paper: the same must follow, fixed."""
    if _is_widget(cell) and not any(after.outputs and not _is_widget(after) for after in following):
        yield "is a widget; let one of the next two code cells show the same at fixed points"


def _is_widget(cell: NotebookNode) -> bool:
    return "widget" in cell.metadata.get("tags", [])
