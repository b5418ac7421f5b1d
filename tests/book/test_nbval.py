"""nbval, with the options of ``make test``: passes what it should and fails what it should."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.book import Book

SANITIZE = Path(__file__).parent / "sanitize.cfg"


def test_nbval_fails_on_a_changed_number_and_only_there(toy: Book):
    """The good notebook's widget ran without a committed view; its run shows one."""
    good = toy.notebook("01-toy", "en")
    changed = shutil.copy(good, good.with_name("02-changed.ipynb"))
    text = changed.read_text(encoding="utf-8")
    assert "in all 1.25 GiB" in text
    changed.write_text(text.replace("in all 1.25 GiB", "in all 1.26 GiB"), encoding="utf-8")

    run = nbval(toy.root, str(good.parent))
    assert re.search(r"^=+ 1 failed, 7 passed", run.stdout, re.MULTILINE), run.stdout
    assert re.search(r"^FAILED .*02-changed\.ipynb::Cell 1\b", run.stdout, re.MULTILINE)


def test_nbval_passes_sheets_and_their_solutions_and_fails_on_another_verdict(sheets: Path):
    changed = sheets / "solutions" / "en" / "01-toy.ipynb"
    text = changed.read_text(encoding="utf-8")
    assert text.count("public checks passed") == 2
    changed.write_text(text.replace("public checks passed", "a public check failed", 1), encoding="utf-8")

    run = nbval(sheets, "exercises", "solutions")
    assert re.search(r"^=+ 1 failed, \d+ passed", run.stdout, re.MULTILINE), run.stdout
    assert re.search(r"^FAILED solutions/en/01-toy\.ipynb::Cell 4\b", run.stdout, re.MULTILINE)


def nbval(root: Path, *folders: str) -> subprocess.CompletedProcess[str]:
    options = ["--nbval", "--nbval-current-env", f"--nbval-sanitize-with={SANITIZE}", "-rA"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, *folders]
    return subprocess.run(command, cwd=root, capture_output=True, encoding="utf-8", check=False)


def test_sanitizer_is_ascii_and_touches_no_number():
    rules = SANITIZE.read_bytes().decode("ascii")
    outputs = "1,342,177,280 B  1.25 GiB  10.4 sequences  12.3 ms  87 %  3.7e-06  0.40 s\n"
    for regex, replacement in re.findall(r"^regex: (.*)$\n^replace: (.*)$", rules, re.MULTILINE):
        assert re.sub(regex, replacement, outputs) == outputs
