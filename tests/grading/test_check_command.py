"""`kvgrade check`: what it says of a file, to people and to programs, and what it never says."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from little_book import ANSWERS, RIGHT, SECRET_ANSWER, SECRET_INPUT, STARTER, SUM, manifest, notebook
from rich.cells import cell_len

from kvgrade.cli import main
from kvgrade.command import report
from kvgrade.exercises import exercises
from kvlib import i18n

KEYS = ["format", "file", "sheet", "lang", "level", "sandbox", "not_stopped", "seed", "points", "max", "problems", "exercises"]
EXERCISE_KEYS = ["exercise", "title", "optional", "status", "points", "max", "message", "properties", "hints"]
PROPERTY_KEYS = ["property", "title", "status", "points", "max", "message"]
MESSAGE_KEYS = ["id", "text", "equals", "trace"]


def as_json(capsys, *args):
    code = main(["check", *args, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_full_points_exit_0(paper, capsys):
    code, said = as_json(capsys, paper(ANSWERS))
    assert code == 0
    assert [e["points"] for e in said["exercises"]] == [4, 6]
    assert (said["points"], said["max"]) == (4, 4), "what is optional does not count"


@pytest.mark.parametrize(
    ("answers", "statuses", "code"),
    [
        ({"mean": RIGHT, "twice": STARTER.replace("mean", "twice")}, ["passed", "not-attempted"], 0),
        ({"mean": RIGHT}, ["passed", "missing"], 0),
        ({"mean": STARTER}, ["not-attempted", "missing"], 1),
        ({"mean": SUM, "twice": ANSWERS["twice"]}, ["partial", "passed"], 1),
        ({"mean": "def mean(x):\n    return 'no'"}, ["failed", "missing"], 1),
    ],
)
def test_the_exit_code_is_about_what_was_attempted(paper, capsys, answers, statuses, code):
    if answers.get("mean") == SUM:
        statuses[0] = "failed"
    found, said = as_json(capsys, paper(answers))
    assert found == code
    assert [e["status"] for e in said["exercises"]] == statuses


@pytest.mark.parametrize(
    "args",
    [["nowhere.ipynb"], ["."], ["{paper}", "no-such-exercise"], ["{paper}", "--level", "3"], ["{paper}", "--hint", "4"], []],
    ids=str,
)
def test_wrong_input_is_exit_2_with_a_message(paper, capsys, args):
    path = paper({"mean": RIGHT})
    assert main(["check", *(arg.format(paper=path) for arg in args)]) == 2
    said = capsys.readouterr()
    assert "Traceback" not in said.err and said.err.strip()
    assert said.out == ""


def test_a_python_file_is_graded_for_what_it_answers(paper, capsys):
    code, said = as_json(capsys, paper(f"# kvgrade: mean\n{RIGHT}", "mine.py"))
    assert code == 0
    assert [e["exercise"] for e in said["exercises"]] == ["mean"]
    assert main(["check", paper("print(1)", "other.py")]) == 2


def test_exercises_can_be_named(paper, capsys):
    _, said = as_json(capsys, paper(ANSWERS), "twice")
    assert [e["exercise"] for e in said["exercises"]] == ["twice"]


def test_a_copy_without_hidden_tests_says_so(paper, book, capsys):
    path = paper(ANSWERS)
    (book / "tests" / "hidden" / "mean.py").unlink()
    assert main(["check", path]) == 2
    assert capsys.readouterr().err.strip()


def test_json_keys_are_a_promise(paper, capsys):
    _, said = as_json(capsys, paper({"mean": SUM}), "--seed", "7", "--hint", "1")
    assert list(said) == KEYS
    assert (said["format"], said["seed"], said["sheet"], said["lang"]) == (1, "7", "00-little", "en")
    for exercise in said["exercises"]:
        assert list(exercise) == EXERCISE_KEYS
        for each in exercise["properties"]:
            assert list(each) == PROPERTY_KEYS
    assert list(said["exercises"][0]["properties"][0]["message"]) == MESSAGE_KEYS
    assert all(list(p) == MESSAGE_KEYS for p in said["problems"])


def test_json_differs_between_languages_in_texts_alone(paper, capsys):
    def bare(value):
        if isinstance(value, dict):
            words = ("text", "title", "equals", "not_stopped", "lang", "hints")
            return {k: bare(v) for k, v in value.items() if k not in words}
        return [bare(v) for v in value] if isinstance(value, list) else value

    path = paper({"mean": SUM})
    english, chinese = (as_json(capsys, path, "--seed", "7", "--lang", lang)[1] for lang in ("en", "zh-TW"))
    assert bare(english) == bare(chinese)
    assert english["exercises"][0]["title"] != chinese["exercises"][0]["title"]


@pytest.mark.parametrize(("lang", "name"), [("en", "the sum"), ("zh-TW", "總和")])
def test_a_known_wrong_variant_is_named(paper, capsys, lang, name):
    path = paper({"mean": SUM})
    _, said = as_json(capsys, path, "--lang", lang)
    assert said["exercises"][0]["properties"][0]["message"]["equals"] == name
    main(["check", path, "--lang", lang])
    assert name in capsys.readouterr().out


WRONG = {
    "mean": "def mean(x):\n    return 1.0",
    "twice": "def twice(n):\n    return 3",
}


@pytest.mark.parametrize("options", [[], ["--json"], ["--hint", "3"]], ids=str)
@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_no_hidden_input_expected_value_or_test_source_is_shown(paper, capsys, options, lang):
    for answers in (WRONG, ANSWERS, {"mean": SUM}):
        main(["check", paper(answers), "--lang", lang, *options])
        said = capsys.readouterr()
        for secret in (f"{SECRET_INPUT:g}", str(SECRET_INPUT), str(SECRET_ANSWER), str(SECRET_ANSWER // 2), "t.close", "t.answer", "rng"):
            assert secret not in said.out + said.err


def test_hints_come_as_far_as_asked_and_only_where_points_lack(paper, capsys):
    path = paper({"mean": SUM, "twice": ANSWERS["twice"]})
    main(["check", path])
    assert "hint-one" not in capsys.readouterr().out
    main(["check", path, "--hint", "2"])
    text = capsys.readouterr().out
    assert text.count("hint-one") == text.count("hint-two") == 1 and "hint-three" not in text
    main(["check", path, "twice", "--hint", "3"])
    assert "hint-three" in capsys.readouterr().out, "for an exercise that is named, hints come all the same"


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_the_level_and_the_seed_stand_whole_at_the_end_of_every_report(paper, capsys, lang):
    seed = "a long seed " * 12 + "end"
    main(["check", paper({"mean": SUM}), "--seed", seed, "--level", "1", "--lang", lang])
    lines = capsys.readouterr().out.splitlines()
    assert seed in lines[-1]
    begins = {"en": "level 1", "zh-TW": "第 1 級"}[lang]
    (at,) = (n for n, line in enumerate(lines) if line.startswith(begins))
    assert at > max(n for n, line in enumerate(lines) if "mean" in line or "--hint" in line)


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_a_message_that_comes_again_is_not_repeated(paper, book, capsys, lang):
    same = "\n\n@prop(0, zh='又一項', en='another', needs=())\ndef {}(t):\n    t.answer([1.0])\n"
    with (book / "tests" / "hidden" / "mean.py").open("a", encoding="utf-8") as file:
        file.write("".join(same.format(f"again{n}") for n in range(5)))
    main(["check", paper({"mean": "def mean(x):\n    raise KeyError('boom')"}), "mean", "--lang", lang])
    text = capsys.readouterr().out
    assert text.count("KeyError") == 2, "a message, and the frames"
    assert text.count({"en": "same as above", "zh-TW": "同上"}[lang]) == 5


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_an_untouched_original_points_to_the_learners_own_copy(paper, book, capsys, lang, monkeypatch):
    monkeypatch.chdir(book)
    for folder in ("exercises/en", "reading/exercises/en"):
        (book / folder).mkdir(parents=True)
    original, own = (Path(paper({"mean": STARTER}, f"{where}exercises/en/00-little.ipynb")) for where in ("", "reading/"))
    name = "kvgrade check reading/exercises/en/00-little.ipynb"

    def said(path):
        main(["check", str(path), "--lang", lang])
        return capsys.readouterr().out

    assert name not in said(original), "the copy is the same"
    paper(ANSWERS, "reading/exercises/en/00-little.ipynb")
    assert [line.strip() for line in said(original).splitlines()].count(name) == 1
    assert name not in said(own)
    paper({"mean": SUM}, "exercises/en/00-little.ipynb")
    assert f"{name}\n" not in said(original), "someone wrote in the original"


@pytest.mark.parametrize(("lang", "where"), [("en", "the block at line 4 (mean)"), ("zh-TW", "第 4 行起的一段（mean）")])
def test_a_python_file_is_spoken_of_by_its_lines(paper, capsys, lang, where):
    main(["check", paper("import math\n\n\n# kvgrade: mean\ndef average(x):\n    return 1.0\n", "mine.py"), "--lang", lang])
    text = capsys.readouterr().out
    assert where in text
    assert not any(word in text for word in ("cell", "儲存格"))


@pytest.mark.parametrize(("lang", "words"), [("en", "does not define mean"), ("zh-TW", "沒有定義 mean")])
def test_a_missing_name_is_said_in_the_readers_language(paper, capsys, lang, words):
    main(["check", paper({"mean": "def average(x):\n    return 1.0"}), "mean", "--lang", lang])
    text = capsys.readouterr().out
    assert words in text and "NameMissing" not in text and "there is no mean" not in text


def test_what_was_said_earlier_is_pointed_to():
    from kvgrade.outcome import Message, Outcome
    from kvgrade.told import tell

    a, b = Message("raised", {"type": "A", "text": "a", "trace": "there"}), Message("nan")
    outcomes = [Outcome("p", {lang: f"title {n}" for lang in i18n.LANGUAGES}, 0, 1, "failed" if m else "passed", m)
                for n, m in enumerate((a, None, a, b, a))]  # fmt: skip
    texts = [t.text for t in tell(outcomes, "en")]
    assert texts[2] == "same as above" and texts[1] == "" and "title 0" in texts[4]
    assert [t.trace for t in tell(outcomes, "en")] == ["there", "", "", "", ""]
    assert [t.text for t in tell(outcomes, "zh-TW")][2] == "同上"


def test_the_same_seed_says_the_same(paper, capsys):
    path = paper({"mean": "def mean(x):\n    return sum(x) / len(x) if len(x) < 5 else 0.0"})
    first, again = (as_json(capsys, path, "--seed", "3") for _ in range(2))
    assert first == again


def test_what_an_answer_raises_cannot_steer_the_terminal(paper, capsys):
    path = paper({"mean": "def mean(x):\n    raise RuntimeError('\\x1b[2J\\x1b]0;title\\x07 \\u202e reversed [bold]')"})
    main(["check", path])
    text = capsys.readouterr().out
    assert "reversed [bold]" in text
    assert not any(c in text for c in "\x1b\x07\u202e")


def test_the_file_stays_as_it_is(paper):
    path = paper(ANSWERS)
    before = Path(path).read_bytes()
    main(["check", path])
    assert Path(path).read_bytes() == before


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_reports_fit_80_columns_and_need_no_colour(paper, capsys, lang, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    long = "def mean(x):\n    raise RuntimeError('這是一個很長的訊息，' * 30 + 'and a long one too ' * 20)"
    seen = set()
    for answers in (WRONG, ANSWERS, {"mean": long}, {"mean": STARTER}, {"mean": RIGHT.replace("ValueError", "TypeError")}):
        main(["check", paper(answers), "--lang", lang, "--hint", "3", "mean"])
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if cell_len(line) > 80 and "kvgrade check" not in line] == []
        seen.add(next(line for line in lines if line.startswith("mean")).split("  ")[-1])
    assert len(seen) == 4, f"passed, partial, failed and not attempted are told apart by words: {seen}"


def test_what_was_attempted_is_remembered(paper, capsys):
    main(["check", paper({"mean": RIGHT, "twice": STARTER.replace("mean", "twice")})])
    capsys.readouterr()
    main(["status", "--json"])
    (row,) = json.loads(capsys.readouterr().out)["exercises"]
    assert (row["exercise"], row["best"], row["attempts"]) == ("mean", {"points": 4, "max": 4}, 1)
    main(["exercises", "--json"])
    rows = json.loads(capsys.readouterr().out)["exercises"]
    assert [(r["exercise"], r["best"]) for r in rows] == [("mean", {"points": 4, "max": 4}), ("twice", None)]


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_lists_fit_80_columns(paper, capsys, lang):
    main(["check", paper(ANSWERS)])
    for command in ("exercises", "status"):
        capsys.readouterr()
        assert main([command, "--lang", lang]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert any("mean" in line for line in lines)
        assert max(map(cell_len, lines)) <= 80


def run(*args, **env):
    return subprocess.run([sys.executable, "-m", "kvgrade.cli", *args], check=False, capture_output=True, text=True,
                          encoding="utf-8", env={**os.environ, **env})  # fmt: skip


def test_an_answer_of_the_book_is_graded_in_a_process_of_its_own(tmp_path):
    """End to end, with the real pool."""
    (tmp_path / "a.py").write_text(
        "# kvgrade: token-forwards\nimport os\ndef token_forwards(n_prompt, n_outputs):\n    os._exit(0)\n", encoding="utf-8")  # fmt: skip
    done = run("check", str(tmp_path / "a.py"), "--json", "--level", "1", KVGRADE_DATA=str(tmp_path / "data"))
    assert done.returncode == 1, done.stderr
    said = json.loads(done.stdout)
    assert (said["level"], said["points"]) == (1, 0)
    assert said["exercises"][0]["properties"][0]["message"]["id"] == "died"


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
@pytest.mark.parametrize("command", [[], ["check"], ["exercises"], ["status"], ["drill"], ["bundle"], ["class"], ["export"]], ids=str)
def test_help_has_examples_in_the_language_asked_for(lang, command):
    text = run("--lang", lang, *command, "--help").stdout
    assert text.strip()
    assert any("\u4e00" <= c <= "\u9fff" for c in text) == (lang == "zh-TW")
    if command not in (["exercises"], ["status"]):
        assert text.count("kvgrade") >= 1
    assert max(map(cell_len, text.splitlines())) <= 80
    assert "…" not in text.replace("[EXERCISE]…", ""), "cut off"
    for word in ("Show this message", "Options", "Usage", "default"):
        assert lang == "en" or word not in text
    assert "check exercises/" not in text, "the learner writes in reading/"


@pytest.mark.parametrize("args", [["chek"], ["check"], ["check", "x", "--hint", "4"], ["check", "x", "--hint", "x"], ["check", "--hint"],
                                  ["check", "x", "--level", "3"], ["status", "more"], ["status", "--nope"], ["check", "nowhere.ipynb"],
                                  ["check", "{paper}", "no-such-exercise"]], ids=str)  # fmt: skip
def test_wrong_usage_is_explained_in_chinese(paper, capsys, args):
    assert main([*(arg.format(paper=paper(ANSWERS)) for arg in args), "--lang", "zh-TW"]) == 2
    text = capsys.readouterr().err
    assert "錯誤：" in text
    for word in ("Usage", "Error", "Missing", "Invalid", "No such", "not ", "Try ", "unexpected", "requires", "there "):
        assert word not in text


def test_help_alone_names_every_way_in():
    text = run("--lang", "en", "--help").stdout
    for part in ("kvgrade check reading/exercises/en/", "kvgrade drill decode-step", "kvgrade drill --numbers", "kvgrade bundle", "kvgrade class", "--hint"):
        assert part in text


@pytest.mark.parametrize("args", [["--help"], ["exercises"], ["status"], ["drill", "--help"], ["drill", "--numbers", "--questions", "1"]], ids=str)
def test_what_needs_no_torch_does_not_import_it(args, tmp_path):
    code = (f"import sys; from kvgrade.cli import main; main({args!r}); "
            "print(sorted({m.partition('.')[0] for m in sys.modules}), file=sys.stderr)")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, encoding="utf-8", input="",
                          env={**os.environ, "KVGRADE_DATA": str(tmp_path)})  # fmt: skip
    heavy = {"torch", "numpy", "matplotlib", "transformers", "pydantic", "ipywidgets", "IPython", "nbformat", "jinja2"}
    assert heavy & set(eval(done.stderr.splitlines()[-1])) == set()


def test_a_console_without_the_characters_gets_an_answer(tmp_path):
    shown = run("exercises", "--lang", "zh-TW", PYTHONIOENCODING="ascii", PYTHONUTF8="0", KVGRADE_DATA=str(tmp_path))
    assert shown.returncode == 0
    assert "token-forwards" in shown.stdout


def unmarked(*sources):
    """A notebook without a word of kvgrade in its metadata."""
    cells = [{"cell_type": "code", "metadata": {}, "source": s, "outputs": [], "execution_count": None} for s in sources]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})


def attempts(capsys):
    capsys.readouterr()
    main(["status", "--json"])
    return {row["exercise"]: row["attempts"] for row in json.loads(capsys.readouterr().out)["exercises"]}


@pytest.mark.parametrize("ids", [[], ["mean"]], ids=str)
@pytest.mark.parametrize("folder", ["notebooks/zh-TW", "reading/notebooks/zh-TW", "elsewhere"])
@pytest.mark.parametrize(("lang", "words"), [("en", "is a chapter; its exercises are in"), ("zh-TW", "是章節；它的練習在")])
def test_a_chapter_is_pointed_to_its_exercises_and_not_graded(paper, book, capsys, folder, ids, lang, words):
    (book / folder).mkdir(parents=True)
    path = paper(unmarked("import math", RIGHT), f"{folder}/00-little.ipynb")
    assert main(["check", path, *ids, "--lang", lang]) == 2
    where = f"reading/exercises/{'zh-TW' if 'notebooks' in folder else lang}/00-little.ipynb"
    said = capsys.readouterr()
    assert f"00-little.ipynb {words} {where}" in said.err and said.out == ""
    assert attempts(capsys) == {}


@pytest.mark.parametrize("name", ["exercises/en/00-little.ipynb", "mine.ipynb", "00-little.ipynb"])
def test_a_sheet_that_lost_its_markers_is_still_graded(paper, book, capsys, name):
    (book / "exercises" / "en").mkdir(parents=True)
    setup = ["from kvgrade import check"] if name == "00-little.ipynb" else []
    code, said = as_json(capsys, paper(unmarked(*setup, RIGHT), name))
    assert (code, said["exercises"][0]["points"]) == (0, 4)
    whole = json.loads(notebook({"twice": STARTER.replace("mean", "twice")}))
    whole["cells"] += json.loads(unmarked(RIGHT))["cells"]
    code, said = as_json(capsys, paper(json.dumps(whole), name))
    assert (code, said["exercises"][0]["points"]) == (0, 4), "one marker is lost"


@pytest.mark.parametrize(("lang", "words"), [("en", "did you mean mean?"), ("zh-TW", "是不是 mean？")])
@pytest.mark.parametrize("id", ["maen", "MEAN", "mean_"])
def test_an_id_that_is_nearly_right_is_named(paper, capsys, id, lang, words):
    assert main(["check", paper(ANSWERS), id, "--lang", lang]) == 2
    assert words in capsys.readouterr().err
    assert main(["check", paper(ANSWERS), "something-else", "--lang", lang]) == 2
    assert "twice" in capsys.readouterr().err, "else all of them"


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_a_file_without_an_answer_is_told_how_to_begin_one(paper, capsys, lang):
    assert main(["check", paper("x = 1\n", "empty.py"), "--lang", lang]) == 2
    said = capsys.readouterr().err
    assert "# kvgrade: mean" in said and "twice" in said


@pytest.mark.parametrize(("lang", "words"), [("en", "thrice belongs to 01-other"), ("zh-TW", "thrice 是 01-other 的題目")])
def test_an_exercise_of_another_sheet_is_said_to_be_one(paper, book, capsys, lang, words):
    other = {"sheet": "01-other", "exercises": [manifest("thrice", 4, False)]}
    (book / "sheets" / "01-other.json").write_text(json.dumps(other), encoding="utf-8")
    assert main(["check", paper(ANSWERS), "thrice", "--lang", lang]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_what_was_not_asked_for_is_not_missed(paper, capsys, lang):
    words = {"en": "there is no answer to", "zh-TW": "找不到 twice 的答案"}[lang]
    marked = f"# kvgrade: mean\n{RIGHT}"
    for args, missed in (([paper({"mean": RIGHT})], True), ([paper({"mean": RIGHT}), "mean"], False),
                         ([paper({"mean": RIGHT}), "twice"], False), ([paper(marked, "mean.py")], False)):  # fmt: skip
        main(["check", *args, "--lang", lang])
        assert (words in capsys.readouterr().out) == missed, args


def test_an_attempt_is_an_answer_that_changed_and_hints_are_none(paper, capsys):
    for answer, options, count in ((SUM, ["--hint", "1"], {}), (SUM, [], {"mean": 1}), (SUM, [], {"mean": 1}), (SUM, ["--hint", "2"], {"mean": 1}),
                                   (RIGHT, [], {"mean": 2}), (RIGHT, ["mean", "--hint", "3"], {"mean": 2}), (SUM, [], {"mean": 3})):  # fmt: skip
        main(["check", paper({"mean": answer}), *options])
        assert attempts(capsys) == count, (answer, options)


@pytest.mark.parametrize(("lang", "words"), [
    ("en", "0: at least one answer, and every answer has full points; 1: not so; 2: wrong input"),
    ("zh-TW", "0：至少作答一題，而且作答的題全部滿分；1：不是這樣；2：輸入有誤")])  # fmt: skip
def test_the_exit_codes_are_explained(lang, words):
    assert "".join(words.split()) in "".join(run("--lang", lang, "--help").stdout.split())


def test_inline_formulas_stand_without_dollar_signs():
    for text, bare in (("$B$ and $h_{kv}$, $\\frac{a}{b}$.", "B and h_{kv}, \\frac{a}{b}."), ("有 $P$ 個，共$n$。", "有 P 個，共n。"),
                       ("`$x$` $y$\n```sh\necho $A $B$\n```", "`$x$` y\n```sh\necho $A $B$\n```"), ("$$\na + b\n$$\n$a$", "$$\na + b\n$$\na"),
                       ("$5 to $6, a $ sign", "$5 to $6, a $ sign"), ("`a`$b$`c`", "`a`b`c`"), (r"\$5 and \$6", r"\$5 and \$6")):  # fmt: skip
        assert report.without_dollars(text) == bare


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_no_text_of_the_book_shows_a_dollar_sign_but_around_a_display(lang):
    for e in exercises().values():
        for text in (e.title[lang], e.statement[lang], *e.hints[lang], *(t for f in e.follow_ups[lang] for t in f.values())):
            shown = report.without_dollars(text)
            assert "$" not in shown.replace("$$", "") and shown.count("$$") == text.count("$$"), e.id
