"""The two languages say the same: every prose cell has its twin, with the same bones."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from tools.lint.markdown import Prose, normal_math, parse
from tools.lint.problem import Problem, quoted
from tools.lint.quantities import stated
from tools.source import LANGUAGES, Cell, Source


def lint_twins(source: Source, name: str) -> list[Problem]:
    """Missing twins, and pairs that differ in what must not differ."""
    problems = []
    for first, second in pairs(source):
        where = f"{name}:{first.line} ({first.lang})"
        if second is None:
            other = next(lang for lang in LANGUAGES if lang != first.lang)
            message = f"no {other} twin next to this cell; write it right after or before"
            problems.append(Problem(where, message))
        else:
            for what, ours, theirs in _differences(parse(first.text), parse(second.text)):
                message = (
                    f"{what} differ from the {second.lang} twin on line {second.line}: "
                    f"only here {quoted(ours)}; only there {quoted(theirs)}"
                )
                problems.append(Problem(where, message))
    return problems


def pairs(source: Source) -> Iterator[tuple[Cell, Cell | None]]:
    """Adjacent prose cells of different languages; a cell without one comes with None."""
    waiting: Cell | None = None
    for cell in source.cells:
        if cell.kind == "markdown" and waiting and waiting.lang != cell.lang:
            yield waiting, cell
            waiting = None
            continue
        if waiting:
            yield waiting, None
        waiting = cell if cell.kind == "markdown" else None
    if waiting:
        yield waiting, None


def lint_twin_pages(english: str, chinese: str, name: str) -> list[Problem]:
    """In what a page and its twin differ and must not; they show commands each in their own way."""
    shared = ("numbers", "formulas", "paragraphs", "list items", "table rows", "headings")
    return [
        Problem(name, f"{what} differ from the zh-TW twin: only here {quoted(ours)}; only there {quoted(theirs)}")
        for what, ours, theirs in _differences(*(replace(p, unlinked=p.text) for p in map(parse, (english, chinese))))
        if what in shared
    ]


def _differences(one: Prose, two: Prose) -> Iterator[tuple[str, list[str], list[str]]]:
    """(what, only in one, only in two) for each respect in which two cells differ."""
    for what, bones in _BONES.items():
        ours, theirs = Counter(bones(one)), Counter(bones(two))
        if ours != theirs:
            yield what, sorted((ours - theirs).elements()), sorted((theirs - ours).elements())
    levels = [["#" * level for level, _ in prose.headings] for prose in (one, two)]
    if levels[0] != levels[1]:
        yield "headings", levels[0], levels[1]


def same_target(link: str) -> str:
    """A link's target, the same for a page and its twin; anchors are words and differ."""
    if "://" in link:
        return link
    path = PurePosixPath(link.partition("#")[0])
    return "/".join(
        "LANG" if part in LANGUAGES else part.replace(".zh-TW", "") for part in path.parts
    )


_BONES = {
    "numbers": lambda prose: stated(prose.unlinked),
    "formulas": lambda prose: [normal_math(formula) for formula in prose.math],
    "links": lambda prose: [same_target(link) for link in prose.links],
    "code spans": lambda prose: prose.code,
    "code blocks": lambda prose: ["```"] * len(prose.fences),
    "folds": lambda prose: ["<details>"] * prose.details,
    "paragraphs": lambda prose: ["¶"] * prose.paragraphs,
    "list items": lambda prose: ["-"] * prose.items,
    "table rows": lambda prose: ["|"] * prose.rows,
}
