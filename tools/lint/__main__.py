"""python -m tools.lint: print every problem of the book; exit 1 if there is one."""

import sys
from pathlib import Path

from tools.book import ROOT
from tools.lint import lint_book
from tools.source import SourceError


def main(root: Path = ROOT) -> int:
    """Print the problems of the books under a root; returns the exit code."""
    try:
        problems = lint_book(root)
    except SourceError as error:
        print(error)
        return 1
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
