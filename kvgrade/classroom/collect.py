"""Whose file is whose, in the layouts that people and learning management systems make.

Flat files named after their writer; a folder per learner; and what Canvas, Moodle and Gradescope let a teacher download.
Invariant: one Student per person, with the files that count, newest first; what does not count is reported. Who somebody is
follows from the outermost name, which a teacher or an LMS wrote, never from a name below it, which a learner may have chosen.
"""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from kvgrade.classroom.archive import File, Found, find
from kvgrade.classroom.names import loose, same
from kvgrade.exercises import exercises
from kvgrade.outcome import Message

_CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<id>\d+)_(?P<submission>\d+)_(?P<file>.+)")
_MOODLE = re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_[a-z]+_?(?P<file>.*)")
_GRADESCOPE = re.compile(r"submission_(?P<id>\d+)")
_METADATA = "submission_metadata.yml"
_EXPORT = re.compile(r"assignment_\d+_export.*")  # the folder in which Gradescope's export comes
MAX_METADATA = 2_000_000  # bytes
MAX_EVENTS = 200_000  # of YAML
MAX_LEVELS = 20
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


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
    files, wrapper = _without_wrapper(files, source.is_file(), found)
    submitters: dict[str, Student] = {}
    for file in found.files:
        if file.parts == (*wrapper, _METADATA) and file.outer == len(file.parts):  # the export's own
            submitters = _gradescope(file.path)
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
    if match := _CANVAS.fullmatch(first):
        return Student(f"canvas-{match['id']}", same(match["name"]), match["id"])
    name = same(first if len(file.parts) > 1 else _without_slug(Path(first).stem))
    return Student(name, name)


def _without_slug(stem: str) -> str:
    """A flat file's writer: its name without the sheet's."""
    for slug in sorted({e.sheet for e in exercises().values()}):
        if slug in stem and (rest := stem.replace(slug, "").strip(" _-.")):
            return rest
    return stem


def _without_wrapper(files: list[File], zipped: bool, found: Found) -> tuple[list[File], tuple[str, ...]]:
    """The files without a folder that only holds everything, as archives often have one; and that folder.

    What a learner named is no learner's name: a folder that an LMS named after a learner stays, and so does the name of a zip that
    a learner handed in. In a folder that a teacher names, the folders in it are learners; in a zip they may lie one deeper.
    """
    firsts = {f.parts[0] for f in files}
    if len(firsts) != 1 or any(f.outer < 2 for f in files):
        return files, ()
    (first,) = firsts
    if _of_learner(first):
        return files, ()
    below = {f.parts[1] for f in files}
    several = len({Path(name).stem for name in below}) > 1
    sheets = {Path(name).stem for name in below} & {e.sheet for e in exercises().values()}
    lms = _EXPORT.fullmatch(first) or zipped and all(map(_of_learner, below))
    if not lms and (not several or sheets or not zipped):
        if any(map(_of_learner, below)) or all(f.outer > (2 if several else 3) for f in files):
            found.leave_out("archive-one-learner", first)
        return files, ()
    if not lms:
        found.leave_out("archive-wrapper", first)
    return [replace(f, parts=f.parts[1:], outer=f.outer - 1) for f in files], (first,)


def _of_learner(name: str) -> bool:
    """Whether an LMS names one learner's work like this."""
    return any(pattern.fullmatch(name) for pattern in (_CANVAS, _MOODLE, _GRADESCOPE))


def _newest(file: File) -> tuple:
    """Later is newer; at the same time, Canvas's -2 is newer than -1."""
    numbers = [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", file.name)]
    return file.changed, numbers


def _gradescope(path: Path) -> dict[str, Student]:
    """Who submitted what, from the list that Gradescope puts into its export; without it the folders' names must do."""
    people = {}
    for folder, about in _metadata(path).items():
        try:
            who = about[":submitters"][0]
            name, sid, email = (_word(who.get(f":{key}")) for key in ("name", "sid", "email"))
        except (AttributeError, LookupError, TypeError, ValueError):
            continue
        key = f"gradescope-{sid or loose(email) or folder}"
        people[_word(folder)] = Student(key, same(name) or _word(folder), sid, email.strip())
    return people


def _metadata(path: Path) -> dict[Any, Any]:
    """A small YAML file without aliases as a dict; anything else as an empty one."""
    try:
        if path.stat().st_size > MAX_METADATA:
            return {}
        text = path.read_text(encoding="utf-8")
        level = 0
        for count, event in enumerate(yaml.parse(text, Loader=_Loader)):
            level += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or count > MAX_EVENTS or level > MAX_LEVELS:
                return {}
        data = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, AttributeError, LookupError, TypeError, ValueError, OSError, RecursionError, MemoryError):
        return {}
    return data if isinstance(data, dict) else {}


def _word(value: Any) -> str:
    """Text, or a number as text."""
    return str(value)[:200] if isinstance(value, str | int) and not isinstance(value, bool) else ""
