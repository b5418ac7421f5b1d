"""The book's own lints: pure functions from a text to a list of problems, each with its fix.

``python -m tools.lint`` prints what they find.
"""

from tools.book import Book, read
from tools.lint.anatomy import lint_anatomy
from tools.lint.built import lint_built
from tools.lint.chinese import lint_chinese, lint_python_words
from tools.lint.code import lint_code
from tools.lint.links import lint_links
from tools.lint.numbers import lint_numbers
from tools.lint.pages import lint_page
from tools.lint.problem import Problem
from tools.lint.twins import lint_twins
from tools.source import LANGUAGES, Source

SOURCE_LINTS = (lint_twins, lint_chinese, lint_code, lint_anatomy)
NOTEBOOK_LINTS = (lint_built, lint_numbers)


def lint_source(source: Source, name: str) -> list[Problem]:
    """Everything that can be wrong with a chapter source."""
    return [problem for lint in SOURCE_LINTS for problem in lint(source, name)]


def lint_book(book: Book) -> list[Problem]:
    """Everything that can be wrong with a book: sources, notebooks, pages, library strings."""
    problems = []
    for path in book.sources():
        problems += lint_source(Source.read(path), path.relative_to(book.root).as_posix())
    for lang in LANGUAGES:
        for path in sorted((book.root / book.target / lang).glob("*.ipynb")):
            name, nb = path.relative_to(book.root).as_posix(), read(path)
            problems += [problem for lint in NOTEBOOK_LINTS for problem in lint(nb, name)]
            problems += lint_links(path, name)
    for path in sorted(book.root.glob("*.md")):
        problems += lint_links(path, path.name)
        problems += lint_page(book, path)
    for path in sorted((book.root / "kvlib").rglob("*.py")):
        name = path.relative_to(book.root).as_posix()
        problems += lint_python_words(path.read_text(encoding="utf-8"), name)
    return problems
