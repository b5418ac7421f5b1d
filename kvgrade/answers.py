"""Our own answers to the exercises, and the wrong ones that the hidden tests must tell from them."""

import functools
from dataclasses import dataclass

from kvgrade import exercises as catalogue
from kvgrade.exercises import NoHiddenTests, Words, load_module
from kvgrade.submission import read_submission
from kvlib.i18n import T


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
    return tuple(load_module(catalogue.MUTANTS, id).MUTANTS) if catalogue.MUTANTS.is_dir() else ()


@functools.cache
def solutions(sheet: str, lang: str = "en") -> dict[str, str]:
    """Our own answers to a sheet, by exercise id, read from solutions/. Raises NoHiddenTests where this copy has none."""
    path = catalogue.HOME / "solutions" / lang / f"{sheet}.ipynb"
    if not path.is_file():
        raise NoHiddenTests(T("這一份書裡沒有解答", "this copy of the book has no solutions"))
    return {id: answer.source for id, answer in read_submission(path).answers.items()}
