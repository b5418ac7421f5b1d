"""A submission: which answer belongs to which exercise, and what is odd about the file.

An answer is found by the cell's metadata, else by the line `# kvgrade: ID`, else by the name that the exercise asks for. Nothing
else in the file counts: test cells, points and outputs are ignored. Invariant: for every file there is a Submission or an
`Unreadable`; nothing of it is executed.

Where there are several candidates for one exercise, the better way of finding decides, then the last one that defines the name and
is no longer the starter.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kvgrade import exercises as catalogue
from kvgrade.exercises import Exercise
from kvgrade.outcome import Message
from kvgrade.submission.cells import Cell, Unreadable, read_cells
from kvgrade.submission.definitions import (
    MAX_STATEMENTS,
    TOO_MUCH,
    Definitions,
    Statement,
    count_statements,
    statements,
)
from kvgrade.submission.magics import cell_magic, without_magics
from kvgrade.submission.needs import Needed, with_needs

__all__ = ["Answer", "Submission", "Unreadable", "is_starter", "read_submission"]

_MARKER = re.compile(r"^[ \t]*+#[ \t]*+kvgrade:[ \t]*+([\w.-]+)", re.MULTILINE)
Parsed = dict[tuple[int, int], list[Statement] | None]  # by the cell's key
METADATA, MARKER, NAME = "metadata", "marker", "name"  # ways of finding, best first


@dataclass(frozen=True)
class Answer:
    """One answer. `source`: the cell and what it needs of other cells. `cell`: the cell alone. `found`: "metadata", "marker" or
    "name". `place`: the cell's number in the file."""

    exercise: str
    source: str
    cell: str
    found: str = METADATA
    place: int = 0


@dataclass(frozen=True)
class Submission:
    """What a file holds. `sheet`: the slug of the sheet that most answers belong to, or None. `problems`: in the order of the
    file."""

    path: Path
    answers: dict[str, Answer]
    problems: tuple[Message, ...]
    sheet: str | None


@dataclass(frozen=True)
class _Candidate:
    cell: Cell
    found: str
    defines: bool  # the name that the exercise asks for
    starter: bool


def read_submission(path: Path, exercises: Mapping[str, Exercise] | None = None) -> Submission:
    """Read a .ipynb or .py file. `exercises`: those of the book unless given. Raises Unreadable (a SpecError)."""
    exercises = catalogue.exercises() if exercises is None else exercises
    cells, problems = read_cells(Path(path))
    code, more = _python_cells(cells)
    if (count := sum(map(count_statements, code))) > MAX_STATEMENTS:
        raise Unreadable("file-too-many-statements", got=f"{count:,}", limit=f"{MAX_STATEMENTS:,}")
    code = list(_apart(code, exercises))
    problems = [*problems, *more, *_misplaced(cells, exercises), *_points(cells, exercises)]
    parsed = {cell.key: statements(cell) for cell in code}
    chosen: dict[str, _Candidate] = {}
    marked = {id: list(_marked(code, id, e, parsed)) for id, e in exercises.items()}
    for id, exercise in exercises.items():
        candidates = marked[id] + list(_named(code, exercise, parsed, {c.cell.key for cs in marked.values() for c in cs}))
        if candidates:
            chosen[id], more = _best(exercise, candidates)
            problems += more
    for cell in code:  # a book of other exercises, or a copy without sheets: the metadata names them all the same
        if (id := _id_of(cell)) and id not in exercises:
            problems.append(Message("answer-unknown", {"exercise": id, "cell": cell.where}))
            if not exercises and _role(cell) == "answer":
                chosen[id] = _Candidate(cell, METADATA, True, False)
    definitions = Definitions(s for body in [*parsed.values(), *_barred(cells)] for s in body or ())
    answers = {}
    for id, candidate in chosen.items():
        cell = candidate.cell
        about = exercises.get(id)
        needed = with_needs(definitions, cell, parsed[cell.key], about.given if about else "", about.entry if about else "")
        problems += _about(id, cell, needed)
        answers[id] = Answer(id, needed.source, cell.text, candidate.found, cell.number)
    sheet = _sheet(Path(path), cells, answers, exercises)
    problems += _moved(answers, exercises)
    problems += [Message("answer-missing", {"exercise": id}) for id, e in exercises.items()
                 if e.sheet == sheet and id not in answers]  # fmt: skip
    return Submission(Path(path), answers, tuple(problems), sheet)


