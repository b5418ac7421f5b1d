"""A number that somebody typed: "1.25 GiB", "320 KiB", "10.4", "1.3e9", "２０．８ ｍｓ", "2^30".

Invariant: nothing is guessed. What can be read in two ways raises SpecError, which says what to type instead.
"""

import re
import unicodedata
from dataclasses import dataclass

from kvlib.errors import SpecError
from kvlib.i18n import T
from kvlib.units import UNITS

BYTES, MILLISECONDS, COUNT = "bytes", "milliseconds", "count"

_SIZES = {name.lower(): (name, size) for name, size in UNITS.items()} | {
    name: ("B", 1) for name in ("byte", "bytes", "位元組")
}
_TIMES = {"s": 1000.0, "sec": 1000.0, "秒": 1000.0, "ms": 1.0, "毫秒": 1.0, "us": 1e-3, "微秒": 1e-3}
_COUNTS = {"k": 10**3, "m": 10**6, "千": 10**3, "萬": 10**4, "億": 10**8}
_WORDS = r"(tokens?|個\s*tokens?|個序列|個|sequences?|seqs?|users?|cards?|gpus?|張卡|張|times|倍|x)"
_NUMBER = r"[+-]?(?:\d+(?:,\d{3})+|\d+)?(?:\.\d+)?(?:(?<=\d)e[+-]?\d{1,2})?"
_FORM = re.compile(rf"(?P<number>{_NUMBER})(?:[x*·]?(?P<base>10|2)(?:\^|\*\*)(?P<power>\d{{1,2}}))?(?P<unit>[^\d.,]*)")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


@dataclass(frozen=True)
class Quantity:
    """value: in bytes, milliseconds, or as it is. unit: the unit that was typed, "" for none."""

    value: float
    unit: str


def read_quantity(text: str, kind: str) -> Quantity:
    """What was typed, as a quantity of `kind`: BYTES, MILLISECONDS or COUNT.

    Full-width digits and units are read as half-width ones. Raises SpecError for what is no such quantity, and for a
    number of bytes too small to be meant without a unit.
    """
    plain = re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda power: "^" + power[0].translate(_SUPERSCRIPTS), text)
    plain = unicodedata.normalize("NFKC", plain).replace("×", "x").replace("μ", "u").strip().lower()
    plain = re.sub(r"^(about|approx\.?|~|≈|=|約)\s*", "", plain)
    found = _FORM.fullmatch(re.sub(r"[\s_]+", "", plain))
    if not found or not (found["number"] or found["base"]) or found["number"] in ("+", "-"):
        raise SpecError(T(f"讀不懂 {text!r}；請輸入像 {_example(kind)} 這樣的數字",
                          f"cannot read {text!r}; type a number such as {_example(kind)}"))  # fmt: skip
    number = float(found["number"].replace(",", "") or 1) * (int(found["base"]) ** int(found["power"]) if found["base"] else 1)
    unit = found["unit"]
    if kind == BYTES:
        return _size(number, unit, text)
    if kind == MILLISECONDS:
        if unit and unit not in _TIMES:
            raise _wrong_unit(text, T("ms、s", "ms, s"))
        return Quantity(number * _TIMES.get(unit, 1.0), unit)
    scale = re.sub(_WORDS + r"?$", "", unit)
    if scale and scale not in _COUNTS:
        raise _wrong_unit(text, T("k、M、萬，或不寫單位", "k, M or no unit"))
    return Quantity(number * _COUNTS.get(scale, 1), "")


def _size(number: float, unit: str, text: str) -> Quantity:
    if unit not in _SIZES and unit:
        raise _wrong_unit(text, T("、", ", ").join(UNITS))
    if not unit and number < 1000:
        raise SpecError(T(f"{number:g} 位元組？請加上單位，例如 {number:g} GiB",
                          f"{number:g} byte{'s' * (number != 1)}? Add the unit, as in {number:g} GiB"))  # fmt: skip
    name, size = _SIZES.get(unit, ("", 1))
    return Quantity(number * size, name)


def _wrong_unit(text: str, units: str) -> SpecError:
    return SpecError(T(f"{text!r} 的單位不合這一題；可用：{units}", f"the unit of {text!r} does not fit here; use {units}"))


def _example(kind: str) -> str:
    return {BYTES: "1.25 GiB", MILLISECONDS: "20.8 ms", COUNT: "10.4"}[kind]
