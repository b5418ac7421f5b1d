"""From an answer to points: runs an exercise's properties in order, each with its own seed, and names what went wrong.

Invariant: nothing that the answer's process does changes anything but the outcome of its own exercise.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from kvgrade.exercises import Exercise, Mutant, mutants, solutions
from kvgrade.session import AnswerRaised, Session, SessionLost, local
from kvgrade.testing import TOLERANCE, Failed, Property, Trial

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
    try:
        for p in props:
            if not set(p.needs) <= held:
                outcomes.append(Outcome(p.name, p.title, 0, p.points, "skipped"))
                continue
            message = None
            try:
                session = session or open_session()
                p.test(Trial(session, exercise.entry, seed_of(seed, exercise.id, p.name)))
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
                variant = _variant(exercise, p, seed, failed) if name_variants else None
                message = Message(failed.id, {**failed.fields, **({"equals": variant.says} if variant else {})})
            if message is None:
                held.add(p.name)
                outcomes.append(Outcome(p.name, p.title, p.points, p.points, "passed"))
            else:
                outcomes.append(Outcome(p.name, p.title, 0, p.points, "failed", message))
    finally:
        if session:
            session.close()
    points = sum(o.points for o in outcomes)
    status = PASSED if points == exercise.points else PARTIAL if points else FAILED
    return Result(exercise.id, status, points, exercise.points, tuple(outcomes))


def seed_of(seed: str, exercise: str, prop: str) -> str:
    """The seed of one property: each has its own, so adding one moves no other's questions."""
    return f"{seed}/{exercise}/{prop}"


def _variant(exercise: Exercise, p: Property, seed: str, failed: Failed) -> Mutant | None:
    """The known wrong solution whose value at the same comparison equals this one's, if there is exactly such a one."""
    if failed.id != "value":
        return None
    solution = solutions(exercise.sheet)[exercise.id]
    for mutant in mutants(exercise.id):
        try:
            p.test(Trial(local(mutant.of(solution), exercise.given), exercise.entry, seed_of(seed, exercise.id, p.name)))
        except Failed as theirs:
            if theirs.id == "value" and theirs.check == failed.check and _alike(theirs.value, failed.value):
                return mutant
        except (AnswerRaised, SessionLost, TypeError, ValueError, LookupError, RuntimeError):
            continue  # this one breaks here; it says nothing about the learner's
    return None


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
