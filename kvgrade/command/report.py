"""What the commands show of results: lines for people (80 columns), a dict for programs.

The keys of the dicts are a promise to scripts; tests hold them. Colour says nothing that a word does not say.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from kvgrade.command.wrap import wrap
from kvgrade.exercises import Exercise
from kvgrade.messages import plain, say
from kvgrade.told import Told, frames, sentence, tell
from kvlib.i18n import T, language

if TYPE_CHECKING:  # grading needs torch; what only shows does not
    from kvgrade.classroom import ClassReport
    from kvgrade.outcome import Message, Result

WIDTH = 79
FORMAT = 1
TRACE_LINES = 12
_FORMULA = re.compile(r"(```.*?```|~~~.*?~~~|`[^`]*`|\$\$.*?\$\$)|(?<!\\)\$(?=\S)([^$`\n]*[^$`\s\\])\$(?!\d)", re.DOTALL)
COLOURS = {"passed": "green", "partial": "yellow", "failed": "red", "not-attempted": "dim", "missing": "dim", "skipped": "dim"}


@dataclass(frozen=True)
class Checked:
    """What `kvgrade check` found in a file. `results` with their exercises; `hints`: how many to show."""

    file: str
    sheet: str | None
    level: int
    sandbox: str  # what stands between the answer and this machine: a key of kvgrade.isolation.sandbox.KINDS
    seed: str
    problems: Sequence["Message"]
    results: Sequence[tuple[Exercise, "Result"]]
    hints: int = 0
    own_copy: Path | None = None  # the file is the book's original, and this is where the learner writes
    digests: Mapping[str, str] = field(default_factory=dict)  # of the answers, by exercise

    @property
    def points(self) -> int:
        """Earned in what counts."""
        return sum(r.points for e, r in self.results if not e.optional)

    @property
    def max(self) -> int:
        """To be had in what counts."""
        return sum(r.max for e, r in self.results if not e.optional)

    @property
    def exit_code(self) -> int:
        """0 when something was attempted, and all of it has full points."""
        attempted = [r for _, r in self.results if r.status not in ("not-attempted", "missing")]
        return 0 if attempted and all(r.points == r.max for r in attempted) else 1

    def as_dict(self) -> dict[str, Any]:
        """For --json. The texts are in the language asked for; ids and keys never change with it."""
        return {
            "format": FORMAT,
            "file": self.file,
            "sheet": self.sheet,
            "lang": language(),
            "level": self.level,
            "sandbox": self.sandbox,
            "not_stopped": say(f"unstopped-{self.level}"),
            "seed": self.seed,
            "points": self.points,
            "max": self.max,
            "problems": [message_dict(m) for m in self.problems],
            "exercises": [result_dict(e, r, self.hints) for e, r in self.results],
        }


def result_dict(exercise: Exercise, result: "Result", hints: int = 0) -> dict[str, Any]:
    """One exercise for programs: what was earned, and what each property said."""
    lang = language()
    return {
        "exercise": exercise.id,
        "title": exercise.title[lang],
        "optional": exercise.optional,
        "status": result.status,
        "points": result.points,
        "max": result.max,
        "message": message_dict(result.message) if result.message else None,
        "properties": [
            {
                "property": o.property,
                "title": o.title[lang],
                "status": o.status,
                "points": o.points,
                "max": o.max,
                "message": message_dict(o.message) if o.message else None,
            }
            for o in result.outcomes
        ],
        "hints": list(exercise.hints[lang][:hints]),
    }


def message_dict(message: "Message") -> dict[str, Any]:
    """A message for programs. `equals`: the known wrong variant whose value it is, or null. `trace`: the answer's own frames."""
    equals = message.fields.get("equals")
    return {
        "id": message.id,
        "text": say(message.id, message.fields),
        "equals": equals[language()] if equals else None,
        "trace": plain(str(message.fields.get("trace", ""))),
    }


def console() -> Console:
    """Where people read: no guessing of what numbers mean, nothing cut."""
    return Console(highlight=False, soft_wrap=True, markup=False)


def show_level(out: Console, level: int, sandbox: str, seed: str | None = None) -> None:
    """What comes last: the level in force, by what means, what it does not stop; the seed whole on its line, to be copied."""
    from kvgrade.isolation.sandbox import describe

    out.print()
    say_lines(out, describe(level, sandbox)[language()], style="dim")
    say_lines(out, say(f"unstopped-{level}"), style="dim")
    if seed:
        out.print(Text(T("種子：", "seed: ") + plain(seed), style="dim"))


def show_result(out: Console, exercise: Exercise, result: "Result", hints: int = 0) -> None:
    """One exercise: points, then each property with what it says."""
    lang = language()
    optional = T("，選做", ", optional") if exercise.optional else ""
    left = Text.assemble((exercise.id, "bold"), f" · {without_dollars(exercise.title[lang])}{optional}")
    right = f"{result.points}/{result.max}  {say('status-' + result.status)}"
    out.print()
    _row(out, left, Text(right, style=COLOURS[result.status]))
    if result.message:
        _show_message(out, sentence(result.message, lang), frames(result.message))
    first_skipped = next((o for o in result.outcomes if o.status == "skipped"), None)
    for told in tell(result.outcomes, lang):
        _show_outcome(out, told, explained=told.outcome is not first_skipped)
    for n, hint in enumerate(exercise.hints[lang][:hints], start=1):
        show_hint(out, n, len(exercise.hints[lang]), hint)


