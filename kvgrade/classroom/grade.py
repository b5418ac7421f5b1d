"""The run over a class: read, grade what is not graded yet, write everything that follows from the results.

Invariant: one learner's answer changes no other's result; a run that was killed leaves whole result files only, and the next one
ends in the same bytes as if it had never been killed.
"""

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from kvgrade import exercises as catalogue
from kvgrade.answers import mutants
from kvgrade.classroom import results
from kvgrade.classroom.collect import collect
from kvgrade.classroom.names import file_name, visible
from kvgrade.classroom.papers import Paper, read_paper
from kvgrade.classroom.results import ClassReport, Record
from kvgrade.exercises import Exercise, hidden_tests
from kvgrade.marking import grade_answer
from kvgrade.outcome import FAILED, Message, Result
from kvgrade.testing import Property, properties
from kvlib.errors import SpecError
from kvlib.i18n import T, language


def grade_class(submissions: Path, out: Path, *, jobs: int | None = None, seed_file: Path | None = None,
                lang: str | None = None, level: int | None = None, fill_canvas: Path | None = None,
                fill_moodle: Path | None = None, console: Console | None = None, sheets: tuple[str, ...] = (),
                exercises: Mapping[str, Exercise] | None = None, pool: Any = None,
                tests: Callable[[Exercise], tuple[Property, ...]] | None = None) -> ClassReport:
    """Grade a folder or zip of submissions into the folder `out`.

    `jobs`: answers run at once (default: the processors). `seed_file`: holds the secret that the questions are drawn from; made where
    absent (default: `out` with ".seed" after its name, beside it, so that whoever publishes `out` keeps the secret). `level`: 1 or 2 (default: the best that there is). `sheets`: what was set (default: every sheet
    that someone handed in). `exercises`, `pool`, `tests`: as in `kvgrade.marking`, for others than the book's. Raises SpecError,
    NoHiddenTests.
    """  # fmt: skip
    from kvgrade.classroom import write  # what is written needs Jinja2

    lang, console = lang or language(), console or Console(stderr=True)
    exercises = catalogue.exercises() if exercises is None else exercises
    if unknown := set(sheets) - {e.sheet for e in exercises.values()}:
        raise SpecError(f"no sheet {', '.join(sorted(unknown))}; there are: {', '.join(sorted({e.sheet for e in exercises.values()}))}")
    out.mkdir(parents=True, exist_ok=True)
    seed_file = seed_file or beside(out)
    seed = read_seed(seed_file)
    jobs = max(1, jobs or os.cpu_count() or 1)
    for left in out.glob(".unpacked-*"):  # by a run that was killed
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".unpacked-", dir=out) as scratch, _progress(console) as progress:
        collected = collect(submissions, Path(scratch))
        if not collected.students:
            raise SpecError(f"no .ipynb or .py file in {submissions}; give the folder or zip of submissions")
        bar = progress.add_task(T("讀取", "reading"), total=len(collected.students))
        papers = [read_paper(s, exercises) for s in progress.track(collected.students, task_id=bar)]
        seen = set(sheets) or {sheet for paper in papers for sheet in paper.files}
        chosen = [e for e in exercises.values() if e.sheet in seen]
        props = {e.id: tests(e) if tests else properties(hidden_tests(e.id)) for e in chosen}
        for e in chosen:
            mutants(e.id) if tests is None else None  # read once, before the threads do
        with _pool(pool, level, jobs) as (ready, name):
            run = _Run(chosen, tests, ready, seed, out / "results", results.environment_key(chosen, props, name, seed))
            records, graded = run.all(papers, jobs, progress)
    report = ClassReport({r.key: r for r in records}, graded, tuple(collected.problems), out, name,
                         errors=sum(_failed(x) for r in records for x in r.results), sheets=tuple(sorted(seen)), seed_file=seed_file)  # fmt: skip
    return write.everything(report, chosen, papers, lang, fill_canvas, fill_moodle)


def beside(out: Path) -> Path:
    """Where the seed of the folder `out` is kept unless told otherwise; an earlier version's, from inside it, is taken along."""
    here, inside = out.absolute().with_name(f"{out.absolute().name}.seed"), out / "seed.txt"
    if inside.is_file() and not here.exists():
        inside.replace(here)
    return here


def read_seed(path: Path) -> str:
    """The seed in a file; a new secret one where there is no file. Raises SpecError for an empty one."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(secrets.token_hex(16) + "\n", encoding="utf-8")
    seed = path.read_text(encoding="utf-8", errors="replace").strip()
    if not seed:
        raise SpecError(f"{path} holds no seed; write any line into it, or delete it to get a new one")
    return seed


class _Run:
    """Grades papers whose result file does not hold yet."""

    def __init__(self, exercises: list[Exercise], tests: Any, pool: Any, seed: str, folder: Path, environment: str) -> None:
        self.exercises, self.tests, self.pool, self.seed = exercises, tests, pool, seed
        self.folder, self.environment = folder, environment

    def all(self, papers: list[Paper], jobs: int, progress: Progress) -> tuple[list[Record], int]:
        """Every paper's record, in order, and how many were graded now."""
        bar = progress.add_task(T("批改", "grading"), total=len(papers))
        records: dict[str, Record] = {}
        waiting: dict[Future, str] = {}
        threads = ThreadPoolExecutor(jobs, thread_name_prefix="kvgrade")
        try:
            for paper in papers:
                key, path = results.key_of(paper, self.environment), self._path(paper)
                if record := results.load(path, key):
                    records[paper.student.key] = record
                    progress.advance(bar)
                else:
                    waiting[threads.submit(self._grade, paper, key, path)] = paper.student.key
            for done in as_completed(waiting):
                records[waiting[done]] = done.result()
                progress.advance(bar)
        finally:
            threads.shutdown(wait=True, cancel_futures=True)
        return [records[paper.student.key] for paper in papers], len(waiting)

    def _path(self, paper: Paper) -> Path:
        return self.folder / f"{file_name(paper.student.key)}.json"

    def _grade(self, paper: Paper, key: str, path: Path) -> Record:
        found = [self._one(paper, exercise) for exercise in self.exercises]
        s = paper.student
        record = Record(s.key, visible(s.name), s.id, visible(s.email), tuple(visible(f) for f in paper.files.values()),
                        tuple(found), tuple(paper.problems), tuple(e.id for e in self.exercises if e.optional),
                        tuple(paper.files), tuple(visible(f) for f in paper.unread), not any(map(_failed, found)))  # fmt: skip
        results.save(path, key, record)
        return record

    def _one(self, paper: Paper, exercise: Exercise) -> Result:
        try:
            return grade_answer(exercise, paper.answers.get(exercise.id), self.pool, self.seed, self.tests)
        except Exception as error:  # noqa: BLE001  a fault of ours must not cost the other learners their results
            message = Message("grader-error", {"type": type(error).__name__})
            return Result(exercise.id, FAILED, 0, exercise.points, (), message)


def _pool(pool: Any, level: int | None, jobs: int) -> AbstractContextManager:
    """A pool of answer processes and the name of the trust level; a given function as it is."""
    if pool is not None:
        return nullcontext((pool, f"{pool.level} {pool.kind}" if hasattr(pool, "level") else "own"))
    from kvgrade.classroom.pools import opened

    return opened(level, jobs)


def _progress(console: Console) -> Progress:
    return Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console,
                    transient=True, disable=not console.is_terminal)  # fmt: skip


def _failed(result: Result) -> bool:
    """Whether the grader itself failed at this one."""
    return result.message is not None and result.message.id == "grader-error"
