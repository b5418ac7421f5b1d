"""What is handed out holds no solution, hidden test or wrong solution, and works where it is unpacked."""

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from kvgrade.bundle import contents, make_bundle
from kvgrade.exercises import HIDDEN, HOME, MUTANTS, exercises
from kvlib.errors import SpecError
from kvlib.i18n import LANGUAGES
from tools.sheet import Sheet

TRIVIAL = 24  # characters without spaces: shorter lines are anybody's
COMMON_CODE = 40  # the same in kvgrade's own code, which hidden tests are written like
BOOK = ("kvlib/", "notebooks/")  # teach the same code in the open: a solution's line may stand there


@pytest.fixture(scope="module", params=LANGUAGES)
def bundled(request) -> dict[str, bytes]:
    return dict(contents(request.param))


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    with zipfile.ZipFile(make_bundle("en", folder / "student.zip")) as archive:
        archive.extractall(folder)
    return folder / "kv-cache-book-en"


def squeezed(text: str) -> Iterator[str]:
    """The lines of a text that say something, without spaces; a line of a notebook or manifest is one of its strings' lines."""
    for line in text.splitlines():
        line = re.sub(r"\s+|^#.*", "", line)
        if len(line) >= TRIVIAL and not line.startswith(("import", "from")):
            yield line


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def lines_of(files: dict[str, bytes]) -> dict[str, str]:
    """Every line, and a file that it stands in."""
    found = {}
    for name, data in files.items():
        if name.endswith((".json", ".ipynb")):
            value = json.loads(data)
            for cell in value.get("cells", []):
                cell["source"] = "".join(cell["source"])
            texts = list(strings(value))
        else:
            texts = [data.decode("utf-8", "replace")]
        found.update({line: name for text in texts for line in squeezed(text)})
    return found


def test_no_folder_of_answers_is_in_it(bundled):
    for name in bundled:
        assert not re.search(r"solution|hidden|mutant|exploit|(^|/)tests/|exercises/src", name)


def meant_for_learners() -> set[str]:
    """Lines of statements, hints, follow-ups, given code, starters and public checks: they are the sheet."""
    return {line for e in exercises().values() for text in strings(asdict(e)) for line in squeezed(text)}


def test_no_line_of_a_hidden_test_or_wrong_solution_is_in_it(bundled):
    secret = {line for folder in (HIDDEN, MUTANTS) for path in folder.rglob("*.py") for line in squeezed(path.read_text("utf-8"))}
    assert secret
    handed_out, meant = lines_of(bundled), meant_for_learners()
    leaked = {line: handed_out[line] for line in secret - meant if line in handed_out}
    assert not {line: name for line, name in leaked.items() if not name.startswith(BOOK) and (
        not name.startswith("kvgrade/") or len(line) >= COMMON_CODE)}  # fmt: skip


def test_no_line_of_a_solution_is_in_it(bundled):
    """Beyond lines that the book itself teaches with."""
    handed_out = lines_of({name: data for name, data in bundled.items() if not name.startswith(BOOK)})
    taught = set(lines_of({name: data for name, data in bundled.items() if name.startswith(BOOK)})) | meant_for_learners()
    sheets = [Sheet.read(path) for path in sorted((HOME / "exercises" / "src").glob("*.md"))]
    secret = {e.id: set(squeezed(e.code("solution"))) for sheet in sheets for e in sheet.exercises}
    assert secret and all(secret.values())
    assert not {id: leaked for id, lines in secret.items() if (leaked := (lines - taught) & set(handed_out))}


def test_the_search_would_find_a_solution(bundled):
    sheet = Sheet.read(HOME / "exercises" / "src" / "01-why-a-cache.md")
    solution = set(squeezed(sheet.exercises[0].code("solution"))) - meant_for_learners()
    cell = {"cells": [{"source": sheet.exercises[0].code("solution").splitlines(keepends=True)}]}
    assert solution
    assert solution <= set(lines_of({"exercises/en/x.ipynb": json.dumps(cell).encode()}))


LINK = re.compile(r"\]\(([^)\s]+)[^)]*\)|(?:href|src)=[\"']([^\"']+)[\"']")


def prose(data: bytes) -> Iterator[str]:
    for cell in json.loads(data)["cells"]:
        if cell["cell_type"] == "markdown":
            yield "".join(cell["source"])


def test_every_link_leads_to_a_file_that_is_in_it(bundled):
    followed = 0
    for name, data in bundled.items():
        for text in prose(data) if name.endswith(".ipynb") else [data.decode()] if name.endswith(".md") else []:
            for link in (found[1] or found[2] for found in LINK.finditer(text)):
                if not re.match(r"https?:|mailto:|#|data:|attachment:", link):
                    assert os.path.normpath(os.path.join(os.path.dirname(name), link.partition("#")[0])).replace("\\", "/") in bundled, (name, link)
                    followed += 1
    assert followed > 20


