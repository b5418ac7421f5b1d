"""What there is to solve: the manifest that `make build` writes from the sheets in exercises/src/, and the hidden tests.

Invariant: points, names and texts come from here and from nowhere else, never from a submission.
"""

import difflib
import functools
import importlib.util
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from kvlib.errors import SpecError
from kvlib.i18n import T

SHEETS = Path(__file__).parent / "sheets"  # one JSON per sheet, built
HOME = Path(__file__).resolve().parent.parent  # a checkout, or a bundle
HIDDEN = HOME / "tests" / "hidden"
MUTANTS = HOME / "tests" / "mutants"

Words = Mapping[str, Any]  # language -> text (or texts)


class NoHiddenTests(SpecError):
    """This copy of the book has no hidden tests: a bundle that a teacher handed out."""


@dataclass(frozen=True)
class Exercise:
    """One exercise. `entry`: the name of the function or class to write. `given`: code that is run before every answer.
    `starter`: what the learner is given to complete. `public`: source of the public checks, one function public(t)."""

    id: str
    sheet: str
    entry: str
    points: int
    minutes: int
    difficulty: int  # 1 (a formula) to 5 (a kernel)
    optional: bool
    title: Words
    statement: Words  # Markdown
    given: str
    starter: str
    public: str
    hints: Words  # language -> list of three
    follow_ups: Words  # language -> list of {"question", "answer"}


@functools.cache
def exercises() -> dict[str, Exercise]:
    """Every exercise by id, in the order of the book."""
    found = {}
    for path in sorted(SHEETS.glob("*.json")):
        sheet = json.loads(path.read_text(encoding="utf-8"))
        for data in sheet["exercises"]:
            found[data["id"]] = Exercise(sheet=sheet["sheet"], **data)
    return found


def exercise(id: str) -> Exercise:
    """The exercise with this id. Raises SpecError with the id that was meant, or else with the known ids."""
    if id in exercises():
        return exercises()[id]
    if meant := difflib.get_close_matches(id.lower().replace("_", "-"), exercises(), 1):
        raise SpecError(T(f"沒有 {id} 這一題；是不是 {meant[0]}？全部的代號：kvgrade exercises",
                          f"no exercise {id!r}; did you mean {meant[0]}? All of them: kvgrade exercises"))  # fmt: skip
    raise SpecError(T(f"沒有 {id} 這一題；有：{'、'.join(exercises())}", f"no exercise {id!r}; there are: {', '.join(exercises())}"))


@functools.cache
def hidden_tests(id: str) -> ModuleType:
    """The hidden test module of an exercise. Raises NoHiddenTests where this copy has none."""
    return load_module(HIDDEN, id)


@functools.cache
def load_module(folder: Path, id: str) -> ModuleType:
    path = folder / f"{id.replace('-', '_')}.py"
    if not path.is_file():
        raise NoHiddenTests(
            T(f"這一份書裡沒有 {id} 的隱藏測試，測試在老師那裡；公開檢查請在筆記本裡執行：check(…)",
              f"there are no hidden tests for {id} in this copy of the book: your teacher grades with them. "
              "The public checks run in the notebook: check(…)")
        )  # fmt: skip
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # for what the modules share
    spec = importlib.util.spec_from_file_location(f"{folder.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
