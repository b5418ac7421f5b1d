"""A toy book of one chapter, clean under every lint, to break in every way."""

import shutil
from pathlib import Path

import pytest
from nbformat import NotebookNode

from tools import book
from tools.book import Book
from tools.build import build
from tools.source import Source

TOY = Path(__file__).parent / "toy" / "01-toy.md"
SLUG = "01-toy"


@pytest.fixture(scope="session")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Book:
    """The toy book, built in both languages; shared, so look but do not touch."""
    return _built(tmp_path_factory.mktemp("toy"))


@pytest.fixture
def toy(built_once: Book, tmp_path: Path) -> Book:
    """A built toy book of one's own, stamps included."""
    shutil.copytree(built_once.root, tmp_path, dirs_exist_ok=True)
    return Book(tmp_path)


@pytest.fixture
def notebook(toy: Book) -> NotebookNode:
    """The English toy notebook, built."""
    return book.read(toy.notebook(SLUG, "en"))


@pytest.fixture
def toy_source(tmp_path: Path):
    """Reads the toy source after replacing one text, which must be there, by another."""

    def edited(old: str = "", new: str = "") -> Source:
        text = TOY.read_text(encoding="utf-8")
        assert old in text, f"the toy source no longer holds {old!r}"
        path = tmp_path / TOY.name
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        return Source.read(path)

    return edited


def _built(root: Path) -> Book:
    the_book = Book(root)
    (root / the_book.source).mkdir(parents=True)
    shutil.copy(TOY, root / the_book.source)
    report = build(the_book)
    assert not report.failed, "the toy book does not build"
    return the_book
