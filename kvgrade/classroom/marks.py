"""Marks as CSV for spreadsheets and as JSON for programs.

Invariant: text that a learner chose never becomes a formula, and numbers stay numbers. The CSV is UTF-8 with a byte order mark,
which Excel needs to show Chinese.
"""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

from kvgrade.classroom.names import file_name, spreadsheet
from kvgrade.classroom.results import Record
from kvgrade.exercises import Exercise
from kvgrade.messages import say

FORMAT = 1


def as_csv(records: Iterable[Record], exercises: Sequence[Exercise], lang: str) -> bytes:
    """One row per learner; the notes in words. The columns' names are the same in every language: other programs read them."""
    head = ["name", "id", "email", *(f"{e.id} ({e.points})" for e in exercises), "points", "max", "notes", "files", "page"]
    rows = [
        [spreadsheet(r.name), spreadsheet(r.id), spreadsheet(r.email), *(r.result(e.id).points for e in exercises), r.points,
         r.max, spreadsheet("; ".join(say(m.id, m.fields, lang) for m in r.problems)), spreadsheet("; ".join((*r.files, *r.unread))),
         f"pages/{file_name(r.key)}.html"]
        for r in records
    ]  # fmt: skip
    return table(head, rows)


def table(head: list[str], rows: Iterable[list[Any]]) -> bytes:
    """Rows as CSV; text quoted, numbers not."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8-sig", "backslashreplace")


def as_json(records: Iterable[Record], exercises: Sequence[Exercise], level: str) -> bytes:
    """The same with ids and statuses; the reasons are in results/."""
    data = {
        "format": FORMAT,
        "level": level,
        "exercises": [{"id": e.id, "sheet": e.sheet, "points": e.points, "optional": e.optional} for e in exercises],
        "students": [
            {"key": r.key, "name": r.name, "id": r.id, "email": r.email, "points": r.points, "max": r.max, "files": r.files,
             "exercises": {x.exercise: {"points": x.points, "status": x.status} for x in r.results},
             "notes": [m.fields.get("reason", m.id) for m in r.problems], "unread": r.unread, "result": f"results/{file_name(r.key)}.json"}
            for r in records
        ],
    }  # fmt: skip
    return (json.dumps(data, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "backslashreplace")
