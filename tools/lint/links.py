"""Every relative link leads somewhere: to a file that exists, and to a heading in it."""

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

import nbformat

from tools.lint.markdown import parse
from tools.lint.problem import Problem


def lint_links(path: Path, name: str) -> list[Problem]:
    """Broken relative links of a notebook or a Markdown file."""
    problems = []
    for index, text in enumerate(_passages(path), start=1):
        where = f"{name} cell {index}" if path.suffix == ".ipynb" else name
        for link in parse(text).links:
            if (
                "://" not in link
                and not link.startswith("mailto:")
                and (message := _broken(link, path))
            ):
                problems.append(Problem(where, message))
    return problems


def _broken(link: str, page: Path) -> str | None:
    target, _, anchor = unquote(link).partition("#")
    file = page.parent / target if target else page
    if not file.exists():
        return f"link to {link}: there is no {target} beside this page; correct or remove it"
    if anchor and file.suffix in (".ipynb", ".md"):
        anchors = {
            _anchor(text, file) for part in _passages(file) for _, text in parse(part).headings
        }
        if anchor not in anchors:
            return f"link to {link}: no heading gives #{anchor}; there are {', '.join(sorted(anchors))}"
    return None


def _anchor(heading: str, file: Path) -> str:
    """The anchor JupyterLab (notebooks) or GitHub (Markdown) makes of a heading."""
    if file.suffix == ".ipynb":
        return heading.replace(" ", "-")
    return "".join(c for c in heading.lower().replace(" ", "-") if c.isalnum() or c in "-_")


def _passages(path: Path) -> Iterable[str]:
    """A page's Markdown; of a notebook one passage per cell, empty for code."""
    if path.suffix != ".ipynb":
        return [path.read_text(encoding="utf-8")]
    cells = nbformat.read(path, as_version=4).cells
    return [cell.source if cell.cell_type == "markdown" else "" for cell in cells]
