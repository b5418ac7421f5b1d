"""`kvgrade check`: reads a file, grades the exercises asked for one after the other, remembers what came of it.

Invariant: the answer runs in a process of its own; nothing here executes a line of it.
"""

import contextlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kvgrade import exercises as catalogue
from kvgrade import progress
from kvgrade.exercises import Exercise, exercise, exercises, hidden_tests
from kvgrade.grading import MISSING, NOT_ATTEMPTED, Result
from kvgrade.marking import grade_submission
from kvgrade.report import Checked
from kvgrade.sandbox import best_level, choose
from kvgrade.submission import Submission, is_starter, read_submission
from kvlib.errors import SpecError
from kvlib.i18n import T


@contextlib.contextmanager
def pool_of(level: int | None) -> Iterator[tuple[Any, int, str]]:
    """A pool of one process at the level asked for (None: the best of this machine), with the level and its sandbox."""
    from kvgrade.remote import Pool

    level, sandbox = best_level() if level is None else (level, choose(level))
    with Pool(level, 1) as pool:
        yield pool, level, sandbox


def check_file(path: Path, ids: Sequence[str], *, seed: str | None, level: int | None, hints: int,
               begin: Callable[[Checked], None], each: Callable[[Exercise, Result], None]) -> Checked:  # fmt: skip
    """Grade a file. `begin` is told what is known before the first result, `each` every result as it is there.

    Raises SpecError for a file, an exercise or a level that is none, NoHiddenTests where this copy has no tests.
    """
    submission = read_submission(path)
    wanted = _wanted(submission, ids)
    for e in wanted:
        hidden_tests(e.id)
    seed = seed or secrets.token_hex(4)
    results: list[tuple[Exercise, Result]] = []
    with pool_of(level) as (pool, reached, sandbox):
        problems = [m for m in submission.problems if not ids or m.fields.get("exercise") in (None, *ids)]
        checked = Checked(str(path), submission.sheet, reached, sandbox, seed, problems, results, hints, own_copy(submission))
        begin(checked)
        for e in wanted:
            (result,) = grade_submission(submission, [e], pool, seed)
            results.append((e, result))
            each(e, result)
    return checked


def remember(results: Sequence[tuple[Exercise, Result]], how: str = progress.CHECK, **timing: float) -> progress.Progress:
    """Put what was attempted into the learner's progress."""
    tried = [r for _, r in results if r.status not in (MISSING, NOT_ATTEMPTED)]
    return progress.record(*(progress.Attempt(r.exercise, how, r.points, r.max, progress.now(), **timing) for r in tried))


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
    if ids:
        return [exercise(id) for id in dict.fromkeys(ids)]
    notebook = submission.path.suffix.lower() == ".ipynb"
    found = [e for e in exercises().values() if (e.sheet == submission.sheet if notebook else e.id in submission.answers)]
    if not found:
        name = submission.path.name
        raise SpecError(T(f"{name} 裡沒有任何一題的答案；題目代號有：{'、'.join(exercises())}",
                          f"{name} answers no exercise; there are: {', '.join(exercises())}"))  # fmt: skip
    return found
