"""`kvgrade drill ID`: a fresh file, a clock, checks on demand, hidden tests on submit, then the follow-up questions.

Invariant: the learner's file is read and never written; the answer runs in a process of its own, the clock never judges.
"""

import contextlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from kvgrade import progress
from kvgrade.command import report
from kvgrade.drill.papers import write_paper
from kvgrade.drill.terminal import Terminal, open_terminal
from kvgrade.exercises import Exercise, NoHiddenTests, exercise, hidden_tests
from kvgrade.progress import Progress
from kvlib.errors import SpecError
from kvlib.i18n import T, language

if TYPE_CHECKING:
    from kvgrade.drill.checks import Checker

COMMANDS = {
    "show": ("show", "題目"),
    "check": ("check", "c", "檢查"),
    "hint": ("hint", "h", "提示"),
    "time": ("time", "t", "時間"),
    "submit": ("submit", "s", "交卷"),
    "quit": ("quit", "q", "exit", "離開"),
}
NO = ("n", "no", "否", "不", "不要")
YES = ("y", "yes", "是", "好", "要")
COMMANDS_SHOWN = "show check hint time submit quit"


@dataclass
class Clock:
    """Time used of the time allowed. `now` is a clock that never goes back."""

    minutes: float
    now: Callable[[], float] = time.monotonic
    started: float = field(init=False)
    stopped: float | None = None

    def __post_init__(self) -> None:
        self.started = self.now()

    @property
    def used(self) -> float:
        """Seconds, until it was stopped."""
        return (self.now() if self.stopped is None else self.stopped) - self.started

    @property
    def left(self) -> float:
        """Seconds; negative in overtime."""
        return 60 * self.minutes - self.used

    def pause(self, seconds: float) -> None:
        """Leave out time that has just passed."""
        self.started += seconds

    def stop(self) -> None:
        """Take the time."""
        self.stopped = self.now()

    def __str__(self) -> str:
        if self.stopped is not None:
            return T(f"用了 {report.duration(self.used)}", f"took {report.duration(self.used)}")
        if self.left > 0:
            return T(f"剩 {report.duration(self.left)}", f"{report.duration(self.left)} left")
        return T(f"時間到，超時 +{report.duration(-self.left)}", f"time is up, overtime +{report.duration(-self.left)}")


