"""A learner's progress: what was recorded is there again, and nothing that was in the file is ever lost."""

import json
import os
import sys

import pytest

from kvgrade import progress
from kvgrade.progress import CHECK, DRILL, Attempt, Round, load, record


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("KVGRADE_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def attempt(points=3, how=CHECK, **more):
    return Attempt("mean", how, points, 4, 1.0, **more)


def test_what_is_recorded_is_there_again():
    entries = [attempt(1), attempt(4, DRILL, seconds=61.5, minutes=2), Round(3, 5, 2.0, 40.0)]
    for entry in entries:
        record(entry)
    done = load()
    assert [*done.attempts, *done.rounds] == entries
    assert done.notes == []


def test_best_is_by_points_and_best_time_by_full_drills_alone():
    record(attempt(4), attempt(2, DRILL, seconds=5, minutes=2), attempt(4, DRILL, seconds=90, minutes=1), attempt(4, DRILL, seconds=70))
    done = load()
    assert done.best("mean").points == 4 and done.best_time("mean") == 70
    assert [a.overtime for a in done.attempts] == [False, False, True, False]
    assert done.best("other") is None and done.best_time("other") is None


def test_no_file_is_no_progress_and_reading_makes_none(folder):
    assert load() == progress.Progress()
    assert not folder.exists()


BROKEN = ["", "{", "[]", "null", '{"format": 1}', '{"format": "x", "attempts": [], "rounds": []}', "[" * 100_000,
          '{"format": 1, "attempts": [{"exercise": 3}], "rounds": []}', '{"format": 1, "attempts": [1], "rounds": []}',
          '{"format": 2, "attempts": [{"exercise": "a", "how": "check", "points": 1, "max": 1, "when": 1, "answer": 3}], "rounds": []}',
          '{"format": 1, "attempts": [], "rounds": [{"right": "3", "asked": 5, "when": 1, "seconds": 2}]}', "\udcff"]  # fmt: skip


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_a_file_that_cannot_be_read_is_kept_aside_and_said(folder, text):
    folder.mkdir()
    data = text.encode("utf-8", "surrogateescape")
    for n in (1, 2):
        (folder / "progress.json").write_bytes(data)
        done = record(attempt())
        assert len(done.notes) == 1
        assert len(load().attempts) == 1 and load().notes == []
        kept = sorted(folder.glob("progress.unreadable-*.json"))
        assert len(kept) == n and all(path.read_bytes() == data for path in kept)


def test_a_file_of_a_later_version_is_left_alone(folder):
    folder.mkdir()
    text = json.dumps({"format": 99, "attempts": "of another form"})
    (folder / "progress.json").write_text(text, encoding="utf-8")
    assert record(attempt()).notes
    assert (folder / "progress.json").read_text(encoding="utf-8") == text


def test_the_file_is_whole_even_when_writing_fails(folder, monkeypatch):
    record(attempt(1))
    before = (folder / "progress.json").read_bytes()

    def fail(*_):
        raise OSError(28, "no space left")

    monkeypatch.setattr(progress.os, "replace", fail)
    assert record(attempt(2)).notes
    monkeypatch.undo()
    os.environ["KVGRADE_DATA"] = str(folder)
    assert (folder / "progress.json").read_bytes() == before
    assert [path.name for path in folder.iterdir()] == ["progress.json"]


def test_a_folder_that_cannot_be_made_is_no_error(folder, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("KVGRADE_DATA", str(tmp_path / "file" / "below"))
    assert record(attempt()).notes


def test_without_a_variable_it_is_the_systems_place(monkeypatch, tmp_path):
    monkeypatch.delenv("KVGRADE_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    found = progress.data_folder()
    assert found.name == "kvgrade"
    if sys.platform == "linux":
        assert found == tmp_path / "kvgrade"


def test_an_answer_that_did_not_change_is_not_counted_again(folder):
    assert progress.digest("a") == progress.digest("a") != progress.digest("b")
    for answer in ("a", "a", "b", "a", None, None, "a"):
        record(attempt(answer=answer))
    assert load().tries("mean") == 6 and load().tries("other") == 0
    assert len(load().attempts) == 7, "all of them are kept"


def test_a_file_of_before_answers_were_noted_is_read(folder):
    folder.mkdir()
    old = {"exercise": "mean", "how": "check", "points": 3, "max": 4, "when": 1.0, "seconds": None, "minutes": None}
    (folder / "progress.json").write_text(json.dumps({"format": 1, "attempts": [old, old], "rounds": []}), encoding="utf-8")
    assert load().notes == [] and load().tries("mean") == 2
