"""The one figure that the README shows: taken from a built chapter, so that it cannot go stale unseen.

A code cell tagged `readme` gives its PNG to ``assets/<slug>.<lang>.png``.
"""

import base64
from pathlib import Path

from nbformat import NotebookNode

TAG = "readme"


def picture(nb: NotebookNode) -> bytes | None:
    """The PNG of the cell tagged `readme`, or None where the notebook has no such cell."""
    for cell in nb.cells:
        if TAG in cell.metadata.get("tags", ()):
            pictures = [o.data["image/png"] for o in cell.get("outputs", ()) if "image/png" in o.get("data", {})]
            return base64.b64decode(pictures[0]) if pictures else None
    return None


def path(root: Path, slug: str, lang: str) -> Path:
    return root / "assets" / f"{slug}.{lang}.png"


def write(root: Path, slug: str, lang: str, nb: NotebookNode) -> None:
    """Put the notebook's picture in its place, if it has one."""
    if data := picture(nb):
        target = path(root, slug, lang)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(data)


def difference(root: Path, slug: str, lang: str, nb: NotebookNode) -> str | None:
    """What is wrong with the notebook's picture in assets, or None."""
    data, target = picture(nb), path(root, slug, lang)
    if data and (not target.is_file() or target.read_bytes() != data):
        return f"{target.relative_to(root).as_posix()} is not the figure of {slug} [{lang}]; run make build ARGS=--force"
    return None
