"""The real book: nothing that a lint finds, nothing stale."""

from pathlib import PurePosixPath

import pytest

from kvgrade.messages import say
from tools.book import files, read
from tools.editions import books
from tools.lint import TALKING, lint_links, lint_notebook, lint_page, lint_python_twins, lint_source_file
from tools.sheet import Sheet
from tools.source import LANGUAGES

BOOKS = CHAPTERS, STARTERS, SOLUTIONS = books()
ROOT = CHAPTERS.root
SOURCES = [(book, path) for book in (CHAPTERS, STARTERS) for path in book.sources()]
NOTEBOOKS = [(book, path.stem, lang) for book in BOOKS for path in book.sources() for lang in LANGUAGES]
PAGES = sorted(ROOT.glob("*.md"))
MODULES = files(ROOT, *TALKING)


def nothing(problems) -> None:
    assert not problems, "\n" + "\n".join(map(str, problems))


def relative(path) -> str:
    return path.relative_to(ROOT).as_posix()


every_source = pytest.mark.parametrize(("book", "path"), SOURCES, ids=[relative(path) for _, path in SOURCES])
every_notebook = pytest.mark.parametrize(("book", "slug", "lang"), NOTEBOOKS, ids=[
    str(PurePosixPath(book.target, lang, slug)) for book, slug, lang in NOTEBOOKS])  # fmt: skip


def test_the_book_has_chapters_and_sheets():
    assert all(book.sources() for book in BOOKS)


def test_every_sheet_belongs_to_a_chapter_and_no_two_exercises_share_an_id():
    assert {path.stem for path in STARTERS.sources()} <= {path.stem for path in CHAPTERS.sources()}
    ids = [exercise.id for path in STARTERS.sources() for exercise in Sheet.read(path).exercises]
    assert sorted(set(ids)) == sorted(ids)


@every_source
def test_source_is_clean(book, path):
    nothing(lint_source_file(book, path))


@every_notebook
def test_notebook_says_what_its_source_says(book, slug, lang):
    nothing(book.stale([slug], [lang]))


@every_notebook
def test_notebook_is_clean(book, slug, lang):
    nothing(lint_notebook(book, book.notebook(slug, lang)))


@pytest.mark.parametrize("book", BOOKS, ids=[book.target for book in BOOKS])
def test_nothing_built_has_lost_its_source(book):
    nothing(book.orphans())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_is_clean(page):
    nothing(lint_links(page, page.name) + lint_page(CHAPTERS, page))


@pytest.mark.parametrize("module", MODULES, ids=relative)
def test_what_a_module_says_is_taiwans_and_the_same_in_both_languages(module):
    nothing(lint_python_twins(module.read_text(encoding="utf-8"), relative(module)))


@pytest.mark.parametrize(("book", "says"), [(STARTERS, "public-not-attempted"), (SOLUTIONS, "public-passed")],
                         ids=["starters", "solutions"])  # fmt: skip
@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_check_cell_says_what_it_must(book, lang, says):
    """Starters say "not attempted", our own solutions pass; a check of ours that is wrong would show here."""
    for path in book.sources():
        sheet = Sheet.read(path)
        cells = [c for c in read(book.notebook(path.stem, lang)).cells if c.metadata.get("kvgrade", {}).get("role") == "check"]
        assert [c.metadata.kvgrade.exercise for c in cells] == [e.id for e in sheet.exercises]
        for cell, exercise in zip(cells, sheet.exercises, strict=True):
            command = f"kvgrade check {book.target}/{lang}/{path.stem}.ipynb"
            known = {"id": exercise.id, **exercise.facts, "command": command}
            assert cell.outputs[0].text.rstrip("\n") == say(says, known, lang)
