"""What one learner handed in, read: the answers that count, from the newest file of each sheet.

Invariant: a file that cannot be read costs its own answers and nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kvgrade.classroom.archive import File
from kvgrade.classroom.collect import Student
from kvgrade.classroom.names import digest
from kvgrade.exercises import Exercise
from kvgrade.messages import say
from kvgrade.outcome import Message
from kvgrade.submission import Answer, Submission, Unreadable, read_submission
from kvgrade.submission.cells import unreadable
from kvlib.i18n import LANGUAGES


@dataclass
class Paper:
    """A learner's answers by exercise, over all sheets. `files`: what counts, by name. `unread`: names of files that cannot be read.
    `digest`: of their bytes and names."""

    student: Student
    answers: dict[str, Answer] = field(default_factory=dict)
    problems: list[Message] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)  # sheet -> file name
    unread: list[str] = field(default_factory=list)
    digest: str = ""
    path: Path = Path()

    def as_submission(self) -> Submission:
        """For `kvgrade.marking`."""
        return Submission(self.path, self.answers, tuple(self.problems), next(iter(self.files), None))


def read_paper(student: Student, exercises: Mapping[str, Exercise]) -> Paper:
    """Read a learner's files, newest first."""
    paper, seen, unread, blank = Paper(student), [student.key], [], []
    for file in student.files:
        try:
            seen += [file.name, digest(file.path.read_bytes()) if file.path.stat().st_size < 1 << 26 else "large"]
            submission = read_submission(file.path, exercises)
        except Unreadable as error:
            unread.append(_unread(file, error.message))
            paper.unread.append(file.name)
            continue
        except OSError as error:
            unread.append(_unread(file, unreadable(file.path, error)))
            paper.unread.append(file.name)
            continue
        if submission.sheet is None:
            blank.append(Message("file-other", {"file": file.name}))
        elif submission.sheet in paper.files:
            paper.problems.append(Message("file-older", {"file": file.name, "used": paper.files[submission.sheet]}))
        else:
            _count(paper, file, submission, submission.sheet)
    paper.problems += unread + blank
    paper.digest = digest("\n".join(seen).encode("utf-8", "surrogatepass"))
    return paper


def _unread(file: File, why: Message) -> Message:
    """That nothing in a file was graded, and why: by the name that its writer knows, not that of an unpacked copy."""
    fields = {**why.fields, "file": file.name}
    return Message("file-unread", {"file": file.name, "reason": why.id, "why": {lang: say(why.id, fields, lang) for lang in LANGUAGES}})


def _count(paper: Paper, file: File, submission: Submission, sheet: str) -> None:
    paper.files[sheet] = file.name
    paper.path = file.path
    paper.problems += submission.problems
    for id, answer in submission.answers.items():
        paper.answers.setdefault(id, answer)
