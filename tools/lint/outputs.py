"""What a cell's outputs say, as text."""

from collections.abc import Iterator

from nbformat import NotebookNode

TEXT_TYPES = ("text/plain", "text/markdown", "text/html", "text/latex")


def texts(cell: NotebookNode) -> Iterator[str]:
    """Every text of a code cell's outputs, streams among them."""
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            yield output.text
        data = output.get("data", {})
        yield from (data[kind] for kind in TEXT_TYPES if kind in data)
