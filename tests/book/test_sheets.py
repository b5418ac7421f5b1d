"""From a sheet to its notebooks and its manifest: the learner gets no answer, and every answer of ours passes its checks."""

import json
import re
import subprocess
import sys

import pytest
from nbformat import NotebookNode

from tools import book, editions, execute
from tools.build import build, main
from tools.editions import books
from tools.source import LANGUAGES

SLUG = "01-toy"
SECRETS = ("BYTES_PER_TOKEN  # the answer", "self.kept.append(x)", "Just multiply", "乘上去", "def public", "32_768", "512")


def notebook(root, edition: str, lang: str) -> NotebookNode:
    return book.read(root / edition / lang / f"{SLUG}.ipynb")


def answers(nb) -> list[tuple[str, str]]:
    """(exercise, source) of each answer cell."""
    ours = ((cell.metadata.get("kvgrade", {}), cell.source) for cell in nb.cells)
    return [(known["exercise"], source) for known, source in ours if known.get("role") == "answer"]


def printed(nb) -> list[str]:
    return [output.text for cell in nb.cells for output in cell.get("outputs", ())]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_learners_notebook_holds_no_answer(sheets_once, lang):
    text = (sheets_once / "exercises" / lang / f"{SLUG}.ipynb").read_text(encoding="utf-8")
    assert not [secret for secret in SECRETS if secret in text]


def test_the_manifest_holds_what_the_grader_needs_and_no_answer(sheets_once):
    text = (sheets_once / "kvgrade" / "sheets" / f"{SLUG}.json").read_text(encoding="utf-8")
    assert not [secret for secret in SECRETS[:4] if secret in text]
    first, second = json.loads(text)["exercises"]
    assert (first["id"], first["entry"], first["points"], first["given"]) == ("toy-bytes", "toy_bytes", 10, "BYTES_PER_TOKEN = 8")
    assert first["title"] == {"en": "Bytes", "zh-TW": "位元組"} and "def public" in first["public"]
    assert (first["optional"], second["optional"]) == (False, True)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_an_untouched_sheet_runs_and_says_not_attempted(sheets_once, lang):
    said = printed(notebook(sheets_once, "exercises", lang))
    assert len(said) == 2
    assert all({"en": "not attempted yet", "zh-TW": "還沒作答"}[lang] in text for text in said)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_our_solutions_pass_their_public_checks_and_are_not_called_right(sheets_once, lang):
    said = printed(notebook(sheets_once, "solutions", lang))
    assert len(said) == 3 and said.pop(1) == "32.5 KiB\n"
    assert all({"en": "public checks passed", "zh-TW": "公開檢查通過"}[lang] in text for text in said)
    assert all(f"kvgrade check solutions/{lang}/{SLUG}.ipynb" in text for text in said)


@pytest.mark.parametrize("edition", ["exercises", "solutions"])
def test_answer_cells_are_marked_and_alike_in_both_languages(sheets_once, edition):
    english, chinese = (answers(notebook(sheets_once, edition, lang)) for lang in LANGUAGES)
    assert english == chinese
    assert [id for id, _ in english] == ["toy-bytes", "toy-cache"]
    assert all(source.startswith(f"# kvgrade: {id}\n") for id, source in english)


@pytest.mark.parametrize("edition", ["exercises", "solutions"])
def test_roles_are_named_and_tags_of_the_builder_gone(sheets_once, edition):
    cells = notebook(sheets_once, edition, "en").cells
    roles = [cell.metadata["kvgrade"].get("role") for cell in cells if "kvgrade" in cell.metadata]
    assert roles[:7] == ["statement", "given", "answer", "check", "statement", "answer", "check"]
    assert not any("exercise" in cell.metadata for cell in cells)
    assert {tag for cell in cells for tag in cell.metadata.get("tags", ())} == {"parameters"}


def test_hints_and_answers_to_follow_ups_are_folded(sheets_once):
    prose = [cell.source for cell in notebook(sheets_once, "exercises", "en").cells if cell.cell_type == "markdown"]
    assert "<details><summary>Hint 2: method</summary>\n\nAll are of one size.\n\n</details>" in prose
    assert "**Follow-up.** Twice the tokens?\n\n<details><summary>Answer</summary>\n\nTwice the bytes.\n\n</details>" in prose
    assert sum("<summary>Hint" in text for text in prose) == 6
    solved = [cell.source for cell in notebook(sheets_once, "solutions", "en").cells]
    assert any(text.startswith("Just multiply.") for text in solved) and not any("<summary>Hint" in text for text in solved)


