"""Whose file is whose, in the layouts that people and learning management systems make.

Flat files named after their writer; a folder per learner; and what Canvas, Moodle and Gradescope let a teacher download.
Invariant: one Student per person, with the files that count, newest first; what does not count is reported.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from kvgrade.classroom.archive import File, find
from kvgrade.classroom.names import loose, same
from kvgrade.exercises import exercises
from kvgrade.grading import Message

_CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<id>\d+)_(?P<submission>\d+)_(?P<file>.+)")
_MOODLE = re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_[a-z]+_?(?P<file>.*)")
_GRADESCOPE = re.compile(r"submission_(?P<id>\d+)")
_METADATA = "submission_metadata.yml"


@dataclass(frozen=True)
class Student:
    """One learner. `key` tells learners apart; `id` is the LMS's, "" where there is none."""

    key: str
    name: str
    id: str = ""
    email: str = ""
    files: tuple[File, ...] = ()  # newest first


@dataclass
class Collected:
    """The learners, in the order of their keys, and what was left out."""

    students: list[Student] = field(default_factory=list)
    problems: list[Message] = field(default_factory=list)


def collect(source: Path, scratch: Path) -> Collected:
    """The learners' files in a folder or zip. `scratch`: an empty folder for what is unpacked. Raises SpecError."""
    found = find(source, scratch)
    files = [f for f in found.files if f.path.suffix.lower() in (".ipynb", ".py")]
    files = _without_wrapper(files, zipped=source.is_file())
    submitters = _gradescope([f for f in found.files if f.parts[-1] == _METADATA])
    people: dict[str, Student] = {}
    for file in files:
        who = _who(file, submitters)
        known = people.get(who.key, who)
        people[who.key] = replace(known, files=(*known.files, file))
    students = [replace(s, files=tuple(sorted(s.files, key=_newest, reverse=True))) for s in people.values()]
    return Collected(sorted(students, key=lambda s: s.key), found.problems)


def _who(file: File, submitters: dict[str, Student]) -> Student:
    first = file.parts[0]
    if len(file.parts) > 1 and (match := _GRADESCOPE.fullmatch(first)):
        return submitters.get(first) or Student(first, first, match["id"])
    if match := _MOODLE.fullmatch(first):
        return Student(f"moodle-{match['id']}", same(match["name"]), match["id"])
    if len(file.parts) == 1 and (match := _CANVAS.fullmatch(first)):
        return Student(f"canvas-{match['id']}", same(match["name"]), match["id"])
    name = same(first if len(file.parts) > 1 else _without_slug(Path(first).stem))
    return Student(name, name)


def _without_slug(stem: str) -> str:
    """A flat file's writer: its name without the sheet's."""
    for slug in sorted({e.sheet for e in exercises().values()}):
        if slug in stem and (rest := stem.replace(slug, "").strip(" _-.")):
            return rest
    return stem


def _without_wrapper(files: list[File], zipped: bool) -> list[File]:
    """Without a folder that only holds everything, as archives often have one. In a zip, files of several names in one folder are
    several learners', unless they are named after sheets."""
    while files and len({f.parts[0] for f in files}) == 1 and all(len(f.parts) > 1 for f in files):
        if _MOODLE.fullmatch(files[0].parts[0]) or _GRADESCOPE.fullmatch(files[0].parts[0]):
            break
        below = [f.parts[1:] for f in files]
        stems = {Path(parts[0]).stem for parts in below}
        flat = zipped and len(stems) > 1 and not stems & {e.sheet for e in exercises().values()}
        if not flat and not any(len(parts) > 1 or _CANVAS.fullmatch(parts[0]) or _MOODLE.fullmatch(parts[0]) for parts in below):
            break
        files = [replace(f, parts=f.parts[1:]) for f in files]
    return files


def _newest(file: File) -> tuple:
    """Later is newer; at the same time, Canvas's -2 is newer than -1."""
    numbers = [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", file.name)]
    return file.changed, numbers


def _gradescope(files: Iterable[File]) -> dict[str, Student]:
    """Who submitted what, from the list that Gradescope puts into its export."""
    people = {}
    for file in files:
        try:
            data = yaml.safe_load(file.path.read_text(encoding="utf-8"))
            for folder, about in data.items():
                who = about[":submitters"][0]
                name, sid, email = (str(who.get(f":{key}") or "") for key in ("name", "sid", "email"))
                key = f"gradescope-{sid or loose(email) or folder}"
                people[str(folder)] = Student(key, same(name) or str(folder), sid, email.strip())
        except (yaml.YAMLError, AttributeError, LookupError, TypeError, ValueError, OSError, RecursionError):
            continue  # without it the folders' names must do
    return people
