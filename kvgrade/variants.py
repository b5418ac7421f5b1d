"""Which known wrong solution a wrong answer is: the misconception has a name, and the learner is told it.

Invariant: naming runs our own code on what the grader asked, in this process, and never changes a result's points.
"""

import math
from collections import Counter
from contextlib import suppress
from typing import Any

import torch

from kvgrade.answers import Mutant, mutants, solutions
from kvgrade.exercises import Exercise, NoHiddenTests
from kvgrade.session import AnswerRaised, SessionLost, local
from kvgrade.testing import TOLERANCE, Enough, Failed, Property, Trial, seed_of

SEARCHES = 2  # failures on which every known wrong solution is tried
REMEMBERED = 10_000
_gave: dict[tuple, tuple[int, Failed | None]] = {}  # comparisons asked, and how the first of them failed


def variants(exercise: Exercise, wrong: dict[int, tuple[Property, Failed]], seed: str) -> dict[int, Mutant]:
    """The known wrong solution that each wrong value equals: of several the one that explains most of them, then the first.

    All of them are tried on the first failures only, until some are found; on later ones, those that were.
    """
    values = {place: (p, failed) for place, (p, failed) in wrong.items() if failed.id == "value"}
    known = _known(exercise) if values else []
    found: dict[int, list[Mutant]] = {}
    for searched, (place, (p, failed)) in enumerate(values.items(), start=1):
        alike = [(mutant, source) for mutant, source in known if _equals(exercise, source, p, failed, seed)]
        found[place] = [mutant for mutant, _ in alike]
        if alike and not any(list(found.values())[:-1]):
            known = alike
        elif searched >= SEARCHES and not any(found.values()):
            break
    times = Counter(mutant.name for alike in found.values() for mutant in alike)
    return {place: max(alike, key=lambda mutant: times[mutant.name]) for place, alike in found.items() if alike}


def _known(exercise: Exercise) -> list[tuple[Mutant, str]]:
    """The wrong solutions and their sources; none where this copy of the book has no solutions to make them from."""
    found = []
    with suppress(NoHiddenTests):
        solution = solutions(exercise.sheet)[exercise.id]
        for mutant in mutants(exercise.id):
            with suppress(ValueError):  # one that no longer applies must not cost a learner the result; the matrix finds it
                found.append((mutant, mutant.of(solution)))
    return found


def _equals(exercise: Exercise, source: str, p: Property, failed: Failed, seed: str) -> bool:
    """Whether a wrong solution of our own gives the same value at the comparison that failed. Nothing is asked beyond it.

    What it gave is remembered: in a class many answers are compared with it.
    """
    key = p.test, source, exercise.given, seed
    asked, theirs = _gave.get(key, (0, None))
    if theirs is None and asked < failed.check:
        try:
            p.test(Trial(local(source, exercise.given), exercise.entry, seed_of(seed, exercise.id, p.name), upto=failed.check))
        except Failed as first:
            theirs = first.with_traceback(None)
        except (Enough, AnswerRaised, SessionLost, TypeError, ValueError, LookupError, RuntimeError):
            pass  # right there, or broken: it says nothing about the learner's
        if len(_gave) > REMEMBERED:
            _gave.clear()
        _gave[key] = failed.check, theirs
    return theirs is not None and theirs.id == "value" and theirs.check == failed.check and _alike(theirs.value, failed.value)


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if not a.dtype.is_floating_point:
            return torch.equal(a, b)
        atol = 10 * TOLERANCE[a.dtype] * max(1.0, float(a.double().nan_to_num().abs().max()) if a.numel() else 1.0)
        return torch.allclose(a.double(), b.double(), rtol=0, atol=atol, equal_nan=True)
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9) or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and a == b
