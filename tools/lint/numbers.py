"""Every number the prose states is computed near the place that states it.

What needs proof, in prose, in a formula or typed into ``T(…)``, a caption or an alternative text:
a number with a decimal point, one from 10 on, and any number with a unit (7 GiB, 7%, 7 times).
What proves it: a constant in the code, or an output, of the same ``##`` section or of the one
before; with the same unit, where the proof shows one. Opening and closing sections, and those
with a cell tagged `recap`, may look at the whole chapter. What is typed into a string or a comment
proves nothing, shown in an output or not. What is proved elsewhere (a citation's value) is listed
in the cell: ``+++ {"lang": "en", "numbers": ["20.4", "38.2"]}``.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from nbformat import NotebookNode

from tools.lint.anatomy import SECTIONS
from tools.lint.claims import claims, passages
from tools.lint.problem import Problem
from tools.lint.proofs import Proofs, proved, typed_numbers
from tools.lint.python import shown_literals
from tools.lint.quantities import quantities
from tools.showcase import TAG as README

RECAP = "recap"  # tag of a prose cell that sums the chapter up
_LOOK_ANYWHERE = {title for titles in SECTIONS.values() for title in titles}
_SECTION = re.compile(r"^(?=## )", re.MULTILINE)


def lint_numbers(nb: NotebookNode, name: str) -> list[Problem]:
    """Numbers that the prose of a built notebook states and no code near them computes."""
    chapter, problems = _Chapter(nb), []
    for section, index, text in chapter.parts:
        cell = nb.cells[index - 1]
        said = passages(text) if cell.cell_type == "markdown" else shown_literals(text, chapter.lang)
        listed = [q for n in cell.metadata.get("numbers", ()) for q in quantities(str(n))]
        proofs = chapter.near(section) + Proofs((q.value, q.unit) for q in listed)
        problems += _unproved(said, proofs, f"{name} cell {index}")
    return problems


def lint_alt(alt: str, nb: NotebookNode, where: str) -> list[Problem]:
    """Numbers in the README's words for a figure that its chapter does not compute near it."""
    chapter = _Chapter(nb)
    tagged = (s for s, i, _ in chapter.parts if README in nb.cells[i - 1].metadata.get("tags", ()))
    return _unproved([alt], chapter.near(next(tagged, 0)), where)


def _unproved(said: Iterable[str], proofs: Proofs, where: str) -> list[Problem]:
    message = (
        "{} is not in the code or output of this section or the one before; compute it there, "
        'correct it, or list it in the cell: {{"numbers": ["…"]}}'
    )
    unproved = (claim for text in said for claim in claims(text) if not proofs.prove(claim))
    return [Problem(where, message.format(claim.written)) for claim in unproved]


class _Chapter:
    """A notebook cut before each ``## ``, and what each section proves."""

    def __init__(self, nb: NotebookNode) -> None:
        self.lang = next((cell.metadata.lang for cell in nb.cells if "lang" in cell.metadata), "en")
        self.parts = list(_parts(nb))  # (section, cell number, text)
        typed, self.proofs, self.open = typed_numbers(nb), defaultdict(Proofs), {0}
        for section, index, text in self.parts:
            cell = nb.cells[index - 1]
            if cell.cell_type == "code":
                self.proofs[section] += Proofs(proved(cell, typed))
            elif _title(text) in _LOOK_ANYWHERE or RECAP in cell.metadata.get("tags", ()):
                self.open.add(section)

    def near(self, section: int) -> Proofs:
        """What proves a number stated in this section."""
        far = section in self.open
        wanted = [s for s in self.proofs if far or s in (section - 1, section)]
        return sum((self.proofs[s] for s in wanted), Proofs(far=far))


def _parts(nb: NotebookNode) -> Iterator[tuple[int, int, str]]:
    section = 0
    for index, cell in enumerate(nb.cells, start=1):
        for text in _SECTION.split(cell.source) if cell.cell_type == "markdown" else [cell.source]:
            section += cell.cell_type == "markdown" and text.startswith("## ")
            yield section, index, text


def _title(text: str) -> str:
    return text.partition("\n")[0].removeprefix("## ").strip() if text.startswith("## ") else ""
