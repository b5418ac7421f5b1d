"""A chapter has the parts every chapter has, in plain Markdown."""

import re

from tools.lint.markdown import parse
from tools.lint.problem import Problem
from tools.source import LANGUAGES, Source

SECTIONS = {
    "en": (
        "Learning objectives",
        "Self-check",
        "Exercises",
        "Key takeaways",
        "Interview follow-ups",
        "Further reading",
    ),
    "zh-TW": ("學習目標", "自我檢查", "練習", "重點整理", "面試追問", "延伸閱讀"),
}
CHAPTERS_ONLY = ("Exercises", "Interview follow-ups", "練習", "面試追問")  # an appendix shares those of its chapter
_APPENDIX = re.compile(r"\d+[a-z]-")  # 02a-… is an appendix of chapter 02
_DIRECTIVE = re.compile(r"^\s*(:{3,}\S*|`{3,}\{\S*)|(\{[a-z][a-z:-]*\})`", re.MULTILINE)


def lint_anatomy(source: Source, name: str) -> list[Problem]:
    """One title, the common sections in order (chapters from 01 on, and their appendices), no MyST directives."""
    problems = lint_directives(source, name)
    for lang in LANGUAGES:
        problems += [Problem(f"{name} ({lang})", message) for message in _skeleton(source, lang)]
    return problems


def lint_directives(source: Source, name: str) -> list[Problem]:
    """Prose that only MyST understands."""
    problems = []
    for cell in source.cells:
        if cell.kind == "markdown" and (directive := _DIRECTIVE.search(cell.text)):
            given = (directive[1] or directive[2]).strip()
            message = (
                f"MyST directive {given}: Jupyter shows it raw; use plain Markdown or <details>"
            )
            problems.append(Problem(f"{name}:{cell.line} ({cell.lang})", message))
    return problems


def headings_of(source: Source, lang: str) -> list[tuple[int, str]]:
    """(level, text) of every heading in one language."""
    return [heading for cell in source.cells if cell.lang == lang for heading in parse(cell.text).headings]


def title_problem(headings: list[tuple[int, str]]) -> str | None:
    """What is wrong with the title, or None."""
    n_titles = sum(level == 1 for level, _ in headings)
    if n_titles != 1 or headings[0][0] != 1:
        return f"has {n_titles} titles (# …); it needs one, before every other heading"
    return None


def _skeleton(source: Source, lang: str) -> list[str]:
    headings = headings_of(source, lang)
    messages = [problem] if (problem := title_problem(headings)) else []
    if source.slug.startswith("00"):
        return messages
    needed = [title for title in SECTIONS[lang] if not (_APPENDIX.match(source.slug) and title in CHAPTERS_ONLY)]
    sections = [text for level, text in headings if level == 2]
    places = [sections.index(title) if title in sections else None for title in needed]
    for title, place in zip(needed, places, strict=True):
        if place is None:
            messages.append(f"has no section `## {title}`; add it, spelled like this")
    found = [place for place in places if place is not None]
    if found != sorted(found):
        messages.append(f"common sections are out of order; expected {', '.join(needed)}")
    return messages
