"""The builder: same source, same bytes; no work done twice; nothing lost when a cell fails."""

import base64
import shutil
import subprocess
import sys

import pytest
from nbformat import v4

from tools import book, editions, execute, stamps
from tools.book import Book, first_difference
from tools.build import build, main
from tools.source import Source

SLUG = "01-toy"


@pytest.fixture
def source(toy: Book):
    return toy.root / toy.source / f"{SLUG}.md"


@pytest.fixture
def executions(monkeypatch):
    """The folders in which notebooks ran; nothing really runs."""
    ran = []
    monkeypatch.setattr(execute, "run", lambda nb, cwd, progress: ran.append(cwd.name))
    return ran


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_two_builds_are_byte_identical(toy):
    before = toy.notebook(SLUG, "en").read_bytes()
    assert build(toy, langs=["en"], force=True).built == [f"{SLUG} [en]"]
    assert toy.notebook(SLUG, "en").read_bytes() == before


def test_second_build_executes_nothing(toy, executions):
    report = build(toy)
    assert report.skipped == [f"{SLUG} [en]", f"{SLUG} [zh-TW]"]
    assert executions == []


def edit_source(toy):
    edit(toy.root / toy.source / f"{SLUG}.md", "Bytes are counted", "Count bytes")


def edit_library(toy):
    (toy.root / "kvlib").mkdir()
    (toy.root / "kvlib" / "units.py").write_text("GB = 10**9\n", encoding="utf-8")


def edit_notebooks(toy):
    for lang in ("en", "zh-TW"):
        edit(toy.notebook(SLUG, lang), "1.25 GiB", "1.52 GiB")


def delete_notebooks(toy):
    for lang in ("en", "zh-TW"):
        toy.notebook(SLUG, lang).unlink()


def lose_stamps(toy):
    shutil.rmtree(toy.root / ".build")


CHANGES = [edit_source, edit_library, edit_notebooks, delete_notebooks, lose_stamps]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_build_runs_again_after(toy, executions, change):
    change(toy)
    build(toy)
    assert executions == ["en", "zh-TW"]


def test_everything_the_builder_imports_is_in_its_digest():
    code = "import sys, tools.build; print(*(m for m in sys.modules if m.startswith('tools.')))"
    run = subprocess.run([sys.executable, "-c", code], cwd=book.ROOT, capture_output=True, text=True, check=True)
    modules = {f"{m.removeprefix('tools.')}.py" for m in run.stdout.split()}
    assert modules == {*stamps.BUILDER_MODULES, *editions.BUILDER_MODULES}


def test_build_leaves_other_chapters_alone(toy, source, executions):
    shutil.copy(source, source.with_name("02-other.md"))
    build(toy)
    build(toy, ["02"])
    edit(source, "Bytes are counted", "Count bytes")
    executions.clear()
    assert build(toy).skipped == ["02-other [en]", "02-other [zh-TW]"]
    assert executions == ["en", "zh-TW"]


def test_failing_cell_is_reported_and_the_old_notebook_kept(toy, source, capsys):
    before = toy.notebook(SLUG, "en").read_bytes()
    edit(source, "2 * 128\n```", '{}["no such key"]\n```')
    assert main([SLUG, "--lang", "en"], toy.root) == 1
    said = capsys.readouterr().out
    assert "FAILED 01-toy [en], code cell 4 of 4" in said
    assert '| {}["no such key"]' in said
    assert "KeyError: 'no such key'" in said
    assert toy.notebook(SLUG, "en").read_bytes() == before
    assert not list(toy.root.rglob("*.part"))


def test_refused_source_is_reported_and_the_old_notebook_kept(toy, source, capsys):
    before = toy.notebook(SLUG, "en").read_bytes()
    edit(source, '{"lang": "en"}', "")
    assert main([], toy.root) == 1
    assert "prose with no language" in capsys.readouterr().out
    assert toy.notebook(SLUG, "en").read_bytes() == before


def test_unknown_chapter_is_named_with_the_known_ones(toy, capsys):
    assert main(["07"], toy.root) == 1
    assert "no chapter or sheet '07'; there are: 01-toy" in capsys.readouterr().out


def test_notebook_holds_one_language_and_shared_code(built_once):
    english, chinese = (book.read(built_once.notebook(SLUG, lang)) for lang in ("en", "zh-TW"))
    assert english.cells[0].source == 'LANG = "en"'
    assert chinese.cells[0].source == 'LANG = "zh-TW"'
    code = [[c.source for c in nb.cells if c.cell_type == "code"] for nb in (english, chinese)]
    assert code[0][1:] == code[1][1:]
    assert {c.metadata.get("lang") for c in chinese.cells} == {None, "zh-TW"}
    assert "共 1.25 GiB" in chinese.cells[2].outputs[0].text


def test_notebook_keeps_tags_and_nothing_that_varies(built_once):
    nb = book.read(built_once.notebook(SLUG, "en"))
    assert nb.cells[3].metadata == {"tags": ["widget"]}
    assert nb.cells[3].outputs[0].data == {"text/plain": "Run this cell."}
    assert set(nb.metadata) == {"kernelspec"}
    assert not any("execution" in cell.metadata for cell in nb.cells)


