"""What a text claims in numbers, and what in it only looks like a number."""

import re
from collections.abc import Iterator

from tools.lint.markdown import HOLE, parse
from tools.lint.quantities import Quantity, quantities

_SERIES = r"\d+(?:(?:, and |, | and | to |–|-)\d+)*"
_PARTS = "chapter|section|figure|table|equation|exercise|question|page"
_PRODUCTS = "RTX|GTX|Python|PyTorch|CUDA|Llama|Gemma|Qwen|GPT|DeepSeek|transformers|vLLM|version"
_NAMES = re.compile(
    "|".join((
        r"\b\d{4}\.\d{5}\b",  # arXiv
        r"(?<![\w.])[A-Za-z](?=[A-Za-z0-9_.-]*\d)[A-Za-z0-9_]*(?:[.-][A-Za-z0-9_]+)*",  # H100-80GB, Llama-2-70B, fp8
        rf"\b(?:{_PRODUCTS})\s\d[\d.]*",
        r"(?<![\d.,])\d+(?:\.\d+)?(?:[BKM]|-bit)(?![A-Za-z0-9])",  # 70B, 128K, 16-bit
        r"^#+\s+\d[\d.]*\s|^[ >]*\d+[.)]\s",  # 2.1 Title, 1. item
        rf"\b(?i:{_PARTS})s\s{_SERIES}|\b(?i:{_PARTS})\s\d+",
        r"第\s?\d+(?:\s?[、，和與到至–-]\s?\d+)*\s?[章節頁題]|[圖表]\s?\d+(?!\.?\d)",
        r"(?<![\d.,])(?:199\d|20[0-3]\d)(?![\d.,]\d|\d| ?[KMGT]i?B)",  # a year
        r"(?<![\d.·×] )(?<![\d.·×])\b10(?:[³⁶⁹]|¹²|\^(?:3|6|9|12)\b)",  # GB = 10⁹, but not 80·10⁹
        r"\b2(?:[¹²³⁴]⁰|\^[1234]0\b)",  # GiB = 2³⁰
        r"\b\d+ (?:min|minutes|分鐘?)(?![A-Za-z])",  # of reading
    )),
    re.MULTILINE,
)  # fmt: skip
_LATEX = ((r"(?<=\d)(?:\{,\}|\\[,;]|,\\!)(?=\d{3})", ""), (r"\\(?:text|mathrm)\{([^{}]*)\}", r" \1"))
_LATEX += ((r"\\cdot\b", "·"), (r"\\times\b", "×"), (r"\^\{(-?\d+)\}", r"^\1"), (r"\\([%,; ])", r" \1"))


def without_names(text: str) -> str:
    """The text without names, references, years and other numbers that are no claims."""
    return _NAMES.sub(HOLE, text)


def claims(text: str) -> Iterator[Quantity]:
    """What needs proof: numbers with a decimal point, with a unit, and those from 10 on."""
    for quantity in quantities(without_names(text)):
        if quantity.unit or "." in quantity.written or quantity.value >= 10:
            yield quantity


def passages(markdown: str) -> list[str]:
    """The words of Markdown (links and code apart), and each of its formulas as words."""
    prose = parse(markdown)
    return [prose.unlinked, *map(_plain, prose.math)]


def _plain(formula: str) -> str:
    for pattern, instead in _LATEX:
        formula = re.sub(pattern, instead, formula)
    return formula
