"""From a submission to results: every exercise that was set gets exactly one, whatever the file holds.

Invariant: what is missing is 0 points, what is untouched is "not attempted", and neither starts a process.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kvgrade.exercises import Exercise, hidden_tests
from kvgrade.grading import grade
from kvgrade.outcome import MISSING, NOT_ATTEMPTED, Result
from kvgrade.session import Session
from kvgrade.submission import Answer, Submission, is_starter
from kvgrade.testing import Property, properties

Opener = Callable[[Exercise, str], Session]  # a session with the given code and this answer loaded


def grade_submission(submission: Submission, exercises: Iterable[Exercise] | Mapping[str, Exercise], opener: Any,
                     seed: str, tests: Callable[[Exercise], tuple[Property, ...]] | None = None) -> list[Result]:
    """One result per exercise, in their order.

    `opener`: a pool of `kvgrade.isolation.remote`, or a function of an exercise and a source that gives a session (`kvgrade.session.local`
    for code of our own). `tests`: an exercise's properties; its hidden tests unless given. Raises NoHiddenTests.
    """  # fmt: skip
    wanted = exercises.values() if isinstance(exercises, Mapping) else exercises
    return [grade_answer(e, submission.answers.get(e.id), opener, seed, tests) for e in wanted]


def grade_answer(exercise: Exercise, answer: Answer | None, opener: Any, seed: str,
                 tests: Callable[[Exercise], tuple[Property, ...]] | None = None) -> Result:  # fmt: skip
    """The result of one exercise; `answer` is None where there is none."""
    if answer is None:
        return Result(exercise.id, MISSING, 0, exercise.points)
    if is_starter(answer.cell, exercise.starter):
        return Result(exercise.id, NOT_ATTEMPTED, 0, exercise.points)
    props = tests(exercise) if tests else properties(hidden_tests(exercise.id))
    return grade(exercise, props, lambda: opener_of(opener)(exercise, answer.source), seed, name_variants=tests is None)


def opener_of(pool: Any) -> Opener:
    """The function that opens sessions in a pool; a function of one's own as it is."""
    if not hasattr(pool, "level"):
        return pool
    from kvgrade.isolation.remote import open_session

    return lambda exercise, source: open_session(exercise, source, pool.level, pool=pool)
