"""A toy sheet of two exercises, and notebooks for it."""

import json
from pathlib import Path
from typing import Any

from kvgrade.exercises import Exercise
from kvgrade.testing import prop, properties

_WORDS = {"en": "", "zh-TW": ""}


def exercise(id: str, entry: str, points: int = 10, sheet: str = "01-toy", given: str = "", optional: bool = False) -> Exercise:
    """An exercise whose starter is a function of x."""
    return Exercise(id=id, sheet=sheet, entry=entry, points=points, minutes=1, difficulty=1, optional=optional,
                    title={"en": f"Title of {id}", "zh-TW": f"{id} 的標題"}, statement=_WORDS, given=given, public="",
                    starter=f"def {entry}(x):\n    raise NotImplementedError\n", hints=_WORDS, follow_ups=_WORDS)  # fmt: skip


EXERCISES = {"double": exercise("double", "double"), "square": exercise("square", "square", points=5)}
RIGHT = {"double": "def double(x):\n    return 2 * x\n", "square": "def square(x):\n    return x * x\n"}


class _Double:
    @prop(6, zh="兩倍", en="twice")
    def twice(t):
        x = t.integer(3, 100)
        t.equal(t.answer(x), 2 * x)

    @prop(4, zh="零", en="zero")
    def zero(t):
        t.equal(t.answer(0), 0)


class _Square:
    @prop(5, zh="平方", en="the square")
    def squares(t):
        x = t.integer(3, 100)
        t.equal(t.answer(x), x * x)


def tests(e: Exercise) -> tuple:
    """The toy's hidden tests."""
    return properties({"double": _Double, "square": _Square}[e.id])


def code(source: Any, **metadata: Any) -> dict:
    """A code cell."""
    return {"cell_type": "code", "source": source, "metadata": metadata, "outputs": [], "execution_count": None}


def answer(id: str, source: str, **more: Any) -> dict:
    """An answer's cell, as the sheet has it."""
    return code(f"# kvgrade: {id}\n{source}", kvgrade={"exercise": id, "role": "answer", **more})


def check(id: str) -> dict:
    """A check cell."""
    return code(f'check("{id}", {EXERCISES[id].entry})', kvgrade={"exercise": id, "role": "check"})


def notebook(*cells: dict, **top: Any) -> str:
    """A notebook of these cells."""
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells), **top})


def write(path: Path, *cells: dict, **top: Any) -> Path:
    """A notebook file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(notebook(*cells, **top), encoding="utf-8")
    return path


def solved(**changed: str) -> list[dict]:
    """The cells of a solved sheet, with some answers replaced."""
    answers = {**RIGHT, **changed}
    return [cell for id in EXERCISES for cell in (answer(id, answers[id]), check(id))]
