"""The `kvlib` command: picks the language, runs a command, turns wrong input into a message and an exit code.

0: answered. 1: the model does not fit (`budget`). 2: wrong input.
"""

import os
import sys
from collections.abc import Sequence

from kvlib.errors import SpecError
from kvlib.i18n import LANGUAGES, T, language_from_locale, set_language


def main(argv: Sequence[str] | None = None) -> int:
    """Run `kvlib` with `argv` (default: the process's arguments) and return the exit code."""
    args, language = _take_language(list(sys.argv[1:] if argv is None else argv))
    set_language(language)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a console that lacks a character shows ? and no traceback
    from kvlib.commands import app  # after the language is set: its help texts are in it

    try:
        return app(args, prog_name="kvlib", standalone_mode=False) or 0
    except SpecError as error:
        print(T(f"錯誤：{error}", f"Error: {error}"), file=sys.stderr)
        return 2
    except Exception as error:  # typer's own usage errors: they know how to show themselves and their exit code
        if not hasattr(error, "exit_code"):
            raise
        if hasattr(error, "show"):
            error.show()
        return error.exit_code


def _take_language(args: list[str]) -> tuple[list[str], str]:
    """The arguments without --lang, wherever it stands, and the language; a wrong one stays, for typer to refuse."""
    args = [part for arg in args for part in (arg.split("=", 1) if arg.startswith("--lang=") else [arg])]
    language = language_from_locale(os.environ)
    while "--lang" in args and args[(i := args.index("--lang")) + 1 : i + 2] and args[i + 1] in LANGUAGES:
        language = args[i + 1]
        del args[i : i + 2]
    return args, language


def run() -> None:
    """Entry point of the console script."""
    sys.exit(main())


if __name__ == "__main__":
    run()
