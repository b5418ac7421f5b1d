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
    return _module(HIDDEN, id)


@dataclass(frozen=True)
class Mutant:
    """A wrong solution that must lose points. `says`: what its result is ("the result without 1/√d"), per language. `change`:
    (old, new) pairs, each `old` occurring exactly once in the solution; or `source`: the whole wrong solution."""

    name: str
    says: Words
    change: tuple[tuple[str, str], ...] = ()
    source: str | None = None

    def of(self, solution: str) -> str:
        """The wrong solution's source. Raises ValueError when a change no longer applies."""
        if self.source is not None:
            return self.source
        for old, new in self.change:
            if solution.count(old) != 1:
                raise ValueError(f"mutant {self.name}: {old!r} occurs {solution.count(old)} times in the solution; it must once")
            solution = solution.replace(old, new)
        return solution


def mutants(id: str) -> tuple[Mutant, ...]:
    """The wrong solutions of an exercise; none where this copy has no tests."""
    return tuple(_module(MUTANTS, id).MUTANTS) if MUTANTS.is_dir() else ()


@functools.cache
def solutions(sheet: str, lang: str = "en") -> dict[str, str]:
    """Our own answers to a sheet, by exercise id, read from solutions/. Raises NoHiddenTests where this copy has none."""
    from kvgrade.submission import read_submission

    path = HOME / "solutions" / lang / f"{sheet}.ipynb"
    if not path.is_file():
        raise NoHiddenTests(T("這一份書裡沒有解答", "this copy of the book has no solutions"))
    return {id: answer.source for id, answer in read_submission(path).answers.items()}


@functools.cache
def _module(folder: Path, id: str) -> ModuleType:
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
