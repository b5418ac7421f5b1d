"""`kvgrade check`: reads a file, grades the exercises asked for one after the other, remembers what came of it.

Invariant: the answer runs in a process of its own; nothing here executes a line of it.
"""

import contextlib
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kvgrade import exercises as catalogue
from kvgrade import progress
from kvgrade.command.report import Checked
from kvgrade.exercises import Exercise, exercise, exercises, hidden_tests
from kvgrade.isolation.sandbox import best_level, choose
from kvgrade.marking import grade_submission
from kvgrade.outcome import MISSING, NOT_ATTEMPTED, Result
from kvgrade.submission import Submission, is_starter, read_submission
from kvgrade.submission.cells import read_cells
from kvlib.errors import SpecError
from kvlib.i18n import LANGUAGES, T, language

EXAMPLE = "kv-bytes"


@contextlib.contextmanager
def pool_of(level: int | None) -> Iterator[tuple[Any, int, str]]:
    """A pool of one process at the level asked for (None: the best of this machine), with the level and its sandbox."""
    from kvgrade.isolation.remote import Pool

    level, sandbox = best_level() if level is None else (level, choose(level))
    with Pool(level, 1) as pool:
        yield pool, level, sandbox


def check_file(path: Path, ids: Sequence[str], *, seed: str | None, level: int | None, hints: int,
               begin: Callable[[Checked], None], each: Callable[[Exercise, Result], None]) -> Checked:  # fmt: skip
    """Grade a file. `begin` is told what is known before the first result, `each` every result as it is there.

    Raises SpecError for a file, an exercise or a level that is none, NoHiddenTests where this copy has no tests.
    """
    submission = read_submission(path)
    _refuse_chapter(path)
    wanted = _wanted(submission, ids)
    for e in wanted:
        hidden_tests(e.id)
    seed = seed or secrets.token_hex(4)
    results: list[tuple[Exercise, Result]] = []
    with pool_of(level) as (pool, reached, sandbox):
        problems = [m for m in submission.problems if not ids or m.fields.get("exercise") in (None, *ids)]
        if ids or not _is_notebook(path):  # what was not asked for is not missed, and what was is said in its result
            problems = [m for m in problems if m.id != "answer-missing"]
        digests = {id: progress.digest(answer.source) for id, answer in submission.answers.items()}
        checked = Checked(str(path), submission.sheet, reached, sandbox, seed, problems, results, hints, own_copy(submission), digests)
        begin(checked)
        for e in wanted:
            (result,) = grade_submission(submission, [e], pool, seed)
            results.append((e, result))
            each(e, result)
    return checked


def remember(checked: Checked) -> progress.Progress:
    """Put what was attempted into the learner's progress; a request for hints is no attempt."""
    tried = [r for _, r in checked.results if r.status not in (MISSING, NOT_ATTEMPTED) and not checked.hints]
    return progress.record(*(progress.Attempt(r.exercise, progress.CHECK, r.points, r.max, progress.now(),
                                              answer=checked.digests.get(r.exercise)) for r in tried))  # fmt: skip


def own_copy(submission: Submission) -> Path | None:
    """For an untouched original of the book: the learner's copy in reading/, where there is one that differs."""
    path = submission.path.resolve()
    if not path.is_relative_to(catalogue.HOME / "exercises"):
        return None
    if not all(is_starter(a.cell, exercise(a.exercise).starter) for a in submission.answers.values()):
        return None
    copy = catalogue.HOME / "reading" / path.relative_to(catalogue.HOME)
    if not copy.is_file() or copy.read_bytes() == path.read_bytes():
        return None
    return copy.relative_to(Path.cwd()) if copy.is_relative_to(Path.cwd()) else copy


def _wanted(submission: Submission, ids: Sequence[str]) -> list[Exercise]:
    """The exercises named; else those of a notebook's sheet, or those that a Python file answers."""
    name, notebook = submission.path.name, _is_notebook(submission.path)
    if ids:
        wanted = [exercise(id) for id in dict.fromkeys(ids)]
        for e in wanted:
            if notebook and submission.sheet not in (None, e.sheet) and e.id not in submission.answers:
                raise SpecError(T(f"{e.id} 是 {e.sheet} 的題目，{name} 裡沒有", f"{e.id} belongs to {e.sheet}; {name} does not answer it"))
        return wanted
    found = [e for e in exercises().values() if (e.sheet == submission.sheet if notebook else e.id in submission.answers)]
    if not found:
        example = EXAMPLE if EXAMPLE in exercises() else next(iter(exercises()))
        raise SpecError(T(f"{name} 裡沒有任何一題的答案；請在答案開頭加上這一行：# kvgrade: {example}\n題目代號有：{'、'.join(exercises())}",
                          f"{name} answers no exercise; begin the answer with the line # kvgrade: {example}\n"
                          f"There are: {', '.join(exercises())}"))  # fmt: skip
    return found


def _refuse_chapter(path: Path) -> None:
    """Raise SpecError for a chapter's notebook: it defines what its exercises ask for. Whatever speaks of kvgrade in its metadata
    or code is no chapter but a sheet, whole or not, and is graded."""
    if not _is_notebook(path):
        return
    sheet = next((e.sheet for e in exercises().values() if e.sheet in path.stem), None)
    whole = path.resolve()
    inside = whole.parent.name in LANGUAGES and whole.parent.parent.name == "notebooks"
    if sheet is None or not (inside or path.stem == sheet and "exercises" not in whole.parts):
        return
    if any(cell.about("kvgrade") or cell.kind == "code" and re.search(r"\bkvgrade\b", cell.text) for cell in read_cells(path)[0]):
        return
    theirs = f"reading/exercises/{whole.parent.name if inside else language()}/{sheet}.ipynb"
    raise SpecError(T(f"{path.name} 是章節；它的練習在 {theirs}", f"{path.name} is a chapter; its exercises are in {theirs}"))


def _is_notebook(path: Path) -> bool:
    return path.suffix.lower() == ".ipynb"
