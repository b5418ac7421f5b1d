"""Everything that a run writes besides its result files. Invariant: it follows from the results alone, byte for byte."""

from dataclasses import replace
from pathlib import Path

from kvgrade.classroom import lms, marks, pages, similarity
from kvgrade.classroom.names import file_name, write
from kvgrade.classroom.papers import Paper
from kvgrade.classroom.results import ClassReport
from kvgrade.exercises import Exercise
from kvgrade.outcome import Message


def everything(report: ClassReport, exercises: list[Exercise], papers: list[Paper], lang: str, canvas: Path | None,
               moodle: Path | None) -> ClassReport:  # fmt: skip
    """Write marks, pages, LMS files and the similarity list; the report with what is to be said about them."""
    out, records = report.out, list(report.records.values())
    write(out / "marks.csv", marks.as_csv(records, exercises, lang))
    write(out / "marks.json", marks.as_json(records, exercises, report.level))
    pairs = similarity.pairs(papers, exercises)
    write(out / "similarity.csv", similarity.as_csv(pairs))
    for record in records:
        write(out / "pages" / f"{file_name(record.key)}.html", pages.student(record, exercises, lang))
        write(out / "gradescope" / file_name(record.key) / "results.json", lms.gradescope(record, exercises, lang))
    write(out / "index.html", pages.index(records, exercises, pairs, report.problems, lang, report.level))
    _remove_stale(out, {file_name(r.key) for r in records})
    unmatched: list[str] = []
    for sheet, fill, name in ((canvas, lms.fill_canvas, "canvas.csv"), (moodle, lms.fill_moodle, "moodle.csv")):
        if sheet is not None:
            data, lines = fill(sheet, records, report.sheets)
            write(out / name, data)
            unmatched += lines
    unread = [Message("class-unread", {"name": r.name, "files": ", ".join(r.unread)}) for r in records if r.unread]
    return replace(report, unmatched=tuple(unmatched), similar=len(pairs), problems=(*report.problems, *unread))


def _remove_stale(out: Path, names: set[str]) -> None:
    """Files of learners who are no longer among the submissions: of our own making, known by their names."""
    for path in [*(out / "pages").glob("*.html"), *(out / "results").glob("*.json")]:
        if path.stem not in names:
            path.unlink()
    for path in (out / "gradescope").glob("*/results.json"):
        if path.parent.name not in names:
            path.unlink()
            path.parent.rmdir()
