"""What the code cells of a notebook prove: their constants and their outputs, nothing typed into strings."""

import html
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal

from nbformat import NotebookNode

from tools.lint.claims import without_names
from tools.lint.markdown import HOLE
from tools.lint.outputs import texts
from tools.lint.python import constants, strings
from tools.lint.quantities import NUMBER, SIZES, Quantity, quantities

COUNT = "count"  # of a bare whole number in code: 64 heads, far away, do not prove 64 GiB
_TAG = re.compile(r"</?[A-Za-z][^>]*>")


class Proofs:
    """Values that code computes, each with the units it is shown in; "" where it has none."""

    def __init__(self, pairs: Iterable[tuple[Decimal, str]] = (), far: bool = False) -> None:
        self.units, self.far = defaultdict(set), far
        for value, unit in pairs:
            self.units[value].add(unit)

    def __add__(self, other: "Proofs") -> "Proofs":
        pairs = ((v, u) for proofs in (self, other) for v, units in proofs.units.items() for u in units)
        return Proofs(pairs, self.far or other.far)

    def prove(self, claim: Quantity) -> bool:
        """True if code shows the claim, or what means the same, with no other unit."""
        return any(self._shows(*same) for same in claim.same)

    def _shows(self, value: Decimal, unit: str) -> bool:
        units = self.units.get(value, set())
        bare = {""} if unit in SIZES and self.far else {"", COUNT}
        return bool(units if not unit else units & {unit, *bare})


def typed_numbers(nb: NotebookNode) -> re.Pattern[str]:
    """Whatever is typed with a number into a string of the code, wherever it is shown."""
    literals = {text for cell in nb.cells if cell.cell_type == "code" for text in strings(cell.source)}
    literals = {text for text in literals if re.search(NUMBER, without_names(text))}
    literals |= {html.escape(text, quote=False) for text in literals}
    longest_first = sorted(literals, key=len, reverse=True)
    return re.compile("|".join(map(_whole, longest_first)) or "(?!)")


def _whole(text: str) -> str:
    """A pattern for the text that does not begin or end inside a longer number."""
    before = r"(?<![\d.])" if text[0].isdigit() else ""
    after = r"(?![\d.,]*\d)" if text[-1].isdigit() else ""
    return before + re.escape(text) + after


def proved(cell: NotebookNode, typed: re.Pattern[str]) -> Iterator[tuple[Decimal, str]]:
    """(value, unit) of the numbers in a cell's code and in its outputs."""
    for quantity in constants(cell.source):
        bare = COUNT if quantity.written.isdigit() else ""
        yield from ((value, unit or bare) for value, unit in quantity.same)
    for output in texts(cell):
        output = typed.sub(lambda words: re.sub(NUMBER, HOLE, words[0]), output)
        shown = without_names(_with_units_of_heads(_TAG.sub(" ", output)))
        for quantity in quantities(shown):
            yield from quantity.same
            if mantissa := re.match(r"([\d.]+)[eE]", quantity.written):
                yield from next(quantities(mantissa[1])).same


def _with_units_of_heads(text: str) -> str:
    """A Markdown table with each head's unit, if it is one, behind the numbers of its column."""
    lines, units = [], None
    for line in text.splitlines():
        cells = line.strip().strip("|").split("|")
        if not line.lstrip().startswith("|"):
            units = None
        elif units is None:
            units = [next((q.unit for q in quantities(f"1 {head.strip().split(' ')[-1]}")), "") for head in cells]
        else:
            cells = [f" {cell.strip()} {unit} " if re.fullmatch(rf"\s*{NUMBER}\s*", cell) else cell
                     for cell, unit in zip(cells, units, strict=False)]  # fmt: skip
            line = "|".join(cells)
        lines.append(line)
    return "\n".join(lines)
