"""The `kvlib` command. 0: answered. 1: not even one sequence fits (`budget`, `fit`), or a log
does not follow from the model (`explain-log`). 2: wrong input."""

import sys
from collections.abc import Sequence

from kvlib.launch import launch


def main(argv: Sequence[str] | None = None) -> int:
    """Run `kvlib` with `argv` (default: the process's arguments) and return the exit code."""
    return launch("kvlib", "kvlib.commands", argv)


def run() -> None:
    """Entry point of the console script."""
    sys.exit(main())


if __name__ == "__main__":
    run()
