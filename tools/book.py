"""Where the sources and the built notebooks are, and whether they say the same."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools import showcase
from tools.source import LANGUAGES, Source

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Book:
    """A folder of sources and the folder whose ``en`` and ``zh-TW`` hold what is built."""

    root: Path = ROOT
    source: str = "notebooks/src"
    target: str = "notebooks"

    def sources(self, slugs: Iterable[str] = ()) -> list[Path]:
        """All source files in order, or those whose name begins with one of ``slugs``.

        Raises ValueError for a slug that matches nothing.
        """
        every = sorted((self.root / self.source).glob("*.md"))
        wanted = tuple(slug.removesuffix(".md") for slug in slugs)
        for slug in wanted:
            if not any(path.stem.startswith(slug) for path in every):
                known = ", ".join(path.stem for path in every) or "none"
                raise ValueError(f"no chapter {slug!r} in {self.source}; there are: {known}")
        return [path for path in every if not wanted or path.stem.startswith(wanted)]

    def notebook(self, slug: str, lang: str) -> Path:
        return self._folder(lang) / f"{slug}.ipynb"

    def stamp(self, slug: str, lang: str) -> Path:
        return self.root / ".build" / self.target / lang / f"{slug}.stamp"

    def stale(self, slugs: Iterable[str] = (), langs: Iterable[str] = LANGUAGES) -> list[str]:
        """What the committed notebooks say otherwise than their sources, outputs apart."""
        slugs, langs, problems = list(slugs), list(langs), []
        for path in self.sources(slugs):
            source = Source.read(path)
            for lang in langs:
                committed = self.notebook(path.stem, lang)
                name = f"{self.target}/{lang}/{path.stem}.ipynb"
                if not committed.is_file():
                    problems.append(f"{name} is missing: run python -m tools.build {path.stem}")
                elif difference := first_difference(read(committed), source.notebook(lang)):
                    problems.append(f"{name} is stale: {difference}; run make build")
                elif difference := showcase.difference(self.root, path.stem, lang, read(committed)):
                    problems.append(difference)
        return problems if slugs else problems + self.orphans()

    def orphans(self) -> list[str]:
        """Built notebooks whose source is gone."""
        slugs = {path.stem for path in self.sources()}
        built = sorted(p for lang in LANGUAGES for p in self._folder(lang).glob("*.ipynb"))
        return [
            f"{path.relative_to(self.root).as_posix()} has no source: delete it"
            for path in built
            if path.stem not in slugs
        ]

    def _folder(self, lang: str) -> Path:
        return self.root / self.target / lang


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def write(nb: NotebookNode, path: Path) -> None:
    """Replace the notebook at ``path`` in one step, so that it is never half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".ipynb.part")
    part.write_bytes((nbformat.writes(nb).rstrip("\n") + "\n").encode())
    os.replace(part, path)


def first_difference(committed: NotebookNode, expected: NotebookNode) -> str | None:
    """The first way in which two notebooks differ, outputs and execution counts apart."""
    for index, (old, new) in enumerate(zip(committed.cells, expected.cells), start=1):
        for key in ("cell_type", "source", "metadata", "id"):
            if old[key] != new[key]:
                return f"cell {index} has {key} {_short(old[key])}, its source {_short(new[key])}"
    if len(committed.cells) != len(expected.cells):
        return f"it has {len(committed.cells)} cells, its source {len(expected.cells)}"
    for key in ("metadata", "nbformat", "nbformat_minor"):
        if committed[key] != expected[key]:
            return f"it has {key} {_short(committed[key])}, its source {_short(expected[key])}"
    return None


def _short(value: object) -> str:
    text = str(value)
    return repr(text if len(text) <= 100 else text[:99] + "…")
