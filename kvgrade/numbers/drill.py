"""`kvgrade drill --numbers`: question, reply, verdict, the arithmetic. Invariant: every question asked counts, a typing error does not."""

import secrets
import time
from collections.abc import Callable

from rich.console import Console

from kvgrade import progress
from kvgrade.command import report
from kvgrade.drill.terminal import Terminal, open_terminal
from kvgrade.numbers import RIGHT, SLIP, Question
from kvgrade.numbers.estimates import questions
from kvgrade.numbers.quantity import BYTES, MILLISECONDS
from kvgrade.progress import Progress, Round
from kvlib.errors import SpecError
from kvlib.i18n import T
from kvlib.units import format_bytes


def numbers_drill(n: int, seed: str | None, out: Console, terminal: Terminal | None = None,
                  now: Callable[[], float] = time.monotonic) -> tuple[int, Progress]:  # fmt: skip
    """Ask `n` questions: how many were right, and the learner's progress with this round in it."""
    seed = seed or secrets.token_hex(4)
    started, right, asked = now(), 0, 0
    terminal = terminal or open_terminal(lambda: T(f"第 {asked}／{n} 題 · 答對 {right} · {report.duration(now() - started)}",
                                                   f"question {asked} of {n} · {right} right · {report.duration(now() - started)}"))  # fmt: skip
    report.say_lines(out, T(f"{n} 題估算（種子 {seed}）。答案寫成 1.25 GiB、320 KiB、20.8 ms、10.4 或 1.3e9；輸入 q 結束。",
                            f"{n} estimate{'s' * (n > 1)} (seed {seed}). Answer as 1.25 GiB, 320 KiB, 20.8 ms, 10.4 or 1.3e9; q to stop."))  # fmt: skip
    replied = 0
    try:
        for question in questions(n, seed):
            asked += 1
            out.print()
            report.say_lines(out, f"{asked}. {question.text}")
            right += _ask(question, terminal, out)
            replied += 1
    except (EOFError, KeyboardInterrupt):
        out.print(T("到此為止。", "Stopped here."))
    out.print()
    out.print(T(f"{replied} 題答對 {right} 題，用時 {report.duration(now() - started)}。",
                f"{right} of {replied} right in {report.duration(now() - started)}."), style="bold")  # fmt: skip
    done = progress.record(Round(right, replied, progress.now(), round(now() - started, 1))) if replied else progress.load()
    return right, done


def _ask(question: Question, terminal: Terminal, out: Console) -> bool:
    """One question, asked until the reply can be read. Raises EOFError when the learner stops."""
    while True:
        reply = terminal.ask("> ")
        if reply.strip().lower() in ("q", "quit", "exit", "離開"):
            raise EOFError
        try:
            verdict, why = question.judge(reply)
            break
        except SpecError as error:
            out.print(str(error))
    if verdict == RIGHT:
        out.print(T("對。", "Right. ") + _answer(question), style="green")
    else:
        remark = T(f"（{why}）", f" ({why})") if verdict == SLIP else ""
        report.say_lines(out, T("不對", "Wrong") + remark + T("。答案是 ", ". It is ") + _answer(question), style="red")
    for line in question.working:
        report.say_lines(out, line, indent=3)
    return verdict == RIGHT


def _answer(question: Question) -> str:
    if question.unit == BYTES:
        return f"{format_bytes(int(question.answer))} = {int(question.answer):,} B"
    if question.unit == MILLISECONDS:
        return f"{question.answer:.2f} ms"
    return f"{question.answer:,.2f}".rstrip("0").rstrip(".") if question.answer < 1000 else f"{question.answer:,.0f}"
