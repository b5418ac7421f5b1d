"""Every number the prose states is computed in the notebook that states it.

A number with three significant digits or a decimal point, in prose, in a formula or typed into
``T(…)``, must occur in the code or in the output of some cell. Otherwise a typing error, or a
value that a later edit changed, would stay on the page. What is proved elsewhere (a citation's
value) is listed in the cell: ``+++ {"lang": "en", "numbers": ["20.4", "38.2"]}``.
"""

import html
import re
from collections.abc import Iterable
from decimal import Decimal

from nbformat import NotebookNode

from tools.lint.markdown import HOLE, numbers, parse, value
from tools.lint.outputs import texts
from tools.lint.problem import Problem
from tools.lint.python import translated_literals

# H100, Llama-2-70B, v0.3
_NAME = re.compile(r"(?<![A-Za-z0-9_.])[A-Za-z][A-Za-z0-9_]*(?:[.-][A-Za-z0-9_]+)*")
_ARXIV = re.compile(r"\b\d{4}\.\d{5}\b")
_HEADING_NUMBER = re.compile(r"^(#+\s+)[\d.]+\s", re.MULTILINE)
_LATEX_COMMA = re.compile(r"(?<=\d)(?:\{,\}|\\[,;]|,\\!)(?=\d{3})")
_PERCENT = re.compile(r"([\d.,]+)\s*\\?[%％]")


def lint_numbers(nb: NotebookNode, name: str) -> list[Problem]:
    """Numbers that the prose of a built notebook states and no cell computes."""
    lang = next((cell.metadata.lang for cell in nb.cells if "lang" in cell.metadata), "en")
    proved = {found for cell in nb.cells if cell.cell_type == "code" for found in _proved(cell)}
    problems = []
    for index, cell in enumerate(nb.cells, start=1):
        allowed = {
            value(n) for listed in cell.metadata.get("numbers", []) for n in numbers(str(listed))
        }
        for number, readings in _stated(cell, lang):
            if not readings & (proved | allowed):
                message = (
                    f"{number} is not in the code or output of any cell; compute it, correct it, "
                    'or list it in the cell: {"numbers": ["…"]}'
                )
                problems.append(Problem(f"{name} cell {index}", message))
    return problems


def _stated(cell: NotebookNode, lang: str) -> Iterable[tuple[str, set[Decimal]]]:
    """(number, its possible values) for each number of a cell that needs proof."""
    if cell.cell_type == "code":
        passages = [_NAME.sub(HOLE, literal) for literal in translated_literals(cell.source, lang)]
    else:
        prose = parse(cell.source)
        words = _ARXIV.sub(HOLE, _HEADING_NUMBER.sub(r"\1", prose.unlinked))
        passages = [
            _NAME.sub(HOLE, words),
            *(_LATEX_COMMA.sub("", formula) for formula in prose.math),
        ]
    for passage in passages:
        percents = {n for match in _PERCENT.finditer(passage) for n in numbers(match[1])}
        for number in numbers(passage):
            if _needs_proof(number):
                exact = value(number)
                yield number, {exact, exact / 100} if number in percents else {exact}


def _needs_proof(number: str) -> bool:
    if re.fullmatch(r"199\d|20[0-3]\d", number):
        return False  # a year
    mantissa = re.split("[eE]", number)[0]
    return "." in mantissa or len(mantissa.strip("0")) >= 3


def _proved(cell: NotebookNode) -> Iterable[Decimal]:
    """Values in a cell's code and outputs, those typed into ``T(…)`` not among them."""
    typed = [
        literal
        for lang in ("en", "zh-TW")
        for literal in translated_literals(cell.source, lang)
        if any(map(_needs_proof, numbers(literal)))
    ]
    for text in (cell.source, *texts(cell)):
        for literal in typed:
            text = text.replace(literal, HOLE).replace(html.escape(literal, quote=False), HOLE)
        for number in numbers(text):
            yield value(number)
            yield value(re.split("[eE]", number)[0])
