"""Marks into the files that learning management systems read: Canvas's and Moodle's exported sheets, Gradescope's results.

Invariant: a learner is matched by id, else by e-mail or login, else by a name that is nobody else's; whoever is not matched is
listed, never guessed. Points are written, never scaled.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from kvgrade.classroom.names import loose, visible
from kvgrade.classroom.results import Record
from kvgrade.classroom.sheetfile import SheetFile
from kvgrade.exercises import Exercise
from kvgrade.messages import say
from kvgrade.outcome import Outcome, Result
from kvgrade.told import sentence
from kvlib.errors import SpecError
from kvlib.i18n import T

_ASSIGNMENT = re.compile(r".+\(\d+\)")
_MOODLE = {
    "id": ("identifier", "識別碼", "識別號", "辨識碼", "编号"),  # zh-CN
    "name": ("full name", "全名", "姓名"),
    "email": ("email address", "email", "電子郵件信箱", "電子郵件", "電子郵件地址", "邮箱"),  # zh-CN
    "grade": ("grade", "成績", "分數", "评分", "成绩"),  # zh-CN
    "max": ("maximum grade", "最高成績", "最高分", "最高分數", "滿分"),
}


def fill_canvas(path: Path, records: Sequence[Record], sheets: Sequence[str], column: str | None = None) -> tuple[bytes, list[str]]:
    """Canvas's exported gradebook with the points filled in, and lines about what did not match. `column`: the assignment's
    name where there are several. Raises SpecError."""
    sheet = SheetFile.read(path)
    head = sheet.header()
    if not {"Student", "ID"} <= set(head):
        raise SpecError(f"{path.name} has no columns Student and ID; export the gradebook from Canvas (Grades, Export)")
    target = _canvas_column(path, head, sheets, column)
    people = [row for row in range(1, len(sheet.rows)) if sheet.value(row, head.index("ID")).strip()]
    names = [name for name in ("SIS Login ID", "SIS User ID", "Email") if name in head]
    fields = {
        "id": lambda row: [sheet.value(row, head.index("ID"))],
        "other": lambda row: [sheet.value(row, head.index(name)) for name in names],
        "name": lambda row: _orders(sheet.value(row, head.index("Student"))),
    }
    lines = _fill(sheet, people, target, records, fields)
    points = next((row for row in range(1, min(4, len(sheet.rows))) if sheet.value(row, 0).strip() == "Points Possible"), None)
    return sheet.as_bytes(), lines + (_maximum(sheet.value(points, target), records) if points else [])


def fill_moodle(path: Path, records: Sequence[Record], sheets: Sequence[str] = ()) -> tuple[bytes, list[str]]:
    """Moodle's grading worksheet with the points filled in, and lines about what did not match. Raises SpecError."""
    sheet = SheetFile.read(path)
    head = [name.casefold() for name in sheet.header()]
    at = {what: next((head.index(name) for name in names if name in head), None) for what, names in _MOODLE.items()}
    if at["grade"] is None or at["id"] is None and at["email"] is None and at["name"] is None:
        raise SpecError(
            f"{path.name} has no column Grade (成績) beside Identifier, Full name or Email address; "
            "download the grading worksheet from the assignment in Moodle"
        )
    people = [row for row in range(1, len(sheet.rows)) if any(field.strip() for field in sheet.rows[row])]
    fields = {
        "id": lambda row: re.findall(r"\d+$", _at(sheet, row, at["id"]).strip()),
        "other": lambda row: [_at(sheet, row, at["email"])],
        "name": lambda row: [_at(sheet, row, at["name"])],
    }
    lines = _fill(sheet, people, at["grade"], records, fields)
    maximum = next((_at(sheet, row, at["max"]) for row in people), "")
    return sheet.as_bytes(), lines + _maximum(maximum, records)


