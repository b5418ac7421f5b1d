"""A table in a notebook: rows from code, shown as Markdown, so that no number in it is typed."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Show `rows` under `head`: whole numbers with thousands separators, floats with two decimals, text as it is.

    A column is right-aligned when its first cell is a number. Raises ValueError for a row of the wrong length.
    """
    from IPython.display import display  # not at the top: the look of a figure in a file needs no notebook

    rows = [list(row) for row in rows]
    for row in rows:
        if len(row) != len(head):
            raise ValueError(f"row {row!r} has {len(row)} cells; expected {len(head)}, one for each of {list(head)!r}")
    right = [bool(rows) and isinstance(cell, int | float) for cell in (rows[0] if rows else head)]
    lines = [_line(map(_text, head)), _line("---:" if r else ":---" for r in right), *(_line(map(_text, row)) for row in rows)]
    display({"text/markdown": "\n".join(lines), "text/plain": "\n".join(lines)}, raw=True)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _text(cell: object) -> str:
    if isinstance(cell, bool):
        return str(cell)
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:,.2f}" if isinstance(cell, float) else str(cell).replace("|", r"\|")
