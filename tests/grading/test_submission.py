"""Answers are found whatever was done to the file, and no file does anything to the reader."""

import ast
import json
import time
from pathlib import Path

import pytest
import toy_sheet as toy
from toy_sheet import EXERCISES, RIGHT, answer, check, code, write

from kvgrade.messages import MESSAGES
from kvgrade.submission import Submission, Unreadable, is_starter, read_submission
from kvgrade.submission.cells import MAX_BYTES, MAX_CELLS


@pytest.fixture
def read(tmp_path: Path):
    """Reads a notebook of cells, or the text of a file."""

    def reader(*cells: dict | str | bytes, suffix: str = ".ipynb", **top) -> Submission:
        path = tmp_path / f"file{suffix}"
        if cells and isinstance(cells[0], str | bytes):
            path.write_bytes(cells[0] if isinstance(cells[0], bytes) else cells[0].encode())
        else:
            write(path, *cells, **top)
        return read_submission(path, EXERCISES)

    return reader


def ids(submission: Submission) -> list[str]:
    assert all(m.id in MESSAGES for m in submission.problems)
    return [m.id for m in submission.problems]


def names_of(source: str) -> list[str]:
    """What a source defines at its top, in order."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found += [alias.asname or alias.name for alias in node.names]
        elif isinstance(node, ast.Assign):
            found += [target.id for target in node.targets]
        elif hasattr(node, "name"):
            found.append(node.name)
    return found


# finding


def test_a_whole_sheet_has_every_answer_and_no_problem(read):
    submission = read(*toy.solved())
    assert list(submission.answers) == ["double", "square"]
    assert submission.sheet == "01-toy"
    assert ids(submission) == []
    assert {a.found for a in submission.answers.values()} == {"metadata"}


def test_the_marker_is_enough_without_metadata(read):
    submission = read(code("# kvgrade: double\n" + RIGHT["double"]), code("#kvgrade:square\n" + RIGHT["square"]))
    assert {a.found for a in submission.answers.values()} == {"marker"}
    assert ids(submission) == []


def test_the_name_is_enough_without_a_marker(read):
    submission = read(code("import math\n\n" + RIGHT["double"] + "\n" + RIGHT["square"]))
    assert {a.found for a in submission.answers.values()} == {"name"}
    assert names_of(submission.answers["square"].source) == ["square"]


def test_a_python_file_is_read_by_marker_and_by_name(read):
    text = "import math\nK = 2\n\n# kvgrade: double\ndef double(x):\n    return K * x\n\n# kvgrade: square\n" + RIGHT["square"]
    submission = read(text, suffix=".py")
    assert names_of(submission.answers["double"].source) == ["K", "double"]
    assert submission.answers["double"].found == "marker"
    plain = read(text.replace("# kvgrade: double", "").replace("# kvgrade: square", ""), suffix=".py")
    assert names_of(plain.answers["double"].source) == ["K", "double"]
    assert plain.answers["square"].cell.strip() == RIGHT["square"].strip()


def test_percent_cells_of_a_python_file_are_told_apart(read):
    submission = read("# %% [markdown]\n# def double(x): return 0\n# %%\n" + RIGHT["double"], suffix=".py")
    assert submission.answers["double"].cell.strip().endswith(RIGHT["double"].strip())


def test_a_deleted_answer_is_missing_and_said(read):
    submission = read(*[c for c in toy.solved() if "square" not in c["source"]])
    assert "square" not in submission.answers
    assert ids(submission) == ["answer-missing"]


def test_an_answer_moved_to_another_cell_is_found(read):
    submission = read(answer("double", EXERCISES["double"].starter), code(RIGHT["double"]), answer("square", RIGHT["square"]))
    assert "return 2 * x" in submission.answers["double"].source
    assert "answer-elsewhere" in ids(submission)


def test_a_renamed_function_is_said(read):
    submission = read(answer("double", "def dbl(x):\n    return 2 * x"), answer("square", RIGHT["square"]))
    assert "answer-renamed" in ids(submission)


def test_of_duplicated_cells_the_last_real_one_counts(read):
    wrong = answer("double", "def double(x):\n    return x")
    submission = read(wrong, answer("double", RIGHT["double"]), answer("double", EXERCISES["double"].starter))
    assert "2 * x" in submission.answers["double"].cell
    assert "answer-duplicate" in ids(submission)


def test_a_split_cell_still_is_one_answer(read):
    half = answer("double", "FACTOR = 2")
    rest = code("def double(x):\n    return FACTOR * x", kvgrade={"exercise": "double", "role": "answer"})
    submission = read(half, rest)
    assert names_of(submission.answers["double"].source) == ["FACTOR", "double"]


def test_an_answer_in_a_markdown_cell_is_no_answer(read):
    cell = {**answer("double", RIGHT["double"]), "cell_type": "markdown"}
    submission = read(cell, answer("square", RIGHT["square"]))
    assert "double" not in submission.answers
    assert {"answer-not-code", "answer-missing"} <= set(ids(submission))


def test_answers_in_another_order_are_found_and_said(read):
    submission = read(*reversed(toy.solved()))
    assert set(submission.answers) == set(EXERCISES)
    assert "answers-moved" in ids(submission)


def test_points_in_the_file_are_ignored_and_said(read):
    cells = toy.solved()
    cells[0]["metadata"]["kvgrade"]["points"] = 1000
    cells[1]["metadata"]["nbgrader"] = {"points": 99, "grade": True}
    assert ids(read(*cells)) == ["points-ignored", "points-ignored"]


def test_an_unknown_exercise_is_said(read):
    assert "answer-unknown" in ids(read(*toy.solved(), answer("no-such", "x = 1")))


# what comes along


def test_only_what_an_answer_needs_comes_along_transitively(read):
    submission = read(
        code("import math\nimport os\nfrom kvgrade import check"),
        code("LIMIT = 3\nUNUSED = print('no')\ndef helper(x):\n    return other(x) * math.pi"),
        code("def other(x):\n    return x + LIMIT"),
        answer("double", "def double(x):\n    return helper(x)"),
    )
    assert names_of(submission.answers["double"].source) == ["math", "LIMIT", "helper", "other", "double"]


def test_local_names_bring_nothing_along(read):
    submission = read(code("x = print('expensive')\ny = 1"), answer("double", "def double(x):\n    y = 2\n    return y * x"))
    assert names_of(submission.answers["double"].source) == ["double"]


def test_the_last_definition_above_the_answer_counts(read):
    submission = read(code("K = 1"), code("K = 2"), answer("double", "def double(x):\n    return K * x"), code("K = 3"))
    assert "K = 2" in submission.answers["double"].source
    assert "K = 1" not in submission.answers["double"].source
    assert "K = 3" not in submission.answers["double"].source


def test_a_helper_below_the_answer_comes_along_after_it(read):
    submission = read(answer("double", "def double(x):\n    return helper(x)"), code("def helper(x):\n    return 2 * x"))
    assert names_of(submission.answers["double"].source) == ["double", "helper"]


def test_a_value_that_builds_on_its_former_self_brings_it_along(read):
    submission = read(code("K = 1"), code("K += 1"), code("K = K * 5"), answer("double", "def double(x):\n    return K"))
    source = submission.answers["double"].source
    assert [line for line in source.splitlines() if line.startswith("K")] == ["K = 1", "K += 1", "K = K * 5"]


def test_conditional_imports_and_star_imports_come_along(read):
    submission = read(
        code("try:\n    import triton\nexcept ImportError:\n    triton = None"),
        code("from math import *"),
        answer("double", "def double(x):\n    return sqrt(x) if triton else x"),
    )
    assert "import triton" in submission.answers["double"].source
    assert "from math import *" in submission.answers["double"].source


def test_future_imports_come_first(read):
    submission = read(code("import math\nfrom __future__ import annotations"),
                      answer("double", "from __future__ import annotations\ndef double(x: T):\n    return math.pi"))  # fmt: skip
    compile(submission.answers["double"].source, "answer", "exec")
    assert submission.answers["double"].source.startswith("from __future__ import annotations\n")


def test_given_names_and_check_cells_do_not_come_along(read, tmp_path):
    given = {"double": toy.exercise("double", "double", given="SCALE = 2")}
    path = write(tmp_path / "given.ipynb", code("SCALE = 2", kvgrade={"exercise": "double", "role": "given"}),
                 code("SCALE = 99"), answer("double", "def double(x):\n    return SCALE * x"))  # fmt: skip
    assert names_of(read_submission(path, given).answers["double"].source) == ["double"]
    submission = read(code("HIDDEN = 1", kvgrade={"exercise": "double", "role": "check"}),
                      answer("double", "def double(x):\n    return HIDDEN"))  # fmt: skip
    assert names_of(submission.answers["double"].source) == ["double"]


def test_a_call_of_check_beside_the_answer_is_dropped(read):
    submission = read(code("from kvgrade import check"), answer("double", RIGHT["double"] + "\ncheck('double', double)"))
    assert "check" not in submission.answers["double"].source.replace("kvgrade", "")
    assert ids(submission)[0] == "check-dropped"


def test_a_look_with_kvlib_beside_the_answer_is_dropped_and_use_in_it_is_not(read):
    setup = code("from kvlib import load_spec\nspec = load_spec('x')\nn = spec.n_layers")
    submission = read(setup, answer("double", RIGHT["double"] + "print(double(n))"))
    assert names_of(submission.answers["double"].source) == ["double"]
    submission = read(setup, answer("double", "def double(x):\n    return n * x"))
    assert "from kvlib import load_spec" in submission.answers["double"].source


def test_a_syntax_error_elsewhere_hurts_nobody(read):
    submission = read(code("def broken(:\n"), code("K = 2"), *toy.solved(double="def double(x):\n    return K * x"))
    assert names_of(submission.answers["double"].source) == ["K", "double"]


def test_a_syntax_error_in_the_answer_stays_for_the_learner_to_read(read):
    submission = read(answer("double", "def double(x)\n    return x"), answer("square", RIGHT["square"]))
    assert "def double(x)\n" in submission.answers["double"].source
    assert "answer-renamed" not in ids(submission)


# magics


@pytest.mark.parametrize("line", ["%matplotlib inline", "!rm -rf x", "%run evil.py", "%pip install x", "files = !ls", "double?",
                                  "?double", "get_ipython().system('ls')", "!echo \"it's (open"])  # fmt: skip
def test_line_magics_are_dropped_and_said(read, line):
    submission = read(answer("double", f"{line}\n{RIGHT['double']}"), answer("square", RIGHT["square"]))
    assert names_of(submission.answers["double"].source) == ["double"]
    assert line.split("(")[0] not in submission.answers["double"].source
    assert ids(submission) == ["magic-dropped"]


@pytest.mark.parametrize("magic", ["%%bash", "%%javascript", "%%html", "%%writefile double.py", "%%sh", "%%timeit"])
def test_cells_of_another_language_are_no_answers(read, magic):
    submission = read(code(f"{magic}\n{RIGHT['double']}", kvgrade={"exercise": "double", "role": "answer"}))
    assert "double" not in submission.answers
    assert "cell-not-python" in ids(submission)


def test_a_timed_cell_still_is_python(read):
    assert "double" in read(answer("double", "%%time\n" + RIGHT["double"])).answers


def test_percent_and_question_marks_in_python_are_no_magics(read):
    body = 'def double(x):\n    text = """\n%magic\n!shell\n"""\n    return (x\n        % 7) if "?" else {\n        1: 2}\n'
    submission = read(answer("double", body), answer("square", RIGHT["square"]))
    assert submission.answers["double"].source.endswith(body)
    assert ids(submission) == []


# untouched


def test_an_untouched_starter_is_told_from_an_answer():
    starter = EXERCISES["double"].starter
    assert is_starter("# a comment\n" + starter + "\n\n", starter)
    assert is_starter("# nothing\n", starter)
    assert not is_starter(RIGHT["double"], starter)
    assert not is_starter("def double(:", starter)


# hostile files


@pytest.mark.parametrize(("data", "id"), [
    (b"\0" * 10, "file-nul"),
    (b'{"nbformat": 4, "cells": [], "x": "\0"}', "file-nul"),
    ("中文".encode("cp950"), "file-not-utf8"),
    (b"{", "file-not-json"),
    (b"[" * 1_000_000, "file-nested"),
    (b'{"a":' * 1_000_000, "file-nested"),
    (b'"' + b'\\"' * 1_000_000, "file-not-json"),
    (b"9" * 10_000, "file-not-json"),
    (b"[]", "file-not-notebook"),
    (b'{"nbformat": 4, "cells": "x"}', "file-not-notebook"),
    (b'{"nbformat": 3, "worksheets": []}', "file-nbformat"),
    (b'{"nbformat": 5, "cells": []}', "file-nbformat"),
    (b'{"nbformat": 4, "cells": [' + b"{}," * MAX_CELLS + b"{}]}", "file-too-many-cells"),
    (b" " * (MAX_BYTES + 1), "file-too-large"),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_a_hostile_file_is_refused_with_a_reason(read, data, id):
    started = time.monotonic()
    with pytest.raises(Unreadable) as error:
        read(data)
    assert error.value.message.id == id
    assert time.monotonic() - started < 5


def test_other_kinds_of_files_are_refused(tmp_path):
    for name in ("a.txt", "b.zip", "folder.ipynb/c"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    for path in (tmp_path / "a.txt", tmp_path / "b.zip", tmp_path / "folder.ipynb"):
        with pytest.raises(Unreadable) as error:
            read_submission(path, EXERCISES)
        assert error.value.message.id == "file-kind"
    with pytest.raises(Unreadable) as error:
        read_submission(tmp_path / "none.ipynb", EXERCISES)
    assert error.value.message.id == "file-absent"
    assert "none.ipynb" in str(error.value) and "No such file" not in str(error.value)


def test_malformed_cells_cost_themselves_only(read):
    bad = [1, None, "x", {}, {"cell_type": "code"}, {"cell_type": "code", "source": [1]}, {"cell_type": "code", "source": "\0"},
           {"cell_type": "code", "source": "\ud800"}, {"cell_type": 3, "source": "x"}, code("x = 1" * 100_000)]  # fmt: skip
    odd = {"cell_type": "code", "source": "K = 2", "metadata": [1]}
    submission = read(*bad, odd, answer("double", "def double(x):\n    return K * x"))
    assert ids(submission).count("cell-malformed") == len(bad)
    assert names_of(submission.answers["double"].source) == ["K", "double"]


@pytest.mark.parametrize("metadata", [{"kvgrade": "x"}, {"kvgrade": {"exercise": ["double"]}}, {"kvgrade": {"role": {}}},
                                      {"kvgrade": {"exercise": "double", "role": 3}}, {"nbgrader": 4}], ids=str)  # fmt: skip
def test_odd_metadata_is_no_metadata(read, metadata):
    assert "double" in read(code("# kvgrade: double\n" + RIGHT["double"], **metadata)).answers


@pytest.mark.parametrize("evil", ["-" * 190_000 + "1", "(" * 190_000, "x" + ".a" * 90_000, "1" + "+1" * 90_000, "lambda:" * 20_000,
                                  '"""' * 50_001, "%" * 190_000, "not " * 40_000 + "1", "f'" + "{f'" * 3000], ids=lambda e: e[:9])  # fmt: skip
def test_code_that_no_parser_likes_is_read_and_not_run(read, evil):
    started = time.monotonic()
    assert read(code(evil), answer("double", evil), answer("square", RIGHT["square"])).answers["square"]
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("chain", ["\n".join(f"a{n}=a{n + 1}" for n in reversed(range(5000))), "a=a\n" * 5000], ids=["long", "own"])
def test_a_long_chain_of_names_costs_what_its_lines_cost(read, chain):
    started = time.monotonic()
    submission = read(code("from kvlib import a5000\na=1"), code(chain), answer("double", "def double(x):\n    return a0 + a"))
    assert len(submission.answers["double"].source) > len(chain)
    assert time.monotonic() - started < 10


def test_nothing_in_a_notebook_is_executed(read, tmp_path):
    mark = tmp_path / "mark"
    run = f"open({str(mark)!r}, 'w')"
    cells = [code(run), code(f"K = {run}"), answer("double", f"{run}\ndef double(x, y={run}):\n    return K"), code(f"!touch {mark}")]
    assert "double" in read(*cells).answers
    assert not mark.exists()


def test_outputs_are_not_looked_at(read):
    cells = toy.solved()
    cells[0]["outputs"] = [{"output_type": "display_data", "data": {"text/html": "<script>alert(1)</script>"}, "metadata": {}}]
    submission = read(*cells)
    assert ids(submission) == []
    assert "script" not in json.dumps([a.source for a in submission.answers.values()])


def test_lines_of_a_source_may_be_a_list(read):
    assert "double" in read(code(["# kvgrade: double\n", "def double(x):\n", "    return 2 * x"])).answers


def test_a_file_without_answers_knows_its_sheet_by_its_checks(read):
    submission = read(check("double"))
    assert (submission.sheet, submission.answers) == ("01-toy", {})
    assert ids(submission) == ["answer-missing", "answer-missing"]
