"""What typer says by itself: in the reader's language, and nothing of it cut off."""

from typing import Annotated

import pytest
import typer
from rich.cells import cell_len

from kvlib import usage

LONG = "很長的中文說明沒有空格可以換行" * 6


@pytest.mark.parametrize("columns", [80, 50])
def test_long_chinese_help_folds(monkeypatch, capsys, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", None)
    app = typer.Typer(help=LONG, rich_markup_mode="rich")

    @app.command(help=LONG, epilog=LONG)
    def command(name: Annotated[str, typer.Option(help=LONG)] = "x") -> None:
        """Nothing."""

    usage.command(app, ["--help"])(["--help"], standalone_mode=False)
    text = capsys.readouterr().out
    assert "…" not in text
    assert max(map(cell_len, text.splitlines())) <= columns
    squeezed = "".join(c for c in text if "\u4e00" <= c <= "\u9fff")
    assert squeezed.count(LONG) >= 3, "every character of the help, the epilog and the option's help"
