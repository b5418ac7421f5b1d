"""A page per learner and an index for the teacher: HTML that needs nothing from outside and runs nothing.

Invariant: every text goes through Jinja2's escaping, and no text that a learner wrote turns the direction of the page or fetches
anything. The student's page shows property names and what was seen, never an input or an expected value, nor the text of an
exception (see `kvgrade.told`).
"""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined

from kvgrade.classroom.names import file_name, visible
from kvgrade.classroom.results import Record
from kvgrade.classroom.similarity import Pair
from kvgrade.exercises import Exercise
from kvgrade.messages import say
from kvgrade.outcome import Message
from kvgrade.told import sentence, tell

WORDS = {
    "zh-TW": {
        "title": "批改結果", "index": "全班成績", "points": "分", "optional": "選做，不計入總分", "notes": "關於你交的檔案",
        "files": "檔案", "level": "隔離等級", "back": "回全班成績", "name": "姓名", "total": "總分", "note_count": "備註",
        "similar": "相似的答案", "similar_lead": "這份清單只是請你看一眼，不是判定。相似度 1 表示除了變數名稱以外都相同。",
        "exercise": "題目", "one": "甲", "two": "乙", "score": "相似度", "size": "長度", "published": "書中公開的解答",
        "none": "沒有", "left_out": "沒有採計的檔案", "students": "位學生", "trace": "發生在你程式的哪一行", "page": "學生頁面",
        "hint": "每一列是一項性質；標著「略過」的，要等它依據的那一項通過才會測。",
        "unread": "檔案無法讀取",
    },
    "en": {
        "title": "Results", "index": "Class results", "points": "points", "optional": "optional, not in the total",
        "notes": "About the file you handed in", "files": "Files", "level": "Trust level", "back": "Back to the class", "name": "Name",
        "total": "Total", "note_count": "Notes", "similar": "Answers that resemble each other",
        "similar_lead": "A list to look at, not a verdict. A score of 1 means: the same but for variable names.",
        "exercise": "Exercise", "one": "One", "two": "The other", "score": "Score", "size": "Length",
        "published": "the book's published solution", "none": "None", "left_out": "Files that do not count", "students": "learners",
        "trace": "Where in your code it happened", "page": "Page",
        "hint": "Each row is one property. One marked “skip” is tested once the property it builds on holds.",
        "unread": "file could not be read",
    },
}  # fmt: skip


def student(record: Record, exercises: Sequence[Exercise], lang: str) -> bytes:
    """One learner's page; exercises that may stand in a file that could not be read are not listed as missing."""
    by_id = {e.id: e for e in exercises}
    rows = [(by_id[r.exercise], r) for r in record.results if not record.unseen(by_id[r.exercise])]
    return _render("student.html", lang, record=record, rows=rows)


def index(records: Sequence[Record], exercises: Sequence[Exercise], pairs: Sequence[Pair], left_out: Sequence[Message], lang: str,
          level: str) -> bytes:  # fmt: skip
    """The teacher's page: everyone's points, links, similar answers, what was left out."""
    return _render("index.html", lang, records=records, exercises=exercises, pairs=pairs, left_out=left_out, level=level)


def _render(template: str, lang: str, **values: object) -> bytes:
    def words(message: Message) -> str:
        return sentence(message, lang, kept=True)

    page = _environment().get_template(template)
    text = page.render(lang=lang, w=WORDS[lang], say=words, tell=lambda outcomes: tell(outcomes, lang, kept=True),
                       status=lambda s: say(f"status-{s}", {}, lang), **values)  # fmt: skip
    return text.encode("utf-8", "backslashreplace")


@cache
def _environment() -> Environment:
    folder = files("kvgrade.classroom") / "templates"
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
                              loader=FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8")))  # fmt: skip
    environment.filters["page"] = file_name
    environment.filters["visible"] = lambda text: "\n".join(visible(line.expandtabs(4)) for line in str(text).split("\n"))
    return environment
