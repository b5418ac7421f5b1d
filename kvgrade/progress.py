"""What a learner has done so far: attempts at exercises, and rounds of the numbers drill, in one JSON file of theirs.

Invariant: the file is whole at every moment (written beside, then moved), and nothing that was in it is ever thrown away: one
that cannot be read is kept aside, one of a later version is left alone.
"""

import hashlib
import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from kvlib.i18n import T

FORMAT = 2  # 1: attempts without `answer`
CHECK, DRILL = "check", "drill"


@dataclass(frozen=True)
class Attempt:
    """One try at an exercise. how: CHECK or DRILL. seconds: time used, and minutes: time allowed, of a drill. answer:
    digest of what was graded, None where it was not noted."""

    exercise: str
    how: str
    points: int
    max: int
    when: float  # seconds since 1970
    seconds: float | None = None
    minutes: float | None = None
    answer: str | None = None

    @property
    def full(self) -> bool:
        """Full points."""
        return self.points == self.max

    @property
    def overtime(self) -> bool:
        """Handed in after the time was up."""
        return bool(self.seconds and self.minutes and self.seconds > 60 * self.minutes)


@dataclass(frozen=True)
class Round:
    """One round of the numbers drill."""

    right: int
    asked: int
    when: float
    seconds: float


@dataclass
class Progress:
    """All of it. `notes`: what the learner should know about the file; `closed`: it must not be written."""

    attempts: list[Attempt] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    closed: bool = False

    def of(self, exercise: str) -> list[Attempt]:
        """The attempts at one exercise, oldest first."""
        return [a for a in self.attempts if a.exercise == exercise]

    def tries(self, exercise: str) -> int:
        """How many attempts there were; grading an answer again that did not change is none."""
        answers = [a.answer for a in self.of(exercise)]
        return sum(answer is None or answer != before for before, answer in zip([None, *answers], answers, strict=False))

    def best(self, exercise: str) -> Attempt | None:
        """The attempt with the most points of those the exercise is worth."""
        return max(self.of(exercise), key=lambda a: a.points / max(1, a.max), default=None)

    def best_time(self, exercise: str) -> float | None:
        """Seconds of the fastest drill with full points."""
        return min((a.seconds for a in self.of(exercise) if a.full and a.seconds is not None), default=None)


def data_folder() -> Path:
    """Where it is kept: KVGRADE_DATA, else the system's place for a user's data."""
    if folder := os.environ.get("KVGRADE_DATA"):
        return Path(folder)
    from platformdirs import user_data_dir

    return Path(user_data_dir("kvgrade", appauthor=False))


def load() -> Progress:
    """What the file says; empty where there is none. A file that cannot be read is renamed, and the notes say so."""
    path = data_folder() / "progress.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] > FORMAT:
            note = T(f"{path} 來自較新的版本，不讀取也不改動", f"{path} is of a later version: neither read nor changed")
            return Progress(notes=[note], closed=True)
        return Progress([_attempt(a) for a in data["attempts"]], [_round(r) for r in data["rounds"]])
    except FileNotFoundError:
        return Progress()
    except OSError as error:
        return Progress(notes=[T(f"無法讀取 {path}：{error.strerror}", f"{path} cannot be read: {error.strerror}")], closed=True)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return _keep_aside(path)


def record(*entries: Attempt | Round) -> Progress:
    """Add to the file, and give all of it with the notes. A file that cannot be written is no error: the notes say so."""
    progress = load()
    progress.attempts += [e for e in entries if isinstance(e, Attempt)]
    progress.rounds += [e for e in entries if isinstance(e, Round)]
    if entries and not progress.closed:
        try:
            _write(data_folder() / "progress.json", progress)
        except OSError as error:
            progress.notes.append(T(f"進度沒有存成：{error}", f"your progress was not saved: {error}"))
    return progress


def digest(source: str) -> str:
    """Tells one answer from another."""
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def now() -> float:
    """The time of an entry."""
    return round(time.time(), 1)


def _write(path: Path, progress: Progress) -> None:
    data = {"format": FORMAT, "attempts": [asdict(a) for a in progress.attempts], "rounds": [asdict(r) for r in progress.rounds]}
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _keep_aside(path: Path) -> Progress:
    n = 1
    while (aside := path.with_name(f"{path.stem}.unreadable-{n}.json")).exists():
        n += 1
    try:
        path.rename(aside)
    except OSError as error:
        return Progress(notes=[T(f"{path} 內容損壞，又無法改名：{error}", f"{path} is damaged and cannot be renamed: {error}")], closed=True)
    return Progress(notes=[T(f"進度檔內容損壞，已改名為 {aside}，從頭記起",
                             f"the progress file is damaged; it is kept as {aside}, and a new one begins")])  # fmt: skip


def _attempt(data: dict) -> Attempt:
    attempt = Attempt(**data)
    numbers = (attempt.points, attempt.max, attempt.when, attempt.seconds or 0, attempt.minutes or 0)
    if not isinstance(attempt.exercise, str) or not isinstance(attempt.answer, str | None) or not all(isinstance(n, (int, float)) for n in numbers):
        raise ValueError("an attempt of another form")
    return attempt


def _round(data: dict) -> Round:
    each = Round(**data)
    if not all(isinstance(n, (int, float)) for n in (each.right, each.asked, each.when, each.seconds)):
        raise ValueError("a round of another form")
    return each
