"""What there is to solve and how far one has come, as tables and as dicts. The keys are a promise to scripts."""

import time
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kvgrade.command.report import duration, say_lines, without_dollars
from kvgrade.exercises import exercises
from kvgrade.progress import Attempt, Progress
from kvlib.i18n import T, language


def exercise_rows(done: Progress) -> list[dict[str, Any]]:
    """Every exercise with the learner's best."""
    lang = language()
    return [{"exercise": e.id, "sheet": e.sheet, "title": e.title[lang], "points": e.points, "minutes": e.minutes,
             "difficulty": e.difficulty, "optional": e.optional, "best": _points(done.best(e.id))}
            for e in exercises().values()]  # fmt: skip


def show_exercises(out: Console, rows: list[dict[str, Any]]) -> None:
    """A table; difficulty as 1 to 5."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column(T("代號", "id"), no_wrap=True)
    table.add_column(T("標題", "title"), max_width=30)
    for name in (T("配分", "points"), T("分鐘", "min"), T("難度", "level"), T("最佳", "best")):
        table.add_column(name, justify="right", no_wrap=True)
    sheet = None
    for row in rows:
        if row["sheet"] != sheet:
            sheet = row["sheet"]
            table.add_row(Text(sheet, style="bold"))
        optional = T("（選做）", " (optional)") if row["optional"] else ""
        best = f"{row['best']['points']}/{row['best']['max']}" if row["best"] else "–"
        table.add_row(row["exercise"], without_dollars(row["title"]) + optional, str(row["points"]), str(row["minutes"]),
                      f"{row['difficulty']}/5", best)  # fmt: skip
    out.print(table, soft_wrap=False, width=79)
    say_lines(out, T("計時練一題：kvgrade drill 代號", "One against the clock: kvgrade drill ID"), style="dim")


def status_dict(done: Progress) -> dict[str, Any]:
    """Per exercise that was tried: best, attempts (each changed answer is one), best time; and the numbers drill."""
    tried = {a.exercise: None for a in done.attempts}
    return {
        "exercises": [
            {"exercise": id, "best": _points(done.best(id)), "attempts": done.tries(id), "best_seconds": done.best_time(id),
             "last": max(a.when for a in done.of(id))}
            for id in tried
        ],
        "numbers": {"rounds": len(done.rounds), "right": sum(r.right for r in done.rounds),
                    "asked": sum(r.asked for r in done.rounds)},
    }  # fmt: skip


def show_status(out: Console, done: Progress) -> None:
    """The same as a table."""
    told = status_dict(done)
    if not told["exercises"] and not done.rounds:
        say_lines(out, T("還沒有紀錄。從 kvgrade exercises 挑一題，或試試 kvgrade drill --numbers。",
                         "Nothing yet. Pick one from kvgrade exercises, or try kvgrade drill --numbers."))  # fmt: skip
        return
    if told["exercises"]:
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        table.add_column(T("代號", "id"), no_wrap=True)
        for name in (T("最佳", "best"), T("次數", "attempts"), T("最短時間", "best time"), T("最近", "last")):
            table.add_column(name, justify="right", no_wrap=True)
        for row in told["exercises"]:
            best, seconds = row["best"], row["best_seconds"]
            table.add_row(row["exercise"], f"{best['points']}/{best['max']}", str(row["attempts"]),
                          "–" if seconds is None else duration(seconds), time.strftime("%Y-%m-%d", time.localtime(row["last"])))  # fmt: skip
        out.print(table, soft_wrap=False, width=79)
    numbers = told["numbers"]
    if numbers["rounds"]:
        say_lines(out, T(f"估算題：{numbers['rounds']} 回，{numbers['asked']} 題答對 {numbers['right']} 題",
                         f"Estimates: {numbers['right']} of {numbers['asked']} right in {numbers['rounds']} "
                         f"round{'s' * (numbers['rounds'] > 1)}"))  # fmt: skip


def _points(attempt: Attempt | None) -> dict[str, int] | None:
    return {"points": attempt.points, "max": attempt.max} if attempt else None
