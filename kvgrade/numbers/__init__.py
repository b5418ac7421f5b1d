"""An estimation question: its answer, the arithmetic, and the wrong numbers that people give.

Invariant: a right reply is within the tolerance that the question states; a wrong one is named only when it is within the same
tolerance of a known slip. The questions themselves are in `estimates`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kvgrade.numbers.quantity import BYTES, Quantity, read_quantity
from kvlib.i18n import T
from kvlib.units import UNITS

RIGHT, SLIP, WRONG = "right", "slip", "wrong"


@dataclass(frozen=True)
class Question:
    """answer: in bytes, milliseconds or as it is, by `unit`. tolerance: relative; 0 asks for the exact number.
    accepts: other right readings (whole sequences). slips: (wrong value, what it comes from), commonest first."""

    kind: str
    text: str
    unit: str
    answer: float
    tolerance: float
    working: tuple[str, ...]
    slips: tuple[tuple[float, str], ...] = ()
    accepts: tuple[float, ...] = ()

    def judge(self, reply: str) -> tuple[str, str]:
        """RIGHT, SLIP or WRONG, and for a slip what it comes from. Raises SpecError for what cannot be read."""
        given = read_quantity(reply, self.unit)
        if self._near(given.value, self.answer) or given.value in self.accepts:
            return RIGHT, ""
        bits = [(8 * self.answer, T("8 倍：把位元當成位元組了", "8×: bits instead of bytes"))] if self.unit == BYTES else []
        for value, text in (*self._unit_slip(given), *self.slips, *bits):
            if self._near(given.value, value):
                return SLIP, text
        return WRONG, ""

    def _near(self, given: float, value: float) -> bool:
        return abs(given - value) <= (self.tolerance or 1e-9) * abs(value)

    def _unit_slip(self, given: Quantity) -> Iterator[tuple[float, str]]:
        """GB for GiB, or GiB for GB: the number fits, with the other unit."""
        name = given.unit
        other = name.replace("iB", "B") if "iB" in name else name.replace("B", "iB")
        if self.unit == BYTES and len(name) > 1:
            yield self.answer * UNITS[name] / UNITS[other], T(
                f"數字對，單位不對：你寫的是 {name}，這個數字的單位是 {other}",
                f"the number is right, the unit is not: you wrote {name}, the number is in {other}")  # fmt: skip