class Drill:
    """One exercise against the clock. `run` ends with full points (True) or not (False)."""

    def __init__(self, asked: Exercise, path: Path, clock: Clock, terminal: Terminal, out: Console, checker: "Checker") -> None:
        self.asked, self.path, self.clock, self.terminal, self.out, self.checker = asked, path, clock, terminal, out, checker
        self.hints, self.warned, self.full, self.over = 0, False, False, False
        self.handed_in, self.ahead = False, ""  # ahead: a command given where a yes or no was asked for
        self.done = Progress()

    def run(self) -> bool:
        """The session, to submit, quit, Ctrl-C or the end of the input."""
        try:
            while not self.over:
                line, self.ahead = self.ahead or self.terminal.ask(f"{self.asked.id}> "), ""
                self._one(line)
        except (EOFError, KeyboardInterrupt):
            if not self.handed_in:
                self._quit()
        return self.full

    def _one(self, line: str) -> None:
        name = next((n for n, words in COMMANDS.items() if line.strip().lower() in words), None)
        self._warn()
        if not line.strip():
            return
        try:
            {"show": self._show, "check": self._check, "hint": self._hint, "time": self._time, "submit": self._submit, "quit": self._quit,
             None: self._help}[name]()  # fmt: skip
        except SpecError as error:  # the file is gone, or no file at all: it can be mended
            self.out.print(T(f"錯誤：{error}", f"Error: {error}"))

    def _warn(self) -> None:
        if self.clock.left <= 0 and not self.warned:
            self.warned = True
            self.out.print(T("時間到。可以繼續寫，成績會註明超時。", "Time is up. You may go on; the result will be marked overtime."))

    def _show(self) -> None:
        report.show_markdown(self.out, self.asked.statement[language()])

    def _help(self) -> None:
        report.say_lines(self.out, help_text())

    def _time(self) -> None:
        self.out.print(str(self.clock))

    def _hint(self) -> None:
        hints = self.asked.hints[language()]
        if self.hints < len(hints):
            self.hints += 1
            report.show_hint(self.out, self.hints, len(hints), hints[self.hints - 1])
        else:
            self.out.print(T("提示都看完了。", "There are no more hints."))

    def _check(self) -> None:
        self.out.print(T("執行公開檢查…", "Running the public checks …"))
        for line in self.checker.public(self.asked, self.path):
            report.say_lines(self.out, line, indent=2)

    def _submit(self) -> None:
        self.out.print(T("執行隱藏測試…", "Running the hidden tests …"))
        before = self.clock.now()
        try:
            result = self.checker.hidden(self.asked, self.path)
        except NoHiddenTests as error:
            report.say_lines(self.out, str(error))
            return
        finally:
            self.clock.pause(self.clock.now() - before)  # grading takes none of the learner's time
        if result.status in ("missing", "not-attempted"):
            self.out.print(T("還沒作答：檔案存檔了嗎？計時繼續。", "Not attempted yet: is the file saved? The clock goes on."))
            return
        self.handed_in, self.full = True, result.points == result.max
        used, overtime = self.clock.used, self.clock.left < 0
        report.show_result(self.out, self.asked, result)
        self.out.print()
        self.out.print(T(f"用時 {report.duration(used)}，限時 {self.clock.minutes:g} 分鐘{'（超時）' if overtime else ''}，"
                         f"看了 {self.hints} 個提示。",
                         f"Time {report.duration(used)} of {self.clock.minutes:g} min{' (overtime)' if overtime else ''}, "
                         f"{self.hints} hint{'' if self.hints == 1 else 's'}."))  # fmt: skip
        report.show_level(self.out, *self.checker.level, self.checker.seed)
        self._record(progress.Attempt(self.asked.id, progress.DRILL, result.points, result.max, progress.now(), round(used, 1),
                                      self.clock.minutes, self.checker.digest))  # fmt: skip
        if self.full or self.clock.left <= 0:
            self._end()
        else:
            self._go_on()

    def _record(self, attempt: progress.Attempt) -> None:
        notes = self.done.notes
        self.done = progress.record(attempt)
        self.done.notes = list(dict.fromkeys([*notes, *self.done.notes]))

    def _go_on(self) -> None:
        """Ask whether to work on; a command in place of an answer means yes."""
        left = report.duration(self.clock.left)
        self.out.print()
        reply = self.terminal.ask(T(f"還剩 {left}。要繼續寫嗎？[Y/n] ", f"{left} left. Go on working? [Y/n] ")).strip().lower()
        if reply in (*NO, *COMMANDS["quit"]):
            self._end()
        elif reply not in YES:
            self.ahead = reply

    def _end(self) -> None:
        self.clock.stop()
        self.over = True
        self._follow_ups()

    def _follow_ups(self) -> None:
        asked = self.asked.follow_ups[language()]
        for n, each in enumerate(asked, start=1):
            self.out.print()
            self.out.print(T(f"追問 {n}／{len(asked)}", f"Follow-up {n} of {len(asked)}"), style="bold")
            report.show_markdown(self.out, each["question"], indent=2)
            reply = self.terminal.ask(T("先說出你的答案，再按 Enter 看參考答案（q 結束）> ", "Say your answer aloud, then Enter for ours (q to stop)> "))
            if reply.lower() in COMMANDS["quit"]:
                return
            report.show_markdown(self.out, each["answer"], indent=2)

    def _quit(self) -> None:
        if self.handed_in:
            self._end()
            return
        self.over = True
        self.out.print(T(f"沒有交卷。檔案還在 {self.path}；之後可用 kvgrade check {self.path} 批改。",
                         f"Not handed in. The file stays: {self.path}; grade it later with kvgrade check {self.path}."))  # fmt: skip


def drill_exercise(id: str, *, minutes: float | None, notebook: bool, folder: Path, seed: str | None, level: int | None,
                   out: Console) -> tuple[bool, Progress]:  # fmt: skip
    """The command: writes the file, runs the session. Raises SpecError for an unknown exercise or an unwritable folder."""
    asked = exercise(id)
    path = write_paper(asked, folder, notebook)
    minutes = minutes or asked.minutes
    report.show_markdown(out, asked.statement[language()])
    out.print()
    report.say_lines(out, T(f"在編輯器裡打開 {path} 作答。限時 {minutes:g} 分鐘，配分 {asked.points}，難度 {asked.difficulty}/5。",
                            f"Open {path} in your editor. {minutes:g} minutes, {asked.points} points, difficulty {asked.difficulty}/5."))  # fmt: skip
    try:
        hidden_tests(id)
    except NoHiddenTests as error:
        report.say_lines(out, str(error), style="yellow")
    report.say_lines(out, help_text())
    from kvgrade.drill.checks import Checker

    clock = Clock(minutes)
    with contextlib.closing(Checker(seed or secrets.token_hex(4), level)) as checker:
        drill = Drill(asked, path, clock, open_terminal(lambda: f"{clock} · {path.name} · {COMMANDS_SHOWN}"), out, checker)
        full = drill.run()
    return full, drill.done


def help_text() -> str:
    """The commands of a session."""
    return T("show 題目 · check 公開檢查 · hint 提示 · time 時間 · submit 交卷 · quit 離開（先存檔，再 check 或 submit）\n"
             "submit 執行隱藏測試並計分；沒滿分而時間還沒到，可以繼續寫、再交一次；滿分、時間到或不寫了，就進入追問。",
             "show: the statement · check: public checks · hint · time · submit · quit (save the file before check and submit)\n"
             "submit runs the hidden tests, which give the points. Short of full points, you may go on while time is left and submit "
             "again; with full points, when time is up or when you stop, the follow-up questions come.")  # fmt: skip
