"""What typer itself says, in the reader's language: the frame of a help text, and wrong usage.

Invariant: no help text is cut off: Chinese has no spaces to break at, and typer's tables would end such a line in "…". Words that
typer may add some day stay in English.
"""

import io
import re
import sys
from collections.abc import Sequence
from typing import Any

import typer

from kvlib.i18n import T, language
from kvlib.reports.wrap import wrap_chinese

_CHINESE = (
    (r"Usage: ", "用法："),
    (r"Try '(.+)' for help\.", r"說明：\1"),
    (r"Error: ", "錯誤："),
    (r"No such command '(.*?)'\.", r"沒有 \1 這個命令。"),
    (r"No such option: (\S+)", r"沒有 \1 這個選項"),
    (r" ?Did you mean (.+?)\?", r"是不是 \1？"),
    (r" \(Possible options: (.+)\)", r"（相近的有：\1）"),
    (r"Missing argument '(.+)'\.", r"缺少引數 \1。"),
    (r"Got unexpected extra argument(?:s|\(s\))? \((.+)\)", r"多了引數：\1"),
    (r"Option '(.+)' requires an argument\.", r"選項 \1 後面要有值。"),
    (r"Invalid value for '?([^':]+)'?(?:( / )'([^']+)')?: ", r"\1\2\3 的值不對："),
    (r"'([^']*)' is not a valid (?:int|float|integer)(?: range)?\.", r"\1 不是數字。"),
    (r"(\S+) is not in the range (.+)\.", r"\1 不在範圍 \2 內。"),
    (r"'([^']*)' is not one of (.+)\.", r"\1 不是 \2 之一。"),
)


def command(app: typer.Typer, args: Sequence[str]) -> Any:
    """The app's command, ready to be called with these arguments."""
    top = typer.main.get_command(app)
    if not args or {"-h", "--help"} & set(args):
        _dress()
        above = typer.Context(top, **top.context_settings)
        for each in (top, *getattr(top, "commands", {}).values()):
            if option := each.get_help_option(above if each is top else typer.Context(each, parent=above)):
                option.help = T("顯示這份說明", "Show this message and exit.")
    return top


def show(error: Any) -> None:
    """A usage error on stderr."""
    text = io.StringIO()
    error.show(text)
    said = text.getvalue()
    for english, chinese in _CHINESE if language() == "zh-TW" else ():
        said = re.sub(english, chinese, said)
    print(said, end="", file=sys.stderr)


def _dress() -> None:
    """The panels' titles, and text that folds where it does not fit."""
    from typer import rich_utils

    wrap_chinese()

    class Folding(rich_utils.OptionHighlighter):
        def __call__(self, text: Any) -> Any:
            if isinstance(text, str):
                text = text.replace("Usage: ", T("用法：", "Usage: "), 1)
            shown = super().__call__(text)
            shown.overflow = "fold"
            return shown

    rich_utils.highlighter = Folding()
    rich_utils.ARGUMENTS_PANEL_TITLE = T("引數", "Arguments")
    rich_utils.OPTIONS_PANEL_TITLE = T("選項", "Options")
    rich_utils.COMMANDS_PANEL_TITLE = T("命令", "Commands")
    rich_utils.REQUIRED_LONG_STRING = T("（必填）", "[required]")
    rich_utils.DEFAULT_STRING = T("（預設 {}）", "[default: {}]")
