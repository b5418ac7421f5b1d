"""An exercise sheet as two notebooks: what the learner gets, and our answers; and as the manifest that the grader reads.

Invariant: of a solution, an explanation or a public check nothing is in the learner's notebook, and no answer is in the manifest.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tools.book import ROOT, Book, builder_files, files
from tools.sheet import CODE_ROLES, PROSE_ROLES, Exercise, Sheet, question_and_answer, role_of
from tools.source import LANGUAGES, Cell, Source

BUILDER_MODULES = ("editions.py", "sheet.py")
# What of kvgrade check() runs.
CHECK_MODULES = ("__init__", "public", "exercises", "messages", "session", "testing")
CHECK_MODULES += ("worker/__init__", "worker/host", "worker/wire", "worker/work")
ROLES = {"given": "given", "starter": "answer", "solution": "answer", "check": "check"}  # as the notebook names them
TEXTS = {
    "en": {
        "points": "{n} points", "minutes": "{n} minutes", "difficulty": "difficulty {dots}", "optional": "optional",
        "hints": ("direction", "method", "almost code"), "hint": "Hint {n}: {what}",
        "follow-up": "**Follow-up.**", "answer": "Answer",
        "to solutions": "Solutions, when you have tried", "solutions": "The solutions of this sheet, explained",
        "back": "Our solutions to [this sheet]({link}).",
    },
    "zh-TW": {
        "points": "{n} 分", "minutes": "{n} 分鐘", "difficulty": "難度 {dots}", "optional": "選做",
        "hints": ("方向", "方法", "幾乎就是程式碼"), "hint": "提示 {n}：{what}",
        "follow-up": "**追問。**", "answer": "答案",
        "to solutions": "試過之後再看解答", "solutions": "這一份練習的解答與說明",
        "back": "這是[這一份練習]({link})的解答。",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Sheets(Book):
    """The learner's notebooks of the exercise sheets, or our solutions."""

    source: str = "exercises/src"
    target: str = "exercises"
    solved: bool = False

    def read(self, path: Path) -> Source:
        return edition(Sheet.read(path), self.solved)

    def companions(self, path: Path) -> dict[Path, str]:
        return {self.root / "kvgrade" / "sheets" / f"{path.stem}.json": manifest(Sheet.read(path))}

    @property
    def companion_patterns(self) -> tuple[str, ...]:
        return () if self.solved else ("kvgrade/sheets/*.json",)  # once is enough

    def inputs(self) -> list[Path]:
        checks = files(self.root, *(f"kvgrade/{module}.py" for module in CHECK_MODULES))
        return [*super().inputs(), *checks, *builder_files(BUILDER_MODULES)]


def books(root: Path = ROOT) -> tuple[Book, ...]:
    """All that is built: chapters, the learner's sheets, our solutions."""
    return Book(root), Sheets(root), Sheets(root, target="solutions", solved=True)


def manifest(sheet: Sheet) -> str:
    """The text of a sheet's file in kvgrade/sheets/."""
    return json.dumps(sheet.manifest(), ensure_ascii=False, indent=1) + "\n"


def edition(sheet: Sheet, solved: bool) -> Source:
    """The cells of one of a sheet's two notebooks, in both languages."""
    slug = sheet.source.slug
    first = next((e.cells[0] for e in sheet.exercises), None)
    before = sheet.source.cells[: sheet.source.cells.index(first)] if first else sheet.source.cells
    cells = [_back(cell, slug) if solved and _is_title(cell) else cell for cell in before]
    for exercise in sheet.exercises:
        cells += _exercise(exercise, solved)
    if not solved:
        cells += [_to_solutions(slug, lang) for lang in LANGUAGES]
    return replace(sheet.source, cells=tuple(cells))


def _exercise(exercise: Exercise, solved: bool) -> Iterator[Cell]:
    left_out = {"public", *(("starter", "hint") if solved else ("solution", "explanation"))}
    hints, headed = dict.fromkeys(LANGUAGES, 0), set()
    for cell in exercise.cells:
        role, text = role_of(cell), TEXTS.get(cell.lang)
        if role in left_out or (not solved and "explanation" in cell.tags):
            continue
        if cell.kind == "code":
            yield _code(cell, role, exercise.id)
        elif role == "hint":
            hints[cell.lang] += 1
            n = hints[cell.lang]
            yield _prose(cell, folded(text["hint"].format(n=n, what=text["hints"][n - 1]), cell.text))
        elif role == "follow-up":
            both = question_and_answer(cell.text)
            yield _prose(cell, f"{text['follow-up']} {both['question']}\n\n{folded(text['answer'], both['answer'])}")
        elif role is None and cell.lang not in headed:
            headed.add(cell.lang)
            heading, _, rest = cell.text.lstrip().partition("\n")
            text = f"{heading}\n\n{facts(exercise, cell.lang)}\n\n{rest.strip()}".strip()
            yield _prose(cell, text, kvgrade={"exercise": exercise.id, "role": "statement"})
        else:
            known = {"kvgrade": {"exercise": exercise.id, "role": "statement"}} if role is None else {}
            yield _prose(cell, cell.text, **known)


def facts(exercise: Exercise, lang: str) -> str:
    """The line under an exercise's heading: points, minutes, difficulty."""
    text, given = TEXTS[lang], exercise.facts
    dots = "●" * given["difficulty"] + "○" * (5 - given["difficulty"])
    parts = [text["points"].format(n=given["points"]), text["minutes"].format(n=given["minutes"]),
             text["difficulty"].format(dots=dots)]  # fmt: skip
    return "*" + " · ".join([*parts, *([text["optional"]] if given.get("optional") else [])]) + f"* · `{exercise.id}`"


def folded(summary: str, text: str) -> str:
    """Markdown that a click opens."""
    return f"<details><summary>{summary}</summary>\n\n{text.strip()}\n\n</details>"


def _code(cell: Cell, role: str | None, id: str) -> Cell:
    text = cell.text
    if ROLES.get(role) == "answer":
        text = f"# kvgrade: {id}\n{text}"
    known = {"kvgrade": {"exercise": id, "role": ROLES[role]}} if role in ROLES else {}
    return replace(cell, text=text, metadata=_public(cell) | known)


def _prose(cell: Cell, text: str, **metadata: object) -> Cell:
    return replace(cell, text=text, metadata=_public(cell) | metadata)


def _public(cell: Cell) -> dict:
    """A cell's metadata without what only the builder needs."""
    tags = [tag for tag in cell.tags if tag not in CODE_ROLES + PROSE_ROLES]
    kept = {key: value for key, value in cell.metadata.items() if key not in ("tags", "exercise")}
    return kept | ({"tags": tags} if tags else {})


def _is_title(cell: Cell) -> bool:
    return cell.kind == "markdown" and cell.text.startswith("# ")


def _back(cell: Cell, slug: str) -> Cell:
    title, _, rest = cell.text.partition("\n")
    line = TEXTS[cell.lang]["back"].format(link=f"../../exercises/{cell.lang}/{slug}.ipynb")
    return replace(cell, text=f"{title}\n\n{line}\n\n{rest.strip()}".strip())


def _to_solutions(slug: str, lang: str) -> Cell:
    """The sheet's last cell; a bundle without solutions leaves it out by its role."""
    text = TEXTS[lang]
    link = f"[{text['solutions']}](../../solutions/{lang}/{slug}.ipynb)"
    return Cell("markdown", folded(text["to solutions"], link), 1, {"lang": lang, "kvgrade": {"role": "solutions"}})
