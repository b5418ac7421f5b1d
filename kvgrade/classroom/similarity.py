"""Answers that resemble each other more than two people's do: a list for the teacher to look at, no verdict.

An answer becomes the sequence of its syntax, without names of its own, comments, docstrings and annotations; its runs of K symbols
are compared as sets. What the starter holds, and what many in the class write, is left out: a short formula is everybody's.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from kvgrade.answers import solutions
from kvgrade.classroom.marks import table
from kvgrade.classroom.names import spreadsheet, visible
from kvgrade.classroom.papers import Paper
from kvgrade.exercises import Exercise, NoHiddenTests
from kvgrade.submission import is_starter
from kvgrade.submission.definitions import TOO_MUCH

K = 12  # symbols in a run
MIN_RUNS = 100  # an answer with fewer runs of its own is too short to tell
MIN_SCORE = 0.8
COMMON = 0.3  # a run in more than this share of a class (of four and more) is everybody's
MAX_SYMBOLS = 20_000
PUBLISHED = ""  # the key that stands for the solutions in this repository


@dataclass(frozen=True)
class Pair:
    """Two learners' keys and names (PUBLISHED and "" for the book's solution) and how alike their answers are, 0 to 1; `size`:
    runs of the shorter one."""

    exercise: str
    a: str
    b: str
    names: tuple[str, str]
    score: float
    size: int


def pairs(papers: Sequence[Paper], exercises: Sequence[Exercise]) -> list[Pair]:
    """Every pair above MIN_SCORE, most alike first."""
    found = [pair for exercise in exercises for pair in _pairs(papers, exercise)]
    return sorted(found, key=lambda p: (-p.score, -p.size, p.exercise, p.a, p.b))


def as_csv(found: Sequence[Pair]) -> bytes:
    """The list for a spreadsheet."""
    rows = [[p.exercise, *(spreadsheet(n) if n else "(published solution)" for n in p.names), p.score, p.size] for p in found]
    return table(["exercise", "a", "b", "score", "size"], rows)


def runs(source: str) -> frozenset[int]:
    """The runs of a source's symbols; none where it does not parse."""
    try:
        symbols = list(_symbols(ast.parse(source)))[:MAX_SYMBOLS]
    except TOO_MUCH:
        return frozenset()
    return frozenset(hash(tuple(symbols[i : i + K])) for i in range(len(symbols) - K + 1))


def _pairs(papers: Sequence[Paper], exercise: Exercise) -> Iterator[Pair]:
    starter = runs(exercise.starter)
    answers = {p.student.key: (visible(p.student.name), runs(a.cell) - starter) for p in papers
               if (a := p.answers.get(exercise.id)) and not is_starter(a.cell, exercise.starter)}  # fmt: skip
    try:
        published = runs(solutions(exercise.sheet).get(exercise.id, "")) - starter
    except NoHiddenTests:
        published = frozenset()
    for key, (name, own) in answers.items():  # against the published solution nothing is common: it was there first
        yield from _pair(exercise.id, (key, name, own), (PUBLISHED, "", published))
    counts = Counter(run for _, own in answers.values() for run in own)
    common = {run for run, n in counts.items() if len(answers) >= 4 and n > max(3, COMMON * len(answers))}
    rare = [(key, name, own - common) for key, (name, own) in answers.items()]
    for a, b in combinations(rare, 2):
        yield from _pair(exercise.id, a, b)


def _pair(exercise: str, a: tuple[str, str, frozenset], b: tuple[str, str, frozenset]) -> Iterator[Pair]:
    size = min(len(a[2]), len(b[2]))
    if size < MIN_RUNS:
        return
    score = 2 * len(a[2] & b[2]) / (len(a[2]) + len(b[2]))
    if score >= MIN_SCORE:
        yield Pair(exercise, a[0], b[0], (a[1], b[1]), round(score, 3), size)


def _symbols(node: ast.AST) -> Iterator[str]:
    """The syntax in order, iteratively: hostile code may be nested deep."""
    stack: list[ast.AST | str] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
            continue
        children: list[ast.AST | str] = []
        for name, value in ast.iter_fields(item):
            if name in ("annotation", "returns", "ctx", "type_comment", "kind", "id", "arg", "name", "asname", "type_params"):
                continue
            values = value if isinstance(value, list) else [value]
            for each in values:
                if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                    continue  # a docstring
                children.append(each if isinstance(each, ast.AST) else f"={str(each)[:40]}")
        yield type(item).__name__
        stack += reversed(children)
