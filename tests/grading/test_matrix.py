"""The hidden tests tell right from wrong: solutions get full points, starters none, and every wrong solution loses some."""

import subprocess
import sys

import pytest
import torch

from tools.book import ROOT
from tools.matrix import exercises, rows

EXERCISES = exercises()
INTERPRETED = {"triton-decode"}  # Triton decides once per process whether kernels are interpreted: these get one of their own


@pytest.fixture(autouse=True)
def one_thread():
    """The tensors are tiny: threads that wait for each other cost seven times the work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("id", [id for id in EXERCISES if id not in INTERPRETED])
def test_solution_passes_and_every_wrong_solution_loses_points(id, record_property):
    found = list(rows(*EXERCISES[id]))
    record_property("matrix", "\n".join(map(str, found)))  # the whole table is printed at the end of the run
    wrong = [line for row in found if not row.as_it_must_be for line in (str(row), *row.why())]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("id", [id for id in EXERCISES if id in INTERPRETED])
def test_so_do_those_of_kernels(id, record_property):
    pytest.importorskip("triton", reason="triton is not installed (Linux only)")
    run = subprocess.run([sys.executable, "-m", "tools.matrix", id], check=False, capture_output=True, text=True, cwd=ROOT)
    record_property("matrix", run.stdout)
    assert run.returncode == 0, "\n" + run.stdout + run.stderr
