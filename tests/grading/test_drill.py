"""`kvgrade drill ID`: the file it writes, the clock, checks and hints on demand, the hand-in, the follow-up questions."""

import contextlib
import dataclasses
import functools
import io
import json
import os
import re
import subprocess
import sys

import pytest
from little_book import RIGHT, SUM

from kvgrade import drill, progress
from kvgrade.cli import main
from kvgrade.command import report
from kvgrade.drill.checks import Checker
from kvgrade.drill.papers import as_python, write_paper
from kvgrade.exercises import exercise, exercises
from kvgrade.submission import is_starter, read_submission
from kvlib import i18n


class Script:
    """A learner: says the lines in turn, does the callables in between, then closes the terminal."""

    def __init__(self, *steps):
        self.steps, self.prompts = list(steps), []

    def ask(self, prompt):
        self.prompts.append(prompt)
        while self.steps and callable(self.steps[0]):
            self.steps.pop(0)()
        if not self.steps:
            raise EOFError
        return self.steps.pop(0)


@pytest.fixture
def play(book, monkeypatch, capsys):
    """Runs a drill of `mean` with a script; the clock moves by hand. Gives the exit code and what was printed."""
    time = [0.0]
    monkeypatch.setattr(drill, "Clock", functools.partial(drill.Clock, now=lambda: time[0]))

    def run(*steps, args=(), lang="en"):
        script = Script(*steps)
        monkeypatch.setattr(drill, "open_terminal", lambda clock: script)
        code = main(["drill", "mean", "--dir", str(book / "d"), "--lang", lang, *args])
        run.prompts = script.prompts
        return code, capsys.readouterr().out

    run.path = book / "d" / "mean.py"
    run.answer = lambda source: lambda: run.path.write_text(f"# kvgrade: mean\n{source}", encoding="utf-8")
    run.wait = lambda seconds: lambda: time.__setitem__(0, time[0] + seconds)
    return run


@pytest.mark.parametrize("notebook", [False, True])
@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_the_file_holds_statement_and_starter_and_reads_back_as_not_attempted(book, notebook, lang):
    i18n.set_language(lang)
    asked = exercise("mean")
    path = write_paper(asked, book / "new", notebook)
    text = path.read_text(encoding="utf-8")
    if notebook:
        text = "".join(line for cell in json.loads(text)["cells"] for line in cell["source"])
    for line in asked.statement[lang].splitlines():
        assert line in text
    found = read_submission(path)
    assert list(found.answers) == ["mean"] and not [p for p in found.problems if p.id != "answer-missing"]
    assert is_starter(found.answers["mean"].cell, asked.starter)
    path.write_text(path.read_text(encoding="utf-8").replace("raise NotImplementedError", "return sum(x) / len(x)"), encoding="utf-8")
    assert not is_starter(read_submission(path).answers["mean"].cell, asked.starter)


def test_a_python_file_runs_as_it_is(book):
    path = write_paper(exercise("mean"), book, False)
    assert subprocess.run([sys.executable, str(path)], check=False).returncode == 0


def test_a_notebook_is_one(book):
    nbformat = pytest.importorskip("nbformat")
    path = write_paper(exercise("mean"), book, True)
    nbformat.validate(nbformat.read(path, as_version=4))


@pytest.mark.parametrize("notebook", [False, True])
def test_no_file_is_ever_overwritten(book, notebook):
    paths = [write_paper(exercise("mean"), book / "d", notebook) for _ in range(3)]
    assert len(set(paths)) == 3
    paths[0].write_text("mine", encoding="utf-8")
    write_paper(exercise("mean"), book / "d", notebook)
    assert paths[0].read_text(encoding="utf-8") == "mine"


def test_a_right_answer_gets_the_result_the_time_and_the_follow_ups(play):
    code, text = play(play.answer(RIGHT), play.wait(61), "submit", "", "")
    assert code == 0
    assert "4/4" in text and "1:01" in text
    for part in ("Why so?", "Because it is.", "And then?", "Nothing."):
        assert part in text
    (attempt,) = progress.load().attempts
    assert (attempt.exercise, attempt.points, attempt.seconds, attempt.minutes) == ("mean", 4, 61, 2)
    assert not attempt.overtime


def test_a_model_answer_is_shown_after_the_learner_had_the_floor(play):
    _, text = play(play.answer(RIGHT), "submit", "q")
    assert "Why so?" in text and "Because it is." not in text and "And then?" not in text


def test_a_wrong_answer_is_exit_1_and_is_remembered(play):
    code, text = play(play.answer(SUM), "submit", "", "")
    assert code == 1 and "the sum" in text
    assert progress.load().best("mean").points == 0


def test_overtime_is_said_once_allowed_and_marked(play):
    code, text = play(play.answer(RIGHT), play.wait(121), "time", "time", "submit", "", "")
    assert code == 0
    assert text.count("Time is up.") == 1
    assert progress.load().attempts[0].overtime


