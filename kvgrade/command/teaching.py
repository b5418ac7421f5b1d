"""The commands for teachers: what to hand out, grading what comes back, export to nbgrader."""

from pathlib import Path
from typing import Annotated

import typer

from kvgrade.command import report
from kvgrade.command.options import EXAMPLE, Lang, Language, Level
from kvlib.i18n import T, language

Out = Annotated[Path, typer.Option("--out", help=T("寫到哪裡", "Where to write"))]


def register(app: typer.Typer) -> None:
    """Add the commands to the app."""
    app.command(
        help=T("產生發給學生的壓縮檔，不含解答、隱藏測試與錯誤解法。", "Make the zip for students: no solution, hidden test or wrong solution in it."),
        epilog=f"{EXAMPLE}kvgrade bundle --lang {T('zh-TW', 'en')} --out student.zip",
    )(bundle)
    app.command(
        "class",
        help=T("批改全班：資料夾，或學習平台匯出的壓縮檔；中斷後可接續。",
               "Grade a class: a folder, or a zip from the LMS. A run that was stopped goes on where it was; grading again gives the same."),
        epilog=f"{EXAMPLE}kvgrade class submissions.zip --out results --seed-file seed.txt"
        f"\n\n{EXAMPLE}kvgrade class submissions/ --jobs 2 --fill-moodle grades.csv"
        + T("\n\n種子檔請保密並留存：同一個種子出同樣的題，重新批改才會一致。\n\n結束碼 0：全部批改完；1：有題目批改失敗；2：輸入有誤。",
            "\n\nKeep the seed file, and keep it secret: the same seed asks the same questions, so a re-grade agrees.\n\nExit codes: 0 all "
            "graded; 1 the grader failed at something; 2 wrong input."),
    )(grade_class)  # fmt: skip
    app.command(
        help=T("匯出成 nbgrader 的來源筆記本（source）。", "Write source notebooks with nbgrader's metadata."),
        epilog=f"{EXAMPLE}kvgrade export --nbgrader --out source --lang {T('zh-TW', 'en')}",
    )(export)


def bundle(out: Out = Path("student.zip"), lang: Language = None) -> int:
    from kvgrade.bundle import make_bundle

    made = make_bundle(language(), out)
    typer.echo(T(f"已寫好 {made or out}", f"wrote {made or out}"))
    return 0


def grade_class(
    submissions: Annotated[Path, typer.Argument(metavar="SUBMISSIONS", show_default=False, help=T(
        "學生作業的資料夾或壓縮檔", "Folder or zip of submissions"))],
    out: Out = Path("results"),
    jobs: Annotated[int | None, typer.Option(min=1, show_default=False, help=T(
        "同時批改幾份（預設：處理器數）", "How many at once (default: the processors)"))] = None,
    seed_file: Annotated[Path | None, typer.Option(show_default=False, help=T(
        "種子檔（沒有就產生；預設在輸出資料夾旁邊：results.seed）", "Seed file (made where absent; default: beside the output folder, results.seed)"))] = None,
    level: Level = None,
    sheet: Annotated[list[str] | None, typer.Option(show_default=False, help=T(
        "指定練習；可重複（預設：交來的）", "What was set; may be repeated (default: every sheet that someone handed in)"))] = None,
    fill_canvas: Annotated[Path | None, typer.Option(show_default=False, help=T(
        "你從 Canvas 匯出的成績表，填好另存", "The gradebook you exported from Canvas; a filled copy is written"))] = None,
    fill_moodle: Annotated[Path | None, typer.Option(show_default=False, help=T(
        "你從 Moodle 匯出的評分表，填好另存", "The grading worksheet you exported from Moodle; a filled copy is written"))] = None,
    lang: Language = None,
) -> int:  # fmt: skip
    from rich.console import Console

    from kvgrade import classroom

    done = classroom.grade_class(submissions, out, jobs=jobs, seed_file=seed_file, lang=language(), level=level and int(level),
                                 fill_canvas=fill_canvas, fill_moodle=fill_moodle, console=Console(stderr=True),
                                 sheets=tuple(sheet or ()))  # fmt: skip
    console = report.console()
    report.show_class(console, done)
    console.print()
    report.say_lines(console, T("成績：", "Marks: ") + f"{out / 'marks.csv'}{T('；總覽：', '; overview: ')}{out / 'index.html'}")
    report.say_lines(console, T(f"種子：{done.seed_file}（請留存，不要公開：題目由它產生）",
                                f"Seed: {done.seed_file} (keep it, and keep it secret: the questions are drawn from it)"))  # fmt: skip
    return 1 if done.errors else 0


def export(
    nbgrader: Annotated[bool, typer.Option("--nbgrader", help=T("nbgrader 的格式（目前唯一的格式）", "nbgrader's form (the only one)"))] = True,
    out: Out = Path("source"),
    lang: Annotated[Lang | None, typer.Option("--lang", show_default=False, help=T(
        "語言（預設依系統的 locale）", "Language (default: the locale's)"))] = None,
) -> int:  # fmt: skip
    from kvgrade import nbgrader as form

    form.export(out, language())
    typer.echo(T(f"已寫到 {out}", f"wrote {out}"))
    return 0
