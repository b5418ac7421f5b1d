"""The reader's copy: what the reader wrote stays, everything else follows the book."""

import hashlib
import json

import pytest

from tools.book import ROOT, read
from tools.lint.markdown import parse
from tools.reading_copy import FOLDERS, LANGUAGES, refresh


@pytest.fixture
def root(tmp_path):
    for folder in (f"{folder}/{lang}" for folder in FOLDERS for lang in LANGUAGES):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "01.ipynb").write_text("first")
    return tmp_path


def test_a_first_copy_is_the_book(root):
    assert refresh(root) == []
    copies = sorted(path.relative_to(root / "reading").as_posix() for path in (root / "reading").rglob("*.ipynb"))
    assert copies == sorted(f"{folder}/{lang}/01.ipynb" for folder in FOLDERS for lang in LANGUAGES)


@pytest.mark.parametrize("missing", FOLDERS)
def test_a_book_without_one_of_its_folders_is_copied_all_the_same(root, missing):
    (root / missing).rename(root / "elsewhere")
    assert refresh(root) == []
    assert {path.parts[-3] for path in (root / "reading").rglob("*.ipynb")} == {*FOLDERS} - {missing}


def test_a_copy_of_before_there_were_exercises_moves_with_what_the_reader_wrote(root):
    digest = hashlib.sha256(b"first").hexdigest()
    for lang, text in zip(LANGUAGES, ("first", "my notes"), strict=True):
        (root / "reading" / lang).mkdir(parents=True)
        (root / "reading" / lang / "01.ipynb").write_text(text)
    (root / "reading/en/02.ipynb").write_text("a page of my own")
    (root / "reading/.copied.json").write_text(json.dumps({f"{lang}/01.ipynb": digest for lang in LANGUAGES}))
    (root / "notebooks/en/01.ipynb").write_text("second")

    refresh(root)
    assert (root / "reading/notebooks/en/01.ipynb").read_text() == "second"
    assert (root / "reading/notebooks/en/02.ipynb").read_text() == "a page of my own"
    assert (root / "reading/notebooks/zh-TW/01.ipynb").read_text() == "my notes"
    assert not (root / "reading/en").exists()


def test_an_untouched_copy_follows_the_book(root):
    refresh(root)
    (root / "notebooks/en/01.ipynb").write_text("second")
    assert refresh(root) == []
    assert (root / "reading/notebooks/en/01.ipynb").read_text() == "second"


def test_a_reader_s_changes_stay_and_are_named_when_the_book_moves_on(root):
    refresh(root)
    (root / "reading/notebooks/en/01.ipynb").write_text("my notes")
    assert refresh(root) == []
    (root / "notebooks/en/01.ipynb").write_text("second")
    assert refresh(root) == ["notebooks/en/01.ipynb"]
    assert (root / "reading/notebooks/en/01.ipynb").read_text() == "my notes"


def test_a_deleted_copy_comes_back(root):
    refresh(root)
    (root / "reading/notebooks/en/01.ipynb").unlink()
    refresh(root)
    assert (root / "reading/notebooks/en/01.ipynb").read_text() == "first"


@pytest.mark.parametrize("folder", FOLDERS)
def test_links_between_notebooks_lead_to_what_is_copied_too(folder):
    leaving = []
    for page in (page for lang in LANGUAGES for page in (ROOT / folder / lang).glob("*.ipynb")):
        prose = "\n\n".join(cell.source for cell in read(page).cells if cell.cell_type == "markdown")
        files = [link.partition("#")[0] for link in parse(prose).links if "://" not in link and not link.startswith("#")]
        targets = [(page.parent / file).resolve().relative_to(ROOT) for file in files]
        leaving += [f"{page.name} [{page.parent.name}]: {t}" for t in targets if t.parts[:1] not in [(f,) for f in FOLDERS]]
    assert leaving == []
