"""Pages outside the chapters, like the README: they agree with their twins and with the book."""

from pathlib import Path

from tools.book import Book, read
from tools.lint.chinese import lint_chinese_text
from tools.lint.markdown import pictures
from tools.lint.numbers import lint_alt
from tools.lint.problem import Problem
from tools.lint.twins import lint_twin_pages


def lint_page(book: Book, path: Path) -> list[Problem]:
    """Twins that differ, Chinese that is not Taiwan's, pictures whose words their chapter does not compute."""
    text, problems = path.read_text(encoding="utf-8"), []
    twin = path.with_name(f"{path.stem}.zh-TW.md")
    if path.name.endswith(".zh-TW.md"):
        problems += lint_chinese_text(text, path.name)
    elif twin.is_file():
        problems += lint_twin_pages(text, twin.read_text(encoding="utf-8"), path.name)
    for alt, target in pictures(text):
        slug, _, lang = Path(target).stem.partition(".")
        if target.startswith("assets/") and book.notebook(slug, lang).is_file():
            problems += lint_alt(alt, read(book.notebook(slug, lang)), path.name)
    return problems
