"""The reader's copy: what the reader wrote stays, everything else follows the book."""

import pytest

from tools.reading_copy import LANGUAGES, refresh


@pytest.fixture
def root(tmp_path):
    for lang in LANGUAGES:
        (tmp_path / "notebooks" / lang).mkdir(parents=True)
        (tmp_path / "notebooks" / lang / "01.ipynb").write_text("first")
    return tmp_path


def test_a_first_copy_is_the_book(root):
    assert refresh(root) == []
    assert [(root / "reading" / lang / "01.ipynb").read_text() for lang in LANGUAGES] == ["first", "first"]


def test_an_untouched_copy_follows_the_book(root):
    refresh(root)
    (root / "notebooks/en/01.ipynb").write_text("second")
    assert refresh(root) == []
    assert (root / "reading/en/01.ipynb").read_text() == "second"


def test_a_reader_s_changes_stay_and_are_named_when_the_book_moves_on(root):
    refresh(root)
    (root / "reading/en/01.ipynb").write_text("my notes")
    assert refresh(root) == []
    (root / "notebooks/en/01.ipynb").write_text("second")
    assert refresh(root) == ["en/01.ipynb"]
    assert (root / "reading/en/01.ipynb").read_text() == "my notes"


def test_a_deleted_copy_comes_back(root):
    refresh(root)
    (root / "reading/en/01.ipynb").unlink()
    refresh(root)
    assert (root / "reading/en/01.ipynb").read_text() == "first"