def test_minutes_are_the_exercises_own_or_those_asked_for(play):
    _, text = play("time", "q")
    assert "2:00" in text
    _, text = play("time", "q", args=("--minutes", "25"))
    assert "25:00" in text


def test_checks_run_as_often_as_one_likes_and_judge_nothing(play):
    code, text = play("check", play.answer(SUM), "check", play.answer("def mean(x):\n    return 7.0"), "check", play.answer(RIGHT), "c", "q")
    assert code == 1
    assert re.search(r"expected\s+2", text), "public checks have nothing to hide"
    assert progress.load().attempts == []


@pytest.mark.parametrize("word", ["show", "題目"])
def test_the_statement_can_be_read_again(play, word):
    _, text = play(word, "q")
    assert text.count("Write `mean`.") == 2


def test_code_of_a_statement_is_not_broken(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for asked in exercises().values():
        shown = io.StringIO()
        out = report.console()
        out.file = shown
        report.show_markdown(out, asked.statement["en"])
        code = "".join(re.findall(r"^```python\n(.*?)^```", asked.statement["en"], re.MULTILINE | re.DOTALL))
        assert set(code.splitlines()) <= {line.rstrip() for line in shown.getvalue().splitlines()}


def test_given_code_and_starter_stand_in_cells_of_their_own(book):
    asked = dataclasses.replace(exercise("mean"), given="WEIGHT = 2")
    cells = as_python(asked).split("# %%")
    assert len(cells) == 4
    assert "WEIGHT" in cells[2] and "def mean" not in cells[2]
    assert "# kvgrade: mean" in cells[3] and "def mean" in cells[3]


def test_the_level_and_the_seed_come_after_the_result(play):
    _, text = play(play.answer(RIGHT), "submit", "q", args=("--seed", "a-seed"))
    assert text.index("4/4") < text.index("level 1") < text.index("a-seed")


def test_hints_come_one_by_one_and_end(play):
    _, text = play("hint", "q")
    assert "hint-one" in text and "hint-two" not in text
    _, text = play("hint", "h", "hint", "hint", "q", lang="en")
    assert text.count("hint-") == 3


def test_an_untouched_file_is_not_handed_in(play):
    code, _ = play("submit", play.answer(RIGHT), "submit", "", "")
    assert code == 0
    assert len(progress.load().attempts) == 1


def test_a_file_that_was_deleted_or_broken_can_be_mended(play):
    code, _ = play(lambda: play.path.unlink(), "check", "submit", play.answer("def mean(:"), "check", play.answer(RIGHT), "submit", "", "")
    assert code == 0


@pytest.mark.parametrize("steps", [["quit"], ["q"], [], ["離開"]], ids=str)
def test_leaving_keeps_the_file_and_records_nothing(play, steps):
    code, text = play(*steps)
    assert code == 1
    assert play.path.exists() and str(play.path) in text
    assert progress.load().attempts == []


def test_grading_takes_none_of_the_learners_time(play, monkeypatch):
    hidden = Checker.hidden
    monkeypatch.setattr(Checker, "hidden", lambda self, *args: (play.wait(300)(), hidden(self, *args))[1])
    play(play.answer(RIGHT), play.wait(10), "submit", "", "")
    assert progress.load().attempts[0].seconds == 10


def test_an_unknown_command_shows_the_commands(play):
    _, text = play("help", "q")
    assert text.count("submit") >= 2


def test_chinese_words_do_what_the_commands_do(play):
    code, text = play("提示", "時間", "檢查", play.answer(RIGHT), "交卷", "", "", lang="zh-TW")
    assert code == 0
    assert "方向一" in text and "因為。" in text


def test_a_copy_without_hidden_tests_still_drills(play, book):
    (book / "tests" / "hidden" / "mean.py").unlink()
    code, _ = play(play.answer(RIGHT), "check", "submit", "q")
    assert code == 1
    assert progress.load().attempts == []


@pytest.mark.parametrize("args", [["drill"], ["drill", "mean", "--numbers"], ["drill", "nothing"], ["drill", "mean", "--minutes", "0"]], ids=str)
def test_wrong_input_is_exit_2(book, capsys, args):
    assert main(args) == 2
    assert capsys.readouterr().err.strip()


def test_a_folder_that_cannot_be_written_is_exit_2(book, capsys):
    (book / "file").write_text("", encoding="utf-8")
    assert main(["drill", "mean", "--dir", str(book / "file")]) == 2
    assert capsys.readouterr().err.strip()


def test_a_pipe_can_drive_it(book, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("hint\ntime\n"))
    assert main(["drill", "mean", "--dir", str(book / "d")]) == 1
    text = capsys.readouterr().out
    assert "hint-one" in text and re.search(r"[12]:\d\d left", text)


@pytest.mark.skipif(os.name == "nt", reason="a pseudo-terminal of POSIX")
def test_in_a_terminal_the_clock_runs_below_the_prompt(tmp_path):
    import pty
    import select
    import time

    ours, theirs = pty.openpty()
    env = {**os.environ, "KVGRADE_DATA": str(tmp_path), "TERM": "xterm", "COLUMNS": "80", "LINES": "40"}
    child = subprocess.Popen([sys.executable, "-m", "kvgrade.cli", "drill", "--numbers", "--seed", "1", "--lang", "en"], stdin=theirs,
                             stdout=theirs, stderr=theirs, env=env, close_fds=True)  # fmt: skip
    os.close(theirs)
    ticks, quiet_since = 0, time.monotonic() + 30
    try:
        seen = b""
        while ticks < 2 and time.monotonic() < quiet_since:
            if select.select([ours], [], [], 0.2)[0]:
                part = os.read(ours, 65536)
                seen += part
                ticks += b"0:00" in seen and re.search(rb"[1-9]", re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", part[-60:])) is not None
                if b"\x1b[6n" in part:  # where is the cursor?
                    os.write(ours, b"\x1b[1;1R")
        os.write(ours, b"q\r")
        while child.poll() is None and time.monotonic() < quiet_since:
            if select.select([ours], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):
                    os.read(ours, 65536)
        assert child.wait(5) == 1
    finally:
        child.kill()
        child.wait()
        os.close(ours)
    assert ticks == 2, seen[-2000:]


@pytest.mark.parametrize(("lang", "asked"), [("en", "1:30 left. Go on working? [Y/n] "), ("zh-TW", "還剩 1:30。要繼續寫嗎？[Y/n] ")])
def test_short_of_full_points_one_may_go_on_while_time_is_left(play, lang, asked):
    code, text = play(play.answer(SUM), play.wait(30), "submit", "", play.wait(10), play.answer(RIGHT), "submit", "", "", lang=lang)
    assert code == 0
    assert play.prompts[1] == asked and play.prompts[2] == "mean> "
    assert [(a.points, a.seconds) for a in progress.load().attempts] == [(0, 30), (4, 40)]
    assert text.count({"en": "Why so?", "zh-TW": "追問 1／2"}[lang]) == 1, "when the points are full"


@pytest.mark.parametrize("reply", ["n", "No", "q", "不要"])
def test_who_has_had_enough_gets_the_follow_ups(play, reply):
    code, text = play(play.answer(SUM), "submit", reply, "", "")
    assert code == 1 and "Why so?" in text and "Nothing." in text
    assert "Not handed in" not in text
    code, text = play(lambda: (play.path.parent / "mean-2.py").write_text(f"# kvgrade: mean\n{SUM}"), "submit", "y", "quit", "", "")
    assert code == 1 and "Nothing." in text and "Not handed in" not in text


@pytest.mark.parametrize("steps", [["submit"], ["submit", "y"]], ids=str)
def test_what_was_handed_in_counts_when_the_input_ends(play, steps):
    code, text = play(play.answer(SUM), *steps)
    assert code == 1 and "Not handed in" not in text and "Why so?" not in text
    assert len(progress.load().attempts) == 1


def test_a_command_in_place_of_yes_is_carried_out(play):
    code, text = play(play.answer(SUM), "submit", "submit", "hint", "time", play.answer(RIGHT), "submit", "", "")
    assert code == 0 and text.count("hint-one") == 1 and "2:00 left" in text
    done = progress.load()
    assert [a.points for a in done.attempts] == [0, 0, 4]
    assert done.tries("mean") == 2, "the same answer again is no further attempt"


def test_when_time_is_up_nobody_is_asked_to_go_on(play):
    code, text = play(play.answer(SUM), play.wait(121), "submit", "", "")
    assert code == 1 and "Nothing." in text
    assert not any("Go on" in prompt for prompt in play.prompts)


@pytest.mark.parametrize(("lang", "words"), [("en", "submit runs the hidden tests"), ("zh-TW", "submit 執行隱藏測試並計分")])
def test_the_help_says_what_submit_does(play, lang, words):
    _, text = play("?", "q", lang=lang)
    assert text.count(words) == 2


@pytest.mark.parametrize(("lang", "word"), [("en", "check"), ("zh-TW", "檢查")])
@pytest.mark.parametrize("source", [SUM.replace("sum(x)", "sum(x) + 1"), "def mean(x):\n    return x.nothing", "def mean(x):\n    return [x, 2"], ids=range(3))
def test_a_check_that_fails_shows_what_was_checked(play, source, lang, word):
    _, text = play(play.answer(source), "check", "q", lang=lang)
    shown = [line.split() for line in text.splitlines() if "t.equal(" in line]
    if source.endswith("2"):
        assert shown == [], "it was not even called"
    else:
        assert [line[0] for line in shown] == [word] and "mean([2.0])" in " ".join(shown[0])
