"""From an answer to points: runs an exercise's properties in order, each with its own seed, and names what went wrong.

Invariant: nothing that the answer's process does changes anything but the outcome of its own exercise.
"""

from collections.abc import Callable
from dataclasses import replace

from kvgrade.exercises import Exercise
from kvgrade.messages import raised
from kvgrade.outcome import FAILED, NOT_ATTEMPTED, PARTIAL, PASSED, Message, Outcome, Result
from kvgrade.session import AnswerRaised, Session, SessionLost
from kvgrade.testing import Failed, Property, Trial, seed_of
from kvgrade.variants import variants
from kvlib.errors import SpecError

PATIENCE = 2  # time-outs of one answer; what is left of its properties is then skipped


def grade(exercise: Exercise, props: tuple[Property, ...], open_session: Callable[[], Session], seed: str,
          name_variants: bool = True) -> Result:
    """Grade one answer. `open_session()` gives a session with the answer loaded, and is called again after one is lost.

    open_session may raise AnswerRaised (the answer does not even load) and SessionLost. `seed`: the same seed gives the same
    questions. `name_variants`: where a value is wrong, look whether it equals one of the known wrong solutions'.
    """  # fmt: skip
    session: Session | None = None
    outcomes: list[Outcome] = []
    held: set[str] = set()
    timeouts = 0
    wrong: dict[int, tuple[Property, Failed]] = {}  # by the outcome's place
    try:
        for p in props:
            if not set(p.needs) <= held or timeouts == PATIENCE:
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
                message = Message(raised(error.type), fields)
            except SessionLost as lost:
                if session:
                    session.close()
                session, message = None, Message(lost.reason)
                timeouts += lost.reason == "timeout"
            except Failed as failed:
                wrong[len(outcomes)] = p, failed
                message = Message(failed.id, failed.fields)
            except SpecError:  # no process can be had, no hidden tests: not the answer's fault
                raise
            except Exception:  # a value that our own test stumbled over; the run goes on
                if session is None:  # not even a process: the grader's fault
                    raise
                message = Message("protocol")
            if message is None:
                held.add(p.name)
                outcomes.append(Outcome(p.name, p.title, p.points, p.points, "passed"))
            else:
                outcomes.append(Outcome(p.name, p.title, 0, p.points, "failed", message))
    finally:
        if session:
            session.close()
    for place, variant in (variants(exercise, wrong, seed) if name_variants else {}).items():
        said = outcomes[place].message
        outcomes[place] = replace(outcomes[place], message=Message(said.id, {**said.fields, "equals": variant.says}))
    points = sum(o.points for o in outcomes)
    status = PASSED if points == exercise.points else PARTIAL if points else FAILED
    return Result(exercise.id, status, points, exercise.points, tuple(outcomes))
