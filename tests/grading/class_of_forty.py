"""A class of forty on the first sheet, made of our solutions and wrong solutions, and what each must get.

    python class_of_forty.py SUBMISSIONS OUT      grades it, as the test that kills the grader needs
"""

import json
import sys
from pathlib import Path
from typing import Any

SHEET = "01-why-a-cache"
SEED = "forty"
FIRST, SECOND = "token-forwards", "attend-one-row"
CALL = 3.0  # seconds that an answer may take

EXITS = "import os\ndef {entry}(*a, **k):\n    os._exit(0)\n"
HANGS = "def {entry}(*a, **k):\n    while True:\n        pass\n"
ABORTS = "import os\ndef {entry}(*a, **k):\n    os.abort()\n"
RAISES = "def {entry}(*a, **k):\n    raise RuntimeError('no')\n"
QUITS = "raise SystemExit(0)\n"
BROKEN = "def {entry}(:\n"
NOISY = "print('100/100 passed')\n"
WRONG = "def {entry}(*a, **k):\n    return None\n"


def make(folder: Path) -> dict[str, tuple[int | None, int | None]]:
    """Write the submissions; the points of both exercises by learner. None: a wrong solution of ours, which loses some."""
    from kvgrade.answers import mutants, solutions
    from kvgrade.exercises import exercises

    entry = {id: exercises()[id].entry for id in (FIRST, SECOND)}
    full = {id: exercises()[id].points for id in (FIRST, SECOND)}
    right = solutions(SHEET)
    table: dict[str, tuple[int | None, int | None]] = {}

    def hand_in(name: str, first: str | None, second: str | None, points: tuple[Any, Any], file: str = f"{SHEET}.ipynb", **top: Any):
        answers = {FIRST: first, SECOND: second}
        cells = [_cell(f"# kvgrade: {id}\n" + code.replace("{entry}", entry[id]), id) for id, code in answers.items() if code]
        path = folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells, **top}
        path.write_text(json.dumps(notebook), encoding="utf-8")
        table[name] = points

    all_right, a, b = (full[FIRST], full[SECOND]), right[FIRST], right[SECOND]
    for name in ("alice", "Alice", "王小明", "陳 美麗", "שלום", "O'Neill, \"Pat\"", "=1+1", "CON", "\u202eevil"):
        hand_in(name, a, b, all_right)
    for kind, code in {"exits": EXITS, "hangs": HANGS, "aborts": ABORTS, "raises": RAISES, "quits": QUITS, "broken": BROKEN,
                       "wrong": WRONG, "noisy": NOISY}.items():  # fmt: skip
        hand_in(f"{kind}-first", code, b, (0, full[SECOND]))
    hand_in("hangs-second", a, HANGS, (full[FIRST], 0))
    hand_in("exits-both", EXITS, EXITS, (0, 0))
    for n, mutant in enumerate(mutants(FIRST)[:5]):
        hand_in(f"mutant-{n}", mutant.of(a), b, (None, full[SECOND]))
    for n, mutant in enumerate(mutants(SECOND)[:4]):
        hand_in(f"mutant-{n + 5}", a, mutant.of(b), (full[FIRST], None))
    starters = {id: exercises()[id].starter for id in (FIRST, SECOND)}
    hand_in("untouched", starters[FIRST], starters[SECOND], (0, 0))
    hand_in("half", a, starters[SECOND], (full[FIRST], 0))
    hand_in("deleted", a, None, (full[FIRST], 0))
    hand_in("prints", NOISY + a, NOISY + b, all_right)
    for name, data in {"nul": b"\0" * 100, "cut": b'{"nbformat": 4, "cells": [', "deep": b"[" * 100_000}.items():
        hand_in(name, a, b, (0, 0))
        (folder / name / f"{SHEET}.ipynb").write_bytes(data)
    hand_in("odd-cells", a, b, all_right)
    path = folder / "odd-cells" / f"{SHEET}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    notebook["cells"][:0] = [1, None, {"cell_type": "code", "source": "\0"}, _cell("def broken(:", None), _cell("%%bash\nrm -rf /", None)]
    path.write_text(json.dumps(notebook), encoding="utf-8")
    hand_in("twice", WRONG, WRONG, all_right, file="a-first-try.ipynb")
    hand_in("twice", a, b, all_right, file="b-second-try.ipynb")
    hand_in("points", a, WRONG, (full[FIRST], 0), metadata={"kvgrade": {"points": 1000}})
    (folder / "script").mkdir()
    (folder / "script" / "answers.py").write_text(f"{a}\n\n{b}\n", encoding="utf-8")
    table["script"] = all_right
    hand_in("magics", "%matplotlib inline\n!rm -rf x\n" + a, b, all_right)
    for name in ("twice",):
        import os

        os.utime(folder / name / "a-first-try.ipynb", (1e9, 1e9))
    return table


def _cell(source: str, id: str | None) -> dict[str, Any]:
    metadata = {"kvgrade": {"exercise": id, "role": "answer"}} if id else {}
    return {"cell_type": "code", "source": source, "metadata": metadata, "outputs": [], "execution_count": None}


def grade(submissions: Path, out: Path) -> Any:
    """Grade at level 1 with short limits, two at once."""
    from kvgrade.classroom import grade_class
    from kvgrade.isolation.remote import Limits, Pool

    seed = out.parent / "seed.txt"
    seed.write_text(SEED, encoding="utf-8")
    with Pool(1, 2, limits=Limits(call=CALL)) as pool:
        return grade_class(submissions, out, jobs=2, seed_file=seed, lang="zh-TW", pool=pool)


if __name__ == "__main__":
    grade(Path(sys.argv[1]), Path(sys.argv[2]))
    if sys.platform != "win32":
        import resource

        print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
