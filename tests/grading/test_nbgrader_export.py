"""Exported notebooks are what nbgrader wants, become our starters when it clears them, and give our solutions full points."""

import ast
import json
import re

import pytest

from kvgrade.answers import solutions
from kvgrade.exercises import exercises
from kvgrade.nbgrader import BEGIN, END, export, passes, points, with_solution
from kvgrade.submission import is_starter
from kvlib.errors import SpecError
from kvlib.i18n import LANGUAGES

STUB = "# YOUR CODE HERE\nraise NotImplementedError()"  # nbgrader's own default


@pytest.fixture(scope="module", params=LANGUAGES)
def exported(request, tmp_path_factory) -> list[dict]:
    paths = export(tmp_path_factory.mktemp("source"), request.param)
    assert [p.parent.name for p in paths] == [p.stem for p in paths]
    return [json.loads(p.read_text(encoding="utf-8")) for p in paths]


def about(notebook: dict) -> list[tuple[dict, dict]]:
    return [(cell, cell["metadata"]["nbgrader"]) for cell in notebook["cells"] if "nbgrader" in cell["metadata"]]


def cleared(source: str) -> str:
    """What nbgrader's ClearSolutions makes of a cell."""
    return re.sub(rf"^([ \t]*){BEGIN}\n.*?^[ \t]*{END}$", lambda m: "\n".join(m[1] + line for line in STUB.split("\n")), source,
                  flags=re.DOTALL | re.MULTILINE)  # fmt: skip


def test_metadata_follow_the_schema(exported):
    for notebook in exported:
        ids = []
        for cell, meta in about(notebook):
            required = {"schema_version": int, "grade": bool, "solution": bool, "locked": bool, "task": bool, "grade_id": str}
            assert {name: type(meta[name]) for name in required} == required
            assert meta["schema_version"] == 3
            assert re.fullmatch(r"[a-zA-Z0-9_\-]+", meta["grade_id"])
            assert not meta["task"]
            if meta["grade"]:
                assert isinstance(meta["points"], int) and meta["points"] >= 0
                assert meta["cell_type"] == cell["cell_type"] == "code"
                assert meta["locked"] and not meta["solution"]
            else:
                assert "points" not in meta
                assert meta["locked"] != meta["solution"]
            ids.append(meta["grade_id"])
        assert len(ids) == len(set(ids))


def test_every_exercise_has_an_answer_a_test_and_its_points(exported):
    metas = {meta["grade_id"]: meta for notebook in exported for _, meta in about(notebook)}
    for id, e in exercises().items():
        assert metas[f"answer-{id}"]["solution"]
        assert metas[f"test-{id}"]["points"] == (0 if e.optional else e.points)


def test_marks_are_balanced_and_stand_in_their_own_kind_of_cell(exported):
    for notebook in exported:
        for cell in notebook["cells"]:
            source, meta = "".join(cell["source"]), cell["metadata"].get("nbgrader", {})
            assert source.count(BEGIN) == source.count(END) == source.count("SOLUTION") / 2
            assert (BEGIN in source) == bool(meta.get("solution"))
            assert source.count("### BEGIN HIDDEN TESTS") == source.count("### END HIDDEN TESTS") == int(meta.get("grade", False))


def test_what_nbgrader_clears_is_our_starter(exported):
    for notebook in exported:
        for cell, meta in about(notebook):
            if meta["solution"]:
                e = exercises()[meta["grade_id"].removeprefix("answer-")]
                text = cleared("".join(cell["source"])).replace("NotImplementedError()", "NotImplementedError")
                assert is_starter(text, e.starter), e.id


def test_exported_solutions_pass_what_the_test_cells_call(exported, monkeypatch):
    monkeypatch.setenv("KVGRADE_SEED", "export")
    first = {e.sheet: e.id for e in reversed(exercises().values())}
    for notebook in exported:
        for cell, meta in about(notebook):
            id = meta["grade_id"].removeprefix("answer-")
            if meta["solution"] and id in first.values():
                e, names = exercises()[id], {"__name__": "__answer__"}
                exec(e.given + "\n" + "".join(cell["source"]), names)  # noqa: S102
                assert passes(id, names[e.entry])
                assert points(id, names[e.entry]) == e.points


def test_a_wrong_answer_passes_no_test_cell_and_gets_its_part():
    id = next(iter(exercises()))
    with pytest.raises(AssertionError):
        passes(id, lambda *a, **k: None)
    assert points(id, lambda *a, **k: None) == 0


def test_every_solution_fits_its_starter():
    for id, e in exercises().items():
        text = with_solution(e.starter, solutions(e.sheet)[id])
        ast.parse(text)
        assert cleared(text) != text


def test_what_does_not_fit_is_refused(tmp_path):
    starter = "def f(x):\n    raise NotImplementedError"
    for solution in ("def f(y):\n    return y", "def g(x):\n    return x"):
        with pytest.raises(SpecError):
            with_solution(starter, solution)
    with pytest.raises(SpecError):
        with_solution("def f(x):\n    pass", "def f(x):\n    return x")
    with pytest.raises(SpecError):
        export(tmp_path, "fr")


def test_helpers_of_a_solution_move_into_the_body():
    text = with_solution('def f(x):\n    """Doc."""\n    raise NotImplementedError', 'K = 3\n\ndef f(x):\n    """Doc."""\n    return K * x')
    names: dict = {}
    exec(text, names)  # noqa: S102
    assert names["f"](2) == 6
    assert "K = 3" not in cleared(text)
