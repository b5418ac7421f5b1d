"""Take Markdown apart into what lints look at: code, math, links, headings, and the words left.

Invariant: each character of the input counts once. What was code is not searched for math, what
was math is not searched for links; where something was taken out, ``HOLE`` stands in the text.
"""

import re
from dataclasses import dataclass
from decimal import Decimal

HOLE = "\ufffc"

_FENCE = re.compile(r"^ *(`{3,}|~{3,})[^\n]*\n.*?^ *\1[`~]* *$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
_INLINE = re.compile(r"(?<![\\$])\$(?![\s$])((?:[^$\n]|\n(?!\s*\n))+?)(?<![\s\\])\$(?!\d)")
_IMAGE = re.compile(r"!\[([^\]]*)\]\(\s*<?([^\s>)]+)>?[^)]*\)")
_LINK = re.compile(r"\[([^\[\]]*)\]\(\s*<?([^\s>)]+)>?[^)]*\)")
_AUTOLINK = re.compile(r"(?<![\"'(=\w])<?(https?://[^\s<>()（），。]+)>?")
_HTML_LINK = re.compile(
    r"<(?:a|img)\b[^>]*?\b(?:href|src)=[\"']([^\"']+)[\"'][^>]*>", re.IGNORECASE
)
_DETAILS = re.compile(r"<details\b", re.IGNORECASE)
_HTML = re.compile(r"<!--.*?-->|</?[A-Za-z][^>]*>", re.DOTALL)
_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$", re.MULTILINE)
_TEXT = re.compile(r"\\(text|textrm|textbf|mathrm)\s*\{[^{}]*\}")
_NUMBER = re.compile(
    r"(?:\d{1,3}(?:[,_]\d{3})+(?!\d)|\d[\d_]*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII
)
_SCALES = {"萬": 10**4, "億": 10**8, "兆": 10**12}
_SCALES |= {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SCALED = re.compile(rf"({_NUMBER.pattern})\s*({'|'.join(_SCALES)})", re.ASCII)
_SUPERSCRIPTS = str.maketrans({digit: f" {value}" for value, digit in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")})


@dataclass(frozen=True)
class Prose:
    """The parts of one Markdown cell."""

    fences: tuple[str, ...]
    code: tuple[str, ...]  # inline spans
    math: tuple[str, ...]  # as written
    links: tuple[str, ...]  # targets, images' too
    headings: tuple[tuple[int, str], ...]  # (level, text)
    details: int  # how many <details>
    text: str  # the words, links' texts among them
    unlinked: str  # the words, links' texts not among them


def parse(markdown: str) -> Prose:
    """Take one Markdown cell apart."""
    fences, text = _take(_FENCE, markdown, 0)
    headings = tuple((len(m[1]), m[2]) for m in _HEADING.finditer(text))
    code, text = _take(_CODE, text, 2)
    display, text = _take(_DISPLAY, text, 1)
    inline, text = _take(_INLINE, text, 1)
    html_links, text = _take(_HTML_LINK, text, 1)
    autolinks, text = _take(_AUTOLINK, text, 1)
    details = len(_DETAILS.findall(text))
    text = _HTML.sub("", text)
    images, unlinked = _take(_IMAGE, text, 2)
    links, unlinked = _take(_LINK, unlinked, 2)
    text = _LINK.sub(r"\1", _IMAGE.sub(r"\1", text))
    return Prose(
        fences=tuple(fences),
        code=tuple(code),
        math=tuple(display + inline),
        links=tuple(html_links + autolinks + images + links),
        headings=headings,
        details=details,
        text=text,
        unlinked=unlinked,
    )


def _take(pattern: re.Pattern[str], text: str, group: int) -> tuple[list[str], str]:
    return [m[group] for m in pattern.finditer(text)], pattern.sub(HOLE, text)


def normal_math(formula: str) -> str:
    r"""A formula as both languages must have it: no spaces, nothing inside ``\text{…}``."""
    return re.sub(r"\s+|\\[,;:! ]", "", _TEXT.sub(r"\\\1{}", formula))


def numbers(text: str) -> list[str]:
    """The numbers of a text in order, as written but for separators: 1,024 and 1_024 are 1024."""
    found = _NUMBER.findall(text.translate(_SUPERSCRIPTS))
    return [re.sub(r"[,_]", "", number) for number in found]


def quantities(text: str) -> list[str]:
    """``numbers()`` with words multiplied in, so that 700 億 and 70 billion are the same."""
    return numbers(_SCALED.sub(lambda m: f"{_scaled(*m.groups()):f}", text))


def _scaled(number: str, word: str) -> Decimal:
    return (value(re.sub(r"[,_]", "", number)) * _SCALES[word]).normalize()


def value(number: str) -> Decimal:
    """The value of one of ``numbers()``, so that 1.250 is 1.25 and 3.7e-06 is 3.7e-6."""
    return Decimal(number)
