"""Source notebooks for nbgrader, and what their test cells call.

Invariant: `nbgrader generate_assignment` turns an exported notebook into our starter, and `autograde` gives our solution full points.
What nbgrader grades runs in the learner's own process, so its marks are as forgeable as nbgrader's always are: `kvgrade class`
is the way to grade people you do not know.
"""

import ast
import os
import re
import secrets
import sys
import textwrap
from pathlib import Path
from typing import Any

from kvgrade.exercises import HOME, Exercise, NoHiddenTests, exercise, exercises, hidden_tests
from kvgrade.grading import grade
from kvgrade.session import AnswerRaised, Local, Session, SessionLost
from kvgrade.testing import Failed, Trial, properties
from kvlib.errors import SpecError
from kvlib.i18n import LANGUAGES

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
SCHEMA = 3  # of nbgrader's cell metadata

_SOLUTION_LINK = re.compile(r"\[([^\]\n]*)\]\((?:\.\./)+solutions/[^)\s]*\)")

TEST = """from kvgrade.nbgrader import passes, points

assert passes("{id}", {entry})
### BEGIN HIDDEN TESTS
{points}
### END HIDDEN TESTS"""


def export(out: Path, lang: str, home: Path = HOME) -> list[Path]:
    """Write SHEET/SHEET.ipynb below `out`, nbgrader's source folder; the files. Raises SpecError, NoHiddenTests."""
    import nbformat

    if lang not in LANGUAGES:
        raise SpecError(f"no language {lang!r} in this book; use one of {', '.join(LANGUAGES)}")
    written = []
    for sheet in dict.fromkeys(e.sheet for e in exercises().values()):
        path = home / "exercises" / lang / f"{sheet}.ipynb"
        if not path.is_file():
            raise SpecError(f"there is no exercises/{lang}/{sheet}.ipynb here; run make build first")
        notebook = nbformat.read(path, as_version=4)
        answers = _solutions(sheet, lang, home)
        for cell in notebook.cells:
            about = cell.metadata.get("kvgrade", {})
            cell.source = _SOLUTION_LINK.sub(r"\1", cell.source)
            if cell.cell_type == "code" and about.get("exercise") in answers:
                _turn(cell, exercises()[about["exercise"]], about.get("role"), answers[about["exercise"]])
        target = out / sheet / f"{sheet}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, target)
        written.append(target)
    return written


def passes(id: str, answer: Any) -> bool:
    """Run the public checks. Raises AssertionError with what `check` would print."""
    asked = exercise(id)
    names: dict[str, Any] = {"__name__": "__public__"}
    exec(compile(asked.public, "<public checks>", "exec"), names)  # noqa: S102  from our manifest
    try:
        names["public"](Trial(_session(asked, answer), asked.entry, f"public/{id}"))
    except (AnswerRaised, Failed, SessionLost) as error:
        from kvgrade.public import report

        raise AssertionError(report(asked, answer)) from error
    return True


def points(id: str, answer: Any) -> int:
    """The points of the hidden tests, drawn from KVGRADE_SEED or at random; all of them where this copy has no hidden tests."""
    asked = exercise(id)
    try:
        props = properties(hidden_tests(id))
    except NoHiddenTests as error:
        print(error)
        return asked.points
    seed = os.environ.get("KVGRADE_SEED") or secrets.token_hex(8)
    return grade(asked, props, lambda: _session(asked, answer), seed, name_variants=False).points


def with_solution(starter: str, solution: str) -> str:
    """The starter with the solution's bodies between nbgrader's marks. Raises SpecError when the two do not fit together."""
    wanted, bodies = _functions(starter), _functions(solution)
    extra = _extra(starter, solution)
    lines, done = starter.split("\n"), 0
    for name, node in sorted(wanted.items(), key=lambda item: -item[1].lineno):
        last = node.body[-1]
        if not (isinstance(last, ast.Raise) and "NotImplementedError" in ast.unparse(last)):
            continue
        if name not in bodies or ast.unparse(bodies[name].args) != ast.unparse(node.args):
            raise SpecError(f"the solution has no {name} with the starter's parameters")
        if extra and "." in name:
            raise SpecError(f"the solution has code beside the class of {name}; move it into the class")
        indent = " " * last.col_offset
        body = [*textwrap.indent(extra, indent).split("\n"), *_body(solution, bodies[name])] if extra else _body(solution, bodies[name])
        lines[last.lineno - 1 : last.end_lineno] = [indent + BEGIN, *body, indent + END]
        done += 1
    if not done:
        raise SpecError("the starter leaves nothing to solve: it has no `raise NotImplementedError`")
    return "\n".join(lines)


def _turn(cell: Any, e: Exercise, role: str | None, solution: str) -> None:
    """Make one cell of a sheet nbgrader's."""
    about = {"schema_version": SCHEMA, "task": False, "grade": False, "solution": False, "locked": False}
    if role == "answer":
        cell.source = f"# kvgrade: {e.id}\n{with_solution(e.starter, solution)}"
        about |= {"grade_id": f"answer-{e.id}", "solution": True}
    elif role == "check":
        value = f"assert points({e.id!r}, {e.entry}) == {e.points}" if e.optional else f'points("{e.id}", {e.entry})'
        cell.source = TEST.format(id=e.id, entry=e.entry, points=value)
        about |= {"grade_id": f"test-{e.id}", "grade": True, "locked": True, "points": 0 if e.optional else e.points,
                  "cell_type": "code"}  # fmt: skip
    elif role == "given":
        about |= {"grade_id": f"given-{e.id}", "locked": True}
    else:
        return
    cell.metadata["nbgrader"] = about


def _solutions(sheet: str, lang: str, home: Path) -> dict[str, str]:
    from kvgrade.submission import read_submission

    path = home / "solutions" / lang / f"{sheet}.ipynb"
    if not path.is_file():
        raise NoHiddenTests("this copy of the book has no solutions: nbgrader's source notebooks need them")
    return {id: answer.cell for id, answer in read_submission(path).answers.items()}


def _functions(source: str) -> dict[str, ast.FunctionDef]:
    """Functions at the top and methods of classes there, by qualified name."""
    found: dict[str, ast.FunctionDef] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{item.name}": item for item in node.body if isinstance(item, ast.FunctionDef)}
    return found


def _body(source: str, node: ast.FunctionDef) -> list[str]:
    """The lines of a function's body below its docstring."""
    has_doc = ast.get_docstring(node) is not None
    above = node.body[0].end_lineno if has_doc else node.body[0].lineno - 1
    return source.split("\n")[above : node.end_lineno]


def _extra(starter: str, solution: str) -> str:
    """What the solution has at its top and the starter has not: constants, helpers, imports."""
    have = {ast.unparse(node) for node in ast.parse(starter).body}
    names = {node.name for node in ast.parse(starter).body if hasattr(node, "name")}
    return "\n".join(ast.get_source_segment(solution, node) or "" for node in ast.parse(solution).body
                     if ast.unparse(node) not in have and getattr(node, "name", None) not in names)  # fmt: skip


def _session(asked: Exercise, answer: Any) -> Session:
    """A session in this very process: the notebook's names are there, for checks that ask for given code."""
    names = {**vars(sys.modules["__main__"]), asked.entry: answer}
    return Session(Local(names))