def test_a_heading_is_followed_by_its_facts(sheets_once):
    statements = [cell.source for cell in notebook(sheets_once, "exercises", "en").cells if cell.source.startswith("## ")]
    assert statements[0].split("\n\n")[:2] == ["## Bytes", "*10 points · 5 minutes · difficulty ●●○○○* · `toy-bytes`"]
    assert "difficulty ●●●○○ · optional*" in statements[1]


def test_sheet_and_solutions_lead_to_each_other(sheets_once):
    last = notebook(sheets_once, "exercises", "zh-TW").cells[-1]
    assert last.metadata["kvgrade"] == {"role": "solutions"}
    assert last.source.startswith("<details>") and f"(../../solutions/zh-TW/{SLUG}.ipynb)" in last.source
    assert any(f"(../../exercises/en/{SLUG}.ipynb)" in cell.source for cell in notebook(sheets_once, "solutions", "en").cells)


def test_what_is_built_is_up_to_date(sheets, capsys):
    assert main(["--check"], sheets) == 0
    assert main(["01"], sheets) == 0
    assert "0 built, 6 up to date" in capsys.readouterr().out


@pytest.mark.parametrize("module", ["public", "testing", "worker/host"])
def test_a_change_of_the_grader_rebuilds_the_sheets_and_no_chapter(sheets, monkeypatch, module):
    monkeypatch.setattr(execute, "run", lambda nb, cwd, progress: None)
    with (sheets / "kvgrade" / f"{module}.py").open("a", encoding="utf-8") as file:
        file.write("\n")
    built = [name for one in books(sheets) for name in build(one).built]
    assert built == [f"{kind}/{SLUG} [{lang}]" for kind in ("exercises", "solutions") for lang in LANGUAGES]


def test_what_check_runs_is_in_the_digest_of_sheets():
    code = "import sys, kvgrade.public; print(*(m for m in sys.modules if m.startswith('kvgrade.')))"
    run = subprocess.run([sys.executable, "-c", code], cwd=book.ROOT, capture_output=True, text=True, check=True)
    modules = {m.removeprefix("kvgrade.").replace(".", "/") for m in run.stdout.split()}
    assert {m.replace("worker/__init__", "worker") for m in editions.CHECK_MODULES} == modules | {"__init__"}


STALE = {
    "manifest": (f"kvgrade/sheets/{SLUG}.json", '"points": 10', '"points": 99', f"kvgrade/sheets/{SLUG}.json is stale"),
    "solution": ("exercises/src/01-toy.md", "# the answer", "# my answer", f"solutions/en/{SLUG}.ipynb is stale"),
    "points": ("exercises/src/01-toy.md", "points: 10", "points: 11", f"exercises/zh-TW/{SLUG}.ipynb is stale"),
    "public check": ("exercises/src/01-toy.md", "t.equal(t.answer(1), 8)", "pass", f"kvgrade/sheets/{SLUG}.json is stale"),
}


@pytest.mark.parametrize(("file", "old", "new", "message"), STALE.values(), ids=STALE)
def test_check_names_what_is_stale(sheets, capsys, file, old, new, message):
    text = (sheets / file).read_text(encoding="utf-8")
    assert old in text
    (sheets / file).write_text(text.replace(old, new), encoding="utf-8")
    assert main(["--check"], sheets) == 1
    assert message in re.sub(r"\s+", " ", capsys.readouterr().out)


def test_what_lost_its_source_is_named(sheets, capsys):
    (sheets / "exercises" / "src" / "01-toy.md").unlink()
    assert main(["--check"], sheets) == 1
    said = capsys.readouterr().out
    gone = ("exercises/en/01-toy.ipynb", "solutions/zh-TW/01-toy.ipynb", "kvgrade/sheets/01-toy.json")
    assert all(f"{name} has no source" in said for name in gone)


def test_a_sheet_is_built_alone_by_its_number(sheets, capsys):
    (sheets / "exercises" / "src" / "01-toy.md").rename(sheets / "exercises" / "src" / "07-toy.md")
    (sheets / "exercises" / "src" / "07-toy.md").write_text("broken", encoding="utf-8")
    assert main(["07"], sheets) == 1
    assert "0 built, 0 up to date, 2 failed" in capsys.readouterr().out


def test_a_solution_that_raises_keeps_the_old_notebook(sheets, capsys):
    before = (sheets / "solutions" / "en" / f"{SLUG}.ipynb").read_bytes()
    source = sheets / "exercises" / "src" / "01-toy.md"
    source.write_text(source.read_text(encoding="utf-8").replace("BYTES_PER_TOKEN = 8", "BYTES_PER_TOKEN = [][8]"), encoding="utf-8")
    assert main(["--lang", "en"], sheets) == 1
    assert "FAILED solutions/01-toy [en]" in capsys.readouterr().out
    assert (sheets / "solutions" / "en" / f"{SLUG}.ipynb").read_bytes() == before
