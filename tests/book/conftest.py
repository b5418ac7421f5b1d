"""A toy book of one chapter, clean under every lint, to break in every way."""

import shutil
from pathlib import Path

import pytest
from nbformat import NotebookNode

from tools import book
from tools.book import Book
from tools.build import build
from tools.editions import books
from tools.sheet import Sheet
from tools.source import Source

TOY_SHEET = Path(__file__).parent / "toy" / "exercises" / "01-toy.md"
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


@pytest.fixture(scope="session")
def sheets_once(built_once: Book, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of the toy book with its exercise sheet, built against a grader of its own; look but do not touch."""
    root = tmp_path_factory.mktemp("sheets")
    shutil.copytree(built_once.root, root, dirs_exist_ok=True)
    (root / "exercises" / "src").mkdir(parents=True)
    (root / "tests" / "hidden").mkdir(parents=True)  # as in a checkout: what a bundle says is tested with bundles
    shutil.copy(TOY_SHEET, root / "exercises" / "src")
    built_away = shutil.ignore_patterns("__pycache__", "sheets")
    shutil.copytree(book.ROOT / "kvgrade", root / "kvgrade", ignore=built_away)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", str(root))
        for one in books(root)[1:]:
            assert not build(one).failed, "the toy sheet does not build"
    return root


@pytest.fixture
def sheets(sheets_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of a built toy book with its sheet, of one's own."""
    shutil.copytree(sheets_once, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


@pytest.fixture
def toy_sheet(tmp_path: Path):
    """Reads the toy sheet after replacing one text, which must be there, by another."""

    def edited(old: str = "", new: str = "", everywhere: bool = False) -> Sheet:
        text = TOY_SHEET.read_text(encoding="utf-8")
        assert old in text, f"the toy sheet no longer holds {old!r}"
        path = tmp_path / TOY_SHEET.name
        path.write_text(text.replace(old, new, -1 if everywhere else 1), encoding="utf-8")
        return Sheet.read(path)

    return edited


def _built(root: Path) -> Book:
    the_book = Book(root)
    (root / the_book.source).mkdir(parents=True)
    shutil.copy(TOY, root / the_book.source)
    report = build(the_book)
    assert not report.failed, "the toy book does not build"
    return the_book
