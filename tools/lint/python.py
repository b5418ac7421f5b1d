"""Read Python source without running it: its strings, its translations, its prints."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise

from kvlib.units import UNITS
from tools.lint.quantities import Quantity

_MAGIC = re.compile(r"^(\s*)[%!].*$", re.MULTILINE)
_HAN = re.compile(r"[\u3400-\u9fff]")


def syntax_error(code: str) -> str | None:
    """What keeps a cell from being Python, or None."""
    try:
        _parse(code)
    except SyntaxError as error:
        return error.msg
    return None


def _parse(code: str) -> ast.Module:
    return ast.parse(_without_magics(code))


def _without_magics(code: str) -> str:
    return _MAGIC.sub(r"\1pass", code)


def _nodes(code: str) -> Iterator[ast.AST]:
    """Every node of a cell or module; none if it is not Python, which another lint reports."""
    return iter(()) if syntax_error(code) else ast.walk(_parse(code))


def _tokens(code: str) -> list[tokenize.TokenInfo]:
    """Every token; none if the code is not Python, which another lint reports."""
    if syntax_error(code):
        return []
    return list(tokenize.generate_tokens(io.StringIO(_without_magics(code)).readline))


def translations(code: str) -> Iterator[tuple[str, str]]:
    """The (Chinese, English) of every call of ``T``, literal parts of f-strings only."""
    for node in _calls_of_t(code):
        chinese, english = ("{}".join(_literals(argument)) for argument in node.args)
        yield chinese, english


def twin_texts(code: str) -> Iterator[tuple[int, str, str]]:
    """(line, Chinese, English) of whatever is written in both: T(…), zh=… with en=…, {"zh-TW": …, "en": …}."""
    for node in _nodes(code):
        pair: dict[object, ast.expr] = {}
        if isinstance(node, ast.Call):
            pair = {keyword.arg: keyword.value for keyword in node.keywords}
            if getattr(node.func, "id", None) == "T" and len(node.args) == 2:
                pair = dict(zip(("zh", "en"), node.args, strict=True))
        elif isinstance(node, ast.Dict):
            keys = (key.value if isinstance(key, ast.Constant) else None for key in node.keys)
            pair = {"zh" if key == "zh-TW" else key: value for key, value in zip(keys, node.values, strict=True)}
        if {"zh", "en"} <= pair.keys():
            chinese, english = ("{}".join(_literals(pair[lang])) for lang in ("zh", "en"))
            yield node.lineno, chinese, english


def shown_literals(code: str, lang: str) -> list[str]:
    """What is typed to be read in one language: into ``T(…)``, and as ``alt=`` or ``caption=``."""
    position = 0 if lang == "zh-TW" else 1
    shown = [node.args[position] for node in _calls_of_t(code)]
    keywords = (node for node in _nodes(code) if isinstance(node, ast.keyword) and node.arg in ("alt", "caption"))
    shown += [keyword.value for keyword in keywords if isinstance(keyword.value, ast.Constant | ast.JoinedStr)]
    return [text for node in shown for text in _literals(node)]


def strings(code: str) -> list[str]:
    """The literal parts of every string, format specifications not among them."""
    nodes = list(_nodes(code))
    specs = [node.format_spec for node in nodes if isinstance(node, ast.FormattedValue) and node.format_spec]
    hidden = {id(part) for spec in specs for part in ast.walk(spec)}
    return [node.value for node in nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in hidden]  # fmt: skip


def constants(code: str) -> Iterator[Quantity]:
    """Every number in the code: of ``80 * GB`` it is 80 GB, of ``80`` it has no unit."""
    nodes, units = list(_nodes(code)), {}
    for node in nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(one, ast.Name) and one.id in UNITS:
                    units[id(other)] = one.id
    for node in nodes:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield Quantity(str(node.value), Decimal(str(node.value)), Decimal(1), units.get(id(node), ""))


def comments_and_strings(code: str) -> Iterator[tuple[int, str]]:
    """(line, text) of every comment and every string."""
    for node in _nodes(code):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
    for token in _tokens(code):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def trailing_semicolons(code: str) -> list[str]:
    """The lines that end in ``;``, a comment behind it or not."""
    tokens = [token for token in _tokens(code) if token.type != tokenize.COMMENT]
    ends = (tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER)
    return [first.line.strip() for first, second in pairwise(tokens)
            if first.type == tokenize.OP and first.string == ";" and second.type in ends]  # fmt: skip


def has_han(text: str) -> bool:
    return bool(_HAN.search(text))


def prints(code: str) -> int:
    """How many calls of ``print`` are written in a cell."""
    calls = (node for node in _nodes(code) if isinstance(node, ast.Call))
    return sum(getattr(call.func, "id", None) == "print" for call in calls)


def _calls_of_t(code: str) -> Iterator[ast.Call]:
    for node in _nodes(code):
        if (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", None) == "T"
            and len(node.args) == 2
        ):
            yield node


def _literals(node: ast.expr) -> list[str]:
    """The literal parts of a string expression; of ``f"{x:.2f} GB"`` it is `` GB`` alone."""
    if isinstance(node, ast.FormattedValue):
        return []
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    return [text for child in ast.iter_child_nodes(node) for text in _literals(child)]  # type: ignore[arg-type]
