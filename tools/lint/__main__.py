"""python -m tools.lint: print every problem of the book; exit 1 if there is one."""

import sys

from tools.book import Book
from tools.lint import lint_book
from tools.source import SourceError


def main(book: Book | None = None) -> int:
    """Print the problems of a book; returns the exit code."""
    try:
        problems = lint_book(book or Book())
    except SourceError as error:
        print(error)
        return 1
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
