"""From an answer to points: runs an exercise's properties in order, each with its own seed, and names what went wrong.

Invariant: nothing that the answer's process does changes anything but the outcome of its own exercise.
"""

import math
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch

from kvgrade.exercises import Exercise, Mutant, mutants, solutions
from kvgrade.session import AnswerRaised, Session, SessionLost, local
from kvgrade.testing import TOLERANCE, Enough, Failed, Property, Trial

SEARCHES = 2  # failures on which every known wrong solution is tried
REMEMBERED = 10_000
_gave: dict[tuple, tuple[int, Failed | None]] = {}  # comparisons asked, and how the first of them failed
NOT_ATTEMPTED, PASSED, PARTIAL, FAILED, MISSING = "not-attempted", "passed", "partial", "failed", "missing"


@dataclass(frozen=True)
class Message:
    """One thing to tell the learner: an id of the catalogue and what to fill it with."""

    id: str
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What became of one property. `status`: "passed", "failed" or "skipped"."""

    property: str
    title: dict[str, str]
    points: int  # earned
    max: int
    status: str
    message: Message | None = None


@dataclass(frozen=True)
class Result:
    """What became of one exercise."""

    exercise: str
    status: str
    points: int
    max: int
    outcomes: tuple[Outcome, ...] = ()
    message: Message | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def grade(exercise: Exercise, props: tuple[Property, ...], open_session: Callable[[], Session], seed: str,
          name_variants: bool = True) -> Result:
    """Grade one answer. `open_session()` gives a session with the answer loaded, and is called again after one is lost.

    open_session may raise AnswerRaised (the answer does not even load) and SessionLost. `seed`: the same seed gives the same
    questions. `name_variants`: where a value is wrong, look whether it equals one of the known wrong solutions'.
    """  # fmt: skip
    session: Session | None = None
    outcomes: list[Outcome] = []
    held: set[str] = set()
    wrong: dict[int, tuple[Property, Failed]] = {}  # by the outcome's place
    try:
        for p in props:
            if not set(p.needs) <= held:
                outcomes.append(Outcome(p.name, p.title, 0, p.points, "skipped"))
                continue
            message = None
            try:
                session = session or open_session()
                try:
                    p.test(Trial(session, exercise.entry, seed_of(seed, exercise.id, p.name)))
                except (AnswerRaised, SessionLost, Failed):
                    raise
                except Exception:  # noqa: BLE001 - a value that our own test stumbled over; the run goes on
                    message = Message("protocol")
            except AnswerRaised as error:
                if error.type == "NotImplementedError" and not outcomes:
                    return Result(exercise.id, NOT_ATTEMPTED, 0, exercise.points)
                fields = {"type": error.type, "text": error.text, "trace": error.trace}
                message = Message("too-much-work" if error.type == "TooMuchWork" else "raised", fields)
            except SessionLost as lost:
                if session:
                    session.close()
                session, message = None, Message(lost.reason)
            except Failed as failed:
                wrong[len(outcomes)] = p, failed
                message = Message(failed.id, failed.fields)
            if message is None:
                held.add(p.name)
                outcomes.append(Outcome(p.name, p.title, p.points, p.points, "passed"))
            else:
                outcomes.append(Outcome(p.name, p.title, 0, p.points, "failed", message))
    finally:
        if session:
            session.close()
    for place, variant in (_variants(exercise, wrong, seed) if name_variants else {}).items():
        said = outcomes[place].message
        outcomes[place] = replace(outcomes[place], message=Message(said.id, {**said.fields, "equals": variant.says}))
    points = sum(o.points for o in outcomes)
    status = PASSED if points == exercise.points else PARTIAL if points else FAILED
    return Result(exercise.id, status, points, exercise.points, tuple(outcomes))


def seed_of(seed: str, exercise: str, prop: str) -> str:
    """The seed of one property: each has its own, so adding one moves no other's questions."""
    return f"{seed}/{exercise}/{prop}"


def _variants(exercise: Exercise, wrong: dict[int, tuple[Property, Failed]], seed: str) -> dict[int, Mutant]:
    """The known wrong solution that each wrong value equals: of several the one that explains most of them, then the first.

    All of them are tried on the first failures only, until some are found; on later ones, those that were.
    """
    values = {place: (p, failed) for place, (p, failed) in wrong.items() if failed.id == "value"}
    if not values:
        return {}
    solution = solutions(exercise.sheet)[exercise.id]
    known = []
    for mutant in mutants(exercise.id):
        with suppress(ValueError):  # one that no longer applies must not cost a learner the result; the matrix finds it
            known.append((mutant, mutant.of(solution)))
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
