"""The `kvgrade` commands: arguments in, a report out. Those for learners are here, those for teachers in `teaching`.

Nothing here imports torch before it is needed: `--help`, `exercises`, `status` and `drill --numbers` answer at once.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kvgrade.command import report, teaching
from kvgrade.command.options import EXAMPLE, Json, Language, Level, Seed
from kvlib.errors import SpecError
from kvlib.i18n import T

if TYPE_CHECKING:
    from kvgrade.exercises import Exercise
    from kvgrade.outcome import Result
    from kvgrade.progress import Progress

LEARNER = (T("自學：", "To learn: "), "kvgrade check reading/exercises/{lang}/02-the-formula.ipynb")
HINT = (T("要提示（不算一次作答）：", "For a hint (not counted as an attempt): "), "kvgrade check FILE.ipynb kv-bytes --hint 1")
INTERVIEWEE = (T("準備面試：", "To practise for an interview: "), "kvgrade drill decode-step --minutes 25")
NUMBERS = (T("練估算：", "To practise estimates: "), "kvgrade drill --numbers")
TEACHER = (T("教師：", "To teach: "), "kvgrade bundle --lang {lang} --out student.zip")
CLASS = (T("批改全班：", "To grade a class: "), "kvgrade class submissions.zip --out results --seed-file seed.txt")
EXAMPLES = "".join(f"\n\n{who}{what.format(lang=T('zh-TW', 'en'))}" for who, what in (
    LEARNER, HINT, INTERVIEWEE, NUMBERS, TEACHER, CLASS))  # fmt: skip

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help=T("批改這本書的練習：自學、計時練習、批改全班。\n\n你的答案在另一個行程裡執行，用隱藏測試批改；只告訴你哪一項性質不成立，不透露測試的輸入與答案。",
           "Grades the book's exercises: for one learner, against a clock, for a class.\n\nAn answer runs in a process of its own and is "
           "graded by hidden tests; you learn which property does not hold, never a test's input or its answer."),
    epilog=T("每個命令都可加 --lang zh-TW 或 --lang en。\n\n結束碼 0：至少作答一題，而且作答的題全部滿分；1：不是這樣；2：輸入有誤。",
             "Every command takes --lang zh-TW or --lang en.\n\nExit codes: 0: at least one answer, and every answer has full points; 1: not so; "
             "2: wrong input.") + EXAMPLES,
)  # fmt: skip

ExerciseIds = Annotated[list[str] | None, typer.Argument(metavar="[EXERCISE]…", show_default=False, help=T(
    "只批改這幾題（預設：整份）；代號見 kvgrade exercises", "These exercises alone (default: the whole sheet); ids: kvgrade exercises"))]  # fmt: skip


@app.command(
    help=T("用隱藏測試批改一份練習（筆記本或 .py 檔）。", "Grade an exercise notebook or a .py file with the hidden tests."),
    epilog=f"{EXAMPLE}kvgrade check reading/exercises/{T('zh-TW', 'en')}/02-the-formula.ipynb"
    f"\n\n{EXAMPLE}kvgrade check 04-cache-and-decode.ipynb kv-cache --hint 2"
    f"\n\n{EXAMPLE}kvgrade check decode-step.py --json"
    + T("\n\n--json 的鍵：format, file, sheet, lang, level, sandbox, not_stopped, seed, points, max, problems（id, text, equals, trace）, "
        "exercises（exercise, title, optional, status, points, max, message, hints, properties（property, title, status, points, max, message））。"
        "每一題的 status 是 passed, partial, failed, not-attempted 或 missing；每一項性質的是 passed, failed 或 skipped。鍵與代號不隨語言改變。",
        "\n\nKeys of --json: format, file, sheet, lang, level, sandbox, not_stopped, seed, points, max, problems (id, text, equals, trace), "
        "exercises (exercise, title, optional, status, points, max, message, hints, properties (property, title, status, points, max, "
        "message)). status: passed, partial, failed, not-attempted, missing; of a property: passed, failed, skipped. Keys and ids are the "
        "same in every language."),
)  # fmt: skip
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help=T(
        "練習的筆記本（.ipynb），或含有答案的 .py 檔", "The exercise notebook (.ipynb), or a .py file with answers"))],
    ids: ExerciseIds = None,
    hint: Annotated[int, typer.Option(min=0, max=3, show_default=False, help=T(
        "給幾個提示：1 方向，2 方法，3 幾乎就是程式碼（沒滿分或指定的題）；這一次不計入進度", "Hints for what lacks points (or for the exercises "
        "named): 1 direction, 2 method, 3 almost code; this run does not count in your progress"))] = 0,
    as_json: Json = False,
    seed: Seed = None,
    level: Level = None,
    lang: Language = None,
) -> int:  # fmt: skip
    from kvgrade.command import checking

    out = report.console()

    def begin(checked: report.Checked) -> None:
        report.show_own_copy(out, checked)
        report.show_problems(out, checked.problems)

    def each(exercise: "Exercise", result: "Result") -> None:
        needed = hint if ids or result.points < result.max and result.status != "not-attempted" else 0
        report.show_result(out, exercise, result, needed)

    quiet = (lambda *_: None) if as_json else None
    checked = checking.check_file(file, ids or [], seed=seed, level=level and int(level), hints=hint,
                                  begin=quiet or begin, each=quiet or each)  # fmt: skip
    done = checking.remember(checked)
    if as_json:
        typer.echo(json.dumps(checked.as_dict(), ensure_ascii=False, indent=2))
    else:
        report.show_total(out, checked)
        report.show_level(out, checked.level, checked.sandbox, checked.seed)
    _show_notes(done)
    return checked.exit_code


@app.command("exercises", help=T("列出各題：代號、標題、配分、時間、難度、你的最佳成績。",
                                 "List the exercises: id, title, points, minutes, difficulty, your best."))  # fmt: skip
def list_exercises(as_json: Json = False, lang: Language = None) -> int:
    from kvgrade import progress
    from kvgrade.command import lists

    done = progress.load()
    rows = lists.exercise_rows(done)
    if as_json:
        typer.echo(json.dumps({"exercises": rows}, ensure_ascii=False, indent=2))
    else:
        lists.show_exercises(report.console(), rows)
    _show_notes(done)
    return 0


@app.command(help=T("你的進度：每一題的最佳成績、次數、最短時間，以及估算題的成績。",
                    "Your progress: best points, attempts and best time of each exercise, and the numbers drill."))  # fmt: skip
def status(as_json: Json = False, lang: Language = None) -> int:
    from kvgrade import progress
    from kvgrade.command import lists

    done = progress.load()
    if as_json:
        typer.echo(json.dumps(lists.status_dict(done), ensure_ascii=False, indent=2))
    else:
        lists.show_status(report.console(), done)
    _show_notes(done)
    return 0


@app.command(
    help=T("計時練一題：題目、檢查、提示、交卷、追問；或用 --numbers 練估算。",
           "Solve one exercise against the clock (statement, checks, hints, hand-in, follow-up questions), or estimate (--numbers)."),
    epilog=f"{EXAMPLE}kvgrade drill decode-step --minutes 25"
    f"\n\n{EXAMPLE}kvgrade drill kv-bytes --notebook --dir ~/kv"
    f"\n\n{EXAMPLE}kvgrade drill --numbers --questions 10",
)  # fmt: skip
def drill(
    id: Annotated[str | None, typer.Argument(metavar="[EXERCISE]", show_default=False, help=T(
        "題目代號，見 kvgrade exercises", "The exercise's id; see kvgrade exercises"))] = None,
    minutes: Annotated[float | None, typer.Option(min=0.1, max=600, show_default=False, help=T(
        "限時幾分鐘（預設照題目）", "Minutes (default: the exercise's own)"))] = None,
    notebook: Annotated[bool, typer.Option("--notebook", help=T("寫成 .ipynb，不是 .py", "Write a .ipynb, not a .py"))] = False,
    folder: Annotated[Path, typer.Option("--dir", help=T("檔案放在哪個資料夾", "Folder for the file"))] = Path("."),
    numbers: Annotated[bool, typer.Option("--numbers", help=T("隨機估算題", "Random estimation questions"))] = False,
    questions: Annotated[int, typer.Option(min=1, max=100, help=T("估算題的題數", "Number of estimation questions"))] = 5,
    seed: Seed = None,
    level: Level = None,
    lang: Language = None,
) -> int:  # fmt: skip
    if numbers == bool(id):
        raise SpecError(T("請給一個題目代號，或用 --numbers，二者擇一", "give either an exercise's id or --numbers"))
    if numbers:
        from kvgrade.numbers.drill import numbers_drill

        score, done = numbers_drill(questions, seed, report.console())
        _show_notes(done)
        return 0 if score == questions else 1
    from kvgrade.drill import drill_exercise

    full, done = drill_exercise(id, minutes=minutes, notebook=notebook, folder=folder, seed=seed, level=level and int(level),
                                out=report.console())  # fmt: skip
    _show_notes(done)
    return 0 if full else 1


def _show_notes(done: "Progress") -> None:
    for note in done.notes:
        typer.echo(note, err=True)


teaching.register(app)
