"""What typer says by itself: in the reader's language, and nothing of it cut off."""

from typing import Annotated

import pytest
import typer
from rich.cells import cell_len

from kvlib import i18n, usage

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


def test_an_option_with_two_names_keeps_both_in_an_error(monkeypatch, capsys):
    app = typer.Typer(rich_markup_mode="rich")

    @app.command()
    def command(tokens: Annotated[int, typer.Option("--tokens", "-n", min=1)] = 1, batch: Annotated[int, typer.Option(min=1)] = 1) -> None:
        """Nothing."""

    monkeypatch.setattr(i18n, "_language", "zh-TW")
    for option, said in (("--tokens", "--tokens / -n 的值不對：0 不在"), ("--batch", "--batch 的值不對：0 不在")):
        with pytest.raises(Exception, match="not in the range") as error:
            usage.command(app, [option, "0"])([option, "0"], standalone_mode=False)
        usage.show(error.value)
        assert f"錯誤：{said}" in capsys.readouterr().err
