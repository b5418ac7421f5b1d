"""zh-TW as it is written in Taiwan: its words, its punctuation, its spaces."""

import re

from tools.lint.markdown import parse
from tools.lint.problem import Problem
from tools.lint.python import strings_with_han, translations
from tools.lint.zh_words import banned_words
from tools.source import Source

HAN = r"[\u3400-\u4dbf\u4e00-\u9fff]"
_FULL_WIDTH = dict(zip(",.:;?!()", "，。：；？！（）", strict=True))
# A space does not excuse a mark, but in "1. 中文" (a list) and "O(N) 是" it is right.
_HALF_WIDTH = re.compile(rf"(?<={HAN})[,.:;?!()]|(?<={HAN} )\(|[.)](?={HAN})|[,:;?!(](?= ?{HAN})")
_UNSPACED = re.compile(rf"{HAN}[A-Za-z0-9]|[A-Za-z0-9]{HAN}")
_EMPHASIS = re.compile(r"\*{1,3}")


def lint_chinese(source: Source, name: str) -> list[Problem]:
    """Words, punctuation and spacing of the Chinese prose; words of strings in code."""
    problems = []
    for cell in source.cells:
        where = f"{name}:{cell.line} (zh-TW)"
        if cell.lang == "zh-TW":
            problems += lint_chinese_text(cell.text, where)
        elif cell.kind == "code":
            for chinese, _ in translations(cell.text):
                problems += [Problem(where, message) for message in _words(chinese)]
    return problems


def lint_chinese_text(markdown: str, where: str) -> list[Problem]:
    """Words, punctuation and spacing of Chinese Markdown."""
    text = _EMPHASIS.sub("", parse(markdown).text)
    return [Problem(where, message) for message in [*_words(text), *_typography(text)]]


def lint_python_strings(code: str, name: str) -> list[Problem]:
    """Banned words in the Chinese strings of a Python module."""
    return [
        Problem(f"{name}:{line} (zh-TW)", message)
        for line, text in strings_with_han(code)
        for message in _words(text)
    ]


def _words(text: str) -> list[str]:
    return [
        f"{word} is not used in Taiwan; write {instead}" for word, instead in banned_words(text)
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
