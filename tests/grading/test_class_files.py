"""Whose file is whose in every layout; archives do no harm; names do no harm to pages and spreadsheets."""

import csv
import io
import json
import os
import re
import stat
import sys
import time
import zipfile
from pathlib import Path

import pytest
import toy_sheet as toy
from toy_sheet import EXERCISES, answer, notebook, write

from kvgrade.classroom import archive, grade_class, lms, similarity
from kvgrade.classroom.collect import Collected, collect
from kvgrade.classroom.names import file_name, spreadsheet, visible
from kvgrade.classroom.papers import read_paper
from kvgrade.classroom.sheetfile import SheetFile
from kvgrade.session import local
from kvlib import i18n
from kvlib.errors import SpecError

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such files")
BODY = notebook(*toy.solved()).encode()


@pytest.fixture
def collected(tmp_path: Path):
    """What is found in a zip of these (name, bytes) members, or in a folder."""

    def collecting(members: list[tuple[str | zipfile.ZipInfo, bytes]] | Path) -> Collected:
        scratch = tmp_path / f"scratch{len(list(tmp_path.iterdir()))}"
        scratch.mkdir()
        source = members if isinstance(members, Path) else make_zip(tmp_path / "all.zip", members)
        return collect(source, scratch)

    return collecting


def make_zip(path: Path, members: list[tuple[str | zipfile.ZipInfo, bytes]]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in members:
            out.writestr(name, data)
    return path


def who(found: Collected) -> dict[str, tuple[str, int]]:
    return {s.key: (s.name, len(s.files)) for s in found.students}


# layouts


def test_flat_files_are_named_after_their_writers(collected):
    found = collected([("alice.ipynb", BODY), ("王小明.ipynb", BODY), ("readme.txt", b"x")])
    assert who(found) == {"alice": ("alice", 1), "王小明": ("王小明", 1)}


def test_a_folder_per_learner_with_or_without_a_wrapper(collected, tmp_path):
    members = [("alice/01.ipynb", BODY), ("alice/sub/02.ipynb", BODY), ("bob/01.ipynb", BODY)]
    expected = {"alice": ("alice", 2), "bob": ("bob", 1)}
    assert who(collected(members)) == expected
    assert who(collected([(f"hw1/{name}", data) for name, data in members])) == expected
    for name, data in members:
        (tmp_path / "plain" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "plain" / name).write_bytes(data)
    assert who(collected(tmp_path / "plain")) == expected


def test_a_zipped_folder_of_flat_files_is_a_class_and_one_of_sheets_is_a_learner(collected):
    assert set(who(collected([("hw1/alice.ipynb", BODY), ("hw1/bob.ipynb", BODY)]))) == {"alice", "bob"}
    sheets = [("alice/01-why-a-cache.ipynb", BODY), ("alice/02-the-formula.ipynb", BODY)]
    assert who(collected(sheets)) == {"alice": ("alice", 2)}


def test_a_sheet_s_name_in_a_flat_file_s_is_not_its_writer_s(collected):
    assert set(who(collected([("alice_01-why-a-cache.ipynb", BODY), ("01-why-a-cache (王小明).ipynb", BODY)]))) == {"alice", "(王小明)"}


@pytest.mark.skipif(sys.platform != "linux", reason="names that are no text need Linux")
def test_a_name_that_is_no_text_is_graded_all_the_same(graded, tmp_path):
    folder = os.fsencode(tmp_path / "subs") + b"/\xff\xfe"
    os.makedirs(folder)
    write(Path(os.fsdecode(folder)) / "hw.ipynb", *toy.solved())
    assert [r.points for r in graded(tmp_path / "subs").records.values()] == [15]
    assert graded(tmp_path / "subs").graded == 0


def test_canvas_names_give_name_and_id_and_the_last_attempt_counts(collected):
    found = collected([("wangxiaoming_123_9001_01-toy.ipynb", BODY), ("wangxiaoming_LATE_123_9002_01-toy-1.ipynb", BODY),
                       ("doejane_456_9003_hw.ipynb", BODY)])  # fmt: skip
    assert who(found) == {"canvas-123": ("wangxiaoming", 2), "canvas-456": ("doejane", 1)}
    assert found.students[0].files[0].name.endswith("-1.ipynb")


def test_moodle_folders_and_flat_names_give_name_and_id(collected):
    found = collected([("王小明_4711_assignsubmission_file_/hw.ipynb", BODY), ("Jane Doe_12_assignsubmission_file_hw.ipynb", BODY)])
    assert who(found) == {"moodle-4711": ("王小明", 1), "moodle-12": ("Jane Doe", 1)}


def test_gradescope_exports_say_who_submitted_what(collected):
    about = "submission_77:\n  :submitters:\n  - :name: 王小明\n    :sid: '4711'\n    :email: wang@example.org\n"
    found = collected([("assignment_5_export/submission_metadata.yml", about.encode()),
                       ("assignment_5_export/submission_77/hw.ipynb", BODY),
                       ("assignment_5_export/submission_78/hw.ipynb", BODY)])  # fmt: skip
    assert who(found) == {"gradescope-4711": ("王小明", 1), "submission_78": ("submission_78", 1)}
    assert found.students[0].email == "wang@example.org"


def test_a_zip_that_a_learner_handed_in_is_opened(collected, tmp_path):
    inner = make_zip(tmp_path / "inner.zip", [("deep/hw.ipynb", BODY)]).read_bytes()
    assert who(collected([("alice/work.zip", inner), ("bob.zip", inner)])) == {"alice": ("alice", 1), "bob": ("bob", 1)}


def test_a_zip_in_a_zip_in_a_zip_is_not_opened(collected, tmp_path):
    inner = make_zip(tmp_path / "inner.zip", [("hw.ipynb", BODY)]).read_bytes()
    middle = make_zip(tmp_path / "middle.zip", [("inner.zip", inner)]).read_bytes()
    assert who(collected([("alice/x.zip", middle), ("bob.ipynb", BODY)])) == {"bob": ("bob", 1)}


# a learner who would be another


def test_what_lies_in_a_learner_s_zip_names_nobody(collected, tmp_path):
    for inside in ("alicea_11_101_hw.py", "Alice A_11_assignsubmission_file_/hw.py", "submission_11/hw.py", "x/alice/hw.py"):
        inner = make_zip(tmp_path / "inner.zip", [(inside, BODY), ("submission_metadata.yml", b"x: 1"), ("bob/hw.py", BODY)]).read_bytes()
        assert who(collected([("mallorym_22_203_hw.zip", inner)])) == {"canvas-22": ("mallorym", 2)}
        assert who(collected([("submissions/mallorym_22_203_hw.zip", inner)])) == {"canvas-22": ("mallorym", 2)}
        assert who(collected([("mallory.zip", inner)])) == {"mallory": ("mallory", 2)}
        folder = tmp_path / f"folder{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        (folder / "mallorym_22_203_hw.zip").write_bytes(inner)
        assert who(collected(folder)) == {"canvas-22": ("mallorym", 2)}


@pytest.mark.parametrize("first", ["mallorym_22_203_hw", "Mallory M_22_assignsubmission_file_", "submission_22"])
def test_a_learner_s_folder_is_no_wrapper(collected, first):
    for below in ("alicea_11_101_hw.py", "alice/hw.py", "submission_11/hw.py", "Alice A_11_assignsubmission_file_/hw.py"):
        found = who(collected([(f"{first}/{below}", BODY), (f"{first}/bob/hw.py", BODY)]))
        assert {key.rpartition("-")[2].rpartition("_")[2]: files for key, (_, files) in found.items()} == {"22": 2}


def test_in_a_folder_the_folders_are_learners_and_in_a_zip_a_wrapper_is_said(collected, tmp_path):
    members = [("mallory/alice/hw.py", BODY), ("mallory/bob/hw.py", BODY)]
    for name, data in members:
        (tmp_path / "subs" / name).parent.mkdir(parents=True)
        (tmp_path / "subs" / name).write_bytes(data)
    found = collected(tmp_path / "subs")
    assert (who(found), [m.id for m in found.problems]) == ({"mallory": ("mallory", 2)}, ["archive-one-learner"])
    found = collected(members)
    assert (set(who(found)), [m.id for m in found.problems]) == ({"alice", "bob"}, ["archive-wrapper"])


def test_a_canvas_zip_of_several_files_keeps_its_writer(collected, tmp_path):
    inner = make_zip(tmp_path / "inner.zip", [("hw/a.ipynb", BODY), ("hw/b.ipynb", BODY)]).read_bytes()
    members = [("mallorym_22_202_hw.zip", inner), ("alicea_LATE_11_201_hw.ipynb", BODY), ("bobb_33_204_work-1.zip", inner)]
    assert who(collected(members)) == {"canvas-22": ("mallorym", 2), "canvas-11": ("alicea", 1), "canvas-33": ("bobb", 2)}


BOMB = ("x:\n  a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(f"  a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
        + "  :submitters:\n  - :name: *a8\n")  # fmt: skip
FALSE = "submission_{}:\n  :submitters:\n  - :name: Alice\n    :sid: '11'\n"
LISTS = {"bomb": BOMB, "flat": "x: [" + "x," * 900_000 + "]", "deep": "[" * 100_000, "long": "#" * 9_000_000, "number": "submission_22:\n  :submitters:\n"
         "  - {{:name: 0x{}}}".format("f" * 9_000), "text": "x", "tag": "!!python/object/apply:os.system [x]", "odd": "submission_22: 3",
         "lists": "submission_22:\n  :submitters:\n  - {:name: [1], :sid: {a: b}, :email: 2020-01-01}"}  # fmt: skip


@pytest.mark.parametrize("text", LISTS.values(), ids=LISTS)
def test_a_list_of_submitters_that_means_harm_costs_nothing(collected, text):
    started = time.monotonic()
    for name in ("submission_metadata.yml", "submission_22/submission_metadata.yml"):
        found = who(collected([("submission_22/hw.py", BODY), ("submission_23/hw.py", BODY), (name, text.encode())]))
        assert [files for _, files in found.values()] == [1, 1]
        assert all(len(name) < 200 for name, _ in found.values())
    assert time.monotonic() - started < 8


def test_a_learner_s_list_of_submitters_is_not_looked_at(collected, tmp_path):
    mine = FALSE.format(22).encode()
    inner = make_zip(tmp_path / "inner.zip", [("submission_metadata.yml", mine), ("hw.py", BODY)]).read_bytes()
    both = [("submission_22/hw.py", BODY), ("submission_11/hw.py", BODY)]
    expected = {"submission_22": ("submission_22", 1), "submission_11": ("submission_11", 1)}
    for name in ("submission_22/submission_metadata.yml", "submission_22/x/submission_metadata.yml"):
        assert who(collected([*both, (name, mine)])) == expected
        assert who(collected([(f"assignment_1_export/{n}", d) for n, d in [*both, (name, mine)]])) == expected
    assert who(collected([("submission_22/hw.zip", inner), both[1]])) == expected
    assert who(collected([("submission_22.zip", inner), both[1]])) == expected
    assert who(collected([*both, ("submission_metadata.yml", mine)]))["gradescope-11"] == ("Alice", 1)


@pytest.mark.parametrize("encoding", ["cp950", "utf-8"])
def test_names_that_an_archive_mangled_are_mended(collected, tmp_path, encoding):
    raw, data = "王小明.ipynb".encode(encoding), io.BytesIO()
    with zipfile.ZipFile(data, "w") as out:
        out.writestr("n" * len(raw), BODY)
    path = tmp_path / "mangled.zip"
    path.write_bytes(data.getvalue().replace(b"n" * len(raw), raw))
    assert who(collected(path)) == {"王小明": ("王小明", 1)}


def test_composed_and_decomposed_names_are_one_learner(collected):
    members = [("José/a.ipynb", BODY), ("Jose\u0301/b.ipynb", BODY), ("bob/c.ipynb", BODY)]
    assert who(collected(members)) == {"José": ("José", 2), "bob": ("bob", 1)}


def test_junk_folders_are_skipped(collected):
    found = collected([("alice/.ipynb_checkpoints/01.ipynb", BODY), ("__MACOSX/alice/._01.ipynb", BODY), ("alice/01.ipynb", BODY)])
    assert who(found) == {"alice": ("alice", 1)}
    assert found.problems == []


# archives that mean harm


@pytest.mark.parametrize("name", ["../evil.ipynb", "/etc/evil.ipynb", "a/../../evil.ipynb", "..\\evil.ipynb", "C:\\evil.ipynb",
                                  "C:evil.ipynb"])  # fmt: skip
def test_names_that_point_outside_write_nothing_there(collected, tmp_path, name):
    found = collected([(name, BODY), ("alice.ipynb", BODY)])
    assert who(found) == {"alice": ("alice", 1)}
    assert [m.id for m in found.problems] == ["archive-outside"]
    assert not list(tmp_path.rglob("evil*"))


def test_links_in_a_zip_are_skipped(collected):
    link = zipfile.ZipInfo("alice/link.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    found = collected([(link, b"/etc/passwd"), ("bob.ipynb", BODY)])
    assert who(found) == {"bob": ("bob", 1)}
    assert [m.id for m in found.problems] == ["archive-link"]


@posix
def test_links_and_pipes_in_a_folder_are_skipped(collected, tmp_path):
    secret = write(tmp_path / "secret.ipynb", *toy.solved())
    folder = tmp_path / "subs"
    (folder / "alice").mkdir(parents=True)
    write(folder / "bob" / "hw.ipynb", *toy.solved())
    (folder / "alice" / "hw.ipynb").symlink_to(secret)
    (folder / "loop").symlink_to(folder)
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "alice" / "pipe.ipynb")
    found = collected(folder)
    assert who(found) == {"bob": ("bob", 1)}
    assert {m.id for m in found.problems} == {"archive-link"}


def test_bombs_are_not_unpacked(collected, monkeypatch):
    bomb = b" " * 15_000_000
    found = collected([("alice.ipynb", bomb), ("bob.ipynb", BODY)])
    assert who(found) == {"bob": ("bob", 1)}
    assert [m.id for m in found.problems] == ["archive-too-large"]
    monkeypatch.setattr(archive, "MAX_RATIO", 10**9)
    monkeypatch.setattr(archive, "MAX_TOTAL", 1_000_000)
    assert [m.id for m in collected([("alice.ipynb", bomb)]).problems] == ["archive-too-large"]


def test_a_member_that_lies_about_its_size_is_cut_off(collected, tmp_path):
    path = make_zip(tmp_path / "liar.zip", [("alice.ipynb", b" " * 900_000), ("bob.ipynb", BODY)])
    data = path.read_bytes().replace((900_000).to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    path.write_bytes(data)
    assert who(collected(path)) == {"bob": ("bob", 1)}


def test_too_many_members_are_refused(collected, monkeypatch, tmp_path):
    monkeypatch.setattr(archive, "MAX_INNER_FILES", 3)
    inner = make_zip(tmp_path / "inner.zip", [(f"{n}.ipynb", BODY) for n in range(5)]).read_bytes()
    found = collected([("alice/x.zip", inner), ("bob.ipynb", BODY)])
    assert (who(found), [m.id for m in found.problems]) == ({"bob": ("bob", 1)}, ["archive-broken"])
    monkeypatch.setattr(archive, "MAX_FILES", 1)
    with pytest.raises(SpecError):
        collected([("alice.ipynb", BODY), ("bob.ipynb", BODY)])


def test_broken_and_protected_members_cost_themselves_only(collected, tmp_path):
    path = make_zip(tmp_path / "broken.zip", [("alice.ipynb", BODY), ("bob.ipynb", BODY + b" ")])
    data = bytearray(path.read_bytes())
    data[60:70] = b"\xff" * 10
    path.write_bytes(bytes(data))
    found = collected(path)
    assert (who(found), [m.id for m in found.problems]) == ({"bob": ("bob", 1)}, ["archive-broken"])


def test_what_is_no_archive_is_refused(tmp_path):
    (tmp_path / "x.zip").write_bytes(b"PK\x05\x06 no")
    (tmp_path / "x.txt").write_text("x")
    for name in ("x.zip", "x.txt", "none"):
        with pytest.raises(SpecError):
            collect(tmp_path / name, tmp_path)


# names


@pytest.mark.parametrize("key", ["CON", "con", "aux.txt", "", ".", "..", "a/b", "a\\b", "\u202egnp", "=1+1", "王小明", "x" * 500,
                                 "\n", "\ud800", "Straße"])  # fmt: skip
def test_file_names_are_safe_everywhere(key):
    name = file_name(key)
    assert 8 <= len(name) <= 50
    assert not set(name) & set('<>:"/\\|?*. \n\u202e')
    assert name.upper() not in {"CON", "AUX", "NUL", "PRN"}


def test_file_names_differ_where_a_file_system_sees_no_difference():
    assert len({file_name(key).casefold() for key in ("Alice", "alice", "ALICE", "alice ", "a-lice", "alice.")}) == 6
    assert len({file_name(f"alice{end}").casefold() for end in ("+]()", "@))=", "", "!", "(", ")")}) == 6
    assert re.fullmatch(r"alice-[0-9a-f]{16,}", file_name("alice!")), "enough digits that none meet"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", " =1", "＝1"])
def test_no_text_becomes_a_formula(text):
    assert spreadsheet(text).startswith(("'", "\\"))


def test_control_and_direction_characters_are_spelled_out():
    assert visible("a\u202eb\x1b[2J\u2066\x00\n王 שלום") == "a\\u202eb\\u001b[2J\\u2066\\u0000\\u000a王 שלום"


# the run, with answers that are ours


@pytest.fixture
def graded(tmp_path: Path):
    """Grades a folder of toy notebooks in this process."""

    def run(folder: Path, **options):
        return grade_class(folder, tmp_path / "out", jobs=1, exercises=EXERCISES, tests=toy.tests,
                           pool=lambda e, source: local(source, e.given), **options)  # fmt: skip

    return run


EVIL = '<script>alert(1)</script><img src=x onerror=alert(2)>"\'{{ 7*7 }}'


@posix
def test_pages_escape_everything_and_fetch_nothing(graded, tmp_path):
    raising = f"def double(x):\n    raise ValueError({EVIL!r})"
    write(tmp_path / "subs" / EVIL.replace("/", "∕") / "hw.ipynb", *toy.solved(double=raising), toy.code(f"!echo {EVIL}"))
    write(tmp_path / "subs" / "\u202eevil" / "hw.ipynb", *toy.solved())
    for lang in ("en", "zh-TW"):
        graded(tmp_path / "subs", lang=lang)
        pages = [p.read_text(encoding="utf-8") for p in (tmp_path / "out").rglob("*.html")]
        assert len(pages) == 3
        for page in pages:
            assert f'<html lang="{lang}">' in page
            assert "<script" not in page and "<img" not in page and "\u202e" not in page
            assert "http:" not in page and "https:" not in page and "src=" not in page.replace("&lt;img src=x", "")
        assert any("&lt;script&gt;alert(1)" in page for page in pages)


@pytest.mark.parametrize("lang", ["en", "zh-TW"])
def test_the_text_of_an_exception_which_may_hold_inputs_is_not_handed_out(graded, tmp_path, lang):
    raising = "def double(x):\n    raise ValueError(f'secret {x}: 7654321')"
    loud = raising.replace("ValueError(", "TooMuchWork(")
    write(tmp_path / "subs" / "alice.ipynb", *toy.solved(double=raising))
    write(tmp_path / "subs" / "bob.ipynb", *toy.solved(double=f"class TooMuchWork(Exception):\n    pass\n\n\n{loud}"))
    graded(tmp_path / "subs", lang=lang)
    out = tmp_path / "out"
    for path in [*out.rglob("*.html"), *out.rglob("results.json"), *out.glob("*.csv"), *out.glob("*.json")]:
        assert "7654321" not in path.read_text(encoding="utf-8-sig").replace("{x}: 7654321", ""), path
    (page,) = (text for p in out.rglob("*.html") if "ValueError" in (text := p.read_text(encoding="utf-8")))
    assert "line 3, in double" in page, "the learner's own frames"
    assert page.count("ValueError") == 2, "once, and in the frames"


def test_a_run_names_the_level_and_the_sandbox(tmp_path, capsys):
    from kvgrade.classroom.results import ClassReport
    from kvgrade.command import report

    for lang, word in (("en", "level 2"), ("zh-TW", "第 2 級")):
        i18n.set_language(lang)
        report.show_class(report.console(), ClassReport({}, 0, (), tmp_path, "2 namespaces"))
        text = capsys.readouterr().out
        assert word in text and "Linux namespaces" in text
    i18n.set_language("en")


def test_the_first_column_of_a_wide_table_keeps_its_lines(graded, tmp_path):
    write(tmp_path / "subs" / "alice.ipynb", *toy.solved())
    graded(tmp_path / "subs")
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert re.search(r"\.scroll td:first-child[^}]*nowrap", page)


def test_the_newest_file_of_a_learner_counts_and_the_other_is_said(graded, tmp_path):
    old = write(tmp_path / "subs" / "alice" / "b-old.ipynb", *toy.solved(double="def double(x):\n    return x"))
    new = write(tmp_path / "subs" / "alice" / "a-new.ipynb", *toy.solved())
    os.utime(old, (1_000_000_000, 1_000_000_000))
    os.utime(new, (1_100_000_000, 1_100_000_000))
    record = graded(tmp_path / "subs").records["alice"]
    assert (record.points, [m.id for m in record.problems]) == (15, ["file-older"])


def test_missing_untouched_and_optional_exercises(graded, tmp_path):
    write(tmp_path / "subs" / "alice.ipynb", answer("double", EXERCISES["double"].starter))
    result = graded(tmp_path / "subs").records["alice"]
    assert [(r.status, r.points) for r in result.results] == [("not-attempted", 0), ("missing", 0)]
    assert (result.points, result.max) == (0, 15)


def test_a_fault_of_the_grader_costs_one_exercise_and_is_tried_again(graded, tmp_path, monkeypatch):
    write(tmp_path / "subs" / "alice.ipynb", *toy.solved())
    out = tmp_path / "out"

    def opener(e, source):
        if e.id == "double":
            raise KeyError("boom")
        return local(source)

    report = grade_class(tmp_path / "subs", out, jobs=1, exercises=EXERCISES, tests=toy.tests, pool=opener)
    assert (report.errors, report.records["alice"].points) == (1, 5)
    report = graded(tmp_path / "subs")
    assert (report.errors, report.graded, report.records["alice"].points) == (0, 1, 15)
    assert graded(tmp_path / "subs").graded == 0


def test_the_seed_is_made_once_kept_secret_and_decides(graded, tmp_path):
    write(tmp_path / "subs" / "alice.ipynb", *toy.solved())
    graded(tmp_path / "subs")
    seed = tmp_path / "out.seed"
    first = seed.read_text()
    if os.name == "posix":
        assert stat.S_IMODE(seed.stat().st_mode) == 0o600
    assert graded(tmp_path / "subs").graded == 0
    assert seed.read_text() == first
    other = tmp_path / "other.txt"
    other.write_text("my seed\n")
    assert graded(tmp_path / "subs", seed_file=other).graded == 1
    for path in (tmp_path / "out").rglob("*"):
        assert path == seed or path.is_dir() or first.strip() not in path.read_text(encoding="utf-8-sig")


def test_a_seed_from_inside_the_folder_is_taken_out_of_it_and_stays_in_force(graded, tmp_path):
    write(tmp_path / "subs" / "alice.ipynb", *toy.solved())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "seed.txt").write_text("old\n")
    assert graded(tmp_path / "subs").seed_file == tmp_path / "out.seed"
    assert (tmp_path / "out.seed").read_text() == "old\n"
    assert not (tmp_path / "out" / "seed.txt").exists()


UNREAD = {"en": ("file could not be read", "could not be read, and nothing in it was graded", "holds NUL bytes"),
          "zh-TW": ("檔案無法讀取", "無法讀取，裡面的答案都沒有批改", "NUL 位元組")}  # fmt: skip


@pytest.fixture
def unread(graded, tmp_path):
    """Grades a class of three: one right, one whose file is garbage, one who attempted nothing."""
    write(tmp_path / "subs" / "alice" / "hw.ipynb", *toy.solved())
    write(tmp_path / "subs" / "carol" / "hw.ipynb", answer("double", EXERCISES["double"].starter))
    (tmp_path / "subs" / "bob").mkdir()
    (tmp_path / "subs" / "bob" / "homework.ipynb").write_bytes(b"x\0y")
    return lambda lang: graded(tmp_path / "subs", lang=lang)


def cells_of(page: str, name: str) -> list[str]:
    row = next(row for row in page.split("<tr>") if f"<bdi>{name}</bdi></a>" in row)
    return re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_a_file_that_cannot_be_read_is_seen_by_the_teacher(unread, tmp_path, lang):
    report = unread(lang)
    short, told, why = UNREAD[lang]
    index = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    bob, carol = cells_of(index, "bob"), cells_of(index, "carol")
    assert f"⚠ {short}" in bob[0] and bob[2:4] == ["⚠", "⚠"]
    assert "⚠" not in "".join(carol) and carol[2:4] == ["–", "–"]
    rows = csv.DictReader(io.StringIO((tmp_path / "out" / "marks.csv").read_text(encoding="utf-8-sig"), newline=""))
    row = next(row for row in rows if row["name"] == "bob")
    assert told in row["notes"] and why in row["notes"] and row["files"] == "bob/homework.ipynb"
    marks = json.loads((tmp_path / "out" / "marks.json").read_text(encoding="utf-8"))
    assert [(s["unread"], s["notes"]) for s in marks["students"] if s["key"] == "bob"] == [(["bob/homework.ipynb"], ["file-nul"])]
    assert [(m.id, m.fields) for m in report.problems] == [("class-unread", {"name": "bob", "files": "bob/homework.ipynb"})]
    assert unread(lang).graded == 0, "a record with such a file holds like any other"


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_the_page_of_a_file_that_cannot_be_read_says_that_and_lists_nothing_as_missing(unread, tmp_path, lang):
    unread(lang)
    (page,) = ((p.read_text(encoding="utf-8")) for p in (tmp_path / "out" / "pages").glob("bob*"))
    _, told, why = UNREAD[lang]
    assert f"bob/homework.ipynb {told}" in page and why in page
    assert {"en": "not in the file", "zh-TW": "檔案裡沒有"}[lang] not in page
    (results,) = ((tmp_path / "out" / "gradescope").glob("bob*/results.json"))
    assert json.loads(results.read_text(encoding="utf-8"))["tests"] == []


def test_what_is_read_beside_it_is_graded(graded, tmp_path):
    write(tmp_path / "subs" / "bob" / "hw.ipynb", answer("double", toy.RIGHT["double"]))
    (tmp_path / "subs" / "bob" / "broken.ipynb").write_bytes(b"{")
    record = graded(tmp_path / "subs", lang="en").records["bob"]
    assert (record.points, record.unread) == (10, ("bob/broken.ipynb",))
    (page,) = ((p.read_text(encoding="utf-8")) for p in (tmp_path / "out" / "pages").glob("bob*"))
    assert "not in the file" in page, "square is missing from the sheet that was read"


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_a_run_ends_with_what_was_unreadable_where_to_look_and_that_the_seed_is_secret(tmp_path, monkeypatch, capsys, lang):
    from kvgrade import classroom
    from kvgrade.classroom.results import ClassReport
    from kvgrade.cli import main
    from kvgrade.outcome import Message

    problem = Message("class-unread", {"name": "bob", "files": "hw.ipynb"})
    monkeypatch.setattr(classroom, "grade_class", lambda _, out, **more: ClassReport(
        {}, 0, (problem,), out, "2 namespaces", seed_file=Path("r.seed")))  # fmt: skip
    monkeypatch.chdir(tmp_path)
    before = i18n.language()
    assert main(["class", "subs", "--out", "r", "--lang", lang]) == 0
    i18n.set_language(before)
    text = capsys.readouterr().out.replace("\n", " ")
    for part in ("bob", "hw.ipynb", str(Path("r/marks.csv")), str(Path("r/index.html")), "r.seed",
                 *{"en": ("could not be read", "secret"), "zh-TW": ("無法讀取", "不要公開")}[lang]):  # fmt: skip
        assert part in text


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_the_level_is_the_teachers_and_the_total_comes_first(graded, tmp_path, lang):
    write(tmp_path / "subs" / "alice.ipynb", *toy.solved())
    graded(tmp_path / "subs", lang=lang)
    index, *pages = ((tmp_path / "out" / name).read_text(encoding="utf-8") for name in (
        "index.html", *(f"pages/{p.name}" for p in (tmp_path / "out" / "pages").iterdir())))  # fmt: skip
    level = {"en": "Trust level", "zh-TW": "隔離等級"}[lang]
    assert level in index and level not in pages[0]
    heads = re.findall(r"<th[^>]*>(.*?)</th>", index)
    assert heads[1] == {"en": "Total", "zh-TW": "總分"}[lang] and "double" in heads[2]
    assert cells_of(index, "alice")[1] == "<b>15</b> / 15"


def test_a_changed_submission_is_graded_alone(graded, tmp_path):
    for name in ("alice", "bob", "carol"):
        write(tmp_path / "subs" / f"{name}.ipynb", *toy.solved())
    assert graded(tmp_path / "subs").graded == 3
    write(tmp_path / "subs" / "bob.ipynb", *toy.solved(square="def square(x):\n    return 0"))
    report = graded(tmp_path / "subs")
    assert (report.graded, report.records["bob"].points) == (1, 10)


@posix
def test_marks_are_quoted_escaped_and_whole(graded, tmp_path):
    for name in ("=cmd|calc", "王, 小明", 'quote "x"'):
        write(tmp_path / "subs" / name / "hw.ipynb", *toy.solved())
    graded(tmp_path / "subs")
    data = (tmp_path / "out" / "marks.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    assert {row["name"] for row in rows} == {"'=cmd|calc", "王, 小明", 'quote "x"'}
    assert {(row["double (10)"], row["points"], row["max"]) for row in rows} == {("10", "15", "15")}
    marks = json.loads((tmp_path / "out" / "marks.json").read_text(encoding="utf-8"))
    assert [s["points"] for s in marks["students"]] == [15, 15, 15]


def test_an_old_learners_files_go_when_the_submission_is_gone(graded, tmp_path):
    gone = write(tmp_path / "subs" / "bob.ipynb", *toy.solved())
    write(tmp_path / "subs" / "alice.ipynb", *toy.solved())
    graded(tmp_path / "subs")
    gone.unlink()
    graded(tmp_path / "subs")
    assert len(list((tmp_path / "out" / "pages").iterdir())) == 1
    assert len(list((tmp_path / "out" / "gradescope").iterdir())) == 1


# learning management systems


def test_gradescope_results_add_up(graded, tmp_path):
    write(tmp_path / "subs" / "alice.ipynb", *toy.solved(double="def double(x):\n    return x + x if x else 1"))
    graded(tmp_path / "subs")
    (path,) = (tmp_path / "out" / "gradescope").rglob("results.json")
    data = json.loads(path.read_text(encoding="utf-8"))
    assert data["score"] == sum(t["score"] for t in data["tests"]) == 11
    assert sum(t["max_score"] for t in data["tests"]) == 15
    assert {t["status"] for t in data["tests"]} == {"passed", "failed"}


CANVAS = ('Student,ID,SIS User ID,SIS Login ID,Section,"Quiz, one (1)",01-toy (2),Total\r\n'
          "    Points Possible,,,,,10,20,(read only)\r\n"
          '"Wang, Xiaoming",123,A1,wang,S1,7.50,,80\r\n'
          '"Doe, Jane",456,A2,jane,S1,,3,\r\n'
          '"Nobody, Else",789,A3,else,"S ""1""",1,,\r\n')  # fmt: skip


def class_of_three(tmp_path: Path) -> Path:
    write(tmp_path / "subs" / "wangxiaoming_123_1_01-toy.ipynb", *toy.solved())
    write(tmp_path / "subs" / "janedoe_999_2_01-toy.ipynb", *toy.solved(square="def square(x):\n    return 0"))
    write(tmp_path / "subs" / "stranger_555_3_01-toy.ipynb", *toy.solved())
    return tmp_path / "subs"


@pytest.mark.parametrize(("encoding", "end"), [("utf-8", "\r\n"), ("utf-8-sig", "\n"), ("utf-16", "\r\n"), ("cp950", "\n")])
def test_a_canvas_sheet_changes_in_its_points_and_nowhere_else(graded, tmp_path, encoding, end):
    text = CANVAS.replace("\r\n", end).replace("S1", "甲班")
    sheet = tmp_path / "canvas.csv"
    sheet.write_bytes(text.encode(encoding))
    report = graded(class_of_three(tmp_path), fill_canvas=sheet)
    filled = (tmp_path / "out" / "canvas.csv").read_bytes()
    expected = text.replace("7.50,,80", "7.50,15,80").replace(",,3,", ",,10,")
    assert filled == expected.encode(encoding)
    assert sheet.read_bytes() == text.encode(encoding)
    assert any("stranger" in line for line in report.unmatched)
    assert any("20" in line and "15" in line for line in report.unmatched)


def test_a_canvas_sheet_of_several_candidates_is_refused(graded, tmp_path):
    sheet = tmp_path / "canvas.csv"
    sheet.write_bytes(CANVAS.replace("01-toy", "Homework").encode())
    with pytest.raises(SpecError, match="Homework"):
        graded(class_of_three(tmp_path), fill_canvas=sheet)


@pytest.mark.parametrize("head", ["Identifier,Full name,Email address,Status,Grade,Maximum grade,Grade can be changed",
                                  "識別碼,全名,電子郵件信箱,狀態,成績,最高成績,可以修改成績"])  # fmt: skip
def test_a_moodle_sheet_is_matched_by_id_email_and_name(graded, tmp_path, head):
    for name in ("王小明_4711", "Jane Doe_12", "stranger_13"):
        write(tmp_path / "subs" / f"{name}_assignsubmission_file_" / "hw.ipynb", *toy.solved())
    sheet = tmp_path / "moodle.csv"
    text = (f"\ufeff{head}\n" '"Participant 4711","王小明",w@example.org,"Submitted","",15,Yes\n'
            '"Participant 9",Jane Doe,j@example.org,Submitted,,15,Yes\n"Participant 10",Other,o@example.org,,2,15,Yes\n')  # fmt: skip
    sheet.write_text(text, encoding="utf-8", newline="")
    report = graded(tmp_path / "subs", fill_moodle=sheet)
    expected = text.replace('"Submitted","",15', '"Submitted","15",15').replace("Submitted,,15", "Submitted,15,15")
    assert (tmp_path / "out" / "moodle.csv").read_text(encoding="utf-8") == expected
    assert [line for line in report.unmatched if "stranger" in line] == list(report.unmatched)


def test_two_learners_of_one_name_are_never_guessed(graded, tmp_path):
    write(tmp_path / "subs" / "Jane Doe" / "hw.ipynb", *toy.solved())
    sheet = tmp_path / "moodle.csv"
    sheet.write_text("Identifier,Full name,Grade\nParticipant 1,Jane Doe,\nParticipant 2,Jane Doe,\n", encoding="utf-8")
    report = graded(tmp_path / "subs", fill_moodle=sheet)
    assert (tmp_path / "out" / "moodle.csv").read_bytes() == sheet.read_bytes()
    assert "Jane Doe" in report.unmatched[0]


@pytest.mark.parametrize("data", [b"PK\x03\x04 a workbook", b"Name,Mark\nx,1\n", b"", b'Grade,Full name\n"x', "學生,ID\n".encode()])
def test_a_sheet_that_is_none_is_refused(tmp_path, data):
    path = tmp_path / "sheet.csv"
    path.write_bytes(data)
    for fill in (lms.fill_canvas, lms.fill_moodle):
        with pytest.raises(SpecError):
            fill(path, [], ())


def test_a_sheet_that_nobody_fills_stays_byte_for_byte(tmp_path):
    for text in ("a,b\r\n1,2\r\n", 'a;"b;c";d\n"x ""y""";;\n\n', "a\tb\n1\t2", ",,\n,,\n"):
        path = tmp_path / "sheet.csv"
        path.write_bytes(text.encode())
        assert SheetFile.read(path).as_bytes() == text.encode()


# similarity

LONG = """def double(x):
    total = 0
    seen = []
    for step in range(2):
        if step % 2 == 0 and x > 0:
            seen.append(step * x)
            total += x
        elif x < 0:
            total -= abs(x)
        else:
            total = total + x * (step + 1) // (step + 1)
    while seen and len(seen) > 3:
        value = seen.pop()
        if value is None:
            break
    result = {"total": total, "steps": len(seen)}
    return result["total"] if x else 0
"""
OTHER = """def double(x):
    if not isinstance(x, int):
        raise TypeError("x must be an int")
    try:
        parts = [x, x]
        head, *tail = parts
        while tail:
            head += tail.pop()
            if head > 10 ** 6:
                print("large")
    except (ValueError, KeyError) as error:
        raise RuntimeError(str(error)) from error
    finally:
        parts = None
    with open("/dev/null") as file:
        file.read()
    return lambda: head if head else sum(n for n in range(x))
"""


def pairs_of(tmp_path: Path, answers: dict[str, str]) -> list[tuple[str, str]]:
    for name, source in answers.items():
        write(tmp_path / "subs" / f"{name}.ipynb", *toy.solved(double=source))
    (tmp_path / "scratch").mkdir()
    papers = [read_paper(s, EXERCISES) for s in collect(tmp_path / "subs", tmp_path / "scratch").students]
    return [(p.a, p.b) for p in similarity.pairs(papers, list(EXERCISES.values()))]


def test_a_copy_with_other_names_and_comments_is_listed(tmp_path):
    copy = "# mine\n" + LONG.replace("seen", "found").replace("step ", "i ").replace("step)", "i)").replace("value", "last")
    assert pairs_of(tmp_path, {"alice": LONG, "bob": copy, "carol": OTHER}) == [("alice", "bob")]


def test_short_answers_and_what_everyone_writes_are_not_listed(tmp_path):
    short = {f"s{n}": toy.RIGHT["double"] for n in range(5)}
    assert pairs_of(tmp_path, short) == []
    everyone = {f"e{n}": LONG for n in range(8)}
    (tmp_path / "more").mkdir()
    assert pairs_of(tmp_path / "more", everyone) == []


@pytest.mark.parametrize("n", [1, 2])
def test_one_is_singular(tmp_path, capsys, n):
    from kvgrade.classroom.results import ClassReport
    from kvgrade.command import report

    i18n.set_language("en")
    report.show_class(report.console(), ClassReport(dict.fromkeys(range(n)), n, (), tmp_path, "", similar=n, errors=n))
    text = capsys.readouterr().out
    for word in ("submission", "pair", "answer"):
        assert f"{n} {word}{'s' * (n > 1)}" in text and f"1 {word}s" not in text


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_the_marks_and_the_seed_stand_last_by_themselves(tmp_path, monkeypatch, capsys, lang):
    from kvgrade import classroom
    from kvgrade.classroom.results import ClassReport
    from kvgrade.cli import main

    monkeypatch.setattr(classroom, "grade_class", lambda _, out, **more: ClassReport({}, 0, (), out, "2 namespaces", seed_file=Path("r.seed")))
    monkeypatch.chdir(tmp_path)
    before = i18n.language()
    assert main(["class", "subs", "--out", "r", "--lang", lang]) == 0
    i18n.set_language(before)
    level, last = capsys.readouterr().out.rstrip("\n").rsplit("\n\n", 1)
    assert {"en": "level 2", "zh-TW": "第 2 級"}[lang] in level and "marks.csv" not in level
    marks, *seed = last.splitlines()
    assert "marks.csv" in marks and "r.seed" in seed[0]
