"""The processes that a class's answers run in, and the name of the trust level they run at."""

from collections.abc import Iterator
from contextlib import contextmanager

from kvgrade.exercises import Exercise
from kvgrade.isolation import sandbox
from kvgrade.isolation.remote import Pool, open_session
from kvgrade.marking import Opener
from kvgrade.session import Session


@contextmanager
def opened(level: int | None, jobs: int) -> Iterator[tuple[Opener, str]]:
    """A function that opens sessions, and "LEVEL KIND". `level=None`: the best of this machine. Raises SpecError."""
    level, kind = sandbox.best_level() if level is None else (level, sandbox.choose(level))
    with Pool(level, jobs) as pool:

        def opener(exercise: Exercise, source: str) -> Session:
            return open_session(exercise, source, level, pool=pool)

        yield opener, f"{level} {kind}"
