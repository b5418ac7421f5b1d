"""The `kvlib` command: picks the language, runs a command, turns wrong input into a message and an exit code.

0: answered. 1: the model does not fit (`budget`). 2: wrong input.
"""

import os
import sys
from collections.abc import Sequence
from itertools import pairwise

from kvlib.errors import SpecError
from kvlib.i18n import LANGUAGES, T, language_from_locale, set_language


def main(argv: Sequence[str] | None = None) -> int:
    """Run `kvlib` with `argv` (default: the process's arguments) and return the exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    set_language(_language(args))
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


def _language(args: list[str]) -> str:
    """The last --lang on the command line, else the locale's. A wrong one is left for typer to refuse."""
    given = [b for a, b in pairwise(args) if a == "--lang"]
    given += [a.removeprefix("--lang=") for a in args if a.startswith("--lang=")]
    return given[-1] if given and given[-1] in LANGUAGES else language_from_locale(os.environ)


def run() -> None:
    """Entry point of the console script."""
    sys.exit(main())


if __name__ == "__main__":
    run()
