"""The look that all reports share: plain tables that fit into 80 columns, and lines that wrap.

rich is imported by those who print; JSON is answered without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kvlib.i18n import T
from kvlib.units import GB, GiB, format_bytes

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def console() -> Console:
    """Where reports go: no colours guessed into numbers, no pictures into names."""
    from rich.console import Console

    from kvlib.reports.wrap import wrap_chinese

    wrap_chinese()
    return Console(highlight=False, emoji=False)


def table(*columns: str, right: Iterable[int] = (), dim: Iterable[int] = (), fold: Iterable[int] = ()) -> Table:
    """A table without lines. columns: the headings; all empty means no heading. right, dim: numbers of the columns.

    fold: the columns that may take several lines when the table would be too wide.
    """
    from rich.table import Table

    made = Table(box=None, pad_edge=False, header_style="dim", show_header=any(columns))
    right, dim, fold = set(right), set(dim), set(fold)
    for i, name in enumerate(columns):
        made.add_column(name, justify="right" if i in right else "left", style="dim" if i in dim else None,
                        no_wrap=i not in fold, overflow="fold")  # fmt: skip
    return made


def show_table(out: Console, shown: Table) -> None:
    """A table, or where the screen is too narrow for it each of its rows in lines of its own: no digit is ever cut off."""
    if _width(out, shown) <= out.width:
        out.print(shown)
        return
    headings = [str(column.header).replace("\n", " ").strip() for column in shown.columns]
    for cells in zip(*(column.cells for column in shown.columns), strict=True):
        cells = [_plain(cell) for cell in cells]
        if not any(headings):
            say(out, "  ".join(filter(None, cells)), "")
            continue
        for heading, cell in zip(headings, cells, strict=True):
            if cell:
                say(out, f"{heading}{T('：', ': ')}{cell}" if heading else cell, "")
        out.print()


def _width(out: Console, shown: Table) -> int:
    """What the table needs: the columns that fold as wide as their longest word is, the others whole, two spaces between."""
    from rich.measure import Measurement
    from rich.text import Text

    wide = out.options.update(width=10_000)
    needed = 2 * (len(shown.columns) - 1)
    for column in shown.columns:
        sizes = [Measurement.get(out, wide, Text.from_markup(str(cell))) for cell in (column.header, *column.cells)]
        needed += max(s.maximum if column.no_wrap else s.minimum for s in sizes)
    return needed


def _plain(cell: object) -> str:
    """A cell in one line."""
    from rich.text import Text

    text = Text.from_markup(str(cell)).plain
    return text.replace("-\n", "-").replace("\n", " ").strip()


def literal(text: str) -> str:
    """A text as it stands, brackets and all."""
    from rich.markup import escape

    return escape(text)


def bold(text: str) -> str:
    """The same in bold."""
    return f"[bold]{literal(text)}[/]"


def say(out: Console, text: str, style: str = "dim", indent: str = "") -> None:
    """A text as it stands, in lines that fit and end without spaces."""
    from rich.text import Text

    for line in Text(text).wrap(out, out.width - len(indent), overflow="fold"):
        out.print(indent + line.plain.rstrip(), style=style, markup=False)


def sequences(n: int) -> str:
    """The word after a number of sequences."""
    return T("個序列", "sequence" if n == 1 else "sequences")


def size(n: int) -> str:
    """Bytes exactly, in a binary and in a decimal unit."""
    return f"[bold]{n:,} B[/] = [bold]{format_bytes(n)}[/] = {format_bytes(n, 'GB' if n >= GB // 10 else 'MB')}"


def gb(n: int) -> str:
    """Bytes in GB, with the minus sign of the book."""
    return f"{n / GB:,.2f}".replace("-", "−")


def gib(n: int) -> str:
    """Bytes in GiB, likewise."""
    return f"{n / GiB:,.2f}".replace("-", "−")


def show_notes(out: Console, notes: Iterable[str]) -> None:
    """What a person should know about an answer, each once."""
    for note in dict.fromkeys(notes):
        say(out, note, "yellow")