def is_starter(answer: str, starter: str) -> bool:
    """Whether an answer's cell is empty or still what the sheet came with, comments and layout apart."""
    try:
        tree = ast.parse(answer)
        return not tree.body or ast.dump(tree) == ast.dump(ast.parse(starter))
    except TOO_MUCH:
        return False


def _python_cells(cells: list[Cell]) -> tuple[list[Cell], list[Message]]:
    """The learner's code cells as Python: no given or check cells, no magics."""
    out, problems = [], []
    for cell in cells:
        if cell.kind != "code" or _role(cell) in ("given", "check"):
            continue
        if magic := cell_magic(cell.text):
            problems.append(Message("cell-not-python", {"cell": cell.where, "magic": f"%%{magic[:40]}"}))
            continue
        text, dropped = without_magics(cell.text)
        problems += [Message("magic-dropped", {"cell": cell.where, "line": line[:200]}) for line in dropped]
        out.append(cell.with_text(text))
    return out, problems


def _barred(cells: list[Cell]) -> Iterator[list[Statement] | None]:
    """What the cells of checks hold: it does not come along, and where an answer uses it, that is said."""
    found = [cell.with_text(without_magics(cell.text)[0]) for cell in cells if cell.kind == "code" and _role(cell) == "check"]
    if sum(map(count_statements, found)) <= MAX_STATEMENTS:
        yield from (statements(cell, barred=True) for cell in found)


def _about(id: str, cell: Cell, needed: Needed) -> Iterator[Message]:
    """What there is to say about what came along and what did not."""
    for line in needed.dropped:
        yield Message("check-dropped", {"cell": cell.where, "line": line[:200]})
    for s, name in needed.left_out:
        line = s.text.strip().partition("\n")[0][:200]
        yield Message("left-out", {"exercise": id, "cell": s.where, "name": name[:100], "line": line})
    if not needed.whole:
        yield Message("left-out-all", {"exercise": id})


def _apart(code: list[Cell], exercises: Mapping[str, Exercise]) -> Iterator[Cell]:
    """The cells; those that are marked for no exercise but define an answer among other things, statement by statement."""
    entries = {e.entry for e in exercises.values()}
    for cell in code:
        body = None if _id_of(cell) else statements(cell)
        if body and len(body) > 1 and any(s.binds & entries for s in body):
            for part, s in enumerate(body, start=1):
                yield cell.with_text(s.text, part)
        else:
            yield cell


def _role(cell: Cell) -> str | None:
    role = cell.about("kvgrade").get("role")
    return role if isinstance(role, str) else None


def _id_of(cell: Cell) -> str | None:
    """The exercise that a cell says it answers."""
    id = cell.about("kvgrade").get("exercise")
    if isinstance(id, str) and _role(cell) in (None, "answer"):
        return id[:100]
    match = _MARKER.search(cell.text)
    return match[1][:100] if match else None


def _marked(code: list[Cell], id: str, exercise: Exercise, parsed: Parsed) -> Iterator[_Candidate]:
    for cell in code:
        if _id_of(cell) == id:
            found = METADATA if cell.about("kvgrade").get("exercise") == id else MARKER
            yield _Candidate(cell, found, _defines(cell, exercise.entry, parsed), is_starter(cell.text, exercise.starter))


def _named(code: list[Cell], exercise: Exercise, parsed: Parsed, taken: set[tuple[int, int]]) -> Iterator[_Candidate]:
    """Cells that define the name although they are marked for no exercise."""
    for cell in code:
        if cell.key not in taken and _defines(cell, exercise.entry, parsed):
            yield _Candidate(cell, NAME, True, _is_starter_in(cell.text, exercise))


