"""Build the book: python -m tools.build [SLUG…] [--lang en|zh-TW] [--check] [--force]

Each chapter source becomes one executed notebook per language, each exercise sheet two: the learner's
and the solutions; and the manifest that the grader reads. What is up to date is skipped; a notebook that fails leaves the notebook built before it in place. With --check nothing runs:
the committed notebooks are compared with the sources, outputs apart.
"""

import argparse
import sys
import textwrap
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tools import book, execute, showcase, stamps
from tools.book import Book
from tools.editions import books
from tools.source import LANGUAGES, SourceError


@dataclass
class Report:
    """What a build did, as names like ``01-why-a-cache [en]``."""

    built: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def build(
    the_book: Book,
    slugs: Iterable[str] = (),
    langs: Iterable[str] = LANGUAGES,
    force: bool = False,
    console: Console | None = None,
) -> Report:
    """Build what is out of date, going on after a failure."""
    console, report, langs = console or Console(), Report(), tuple(langs)
    for path in the_book.sources(slugs):
        try:
            source, companions = the_book.read(path), the_book.companions(path)
        except SourceError as error:
            console.print(f"[red]FAILED[/] {escape(str(error))}", soft_wrap=True)
            report.failed.append(path.stem)
            continue
        for file, text in companions.items():
            book.write_text(file, text)
        inputs = stamps.input_digest(path, the_book.inputs())
        for lang in langs:
            name = the_book.name(path.stem, lang)
            target, stamp = the_book.notebook(path.stem, lang), the_book.stamp(path.stem, lang)
            if not force and stamps.is_current(stamp, inputs, target):
                report.skipped.append(name)
                continue
            try:
                _run_and_write(source.notebook(lang), target, name, console)
            except execute.CellFailed as failure:
                _explain(console, name, failure)
                report.failed.append(name)
            else:
                showcase.write(the_book.root, path.stem, lang, book.read(target))
                stamps.write(stamp, inputs, target)
                report.built.append(name)
    return report


def _run_and_write(nb: NotebookNode, target: Path, name: str, console: Console) -> None:
    """Run a notebook, showing how far it is, and put it in its place. Raises CellFailed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    name, start = escape(name), time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn())
    live = {"transient": True, "disable": not console.is_terminal}
    with Progress(*columns, console=console, **live) as progress:
        task = progress.add_task(name, total=None)

        def show(number: int, total: int) -> None:
            description = f"{name}  cell {number}/{total}"
            progress.update(task, description=description, completed=number - 1, total=total)

        execute.run(nb, cwd=target.parent, progress=show)
    book.write(nb, target)
    console.print(f"built {name} in {time.monotonic() - start:.1f} s", highlight=False)


def _explain(console: Console, name: str, failure: execute.CellFailed) -> None:
    where = f"code cell {failure.number} of {failure.total}"
    console.print(f"[red]FAILED[/] {escape(name)}, {where}:", soft_wrap=True)
    console.print(escape(textwrap.indent(failure.source, "    | ")), soft_wrap=True)
    console.print(escape(failure.error), soft_wrap=True)


def main(argv: list[str] | None = None, root: Path = book.ROOT) -> int:
    """The command line; returns the exit code."""
    details = (__doc__ or "").partition("\n\n")[2]
    parser = argparse.ArgumentParser(prog="python -m tools.build", description=details)
    parser.add_argument("slugs", nargs="*", metavar="SLUG", help="chapters and their sheets, e.g. 01 (default: all)")
    parser.add_argument("--lang", choices=LANGUAGES, help="one language only")
    parser.add_argument("--check", action="store_true", help="compare without running anything")
    parser.add_argument("--force", action="store_true", help="build what is up to date, too")
    options = parser.parse_args(argv)
    the_books, console = books(root), Console()
    langs = (options.lang,) if options.lang else LANGUAGES
    try:
        book.refuse_unknown(the_books, options.slugs)
        if options.check:
            problems = [p for one in the_books for p in one.stale(options.slugs, langs)]
            for problem in problems:
                console.print(escape(problem), soft_wrap=True)
            console.print("stale" if problems else "every notebook says what its source says")
            return 1 if problems else 0
        reports = [build(one, options.slugs, langs, options.force, console) for one in the_books]
    except (SourceError, ValueError) as error:
        console.print(escape(str(error)), soft_wrap=True)
        return 1
    built, skipped, failed = (sum(len(getattr(r, what)) for r in reports) for what in ("built", "skipped", "failed"))
    console.print(f"{built} built, {skipped} up to date, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
