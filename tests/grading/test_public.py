"""check() in a notebook: it says what was seen, claims no more than public checks can, and never raises."""

import subprocess
import sys

import pytest
import torch

import kvgrade
from kvgrade import exercises, public
from kvgrade.exercises import HOME, Exercise
from kvlib import i18n

PUBLIC = """
import torch

def public(t):
    t.equal(t.answer(3), 9)
    t.close(t.answer(torch.tensor([2.0, 3.0])), torch.tensor([4.0, 9.0], dtype=torch.float64))
"""


def exercise(public: str = PUBLIC, entry: str = "square") -> Exercise:
    words = {lang: "" for lang in i18n.LANGUAGES}
    return Exercise("toy-square", "01-toy", entry, 7, 5, 1, False, words, words, "", "", public, words, words)


@pytest.fixture(params=i18n.LANGUAGES, autouse=True)
def lang(request):
    before = i18n.language()
    i18n.set_language(request.param)
    yield request.param
    i18n.set_language(before)


def said(answer, public_checks: str = PUBLIC) -> str:
    return public.report(exercise(public_checks), answer)


def test_a_right_answer_passed_public_checks_and_no_more(lang):
    text = said(lambda x: x * x)
    assert {"en": "public checks passed", "zh-TW": "公開檢查通過"}[lang] in text
    assert "7" in text and "01-toy.ipynb" in text and "kvgrade check" in text
    assert "all passed" not in text and "全部" not in text


def test_the_command_names_the_notebook_from_the_folder_of_the_book(monkeypatch, tmp_path):
    monkeypatch.chdir(HOME / "kvlib")
    assert "kvgrade check kvlib/01-toy.ipynb" in said(lambda x: x * x)
    monkeypatch.chdir(tmp_path)
    assert f"kvgrade check {tmp_path.resolve().as_posix()}/01-toy.ipynb" in said(lambda x: x * x)


def not_implemented(x):
    raise NotImplementedError


@pytest.mark.parametrize("checks", [PUBLIC, """
def public(t):
    t.raises("ValueError", lambda: t.answer(-1), zh="小於 0 時", en="below 0")
""", """
def public(t):
    t.raises("RuntimeError", lambda: t.answer(-1), zh="小於 0 時", en="below 0")  # which NotImplementedError is, too
    t.equal(t.answer(3), 9)
"""], ids=["value first", "error first", "runtime error first"])  # fmt: skip
def test_an_untouched_answer_is_not_attempted_and_not_wrong(lang, checks):
    text = said(not_implemented, checks)
    assert {"en": "not attempted", "zh-TW": "還沒作答"}[lang] in text
    assert {"en": "failed", "zh-TW": "沒過"}[lang] not in text


def test_a_wrong_value_is_shown_beside_the_right_one():
    text = said(lambda x: x * 2)
    assert "6" in text and "9" in text


def test_the_line_that_did_not_hold_is_shown_with_the_answers_name():
    assert "t.equal(square(3), 9)" in said(lambda x: x * 2)
    assert "t.close(square(torch.tensor" in said(lambda x: 9)


def test_of_two_tensors_the_entries_farthest_apart_are_shown():
    text = said(lambda x: x * x if isinstance(x, int) else x * x + torch.tensor([0.0, 0.5]))
    assert "[1]" in text and "9.5" in text and "9" in text


@pytest.mark.parametrize("got", [torch.ones(3), torch.ones(2, dtype=torch.float16), torch.full((2,), torch.nan), None, "nine",
                                 [[1]], object(), lambda: 0], ids=lambda got: type(got).__name__)  # fmt: skip
def test_whatever_comes_back_is_reported(lang, got):
    text = said(lambda x: 9 if isinstance(x, int) else got)
    assert {"en": "a public check failed", "zh-TW": "公開檢查沒過"}[lang] in text


def broken_inside(x):
    return inner(x)


def inner(x):
    return {}["no such key"]


def test_an_error_shows_the_learners_own_frames_and_nobody_elses():
    text = said(broken_inside)
    assert "KeyError" in text
    assert "broken_inside" in text and 'return {}["no such key"]' in text
    assert "host" not in text and "report" not in text
    assert "/" not in text.split("\n", 1)[1], "a path, which differs on every machine"


def exits(x):
    sys.exit(0)


def interrupted(x):
    raise KeyboardInterrupt


@pytest.mark.parametrize("answer", [exits, interrupted, 5, None, lambda: 9, object], ids=["exits", "interrupted", "5", "None", "lambda", "object"])
def test_it_never_raises(answer, lang):
    assert {"en": "a public check failed", "zh-TW": "公開檢查沒過"}[lang] in said(answer)


def test_a_check_that_cannot_use_the_result_says_so():
    text = said(lambda x: None, "def public(t):\n    t.equal(t.answer(3).shape, ())")
    assert "AttributeError" in text and "square" in text


def test_checks_reach_what_else_the_notebook_defines():
    checks = 'def public(t):\n    t.equal(t.answer.named("inner_given")(2), 4)'
    assert "kvgrade check" in said(broken_inside, checks)


def inner_given(x):
    return 2 * x


def test_an_unknown_exercise_is_named_and_nothing_raised(capsys, lang):
    kvgrade.check("no-such-exercise", None)
    assert {"en": "no exercise 'no-such-exercise'", "zh-TW": "沒有 no-such-exercise 這一題"}[lang] in capsys.readouterr().out


def test_a_copy_without_hidden_tests_names_no_command_that_needs_them(lang, monkeypatch, tmp_path):
    monkeypatch.setattr(exercises, "HIDDEN", tmp_path / "none")
    text = said(lambda x: x * x)
    assert "kvgrade check" not in text
    assert {"en": "your teacher", "zh-TW": "老師"}[lang] in text


def test_a_name_that_the_notebook_lacks_is_said_in_its_language(lang):
    text = said(lambda x: x, 'def public(t):\n    t.answer.named("helper")(2)')
    assert {"en": "does not define helper", "zh-TW": "沒有定義 helper"}[lang] in text
    assert "NameMissing" not in text and "there is no" not in text


def test_importing_kvgrade_imports_no_torch():
    code = "import sys, kvgrade; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=HOME, check=False).returncode == 0
