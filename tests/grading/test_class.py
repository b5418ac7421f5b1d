"""A class of forty gets the marks it must get; a run that is killed and resumed ends in the same bytes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import class_of_forty
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(class_of_forty.__file__)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills and measures as POSIX can")


@pytest.fixture(scope="module")
def forty(tmp_path_factory):
    """The submissions, the table of marks, and the folder that an undisturbed run wrote, with its peak memory."""
    folder = tmp_path_factory.mktemp("forty")
    table = class_of_forty.make(folder / "subs")
    done = start(folder / "subs", folder / "one" / "out").communicate(timeout=300)
    return folder, table, folder / "one" / "out", int(done[0].split()[-1])


def start(submissions: Path, out: Path) -> subprocess.Popen:
    out.parent.mkdir(exist_ok=True)
    return subprocess.Popen([sys.executable, str(SCRIPT), str(submissions), str(out)], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip


def files(out: Path) -> dict[str, bytes]:
    return {p.relative_to(out).as_posix(): p.read_bytes() for p in out.rglob("*") if p.is_file()}


def test_forty_submissions_get_the_marks_of_the_table(forty):
    _, table, out, _ = forty
    assert len(table) == 40
    marks = json.loads((out / "marks.json").read_text(encoding="utf-8"))
    got = {s["key"]: tuple(s["exercises"][id]["points"] for id in (class_of_forty.FIRST, class_of_forty.SECOND))
           for s in marks["students"]}  # fmt: skip
    full = {e["id"]: e["points"] for e in marks["exercises"]}
    assert set(got) == set(table)
    for name, expected in table.items():
        for points, want, id in zip(got[name], expected, (class_of_forty.FIRST, class_of_forty.SECOND), strict=True):
            assert points < full[id] if want is None else points == want, (name, id, points, want)


def test_every_learner_has_a_page_a_result_and_gradescope_s_file(forty):
    _, table, out, _ = forty
    for pattern in ("pages/*.html", "results/*.json", "gradescope/*/results.json"):
        assert len(list(out.glob(pattern))) == len(table)


def test_oddities_are_said_to_those_they_concern(forty):
    _, _, out, _ = forty
    notes = {s["key"]: s["notes"] for s in json.loads((out / "marks.json").read_text(encoding="utf-8"))["students"]}
    assert "file-older" in notes["twice"]
    assert "answer-missing" in notes["deleted"]
    assert "file-nul" in notes["nul"]
    assert notes["odd-cells"].count("cell-malformed") == 3
    assert notes["magics"] == ["magic-dropped", "magic-dropped"]
    assert notes["alice"] == []


def test_the_grader_stays_below_two_gigabytes(forty):
    peak = forty[3] * (1 if sys.platform == "darwin" else 1024)
    assert peak < 2_000_000_000


def test_a_killed_run_resumes_to_the_same_bytes_and_a_third_does_nothing(forty):
    folder, table, undisturbed, _ = forty
    out = folder / "two" / "out"
    process = start(folder / "subs", out)
    deadline = time.monotonic() + 120
    while len(list(out.glob("results/*.json"))) < 15 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    half = {p.name: p.stat().st_mtime_ns for p in out.glob("results/*.json")}
    assert 15 <= len(half) < len(table)
    report = class_of_forty.grade(folder / "subs", out)
    assert report.graded == len(table) - len(half)
    assert all((out / "results" / name).stat().st_mtime_ns == when for name, when in half.items())
    assert {k: v for k, v in files(out).items() if not k.endswith(".part")} == files(undisturbed)
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file()}
    started = time.monotonic()
    assert class_of_forty.grade(folder / "subs", out).graded == 0
    assert time.monotonic() - started < 10
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file()} == before


def test_all_that_grading_imports_decides_whether_a_result_still_holds():
    from kvgrade.classroom.results import APART, graders

    code = ("import sys, kvgrade.marking, kvgrade.isolation.remote, kvgrade.classroom.grade, kvgrade.classroom.pools; "
            "print(*(m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'kvgrade'), sep='\\n')")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    imported = {Path(line).resolve() for line in done.stdout.splitlines()}
    assert len(imported) > 20
    assert not imported - set(graders())
    assert set((ROOT / "kvgrade" / "worker").glob("*.py")) <= set(graders())
    assert not {path.stem for path in graders()} & APART


def test_a_module_that_moves_into_a_new_folder_still_counts(tmp_path, monkeypatch):
    from kvgrade.classroom import results

    for name in ("classroom/results.py", "core/deep/marking.py", "command/report.py", "drill/prompt.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr(results, "_HERE", tmp_path / "classroom")
    assert [p.relative_to(tmp_path).as_posix() for p in results.graders()] == ["classroom/results.py", "core/deep/marking.py"]
