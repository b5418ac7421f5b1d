"""The typer app that the commands join."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from kvlib.errors import SpecError
from kvlib.i18n import T

EXAMPLE = T("範例：", "Example: ")


def examples(*commands: str) -> str:
    """The end of a help text."""
    return "".join(f"\n\n{EXAMPLE}kvlib {command}" for command in commands)


class Commands(TyperGroup):
    """The commands; a number beyond those of a float is wrong input, wherever the arithmetic meets it."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except OverflowError as error:
            raise SpecError("a number is too large to calculate with; give fewer tokens, sequences or GB") from error


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help=T("KV 快取要多少記憶體，這些數字又是怎麼來的。", "How much memory a KV cache takes, and where the number comes from."),
    epilog=T("結束碼：0 算出答案（compare 就算都放不下也是 0）；1 一個序列也放不下（budget、fit），或紀錄與模型不符（explain-log）；"
             "2 輸入有誤：訊息在標準錯誤輸出，有 --json 時也一樣是文字。",
             "Exit codes: 0 answered (compare: even where nothing fits); 1 not even one sequence fits (budget, fit), or the log "
             "does not follow (explain-log); 2 wrong input: a message on stderr, plain text with --json too.")
    + examples("estimate llama-2-70b --tokens 4096 --batch 32", "budget llama-2-70b --gpu h100-80gb --gpus 2 --tokens 4096",
               "models --search gemma"),
)  # fmt: skip


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"kvlib {version('kvlib')}")
        raise typer.Exit


@app.callback()
def main(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help=T(
        "印出版本", "Print the version and exit."))] = False) -> None:  # fmt: skip
    """What `kvlib` understands before a command."""
