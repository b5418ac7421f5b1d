"""One exercise sheet, read from its source: which cell is what, and the manifest that the grader lives by.

A sheet is a Source whose front matter has, per exercise, its facts:

    exercises:
      kv-bytes: {entry: kv_bytes, points: 10, minutes: 10, difficulty: 1}

A cell with `exercise: ID` begins an exercise (both languages' prose cells carry it); the cells up to the next one belong to it.
Roles are tags. Prose: none (the statement), `hint` (three per language), `follow-up` (first line the question, the rest the
answer), `explanation` (solutions only). Code: `given` (runs before every answer), `starter`, `solution`, `public` (a function
public(t); in no notebook), `check`, `explanation` (solutions only: the arithmetic behind the prose), none (an example, in both
notebooks).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.source import LANGUAGES, Cell, Source, SourceError

FACTS = {"entry": str, "points": int, "minutes": int, "difficulty": int}
CODE_ROLES = ("given", "starter", "solution", "public", "check")
PROSE_ROLES = ("hint", "follow-up", "explanation")
N_HINTS = 3


@dataclass
class Exercise:
    """The cells of one exercise, in order, and its facts."""

    id: str
    facts: dict[str, Any]
    cells: list[Cell] = field(default_factory=list)

    def code(self, role: str) -> str:
        """The source of the cells with a role, joined."""
        return "\n\n".join(cell.text for cell in self.cells if cell.kind == "code" and role in cell.tags)

    def prose(self, role: str | None, lang: str) -> list[str]:
        """The texts with a role (None: the statement) in one language."""
        return [cell.text for cell in self.cells if cell.kind == "markdown" and cell.lang == lang and role_of(cell) == role]

    def manifest(self) -> dict[str, Any]:
        """What the grader knows of it: no solution."""
        statements = {lang: "\n\n".join(self.prose(None, lang)) for lang in LANGUAGES}
        return {
            "id": self.id,
            **{name: self.facts[name] for name in FACTS},
            "optional": bool(self.facts.get("optional", False)),
            "title": {lang: _title(text) for lang, text in statements.items()},
            "statement": statements,
            **{role: self.code(role) for role in ("given", "starter", "public")},
            "hints": {lang: self.prose("hint", lang) for lang in LANGUAGES},
            "follow_ups": {lang: [question_and_answer(text) for text in self.prose("follow-up", lang)] for lang in LANGUAGES},
        }


@dataclass(frozen=True)
class Sheet:
    """A parsed sheet."""

    source: Source
    exercises: tuple[Exercise, ...]

    @classmethod
    def read(cls, path: Path) -> "Sheet":
        """Parse a sheet. Raises SourceError with the place and the remedy."""
        source = Source.read(path)
        facts = source.metadata.get("exercises") or {}
        found: list[Exercise] = []
        for cell in source.cells:
            id = cell.metadata.get("exercise")
            if id and (not found or found[-1].id != id):
                if id not in facts:
                    raise SourceError(f"{path}:{cell.line}: exercise {id} has no facts in the front matter (exercises: …)")
                found.append(Exercise(id, facts[id]))
            if found:
                found[-1].cells.append(cell)
        if missing := sorted(set(facts) - {e.id for e in found}):
            raise SourceError(f"{path}:1: no cell begins {', '.join(missing)}; give its first cells \"exercise\": …")
        for exercise in found:
            if problem := next(_problems(exercise), None):
                raise SourceError(f"{path}:{exercise.cells[0].line}: exercise {exercise.id}: {problem}")
        return cls(source, tuple(found))

    def manifest(self) -> dict[str, Any]:
        """What `make build` writes to kvgrade/sheets/."""
        return {"sheet": self.source.slug, "exercises": [e.manifest() for e in self.exercises]}


def role_of(cell: Cell) -> str | None:
    """The role of a cell of an exercise, or None."""
    roles = CODE_ROLES if cell.kind == "code" else PROSE_ROLES
    return next((role for role in roles if role in cell.tags), None)


def question_and_answer(text: str) -> dict[str, str]:
    """A follow-up as its question (the first paragraph) and its answer (the rest)."""
    question, _, answer = text.partition("\n\n")
    return {"question": question.strip(), "answer": answer.strip()}


def _title(statement: str) -> str:
    return statement.lstrip().partition("\n")[0].lstrip("# ").strip()


def _problems(exercise: Exercise) -> Iterator[str]:
    for name, kind in FACTS.items():
        if not isinstance(exercise.facts.get(name), kind):
            yield f"its {name} is {exercise.facts.get(name)!r}; expected a {kind.__name__}"
    if unknown := sorted(set(exercise.facts) - set(FACTS) - {"optional"}):
        yield f"unknown facts {', '.join(unknown)}"
    for role in ("starter", "solution", "check"):
        if sum(role in cell.tags for cell in exercise.cells) != 1:
            yield f"it needs exactly one code cell tagged {role}"
    if not exercise.code("public"):
        yield "it has no public checks; add a code cell tagged public with a function public(t)"
    for lang in LANGUAGES:
        if not exercise.prose(None, lang):
            yield f"it has no statement in {lang}"
        if len(exercise.prose("hint", lang)) != N_HINTS:
            yield f"it has {len(exercise.prose('hint', lang))} hints in {lang}; expected {N_HINTS}"
        if not exercise.prose("follow-up", lang):
            yield f"it has no follow-up question in {lang}"
