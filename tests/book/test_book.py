"""The real book: nothing that a lint finds, nothing stale."""

import pytest

from tools.book import Book, read
from tools.lint import NOTEBOOK_LINTS, lint_links, lint_page, lint_python_words, lint_source
from tools.source import LANGUAGES, Source

BOOK = Book()
SLUGS = [path.stem for path in BOOK.sources()]
PAGES = sorted(BOOK.root.glob("*.md"))
MODULES = sorted((BOOK.root / "kvlib").rglob("*.py"))


def nothing(problems) -> None:
    assert not problems, "\n" + "\n".join(map(str, problems))


def relative(path) -> str:
    return path.relative_to(BOOK.root).as_posix()


def test_the_book_has_chapters():
    assert SLUGS, f"no chapter source in {BOOK.source}"


@pytest.mark.parametrize("slug", SLUGS)
def test_source_is_clean(slug):
    path = BOOK.root / BOOK.source / f"{slug}.md"
    nothing(lint_source(Source.read(path), relative(path)))


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("slug", SLUGS)
def test_notebook_says_what_its_source_says(slug, lang):
    nothing(BOOK.stale([slug], [lang]))


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("slug", SLUGS)
def test_notebook_is_clean(slug, lang):
    path = BOOK.notebook(slug, lang)
    nb = read(path)
    found = [problem for lint in NOTEBOOK_LINTS for problem in lint(nb, relative(path))]
    nothing(found + lint_links(path, relative(path)))


def test_no_notebook_has_lost_its_source():
    nothing(BOOK.orphans())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_is_clean(page):
    nothing(lint_links(page, page.name) + lint_page(BOOK, page))


@pytest.mark.parametrize("module", MODULES, ids=relative)
def test_chinese_in_the_library_is_taiwans(module):
    nothing(lint_python_words(module.read_text(encoding="utf-8"), relative(module)))