def test_nothing_points_to_solutions_or_to_the_other_language(bundled):
    for name, data in bundled.items():
        if name.endswith(".ipynb"):
            assert not [cell for cell in json.loads(data)["cells"] if cell["metadata"].get("kvgrade", {}).get("role") == "solutions"]
            nbformat.validate(nbformat.reads(data.decode(), as_version=4))
    start = "\n".join(prose(next(data for name, data in bundled.items() if name.endswith("00-start.ipynb"))))
    assert not re.search(r"start page|從這裡開始\]|\bEN\b|\[中文|\| *中文|\| *English|繁體中文", start)
    tables = [line.count("|") for line in start.splitlines() if line.startswith("|")]
    assert tables and set(tables) == {5}


def test_what_needs_the_hidden_tests_is_said_not_to_work(bundled):
    for name, data in bundled.items():
        if name.endswith("00-start.ipynb") or (name.startswith("exercises/") and name.endswith(".ipynb")):
            assert any("kvgrade check" in text and ("does not work" in text or "不能用" in text) for text in prose(data)), name
    readme = bundled["README.md"].decode()
    assert "`kvgrade check` does not work" in readme or "`kvgrade check` 在這裡不能用" in readme


def test_the_same_book_gives_the_same_bytes(tmp_path):
    first, second = (make_bundle("zh-TW", tmp_path / name).read_bytes() for name in ("a.zip", "b.zip"))
    assert first == second


def test_wrong_wishes_are_refused(tmp_path):
    with pytest.raises(SpecError):
        make_bundle("fr", tmp_path / "x.zip")
    with pytest.raises(SpecError):
        make_bundle("en", tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "Makefile").write_text("lab:\n")
    with pytest.raises(SpecError):
        make_bundle("en", tmp_path / "x.zip", home=tmp_path / "empty")


def alone(folder: Path, *args: str) -> subprocess.CompletedProcess:
    """Run Python in the unpacked bundle, with nothing of this checkout on the path."""
    env = {**os.environ, "PYTHONUTF8": "1", "PYTHONPATH": str(folder), "LC_ALL": "en_US.UTF-8"}
    return subprocess.run([sys.executable, *args], cwd=folder, env=env, capture_output=True, text=True, encoding="utf-8", check=False)


def test_it_runs_the_public_checks_alone_and_says_where_the_hidden_tests_are(unpacked):
    done = alone(unpacked, "-c", "import kvgrade, kvlib; print(kvgrade.__file__, kvlib.__file__)")
    assert done.stdout.count(str(unpacked)) == 2, done.stderr
    sheet = unpacked / "exercises" / "en" / "01-why-a-cache.ipynb"
    done = alone(unpacked, "-m", "kvgrade.cli", "check", str(sheet))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "teacher" in done.stderr


@pytest.mark.parametrize(("lang", "parts"), [("en", ("public checks passed", "10 points", "your teacher runs", "hand this notebook in")),
                                             ("zh-TW", ("公開檢查通過", "10 分", "由老師執行", "交給老師"))])  # fmt: skip
def test_a_check_in_it_says_who_runs_the_hidden_tests(unpacked, lang, parts):
    right = "\n".join(line for e in Sheet.read(HOME / "exercises" / "src" / "02-the-formula.md").exercises if e.id == "kv-bytes"
                      for line in e.code("solution").splitlines())  # fmt: skip
    done = alone(unpacked, "-c", f"from kvlib.i18n import set_language; set_language({lang!r})\nfrom kvgrade import check\n{right}\n"
                 "check('kv-bytes', kv_bytes)")  # fmt: skip
    assert all(part in done.stdout for part in parts), done.stdout + done.stderr
    assert "kvgrade check" not in done.stdout


def test_an_untouched_sheet_of_it_runs_to_the_end(unpacked, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(unpacked))
    path = unpacked / "exercises" / "en" / "01-why-a-cache.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell("import kvgrade; kvgrade.__file__"))
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(path.parent)}}).execute()
    assert str(unpacked) in notebook.cells[-1].outputs[0]["data"]["text/plain"]


@pytest.mark.skipif(os.name != "posix", reason="needs make")
def test_make_lab_copies_the_book_and_starts_jupyter(unpacked):
    book = unpacked / ".venv"
    (book / "bin").mkdir(parents=True)
    (book / "bin" / "python").symlink_to(sys.executable)
    (book / "bin" / "jupyter").write_text('#!/bin/sh\necho "jupyter $@" > started\n')
    (book / "bin" / "jupyter").chmod(0o755)
    for name in ("pyvenv.cfg", ".book"):
        (book / name).touch()
    done = subprocess.run(["make", "lab"], cwd=unpacked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "00-start.ipynb" in (unpacked / "started").read_text()
    assert (unpacked / "reading" / "exercises" / "en" / "01-why-a-cache.ipynb").is_file()
    shown = subprocess.run(["make", "--no-print-directory", "help"], cwd=unpacked, capture_output=True, text=True, check=True).stdout
    assert shown.startswith("make lab")