def show_total(out: Console, checked: Checked) -> None:
    """The sum, where there is something to sum up, and what to type next."""
    out.print()
    if len(checked.results) > 1:
        optional = T("（選做的不計）", " (optional ones apart)") if any(e.optional for e, _ in checked.results) else ""
        _row(out, Text(T("合計", "Total") + optional, style="bold"), Text(f"{checked.points}/{checked.max}", style="bold"))
    lacking = [e.id for e, r in checked.results if r.status in ("failed", "partial")]
    if lacking and checked.hints < 3:
        more = f"kvgrade check {shlex.quote(checked.file)} {lacking[0]} --hint {checked.hints + 1}"
        say_lines(out, T("要提示：", "For a hint: ") + more, style="dim")


def show_hint(out: Console, n: int, of: int, hint: str) -> None:
    """One rung of the ladder."""
    out.print(Text(T(f"  提示 {n}／{of}", f"  Hint {n} of {of}"), style="bold"))
    show_markdown(out, hint, indent=4)


def show_markdown(out: Console, text: str, indent: int = 0) -> None:
    """Markdown as it was written, wrapped: formulas and code must survive; inline formulas lose their dollar signs."""
    from kvgrade.command.wrap import wrap_markdown

    for line in wrap_markdown(without_dollars(plain(text)), WIDTH - indent):
        out.print(" " * indent + line)


def without_dollars(text: str) -> str:
    """Markdown whose inline formulas ($B$) stand without their dollar signs; code and display formulas are left alone."""
    return _FORMULA.sub(lambda m: m[1] or m[2], text)


def show_own_copy(out: Console, checked: Checked) -> None:
    """That the file is the book's original, where the learner writes in a copy."""
    if checked.own_copy:
        say_lines(out, T("注意：這是書的原檔，還沒作答；你寫在自己的副本裡：",
                         "Note: this is the book's original, not attempted; you write in your own copy:"), style="yellow")  # fmt: skip
        out.print(f"  kvgrade check {shlex.quote(checked.own_copy.as_posix())}")


def show_problems(out: Console, problems: Iterable["Message"]) -> None:
    """What is odd about the file."""
    for problem in problems:
        say_lines(out, T("注意：", "Note: ") + say(problem.id, problem.fields), style="yellow")


def show_class(out: Console, done: "ClassReport") -> None:
    """What a run over a class did, in a few lines; the marks are in the files."""
    n = len(done.records)
    level, _, sandbox = done.level.partition(" ")
    out.print(T(f"共 {n} 份作業，這次批改了 {done.graded} 份；結果在 {done.out}",
                f"{_count(n, 'submission')}, {done.graded} graded now; results are in {done.out}"))  # fmt: skip
    if done.similar:
        out.print(T(f"相似清單有 {done.similar} 筆，請自行判斷", f"{_count(done.similar, 'pair')} on the similarity list: judge for yourself"))
    show_problems(out, done.problems)
    for line in done.unmatched:
        say_lines(out, T("注意：", "Note: ") + plain(line), style="yellow")
    if done.errors:
        say_lines(out, T(f"有 {done.errors} 題因批改程式出錯而沒有成績；重跑會再試",
                         f"the grader itself failed at {_count(done.errors, 'answer')}; run again to retry"), style="red")  # fmt: skip
    if sandbox:
        show_level(out, int(level), sandbox)


def say_lines(out: Console, text: str, indent: int = 0, style: str = "") -> None:
    """Text, wrapped and indented; a line's own indentation stays."""
    for paragraph in text.splitlines():
        left = " " * (indent + len(paragraph) - len(paragraph.lstrip()))
        for line in wrap(paragraph, WIDTH - len(left)):
            out.print(Text(left + line, style=style))


def duration(seconds: float) -> str:
    """Minutes and seconds, as a clock shows them."""
    whole = int(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def _count(n: int, what: str) -> str:
    """English alone has a plural to make."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def _show_outcome(out: Console, told: Told, explained: bool) -> None:
    outcome = told.outcome
    style = COLOURS[outcome.status]
    word = say(f"status-{outcome.status}")
    width = max(cell_len(say(f"status-{status}")) for status in ("passed", "failed", "skipped"))
    mark = "  " + word + " " * (width - cell_len(word)) + "  "
    _row(out, Text.assemble((mark, style), outcome.title[language()]), Text(f"{outcome.points}/{outcome.max}"), cell_len(mark))
    if told.text:
        _show_message(out, told.text, told.trace, cell_len(mark))
    elif outcome.status == "skipped" and not explained:
        say_lines(out, say("skipped"), cell_len(mark), "dim")


def _show_message(out: Console, text: str, trace: str, indent: int = 4) -> None:
    say_lines(out, text, indent)
    for line in trace.splitlines()[-TRACE_LINES:]:
        shown = Text(" " * indent + line, style="dim")
        shown.truncate(WIDTH)
        out.print(shown)


def _row(out: Console, left: Text, right: Text, indent: int = 0) -> None:
    """Left and right on one line; a left part that is too long goes on below, indented."""
    room = WIDTH - right.cell_len - 2
    rest: list[str] = []
    if left.cell_len > room:
        first, *rest = wrap(left.plain[len(left.plain[:indent]) :], room - indent)
        left = Text.assemble(left[:indent], first)
    out.print(Text.assemble(left, " " * (WIDTH - left.cell_len - right.cell_len), right))
    for line in rest:
        out.print(" " * indent + line)