def _is_starter_in(text: str, exercise: Exercise) -> bool:
    """Whether a cell, or the definition alone that was taken from one, is the starter's."""
    starter = statements(Cell(0, "code", exercise.starter)) or ()
    texts = [exercise.starter, *(s.text for s in starter if exercise.entry in s.binds)]
    return any(is_starter(text, each) for each in texts)


def _defines(cell: Cell, entry: str, parsed: Parsed) -> bool:
    body = parsed[cell.key]
    if body is None:
        return re.search(rf"^(?:async\s+def|def|class)\s+{re.escape(entry)}\b", cell.text, re.MULTILINE) is not None
    return any(entry in s.binds and not isinstance(s.node, (ast.Import, ast.ImportFrom)) for s in body)


def _best(exercise: Exercise, candidates: list[_Candidate]) -> tuple[_Candidate, list[Message]]:
    """The candidate that counts, and what there is to say about the others."""
    real = [c for c in candidates if c.defines and not c.starter]
    pool = real or [c for c in candidates if c.starter] or candidates
    best_way = min((METADATA, MARKER, NAME).index(c.found) for c in pool)
    best = [c for c in pool if c.found == (METADATA, MARKER, NAME)[best_way]][-1]
    problems = []
    if len(real) > 1:
        cells = {lang: between.join(c.cell.where[lang] for c in real) for lang, between in (("zh-TW", "、"), ("en", ", "))}
        problems.append(Message("answer-duplicate", {"exercise": exercise.id, "cells": cells, "used": best.cell.where}))
    elif best.found != METADATA and len(candidates) > 1:
        problems.append(Message("answer-elsewhere", {"exercise": exercise.id, "used": best.cell.where}))
    if not best.defines and not best.starter:
        problems.append(Message("answer-renamed", {"exercise": exercise.id, "cell": best.cell.where, "entry": exercise.entry}))
    return best, problems


def _misplaced(cells: list[Cell], exercises: Mapping[str, Exercise]) -> list[Message]:
    """Answers in cells that are not code."""
    found = []
    for cell in cells:
        marker = _MARKER.match(cell.text)
        id = cell.about("kvgrade").get("exercise") if _role(cell) == "answer" else marker[1] if marker else None
        if cell.kind != "code" and isinstance(id, str) and id in exercises:
            found.append(Message("answer-not-code", {"exercise": id, "cell": cell.where}))
    return found


def _points(cells: list[Cell], exercises: Mapping[str, Exercise]) -> list[Message]:
    """Points that the file claims and the manifest does not know."""
    found = []
    for cell in cells:
        id = cell.about("kvgrade").get("exercise")
        for tool in ("kvgrade", "nbgrader"):
            points = cell.about(tool).get("points")
            if points is not None and isinstance(id, str) and id in exercises and points != exercises[id].points:
                fields = {"exercise": id, "got": str(points)[:20], "want": exercises[id].points}
                found.append(Message("points-ignored", fields))
    return found


def _moved(answers: dict[str, Answer], exercises: Mapping[str, Exercise]) -> list[Message]:
    places = [answers[id].place for id in exercises if id in answers]
    return [] if places == sorted(places) else [Message("answers-moved")]


def _sheet(path: Path, cells: list[Cell], answers: dict[str, Answer], exercises: Mapping[str, Exercise]) -> str | None:
    """The sheet that most answers are of; without answers, that of the other cells' metadata or of the file's name."""
    votes = [exercises[id].sheet for id in answers if id in exercises]
    votes = votes or [exercises[id].sheet for cell in cells if isinstance(id := cell.about("kvgrade").get("exercise"), str)
                      and id in exercises]  # fmt: skip
    votes = votes or [e.sheet for e in exercises.values() if e.sheet in path.stem]
    return max(votes, key=votes.count) if votes else None
