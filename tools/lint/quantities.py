"""Numbers in a text, each with its scale and its unit."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import permutations

NUMBER = r"(?:\d{1,3}(?:[,_]\d{3})+(?!\d)|\d[\d_]*)(?:\.\d+)?(?:[eE][+-]?\d+)?"

_WORDS = {"萬": 10**4, "億": 10**8, "兆": 10**12}
_WORDS |= {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_STRICT = r"[KMGTP]i?B(?:/s)?|[KMGT]?FLOPs?(?:/s)?|ms|[µμ]s|ns"  # the same in both languages
_LATIN = rf"(?:{_STRICT}|(?<= )B(?:/s)?|bytes?|bits?|(?:milli|micro|nano)?seconds?|s|times)(?![A-Za-z0-9])"
_FACTOR = r"(?<=\d)×(?!\s?[\d$(]|[A-Za-z])|×(?!\s*[\w$(])"  # 8× and not 8 × d
_UNIT = rf"{_LATIN}|個?位元組|個?位元|[毫微奈]?秒|倍|[%％]|{_FACTOR}"
_SAME = {"％": "%", "bytes": "B", "byte": "B", "位元組": "B", "bits": "bit", "位元": "bit"}
_SAME |= {f"{word}{s}": unit for word, unit in (("millisecond", "ms"), ("microsecond", "µs"), ("nanosecond", "ns"),
                                                 ("second", "s")) for s in ("", "s")}  # fmt: skip
_SAME |= {"毫秒": "ms", "微秒": "µs", "μs": "µs", "奈秒": "ns", "秒": "s", "倍": "×", "times": "×"}

_QUANTITY = re.compile(
    rf"(?P<number>{NUMBER})(?:\^(?P<power>-?\d{{1,2}}))?"
    rf"(?:\s*(?P<word>{'|'.join(_WORDS)})|\s?[·×]\s?10\^(?P<exponent>-?\d{{1,2}}))?"
    rf"(?:[ \u00a0]?(?P<unit>{_UNIT}))?"
)
_RAISED, _RAISE = (str.maketrans(*pair) for pair in permutations(("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")))
_POWER = re.compile(r"(?<=\d)([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)|(?<!\d)[⁰¹²³⁴⁵⁶⁷⁸⁹]")
SIZES = {f"{p}{i}B": (1024 if i else 1000) ** k for i in ("", "i") for k, p in enumerate("KMGTP", start=1)}


@dataclass(frozen=True)
class Quantity:
    """68.98·10⁹ B is the number 68.98 at the scale 10⁹, in B."""

    written: str
    number: Decimal
    scale: Decimal
    unit: str  # "" if there is none

    @property
    def value(self) -> Decimal:
        return self.number * self.scale

    @property
    def same(self) -> set[tuple[Decimal, str]]:
        """(value, unit) of all that means the same: a ratio for a percentage, bytes for GiB."""
        same = {(self.value, self.unit), (self.number, self.unit)}
        same |= {(self.value / 10**k, self.unit) for k in (3, 6, 9, 12) if self.scale != 1}
        if self.unit == "%":
            same.add((self.value / 100, ""))
        if self.unit in SIZES:
            same.add((self.value * SIZES[self.unit], "B"))
        return same

    def __str__(self) -> str:
        """What both languages must state alike; units that are words are left to each."""
        value = f"{self.value.normalize():f}"
        return f"{value} {self.unit}" if re.fullmatch(rf"{_STRICT}|%", self.unit) else value


def quantities(text: str) -> Iterator[Quantity]:
    """The quantities of a text in order: 1,024 is 1024, 700 億 is 70 billion, 10⁹ is a number."""
    text = _POWER.sub(lambda m: f"^{m[1].translate(_RAISED)}" if m[1] else f" {m[0].translate(_RAISED)}", text)
    for found in _QUANTITY.finditer(text):
        number = Decimal(re.sub("[,_]", "", found["number"])) ** int(found["power"] or 1)
        scale = Decimal(_WORDS.get(found["word"], 1)) * Decimal(10) ** int(found["exponent"] or 0)
        unit = (found["unit"] or "").removeprefix("個")
        written = re.sub(r"\^(-?\d+)", lambda m: m[1].translate(_RAISE), found[0])
        yield Quantity(written, number, scale, _SAME.get(unit, unit))


def stated(text: str) -> list[str]:
    """What a text and its twin must have in common: every number, with its unit."""
    return [str(quantity) for quantity in quantities(text)]
