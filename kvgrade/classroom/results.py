"""What is kept of a graded submission, and when it still holds.

Invariant: a result file is whole or absent, and its key is a digest of everything that the result follows from: the files handed
in, the exercises, tests, wrong solutions and solutions, kvgrade itself, the environment, the trust level and the seed. The same
key gives the same bytes, so a killed run goes on where it stopped and a second run does nothing.
"""

import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kvgrade import exercises as catalogue
from kvgrade.classroom.names import digest, write
from kvgrade.classroom.papers import Paper
from kvgrade.exercises import Exercise
from kvgrade.outcome import PASSED, Message, Outcome, Result
from kvgrade.testing import Property

_HERE = Path(__file__).resolve().parent
# What only shows, hands out or drills: modules and folders of kvgrade by name. All the rest decides what a result is.
APART = {"bundle", "cli", "command", "drill", "lms", "marks", "nbgrader", "numbers", "pages", "progress", "public", "sheetfile",
         "similarity", "told", "write"}  # fmt: skip


@dataclass(frozen=True)
class Record:
    """A learner's results. `points` and `max` are of the exercises that count: the optional ones are shown beside them.

    `sheets`: those that were read, from `files`. `unread`: the names of files that could not be read."""

    key: str
    name: str
    id: str
    email: str
    files: tuple[str, ...]
    results: tuple[Result, ...]
    problems: tuple[Message, ...]
    optional: tuple[str, ...]
    sheets: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    whole: bool = True  # False where the grader itself failed somewhere: such a record is made anew

    @property
    def points(self) -> int:
        return sum(r.points for r in self.results if r.exercise not in self.optional)

    @property
    def max(self) -> int:
        return sum(r.max for r in self.results if r.exercise not in self.optional)

    @property
    def passed(self) -> int:
        """How many exercises have full points."""
        return sum(r.status == PASSED for r in self.results)

    def unseen(self, exercise: Exercise) -> bool:
        """Whether its answer may stand in a file that could not be read: then nothing is known of it."""
        return bool(self.unread) and exercise.sheet not in self.sheets

    def result(self, exercise: str) -> Result:
        return next(r for r in self.results if r.exercise == exercise)


@dataclass(frozen=True)
class ClassReport:
    """What a run did. `records`: by key. `graded`: how many were graded now. `unmatched`: lines about LMS sheets."""

    records: dict[str, Record]
    graded: int
    problems: tuple[Message, ...]
    out: Path
    level: str
    unmatched: tuple[str, ...] = ()
    similar: int = 0
    errors: int = 0  # exercises at which the grader itself failed
    seed_file: Path = Path()
    sheets: tuple[str, ...] = field(default=())


def environment_key(exercises: Sequence[Exercise], tests: dict[str, tuple[Property, ...]], level: str, seed: str) -> str:
    """A digest of everything but the submission."""
    code = graders()
    modules = [f"{e.id.replace('-', '_')}.py" for e in exercises]
    code += [folder / name for folder in (catalogue.HIDDEN, catalogue.MUTANTS) for name in modules]
    code += sorted(catalogue.HIDDEN.glob("hidden_*.py"))  # what the modules share
    code += sorted({catalogue.HOME / "solutions" / "en" / f"{e.sheet}.ipynb" for e in exercises})
    facts = {
        "code": [[path.name, digest(path.read_bytes())] for path in code if path.is_file()],
        "exercises": [asdict(e) for e in exercises],
        "tests": {id: [[p.name, p.points, p.title, p.needs] for p in props] for id, props in tests.items()},
        "environment": [sys.version, platform.machine(), sys.platform, version("torch")],
        "level": level,
        "seed": seed,
    }
    return digest(json.dumps(facts, sort_keys=True, default=dict).encode())


def graders() -> list[Path]:
    """Every module of kvgrade that a result may depend on."""
    package = _HERE.parent
    return [path for path in sorted(package.rglob("*.py")) if not APART & set(path.relative_to(package).with_suffix("").parts)]


def key_of(paper: Paper, environment: str) -> str:
    """The digest under which a paper's results hold."""
    student = paper.student
    return digest(json.dumps([environment, paper.digest, student.name, student.id, student.email]).encode())


def save(path: Path, key: str, record: Record) -> None:
    """Write a record in one step."""
    data = {"digest": key if record.whole else None, **asdict(record)}
    write(path, (json.dumps(data, ensure_ascii=False, sort_keys=True, indent=1) + "\n").encode("utf-8", "backslashreplace"))


def load(path: Path, key: str) -> Record | None:
    """The record in a file, if it is whole and was made under this key."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.pop("digest") != key:
            return None
        return Record(**{**data, **{name: tuple(data[name]) for name in ("files", "optional", "sheets", "unread")},
                         "results": tuple(map(_result, data["results"])),
                         "problems": tuple(Message(**m) for m in data["problems"])})  # fmt: skip
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _result(data: dict[str, Any]) -> Result:
    outcomes = tuple(Outcome(**{**o, "message": _message(o["message"])}) for o in data["outcomes"])
    return Result(**{**data, "outcomes": outcomes, "message": _message(data["message"])})


def _message(data: dict[str, Any] | None) -> Message | None:
    return Message(**data) if data else None
