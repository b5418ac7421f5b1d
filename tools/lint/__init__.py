"""The book's own lints: pure functions from a text to a list of problems, each with its fix.

``python -m tools.lint`` prints what they find.
"""

from pathlib import Path

from tools.book import Book, files, read
from tools.editions import Sheets, books
from tools.lint.anatomy import lint_anatomy
from tools.lint.built import lint_built
from tools.lint.chinese import lint_chinese, lint_python_twins
from tools.lint.code import lint_code
from tools.lint.links import lint_links
from tools.lint.numbers import lint_numbers
from tools.lint.pages import lint_page
from tools.lint.problem import Problem
from tools.lint.sheets import lint_sheet, lint_sheet_numbers
from tools.lint.twins import lint_twins
from tools.sheet import Sheet
from tools.source import LANGUAGES, Source

SOURCE_LINTS = (lint_twins, lint_chinese, lint_code, lint_anatomy)
NOTEBOOK_LINTS = (lint_built, lint_numbers)
TALKING = ("kvlib/**/*.py", "kvgrade/**/*.py", "tests/hidden/*.py", "tests/mutants/*.py")  # modules that speak to readers


def lint_source(source: Source, name: str) -> list[Problem]:
    """Everything that can be wrong with a chapter source."""
    return [problem for lint in SOURCE_LINTS for problem in lint(source, name)]


def lint_source_file(book: Book, path: Path) -> list[Problem]:
    """Everything that can be wrong with a source of a book, whatever its kind."""
    name = path.relative_to(book.root).as_posix()
    return lint_sheet(Sheet.read(path), name) if isinstance(book, Sheets) else lint_source(Source.read(path), name)


def lint_notebook(book: Book, path: Path) -> list[Problem]:
    """Everything that can be wrong with a built notebook of a book."""
    nb, name = read(path), path.relative_to(book.root).as_posix()
    problems = lint_built(nb, name) + lint_links(path, name)
    source = book.root / book.source / f"{path.stem}.md"
    if not isinstance(book, Sheets):
        problems += lint_numbers(nb, name)
    elif book.solved and source.is_file():  # the learner's notebook says nothing more, and computes less
        problems += lint_sheet_numbers(nb, Sheet.read(source), name)
    return problems


def lint_book(root: Path) -> list[Problem]:
    """Everything that can be wrong under a root: sources, notebooks, pages, what modules say."""
    problems = []
    chapters, *_ = the_books = books(root)
    for book in the_books:
        if not (isinstance(book, Sheets) and book.solved):  # the sources are those of the learner's sheets
            problems += [problem for path in book.sources() for problem in lint_source_file(book, path)]
        for lang in LANGUAGES:
            for path in sorted((root / book.target / lang).glob("*.ipynb")):
                problems += lint_notebook(book, path)
    for path in sorted(root.glob("*.md")):
        problems += lint_links(path, path.name)
        problems += lint_page(chapters, path)
    for path in files(root, *TALKING):
        problems += lint_python_twins(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())
    return problems
