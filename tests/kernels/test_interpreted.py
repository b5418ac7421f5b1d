"""Runs interpreted/ under Triton's interpreter. By hand: TRITON_INTERPRET=1 pytest tests/kernels/interpreted"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="interpreted/ is collected in this process")
def test_everything_under_the_interpreter_passes():
    pytest.importorskip("triton", reason="triton is not installed (Linux only)")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", HERE / "interpreted"],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        cwd=HERE.parents[1],
        check=False,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
    assert " passed" in run.stdout and " skipped" not in run.stdout
