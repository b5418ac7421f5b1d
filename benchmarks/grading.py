"""How many submissions a minute are graded: `kvgrade class` beside nbgrader; the same sheet, answers, tests and machine.

    python benchmarks/grading.py [SHEET] [STUDENTS] [PAIRS]      # 02-the-formula, 40 and 3 unless given

nbgrader lives in an environment of its own (benchmarks/peers.txt); its kernel is ours, and its sheet is the one that
`kvgrade export --nbgrader` writes. There the public checks and the very hidden tests that kvgrade runs, drawn from the same seed, run in
the learner's kernel. The two commands are timed whole, from nothing graded to everything written, and take turns.
"""

import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import record
from rich.console import Console
from rich.table import Table

from kvgrade.answers import mutants, solutions
from kvgrade.exercises import HOME, exercises
from kvgrade.isolation.sandbox import best_level
from kvgrade.nbgrader import export

PEERS = Path(sys.executable).parent.parent / "peers" / Path(sys.executable).parent.name
JOBS, SEED = 2, "benchmark"


def answers(slug: str, student: int) -> dict[str, str]:
    """What a student hands in, by exercise. Of four students one has two answers wrong and one leaves the last untouched; no two
    hand in the same text."""
    texts = dict(solutions(slug))
    for id in list(texts)[:2] if student % 4 == 1 else ():
        wrong = mutants(id)
        texts[id] = wrong[student // 4 % len(wrong)].of(texts[id])
    if student % 4 == 3:
        last = list(texts)[-1]
        texts[last] = exercises()[last].starter
    return {id: f"# kvgrade: {id}\n{text}\n# student {student}" for id, text in texts.items()}


def hand_in(blank: Path, slug: str, student: int, to: Path) -> None:
    """Fill in a sheet: a blank one of ours or of nbgrader's."""
    nb, texts = nbformat.read(blank, as_version=4), answers(slug, student)
    for cell in nb.cells:
        ours = cell.metadata.get("kvgrade", {})
        if ours.get("role") == "answer":
            cell.source = texts[ours["exercise"]]
    to.parent.mkdir(parents=True)
    nbformat.write(nb, to)


def course(folder: Path, slug: str, students: int) -> dict[str, str]:
    """A course that nbgrader can grade: the sheet handed out and collected. Returns the environment to run it in."""
    spec = folder / "jupyter" / "kernels" / "python3"
    spec.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "ours", "language": "python"}))
    (folder / "nbgrader_config.py").write_text("c = get_config()\nc.CourseDirectory.course_id = 'bench'\nc.Execute.timeout = 300\n")
    export(folder / "source", "en")
    environment = {**os.environ, "PATH": f"{PEERS}{os.pathsep}{os.environ['PATH']}", "KVGRADE_SEED": SEED,
                   "JUPYTER_PATH": str(folder / "jupyter"), "JUPYTER_CONFIG_DIR": str(folder / "config")}  # fmt: skip
    _run([PEERS / "nbgrader", "generate_assignment", slug], folder, environment)
    for student in range(students):
        name = f"{slug}.ipynb"
        hand_in(folder / "release" / slug / name, slug, student, folder / "submitted" / _name(student) / slug / name)
    return environment


def with_nbgrader(course: Path, slug: str, environment: dict[str, str]) -> tuple[float, set[str]]:
    """Grade a fresh copy of the course: seconds of `nbgrader autograde`, and the students with full marks."""
    with tempfile.TemporaryDirectory(prefix="kvgrade-bench-") as name:
        folder = Path(name) / "course"
        shutil.copytree(course, folder)
        seconds = _run([PEERS / "nbgrader", "autograde", slug], folder, environment)
        _run([PEERS / "nbgrader", "export", "--to", "grades.csv"], folder, environment)
        with (folder / "grades.csv").open(newline="") as file:
            return seconds, {row["student_id"] for row in csv.DictReader(file) if float(row["raw_score"]) == float(row["max_score"])}


def with_kvgrade(submissions: Path, level: int) -> tuple[float, set[str]]:
    """Grade the folder into a new one: seconds of `kvgrade class`, and the students with full marks."""
    with tempfile.TemporaryDirectory(prefix="kvgrade-bench-") as name:
        seed, out = Path(name) / "seed.txt", Path(name) / "out"
        seed.write_text(SEED)
        options = ["--out", out, "--seed-file", seed, "--jobs", JOBS, "--level", level, "--lang", "en"]
        seconds = _run([Path(sys.executable).with_name("kvgrade"), "class", submissions, *options], HOME, dict(os.environ))
        marks = json.loads((out / "marks.json").read_text(encoding="utf-8"))
        return seconds, {s["name"] for s in marks["students"] if s["points"] == s["max"]}


def main(slug: str, students: int, pairs: int) -> None:
    levels = [1, 2] if best_level()[0] >= 2 else [1]
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="kvgrade-bench-") as name:
        folder = Path(name)
        for student in range(students):
            to = folder / "submissions" / _name(student) / f"{slug}.ipynb"
            hand_in(HOME / "exercises" / "en" / f"{slug}.ipynb", slug, student, to)
        environment = course(folder / "course", slug, students)
        for _ in range(pairs):
            runs = {"nbgrader": with_nbgrader(folder / "course", slug, environment)}
            runs |= {f"kvgrade, level {level}": with_kvgrade(folder / "submissions", level) for level in levels}
            right = {way: sorted(who) for way, (_, who) in runs.items()}
            if len({str(who) for who in right.values()}) != 1 or not right["nbgrader"]:
                raise SystemExit(f"they disagree about who has full marks, so the times mean nothing: {right}")
            for way, (taken, _) in runs.items():
                seconds.setdefault(way, []).append(round(taken, 2))
    ways = {way: {"seconds": taken, "per_minute": round(60 * students / statistics.median(taken), 1),
                  "times_nbgrader": round(statistics.median(a / b for a, b in zip(seconds["nbgrader"], taken, strict=True)), 1)}
            for way, taken in seconds.items()}  # fmt: skip
    asked = [e.id for e in exercises().values() if e.sheet == slug]
    _write(slug, {"sheet": slug, "exercises": asked, "students": students, "pairs": pairs, "jobs": JOBS, "nbgrader": _version(), "ways": ways})


def _write(slug: str, results: dict) -> None:
    path = record.write(f"grading-{slug[:2]}", results, "kvlib", "torch", "nbformat", "ipykernel")
    table = Table("", "seconds, median", "submissions a minute", "× nbgrader", title=f"{path.parent.name}/{path.name}: {slug}")
    for way, row in results["ways"].items():
        table.add_row(way, f"{statistics.median(row['seconds'])}", f"{row['per_minute']}", f"{row['times_nbgrader']}")
    Console().print(table)


def _run(command: list, folder: Path, environment: dict[str, str]) -> float:
    """Seconds that a command takes. Raises SystemExit with what it said when it fails."""
    start = time.perf_counter()
    done = subprocess.run(list(map(str, command)), cwd=folder, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return time.perf_counter() - start


def _name(student: int) -> str:
    return f"student{student:02}"


def _version() -> str:
    code = "from importlib.metadata import version; print(version('nbgrader'))"
    return subprocess.run([PEERS / "python", "-c", code], check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    given = [*sys.argv[1:], *("02-the-formula", "40", "3")[len(sys.argv[1:]):]]
    main(given[0], int(given[1]), int(given[2]))
