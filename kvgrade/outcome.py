"""What grading says: results of exercises, outcomes of properties, and messages. Data alone."""

from dataclasses import asdict, dataclass, field
from typing import Any

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
