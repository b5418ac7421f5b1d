"""A book of one sheet on disk, with hidden tests, a wrong solution and solutions, and answers that run in this process."""

import json
from contextlib import contextmanager

import pytest

from kvgrade import answers as wrong
from kvgrade import exercises as catalogue
from kvgrade.command import checking
from kvgrade.session import local
from kvlib import i18n

RIGHT = "def mean(x):\n    if not x:\n        raise ValueError('nothing to average')\n    return sum(x) / len(x)\n"
SUM = RIGHT.replace(" / len(x)", "")
STARTER = "def mean(x):\n    raise NotImplementedError\n"
ANSWERS = {"mean": RIGHT, "twice": "def twice(n):\n    return n + n\n"}
SECRET_INPUT, SECRET_ANSWER = 918273.5, 735182  # the first is asked for, the second is what a right answer gives

HIDDEN = {
    "mean": f"""
from kvgrade.testing import prop

@prop(3, zh="與參考答案一致", en="agrees with the reference")
def agrees(t):
    for _ in range(3):
        x = [t.rng.random() for _ in range(t.integer(2, 9))]
        t.close(t.answer(x), sum(x) / len(x))
    t.close(t.answer([{SECRET_INPUT}]), {SECRET_INPUT})

@prop(1, zh="空的輸入要丟出 ValueError", en="empty input raises ValueError")
def empty(t):
    t.raises("ValueError", lambda: t.answer([]), zh="輸入是空的時候", en="on empty input")
""",
    "twice": f"""
from kvgrade.testing import prop

@prop(6, zh="兩倍", en="twice")
def doubled(t):
    t.equal(t.answer({SECRET_ANSWER // 2}), {SECRET_ANSWER})
""",
}
MUTANTS = 'from kvgrade.answers import Mutant\nMUTANTS = [Mutant("sum", {"zh-TW": "總和", "en": "the sum"}, ((" / len(x)", ""),))]'
NO_MUTANTS = "MUTANTS = []"


def manifest(id: str, points: int, optional: bool) -> dict:
    """An exercise as `make build` writes it."""
    def both(zh, en):
        return {"zh-TW": zh, "en": en}

    return {
        "id": id, "entry": id, "points": points, "minutes": 2, "difficulty": 1, "optional": optional,
        "title": both("標題 " + id, "Title of " + id), "statement": both(f"## 標題\n\n寫出 `{id}`。", f"## Title\n\nWrite `{id}`."),
        "given": "", "starter": STARTER.replace("mean", id), "public": f"def public(t):\n    t.equal(t.answer([2.0]) if '{id}' == 'mean' "
        "else t.answer(1), 2.0 if 'mean' == '" + id + "' else 2)\n",
        "hints": both(["方向一", "方法二", "程式三"], ["hint-one", "hint-two", "hint-three"]),
        "follow_ups": {"zh-TW": [{"question": "為什麼？", "answer": "因為。"}] * 2,
                       "en": [{"question": "Why so?", "answer": "Because it is."}, {"question": "And then?", "answer": "Nothing."}]},
    }  # fmt: skip


def notebook(answers: dict[str, str]) -> str:
    """A notebook with these answers."""
    cells = [{"cell_type": "code", "metadata": {"kvgrade": {"exercise": id, "role": "answer"}}, "source": f"# kvgrade: {id}\n{code}",
              "outputs": [], "execution_count": None} for id, code in answers.items()]  # fmt: skip
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})


def _forget() -> None:
    for cached in (catalogue.exercises, catalogue.hidden_tests, catalogue.load_module, wrong.solutions):
        cached.cache_clear()


@pytest.fixture
def book(tmp_path, monkeypatch):
    """The folder of the little book, in force; English; progress in a folder of its own; answers run here."""
    for name, texts in (("hidden", HIDDEN), ("mutants", {"mean": MUTANTS, "twice": NO_MUTANTS})):
        (tmp_path / "tests" / name).mkdir(parents=True)
        for id, text in texts.items():
            (tmp_path / "tests" / name / f"{id}.py").write_text(text, encoding="utf-8")
    (tmp_path / "sheets").mkdir()
    sheet = {"sheet": "00-little", "exercises": [manifest("mean", 4, False), manifest("twice", 6, True)]}
    (tmp_path / "sheets" / "00-little.json").write_text(json.dumps(sheet), encoding="utf-8")
    (tmp_path / "solutions" / "en").mkdir(parents=True)
    (tmp_path / "solutions" / "en" / "00-little.ipynb").write_text(notebook(ANSWERS), encoding="utf-8")
    monkeypatch.setattr(catalogue, "SHEETS", tmp_path / "sheets")
    monkeypatch.setattr(catalogue, "HOME", tmp_path)
    monkeypatch.setattr(catalogue, "HIDDEN", tmp_path / "tests" / "hidden")
    monkeypatch.setattr(catalogue, "MUTANTS", tmp_path / "tests" / "mutants")
    monkeypatch.setenv("KVGRADE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")

    @contextmanager
    def here(level):
        yield (lambda exercise, source: local(source, exercise.given)), level or 1, "none"

    monkeypatch.setattr(checking, "pool_of", here)
    before = i18n.language()
    _forget()
    yield tmp_path
    _forget()
    i18n.set_language(before)


@pytest.fixture
def paper(book):
    """Writes answers into a notebook, or one text into a .py file; gives the path."""

    def write(answers, name="paper.ipynb"):
        path = book / name
        path.write_text(notebook(answers) if isinstance(answers, dict) else answers, encoding="utf-8")
        return str(path)

    return write
