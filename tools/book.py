"""Where the sources and the built notebooks are, and whether they say the same."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools import showcase, stamps
from tools.source import LANGUAGES, Source

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Book:
    """A folder of sources and the folder whose ``en`` and ``zh-TW`` hold what is built: here the chapters.

    What is built of exercise sheets is a Book of another kind: see ``tools.editions``.
    """

    root: Path = ROOT
    source: str = "notebooks/src"
    target: str = "notebooks"

    def read(self, path: Path) -> Source:
        """What the notebooks of a source say. Raises SourceError."""
        return Source.read(path)

    def companions(self, path: Path) -> dict[Path, str]:
        """Files, with their text, that a source gives besides its notebooks, and that the notebooks need to run."""
        return {}

    def inputs(self) -> list[Path]:
        """The files that the outputs of the notebooks depend on, the source and the versions apart."""
        return [*files(self.root, "kvlib/**/*"), *builder_files(stamps.BUILDER_MODULES)]

    def sources(self, slugs: Iterable[str] = ()) -> list[Path]:
        """All source files in order, or those whose name begins with one of ``slugs``."""
        wanted = tuple(slug.removesuffix(".md") for slug in slugs)
        every = sorted((self.root / self.source).glob("*.md"))
        return [path for path in every if not wanted or path.stem.startswith(wanted)]

    def name(self, slug: str, lang: str) -> str:
        """What the author reads of one notebook: 01-why [en], exercises/01-why [en]."""
        return f"{slug} [{lang}]" if self.target == Book.target else f"{self.target}/{slug} [{lang}]"

    def notebook(self, slug: str, lang: str) -> Path:
        return self._folder(lang) / f"{slug}.ipynb"

    def stamp(self, slug: str, lang: str) -> Path:
        return self.root / ".build" / self.target / lang / f"{slug}.stamp"

    def stale(self, slugs: Iterable[str] = (), langs: Iterable[str] = LANGUAGES) -> list[str]:
        """What the committed notebooks say otherwise than their sources, outputs apart."""
        slugs, langs, problems = list(slugs), list(langs), []
        for path in self.sources(slugs):
            source = self.read(path)
            problems += [
                f"{file.relative_to(self.root).as_posix()} is stale; run make build"
                for file, text in self.companions(path).items()
                if not file.is_file() or file.read_text(encoding="utf-8") != text
            ]
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
        """Built notebooks, and companions, whose source is gone."""
        slugs = {path.stem for path in self.sources()}
        built = sorted(p for lang in LANGUAGES for p in self._folder(lang).glob("*.ipynb"))
        built += [p for pattern in self.companion_patterns for p in sorted(self.root.glob(pattern))]
        return [
            f"{path.relative_to(self.root).as_posix()} has no source: delete it"
            for path in built
            if path.stem not in slugs
        ]

    @property
    def companion_patterns(self) -> tuple[str, ...]:
        """Where companions lie, each named like its source."""
        return ()

    def _folder(self, lang: str) -> Path:
        return self.root / self.target / lang


def files(root: Path, *patterns: str) -> list[Path]:
    """The files under ``root`` that match, compiled Python apart."""
    found = {path for pattern in patterns for path in root.glob(pattern)}
    return sorted(path for path in found if path.is_file() and "__pycache__" not in path.parts)


def builder_files(names: Iterable[str]) -> list[Path]:
    """Modules of the builder."""
    return [Path(__file__).parent / name for name in names]


def refuse_unknown(books: Iterable[Book], slugs: Iterable[str]) -> None:
    """Raises ValueError for a slug that no source of any of the books begins with."""
    known = sorted({path.stem for book in books for path in book.sources()})
    for slug in slugs:
        if not any(stem.startswith(slug.removesuffix(".md")) for stem in known):
            raise ValueError(f"no chapter or sheet {slug!r}; there are: {', '.join(known) or 'none'}")


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def write(nb: NotebookNode, path: Path) -> None:
    """Replace the notebook at ``path`` in one step, so that it is never half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".ipynb.part")
    part.write_bytes((nbformat.writes(nb).rstrip("\n") + "\n").encode())
    os.replace(part, path)


def write_text(path: Path, text: str) -> None:
    """Give a file this text, in one step; leave it alone if it has it."""
    if not path.is_file() or path.read_bytes() != text.encode():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.part")
        part.write_bytes(text.encode())
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
