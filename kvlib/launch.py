"""Runs a typer app as a command: picks the language, then turns wrong input into a message and an exit code.

What `kvlib` and `kvgrade` share. A command returns its exit code; 2 is wrong input, 130 an interrupt.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from kvlib import usage
from kvlib.errors import SpecError
from kvlib.i18n import LANGUAGES, T, language_from_locale, set_language


def launch(prog: str, module: str, argv: Sequence[str] | None = None) -> int:
    """Run the `app` of `module` with `argv` (default: the process's arguments) and return the exit code."""
    args, language = _take_language(list(sys.argv[1:] if argv is None else argv))
    set_language(language)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a console that lacks a character shows ? and no traceback
    app = import_module(module).app  # after the language is set: its help texts are in it

    try:
        return usage.command(app, args)(args, prog_name=prog, standalone_mode=False) or 0
    except ModuleNotFoundError as error:  # the bare library has what `kvlib` needs, not what a figure or `kvgrade` needs
        print(T(f"錯誤：這裡要用到 {error.name}，沒有安裝；pip install 'kvlib[book]'（在原始碼目錄裡：pip install -e '.[book]'）會裝齊",
                f"Error: this takes {error.name}, which is not installed; pip install 'kvlib[book]', or in a checkout pip install -e '.[book]', brings it"), file=sys.stderr)  # fmt: skip
        return 2
    except SpecError as error:
        print(T(f"錯誤：{error}", f"Error: {error}"), file=sys.stderr)
        return 2
    except Exception as error:  # typer's own usage errors: they know how to show themselves and their exit code
        if type(error).__name__ == "Abort":  # Ctrl-C
            return 130
        if not hasattr(error, "exit_code"):
            raise
        if hasattr(error, "show"):
            usage.show(error)
        return error.exit_code


def _take_language(args: list[str]) -> tuple[list[str], str]:
    """The arguments without --lang, wherever it stands, and the language; a wrong one stays, for typer to refuse."""
    args = [part for arg in args for part in (arg.split("=", 1) if arg.startswith("--lang=") else [arg])]
    language = language_from_locale(os.environ)
    while "--lang" in args and args[(i := args.index("--lang")) + 1 : i + 2] and args[i + 1] in LANGUAGES:
        language = args[i + 1]
        del args[i : i + 2]
    return args, language
