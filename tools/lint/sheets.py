"""A sheet asks the same in both languages, its starter promises what its solution keeps, and its numbers are computed."""

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass

from nbformat import NotebookNode

from tools.lint.anatomy import headings_of, lint_directives, title_problem
from tools.lint.chinese import lint_chinese
from tools.lint.claims import passages
from tools.lint.code import lint_sheet_code
from tools.lint.numbers import lint_numbers
from tools.lint.problem import Problem
from tools.lint.quantities import quantities
from tools.lint.twins import lint_twins
from tools.sheet import Exercise, Sheet
from tools.source import LANGUAGES

_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_NOT_THERE = ("kvlib", "kvgrade", "tools")  # where an answer is graded


def lint_sheet(sheet: Sheet, name: str) -> list[Problem]:
    """Everything that can be wrong with a sheet's source."""
    lints = (lint_twins, lint_chinese, lint_sheet_code, lint_directives)
    problems = [problem for lint in lints for problem in lint(sheet.source, name)]
    for lang in LANGUAGES:
        problems += [Problem(f"{name} ({lang})", message) for message in _headings(sheet, lang)]
    for exercise in sheet.exercises:
        where = f"{name}:{exercise.cells[0].line} ({exercise.id})"
        problems += [Problem(where, message) for message in _exercise(exercise)]
    return problems


def lint_sheet_numbers(solutions: NotebookNode, sheet: Sheet, name: str) -> list[Problem]:
    """Numbers of explanations and follow-ups, in a built solutions notebook, that nothing near them computes: not its code, not
    the public checks, which are no cell of it but have run, and not the sums of the front matter.

    A statement's numbers are what the exercise gives, and what its public checks hold it to: its other cells may repeat them.
    Hints are not looked at.
    """
    public = {exercise.id: exercise.code("public") for exercise in sheet.exercises}
    counted = [exercise.facts for exercise in sheet.exercises if not exercise.facts.get("optional")]
    checked, given = copy.deepcopy(solutions), []
    checked.cells[0].source += f"\n{', '.join(str(sum(facts[what] for facts in counted)) for what in ('points', 'minutes'))}"
    for cell in checked.cells:
        ours = cell.metadata.get("kvgrade", {})
        if ours.get("role") == "check":
            cell.source += f"\n\n{public.get(ours['exercise'], '')}"
        if ours.get("role") == "statement":
            begins = cell.source.startswith("## ")
            given = [*([] if begins else given), *(q.written for text in passages(cell.source) for q in quantities(text))]
            cell.source = cell.source.partition("\n")[0] if begins else ""
        elif cell.cell_type == "markdown":
            cell.metadata["numbers"] = [*cell.metadata.get("numbers", ()), *given]
    return lint_numbers(checked, name)


def _headings(sheet: Sheet, lang: str) -> Iterator[str]:
    headings = headings_of(sheet.source, lang)
    if problem := title_problem(headings):
        yield problem
    texts = [text for _, text in headings]
    if twice := sorted({text for text in texts if texts.count(text) > 1}):
        yield f"headings occur twice: {', '.join(twice)}; a link could not tell them apart"


def _exercise(exercise: Exercise) -> Iterator[str]:
    if not _ID.fullmatch(exercise.id):
        yield "an id has lower-case words joined by -"
    for lang in LANGUAGES:
        statements = exercise.prose(None, lang)
        if not statements[0].startswith("## "):
            yield f"its first {lang} cell must begin with its heading `## …`"
        if sum(len(re.findall(r"^## ", text, re.MULTILINE)) for text in statements) > 1:
            yield f"it has a second `## ` heading in {lang}; use ###, or give the next exercise's cells their id"
    entry, facts = exercise.facts["entry"], exercise.facts
    if not 1 <= facts["difficulty"] <= 5:
        yield f"its difficulty is {facts['difficulty']}; expected 1 to 5"
    starter, solution = (_Code(exercise.code(role)) for role in ("starter", "solution"))
    if exercise.code("check").strip() != f'check("{exercise.id}", {entry})':
        yield f'its check cell must be check("{exercise.id}", {entry})'
    if entry not in starter.signatures or "NotImplementedError" not in exercise.code("starter"):
        yield f"its starter must define {entry} and raise NotImplementedError"
    for what, signature in starter.signatures.items():
        if what.partition(".")[0] == entry and solution.signatures.get(what) != signature:
            theirs = solution.signatures.get(what, "nothing")
            yield f"the starter has {signature}, the solution {theirs}; write them alike"
    if there := sorted({*starter.imports, *solution.imports} & {*_NOT_THERE}):
        yield f"an answer imports {', '.join(there)}, which is not there where it is graded"
    if "public" not in _Code(exercise.code("public")).signatures:
        yield "its public checks must be a function public(t)"


@dataclass
class _Code:
    """What a cell defines, with its signatures, and what it imports. Private names are the author's own."""

    text: str

    def __post_init__(self) -> None:
        try:
            body = ast.parse(self.text).body
        except SyntaxError:  # reported as code
            body = []
        self.imports = {name.partition(".")[0] for node in ast.walk(ast.Module(body, [])) for name in _imported(node)}
        self.signatures = {}
        for node in body:
            if isinstance(node, ast.FunctionDef):
                self.signatures[node.name] = _signature(node, node.name)
            elif isinstance(node, ast.ClassDef):
                self.signatures[node.name] = f"class {node.name}"
                methods = (m for m in node.body if isinstance(m, ast.FunctionDef))
                self.signatures |= {f"{node.name}.{m.name}": _signature(m, f"{node.name}.{m.name}") for m in methods}


def _signature(node: ast.FunctionDef, name: str) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{name}({ast.unparse(node.args)}){returns}"


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield node.module or ""
