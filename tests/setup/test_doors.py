"""The doors to the book: make, CI here, CI of a fork. All lead to the same ``make test``."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def checkout(tmp_path):
    """A copy of what make looks at; its .venv looks made, but nothing is installed in it."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "tools/lab/overrides.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
        os.utime(tmp_path / name, (1000, 1000))
    (tmp_path / ".venv").mkdir()
    touch(tmp_path / ".venv" / "pyvenv.cfg", 1000)
    return tmp_path


def touch(path: Path, time: int) -> None:
    path.touch()
    os.utime(path, (time, time))


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    inherited = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")  # of the make that runs these tests
    environment = {name: value for name, value in os.environ.items() if name not in inherited}
    command = ["make", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False
    )


@needs_make
@pytest.mark.parametrize("target", ["lab", "test"])
def test_make_installs_once(checkout, target):
    assert "pip install" in make(checkout, "-n", target).stdout
    touch(checkout / ".venv" / ".book", 2000)
    touch(checkout / ".venv" / ".dev", 2000)
    assert "pip install" not in make(checkout, "-n", target).stdout


@needs_make
@pytest.mark.parametrize("changed", ["pyproject.toml", "constraints.txt"])
def test_make_installs_again_when_the_dependencies_change(checkout, changed):
    touch(checkout / ".venv" / ".dev", 2000)
    touch(checkout / changed, 3000)
    assert "pip install" in make(checkout, "-n", "test").stdout


@needs_make
def test_make_installs_the_versions_of_ci(checkout):
    said = make(checkout, "-n", "test", "TORCH_INDEX=https://example.org/cpu").stdout
    assert "-c constraints.txt" in said
    assert "--extra-index-url https://example.org/cpu" in said
    assert "--extra-index-url" not in make(checkout, "-n", "test").stdout


@needs_make
def test_make_lab_opens_the_start_page_of_the_language(checkout):
    assert "/lab/tree/reading/notebooks/en/00-start.ipynb" in make(checkout, "-n", "lab").stdout
    chinese = make(checkout, "-n", "lab", "BOOK_LANG=zh-TW").stdout
    assert "/lab/tree/reading/notebooks/zh-TW/00-start.ipynb" in chinese


@needs_make
def test_make_test_runs_every_notebook_strictly_and_ends_with_pytest(checkout):
    folders = [f"{kind}/{lang}" for kind in ("notebooks", "exercises", "solutions") for lang in ("en", "zh-TW")]
    for folder in folders:
        (checkout / folder).mkdir(parents=True)
    last = make(checkout, "-n", "test").stdout.replace("\\\n", " ").strip().splitlines()[-1]
    assert "-m pytest" in last
    assert "--nbval " in last
    assert "--nbval-sanitize-with=tests/book/sanitize.cfg" in last
    assert f"tests {' '.join(folders)}" in last


@needs_make
@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell script as Python")
def test_make_refuses_an_unfit_python_and_says_which_fits(checkout):
    (checkout / ".venv" / "pyvenv.cfg").unlink()
    old = checkout / "python3.10"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.10.1\nexit 1\n')
    old.chmod(0o755)
    run = make(checkout, "lab", f"PYTHON={old}")
    assert run.returncode != 0
    assert "needs Python 3.11, 3.12 or 3.13" in run.stdout
    assert "Python 3.10.1" in run.stdout
    assert "make lab PYTHON=python3.12" in run.stdout


def test_ci_here_calls_make_test():
    script = ROOT / ".ci" / "run"
    assert script.read_text(encoding="utf-8").rstrip().endswith("exec make test")
    if sys.platform != "win32":
        assert os.access(script, os.X_OK)


def test_ci_of_a_fork_calls_make_test_on_three_systems():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    job = yaml.safe_load(workflow)["jobs"]["test"]
    systems = {system.partition("-")[0] for system in job["strategy"]["matrix"]["os"]}
    assert systems == {"ubuntu", "macos", "windows"}
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.13"]
    assert any(step.get("run", "").startswith("make test") for step in job["steps"])


def test_no_two_test_modules_share_a_name():
    """pytest imports them by name alone, so the second one of a pair would not be collected."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(set(names)) == sorted(names)
