"""Read Python source without running it: its strings, its translations, its prints."""

import ast
import re
from collections.abc import Iterator

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
    return ast.parse(_MAGIC.sub(r"\1pass", code))  # notebook magics count as ``pass``


def _nodes(code: str) -> Iterator[ast.AST]:
    """Every node of a cell or module; none if it is not Python, which another lint reports."""
    return iter(()) if syntax_error(code) else ast.walk(_parse(code))


def translations(code: str) -> Iterator[tuple[str, str]]:
    """The (Chinese, English) of every call of ``T``, literal parts of f-strings only."""
    for node in _calls_of_t(code):
        chinese, english = ("{}".join(_literals(argument)) for argument in node.args)
        yield chinese, english


def translated_literals(code: str, lang: str) -> list[str]:
    """What is typed into the calls of ``T``, in one language: literal parts, one by one."""
    position = 0 if lang == "zh-TW" else 1
    return [text for node in _calls_of_t(code) for text in _literals(node.args[position])]


def strings_with_han(code: str) -> Iterator[tuple[int, str]]:
    """(line, text) of every string that holds Chinese characters."""
    for node in _nodes(code):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and _HAN.search(node.value)
        ):
            yield node.lineno, node.value


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