def gradescope(record: Record, exercises: Sequence[Exercise], lang: str, level: str = "") -> bytes:
    """One learner's results.json as Gradescope's autograder reads it."""
    by_id = {e.id: e for e in exercises}
    tests = [test for r in record.results if not record.unseen(by_id[r.exercise]) for test in _tests(by_id[r.exercise], r, lang)]
    notes = "\n".join(visible_lines(say(m.id, m.fields, lang)) for m in record.problems)
    data: dict[str, Any] = {"score": record.points, "output": notes, "output_format": "text", "visibility": "visible",
                            "stdout_visibility": "hidden", "tests": tests}  # fmt: skip
    return (json.dumps(data, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "backslashreplace")


def visible_lines(text: str) -> str:
    """`visible`, line by line."""
    return "\n".join(visible(line) for line in text.splitlines())


def _tests(exercise: Exercise, result: Result, lang: str) -> Iterable[dict[str, Any]]:
    outcomes = result.outcomes or (Outcome("", {lang: say(f"status-{result.status}", {}, lang)}, 0, result.max, "failed"),)
    for outcome in outcomes:
        message = outcome.message or result.message
        yield {
            "name": f"{exercise.title[lang]}: {outcome.title[lang]}",
            "score": outcome.points,
            "max_score": outcome.max,
            "status": "passed" if outcome.status == "passed" else "failed",
            "output": visible_lines(sentence(message, lang, kept=True)) if message else "",
            "output_format": "text",
            "visibility": "visible",
        }


def _canvas_column(path: Path, head: list[str], sheets: Sequence[str], column: str | None) -> int:
    assignments = [name for name in head if _ASSIGNMENT.fullmatch(name)]
    wanted = [loose(column)] if column else [loose(s) for s in sheets]
    found = [name for name in assignments if any(w in loose(name) for w in wanted)]
    found = found or ([] if column else assignments)
    if len(found) != 1:
        raise SpecError(
            f"{path.name} has {len(found)} columns that could be this assignment ({', '.join(found or assignments) or 'none'}); "
            "leave only its column beside the learners' in the file, or name the assignment in Canvas after the sheet"
        )
    return head.index(found[0])


def _fill(sheet: SheetFile, people: list[int], column: int, records: Sequence[Record],
          fields: dict[str, Callable[[int], list[str]]]) -> list[str]:  # fmt: skip
    """Write each record's points into its row; lines about records without a row."""
    lines, taken = [], {}
    by = {what: _index(people, get) for what, get in fields.items()}
    for record in records:
        keys = {"id": [record.id], "other": [record.email, record.id, record.name], "name": [record.name]}
        rows = next((rows for what in ("id", "other", "name") for key in keys[what]
                     if loose(key) and len(rows := by[what].get(loose(key), ())) == 1), None)  # fmt: skip
        if rows is None:
            lines.append(T(f"{sheet.name}：找不到 {record.name}", f"{sheet.name}: no row for {record.name}"))
        elif (row := next(iter(rows))) in taken:
            lines.append(T(f"{sheet.name}：{record.name} 與 {taken[row]} 對應到同一列，{record.name} 未填入",
                           f"{sheet.name}: {record.name} matches the row of {taken[row]} and was not filled in"))  # fmt: skip
        else:
            taken[row] = record.name
            sheet.set(row, column, str(record.points))
    return lines


def _index(people: list[int], get: Callable[[int], list[str]]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for row in people:
        for value in get(row):
            if loose(value):
                found.setdefault(loose(value), set()).add(row)
    return found


def _orders(name: str) -> list[str]:
    """A name in both orders: Canvas shows "Last, First" or "First Last" and names files lastfirst."""
    words = [part.strip() for part in name.split(",")] if "," in name else name.split()
    return [" ".join(words), " ".join([words[-1], *words[:-1]]), " ".join([*words[1:], words[0]])] if words else []


def _at(sheet: SheetFile, row: int, column: int | None) -> str:
    return "" if column is None else sheet.value(row, column)


def _maximum(text: str, records: Sequence[Record]) -> list[str]:
    """A line when the LMS's maximum is not ours."""
    ours = max((r.max for r in records), default=0)
    try:
        theirs = float(text.strip().replace(",", ".") or ours)
    except ValueError:
        return []
    return [] if theirs == ours else [T(f"最高分在 LMS 是 {theirs:g}，在這裡是 {ours}；分數未換算",
                                        f"the maximum is {theirs:g} in the LMS and {ours} here; points were not scaled")]  # fmt: skip
