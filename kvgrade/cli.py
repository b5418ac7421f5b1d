"""The `kvgrade` command. 0: at least one answer, and every answer has full points. 1: not so. 2: wrong input."""

import os
import sys
from collections.abc import Sequence

from kvlib.launch import launch


def main(argv: Sequence[str] | None = None) -> int:
    """Run `kvgrade` with `argv` (default: the process's arguments) and return the exit code."""
    return launch("kvgrade", "kvgrade.command.commands", argv)


def run() -> None:
    """Entry point of the console script."""
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before anything imports torch: our own wrong kernels run here
    sys.exit(main())


if __name__ == "__main__":
    run()
