"""zh-TW as it is written in Taiwan: its words, its punctuation, its spaces."""

import re

from tools.lint.markdown import HOLE, parse
from tools.lint.problem import Problem
from tools.lint.python import comments_and_strings, has_han, twin_texts
from tools.lint.quantities import quantities
from tools.lint.zh_words import banned_words, simplified
from tools.source import Source

HAN = r"[\u3400-\u4dbf\u4e00-\u9fff]"
_FULL_WIDTH = dict(zip(",.:;?!()", "，。：；？！（）", strict=True))
# A space does not excuse a mark, but in "1. 中文" (a list) and "O(N) 是" it is right.
_HALF_WIDTH = re.compile(rf"(?<={HAN})[,.:;?!()]|(?<={HAN} )\(|[.)](?={HAN})|[,:;?!(](?= ?{HAN})")
_UNSPACED = re.compile(rf"{HAN}[A-Za-z0-9]|[A-Za-z0-9]{HAN}")
_SHAPE = re.compile(r"\([A-Za-z_0-9, ]+\)")  # (B, vocab), where a plain text has no code spans
_SIMPLIFIED_ON_PURPOSE = "# zh-CN"  # a line with what other programs write: "成绩",  # zh-CN
_EMPHASIS = re.compile(r"\*{1,3}")


def lint_chinese(source: Source, name: str) -> list[Problem]:
    """Words, punctuation and spacing of the Chinese prose; words of the code and of English prose."""
    problems = []
    for cell in source.cells:
        if cell.lang == "zh-TW":
            problems += lint_chinese_text(cell.text, f"{name}:{cell.line} (zh-TW)")
        elif cell.kind == "code":
            problems += lint_python_words(cell.text, name, cell.line)
        else:
            problems += [Problem(f"{name}:{cell.line} ({cell.lang})", message) for message in _words(cell.text)]
    return problems


def lint_chinese_text(markdown: str, where: str) -> list[Problem]:
    """Words, punctuation and spacing of Chinese Markdown; of its code and formulas the words alone."""
    text = _EMPHASIS.sub("", parse(markdown).text)
    return [Problem(where, message) for message in [*_words(_EMPHASIS.sub("", markdown)), *_typography(text)]]


def lint_python_words(code: str, name: str, first_line: int = 1) -> list[Problem]:
    """Words of the Chinese strings and comments of a module or a code cell."""
    lines = code.splitlines()
    return [
        Problem(f"{name}:{first_line + line - 1} (zh-TW)", message)
        for line, text in comments_and_strings(code)
        if _SIMPLIFIED_ON_PURPOSE not in lines[line - 1]
        for message in _words(text)
    ]


def lint_python_twins(code: str, name: str) -> list[Problem]:
    """What a module says in both languages: Taiwan's words and punctuation, no Chinese in English, the same numbers."""
    problems = lint_python_words(code, name)
    for line, chinese, english in twin_texts(code):
        where = f"{name}:{line}"
        problems += [Problem(f"{where} (zh-TW)", message) for message in _typography(_SHAPE.sub(HOLE, chinese))]
        if has_han(english):
            problems.append(Problem(f"{where} (en)", f"Chinese in the English text {english!r}"))
        if len({tuple(sorted(q.value for q in quantities(text) if q.value > 1)) for text in (chinese, english)}) > 1:
            problems.append(Problem(where, f"numbers differ in {chinese!r} and {english!r}"))
    return problems


def _words(text: str) -> list[str]:
    return [
        *(f"{word} is not used in Taiwan; write {instead}" for word, instead in banned_words(text)),
        *(f"{char} is a simplified character; write its traditional form" for char in simplified(text)),
    ]


def _typography(text: str) -> list[str]:
    messages = []
    for mark in _HALF_WIDTH.finditer(text):
        around = _around(text, mark)
        messages.append(
            f"half-width {mark[0]} beside Chinese in 「{around}」; write {_FULL_WIDTH[mark[0]]}"
        )
    for gap in _UNSPACED.finditer(text):
        messages.append(
            f"no space between Chinese and Latin in 「{_around(text, gap)}」; "
            f"write {gap[0][0]} {gap[0][1]}"
        )
    return messages


def _around(text: str, match: re.Match[str]) -> str:
    return text[max(0, match.start() - 8) : match.end() + 8].replace("\n", " ").strip()