def test_a_figure_cell_is_folded_away_and_others_are_not(toy_source):
    cells = toy_source("picture =", "figure(1)\npicture =").notebook("en").cells
    assert not any("jupyter" in cell.metadata for cell in cells)
    cells = toy_source(":tags: [readme]", ":tags: [figure]").notebook("en").cells
    folded = [cell.source for cell in cells if cell.metadata.get("jupyter") == {"source_hidden": True}]
    assert len(folded) == 1 and folded[0].startswith("picture")


def test_lines_wrapped_inside_chinese_are_joined_and_english_ones_kept(toy_source):
    wrapped = toy_source("一次 10⁹ 個。", "一次\n10⁹ 個，\n不多\n**也不少**。\n\n- 一項，\n  兩行。")
    prose = "\n".join(cell.source for cell in wrapped.notebook("zh-TW").cells)
    assert "一次\n10⁹ 個，不多**也不少**。" in prose
    assert "a\nb" in toy_source("None yet.", "a\nb").notebook("en").cells[-1].source
    assert "- 一項，兩行。" in prose


def test_the_readme_figure_is_the_chapters(toy, capsys):
    picture = toy.root / "assets" / f"{SLUG}.en.png"
    assert picture.read_bytes() == base64.b64decode("iVBORw0KGgo=")
    picture.write_bytes(b"another")
    assert main(["--check"], toy.root) == 1
    assert f"assets/{SLUG}.en.png is not the figure" in " ".join(capsys.readouterr().out.split())


def test_inserting_a_cell_renames_no_other(toy_source):
    before = [cell.id for cell in toy_source().notebook("en").cells]
    inserted = toy_source("## Self-check", 'New.\n\n+++ {"lang": "en"}\n\n## Self-check')
    after = [cell.id for cell in inserted.notebook("en").cells]
    assert [identity for identity in after if identity in before] == before
    assert len(after) == len(before) + 1


def test_equal_cells_have_unique_ids(toy_source):
    cell = "```{code-cell} ipython3\n1\n```\n\n"
    source = toy_source('+++ {"lang": "en"}\n\n## Self', cell * 3 + '+++ {"lang": "en"}\n\n## Self')
    ids = [cell.id for cell in source.notebook("en").cells]
    assert len(set(ids)) == len(ids)


def run_cell(code, cwd, progress=lambda k, n: None):
    """The outputs of one cell."""
    nb = v4.new_notebook(cells=[v4.new_code_cell(code)])
    execute.run(nb, cwd, progress)
    return nb.cells[0].outputs


def test_cells_run_in_the_given_folder_by_this_python(tmp_path, monkeypatch):
    kernel = tmp_path / "kernels" / "python3" / "kernel.json"
    kernel.parent.mkdir(parents=True)
    kernel.write_text('{"argv": ["another-python"], "display_name": "mine", "language": "python"}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    seen = []
    outputs = run_cell("%pwd", tmp_path, lambda k, n: seen.append((k, n)))
    assert tmp_path.name in outputs[0].data["text/plain"]
    assert seen == [(1, 1)]


def test_what_a_widget_captures_is_kept_as_nbval_sees_it(tmp_path):
    outputs = run_cell("import ipywidgets\nwith ipywidgets.Output():\n    print(1)", tmp_path)
    assert [output.text for output in outputs] == ["1\n"]


def test_streams_written_in_pieces_are_kept_as_one(tmp_path):
    outputs = run_cell("import time\nfor i in range(3):\n    print(i); time.sleep(0.3)", tmp_path)
    assert [output.text for output in outputs] == ["0\n1\n2\n"]


def test_check_passes_on_a_fresh_book_without_stamps_or_runs(toy, executions, capsys):
    shutil.rmtree(toy.root / ".build")
    assert main(["--check"], toy.root) == 0
    assert executions == []


def retag(toy):
    edit(toy.root / toy.source / f"{SLUG}.md", "[widget]", "[widget, nbval-ignore-output]")


def rename_id(toy):
    page = toy.notebook(SLUG, "en")
    nb = book.read(page)
    nb.cells[1].id = "other"
    book.write(nb, page)


def add_orphan(toy):
    shutil.copy(toy.notebook(SLUG, "en"), toy.notebook("09-gone", "en"))


STALE = {
    edit_source: "cell 6 has source",
    retag: "cell 4 has metadata",
    rename_id: "cell 2 has id 'other'",
    delete_notebooks: "is missing: run python -m tools.build 01-toy",
    add_orphan: "notebooks/en/09-gone.ipynb has no source",
}


@pytest.mark.parametrize(("change", "message"), STALE.items(), ids=[c.__name__ for c in STALE])
def test_check_names_what_is_stale(toy, capsys, change, message):
    change(toy)
    assert main(["--check"], toy.root) == 1
    assert message in capsys.readouterr().out


def test_check_looks_past_outputs_and_counts(toy, source):
    nb = book.read(toy.notebook(SLUG, "en"))
    nb.cells[2].outputs, nb.cells[2].execution_count = [], None
    assert first_difference(nb, Source.read(source).notebook("en")) is None
