"""Take Markdown apart into what lints look at: code, math, links, headings, and the words left.

Invariant: each character of the input counts once. What was code is not searched for math, what
was math is not searched for links; where something was taken out, ``HOLE`` stands in the text.
"""

import re
from dataclasses import dataclass

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
_ITEM = re.compile(r"^[ >]*(?:[-*+]|\d+[.)])\s", re.MULTILINE)
_ROW = re.compile(r"^\s*\|", re.MULTILINE)
_NO_PARAGRAPH = re.compile(rf"{_ITEM.pattern}|{_ROW.pattern}|\s*(?:#|</?[A-Za-z])")
_TEXT = re.compile(r"\\(text|textrm|textbf|mathrm)\s*\{[^{}]*\}")


@dataclass(frozen=True)
class Prose:
    """The parts of one Markdown cell."""

    fences: tuple[str, ...]
    code: tuple[str, ...]  # inline spans
    math: tuple[str, ...]  # as written
    links: tuple[str, ...]  # targets, images' too
    headings: tuple[tuple[int, str], ...]  # (level, text)
    details: int  # how many <details>
    paragraphs: int  # formulas that stand alone and code blocks among them
    items: int  # of lists
    rows: int  # of tables
    text: str  # the words, links' texts among them
    unlinked: str  # the words, links' texts not among them


def parse(markdown: str) -> Prose:
    """Take one Markdown cell apart."""
    fences, text = _take(_FENCE, markdown, 0)
    headings = tuple((len(m[1]), m[2]) for m in _HEADING.finditer(text))
    blocks = re.split(r"\n(?:\s*\n)+", text.strip())
    items, rows = len(_ITEM.findall(text)), len(_ROW.findall(text))
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
        paragraphs=sum(not _NO_PARAGRAPH.match(block) for block in blocks),
        items=items,
        rows=rows,
        text=text,
        unlinked=unlinked,
    )


def _take(pattern: re.Pattern[str], text: str, group: int) -> tuple[list[str], str]:
    return [m[group] for m in pattern.finditer(text)], pattern.sub(HOLE, text)


def pictures(markdown: str) -> list[tuple[str, str]]:
    """(text alternative, target) of every picture."""
    return _IMAGE.findall(markdown)


def normal_math(formula: str) -> str:
    r"""A formula as both languages must have it: no spaces, nothing inside ``\text{…}``."""
    return re.sub(r"\s+|\\[,;:! ]", "", _TEXT.sub(r"\\\1{}", formula))
