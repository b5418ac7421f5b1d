"""python -m tools.matrix [ID…] [--seeds N]: do the hidden tests tell right from wrong?

For each exercise: the solution must get full points, the starter "not attempted", and every wrong solution must lose points,
on every seed. Prints the table; exit code 1 when a cell of it is not what it must be. Runs our own code only, in this process.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

if __name__ == "__main__":
    os.environ["TRITON_INTERPRET"] = "1"  # before torch imports triton: answers' kernels run on the CPU

import torch

from kvgrade import exercises as catalogue
from kvgrade.answers import mutants
from kvgrade.exercises import hidden_tests
from kvgrade.grading import grade
from kvgrade.outcome import NOT_ATTEMPTED, Result
from kvgrade.session import local
from kvgrade.testing import properties
from tools.book import ROOT
from tools.sheet import Exercise, Sheet

SEEDS = tuple(f"matrix-{n}" for n in range(5))
MIN_MUTANTS = 5


@dataclass(frozen=True)
class Row:
    """One solution, right or wrong, of one exercise over all seeds."""

    exercise: str
    name: str  # "solution", "starter" or a mutant's
    results: tuple[Result, ...]

    @property
    def as_it_must_be(self) -> bool:
        """The solution passes, the starter is not attempted, a wrong one loses points: every time."""
        if self.name == "solution":
            return all(r.points == r.max for r in self.results)
        if self.name == "starter":
            return all(r.status == NOT_ATTEMPTED for r in self.results)
        return all(r.points < r.max for r in self.results)

    def __str__(self) -> str:
        points = " ".join(f"{r.points:3}/{r.max}" for r in self.results)
        return f"{'ok ' if self.as_it_must_be else 'BAD'} {self.exercise:22} {self.name:34} {points}"

    def why(self) -> Iterator[str]:
        """What the properties said, on the first seed that is not as it must be (or the first)."""
        for outcome in self.results[0].outcomes:
            said = f": {outcome.message.id} {outcome.message.fields}" if outcome.message else ""
            yield f"      {outcome.status:8} {outcome.property}{said}"


def exercises() -> dict[str, tuple[Sheet, Exercise]]:
    """Every exercise of the sources, by id."""
    sheets = [Sheet.read(path) for path in sorted((ROOT / "exercises" / "src").glob("*.md"))]
    return {e.id: (sheet, e) for sheet in sheets for e in sheet.exercises}


def rows(sheet: Sheet, source: Exercise, seeds: Iterable[str] = SEEDS) -> Iterator[Row]:
    """The rows of one exercise."""
    exercise = catalogue.Exercise(sheet=sheet.source.slug, **source.manifest())
    props = properties(hidden_tests(source.id))
    total = sum(p.points for p in props)
    assert total == exercise.points, f"{source.id}: properties give {total} points, the front matter says {exercise.points}"
    wrong = mutants(source.id)
    assert len({m.name for m in wrong}) == len(wrong) >= MIN_MUTANTS, f"{source.id}: {len(wrong)} mutants; {MIN_MUTANTS} or more, by name"
    solution = source.code("solution")
    codes = {"solution": solution, "starter": source.code("starter"), **{m.name: m.of(solution) for m in wrong}}
    for name, code in codes.items():
        compile(code, f"{source.id}: {name}", "exec")  # wrong for its reason, not for its syntax
        results = tuple(grade(exercise, props, partial(local, code, exercise.given), seed, name_variants=False)
                        for seed in seeds)  # fmt: skip
        yield Row(source.id, name, results)


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.matrix", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    parser.add_argument("--why", action="store_true", help="print what each property said")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)  # the tensors are tiny: threads that wait for each other cost seven times the work
    every, bad, count = exercises(), 0, 0
    for id in options.ids or every:
        for row in rows(*every[id], SEEDS[: options.seeds]):
            count, bad = count + 1, bad + (not row.as_it_must_be)
            print(row, flush=True)
            if options.why or not row.as_it_must_be:
                print("\n".join(row.why()))
    print(f"{count} rows, {bad} not as they must be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
