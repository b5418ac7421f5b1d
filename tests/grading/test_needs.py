"""An answer's slice answers what the whole notebook answers; what has nothing to do with the answer stays away."""

import contextlib
import io
import random
import time
from pathlib import Path
from typing import Any

import pytest
from toy_sheet import EXERCISES, answer, check, code, write

from kvgrade.submission import Submission, Unreadable, read_submission

USE = "def double(x):\n    return TABLE"
CRASH = "1 / 0\nwhile True:\n    pass\n"


@pytest.fixture
def read(tmp_path: Path):
    """Reads a notebook of cells; a text is a plain code cell."""

    def reader(*cells: dict | str) -> Submission:
        return read_submission(write(tmp_path / "file.ipynb", *(code(c) if isinstance(c, str) else c for c in cells)), EXERCISES)

    return reader


def run(*texts: str) -> Any:
    """What the answer gives after these cells; or the kind of error."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            for text in texts:
                exec(compile(text, "cell", "exec", dont_inherit=True), names)  # noqa: S102  our own notebooks
            return names["double"](3)
        except Exception as error:  # noqa: BLE001  to be compared
            return type(error).__name__


def left_out(submission: Submission) -> list[str]:
    return [m.fields["line"] for m in submission.problems if m.id == "left-out"]


# pairs of cells above the answer, which makes a value of TABLE
ABOVE = {
    "loop": ["TABLE = {}\nfor n, b in [('a', 1), ('b', 2)]:\n    TABLE[n] = b"],
    "while": ["TABLE, todo = {}, [1, 2]", "while todo:\n    TABLE[todo.pop()] = 1"],
    "with": ["from contextlib import nullcontext", "with nullcontext(3) as n:\n    TABLE = [n]"],
    "match": ["match 1:\n    case _:\n        TABLE = 5"],
    "if changes": ["TABLE = [1]", "if True:\n    TABLE = TABLE + [2]"],
    "if does not": ["TABLE = 1", "if False:\n    TABLE = 2"],
    "try": ["try:\n    TABLE = undefined\nexcept NameError:\n    TABLE = 3"],
    "walrus": ["(TABLE := 7)"],
    "walrus within": ["print(TABLE := 7)"],
    "item": ["TABLE = {}", "TABLE['a'] = 4"],
    "item of item": ["TABLE = {'a': {}}", "TABLE['a']['b'] = 4"],
    "attribute": ["class TABLE:\n    pass", "TABLE.bits = 4", "class _T:\n    def __getattr__(self, n):\n        return 1\nTABLE = TABLE.bits"],
    "update": ["TABLE = dict(a=1)\nTABLE.update(b=2)"],
    "append": ["TABLE = [1]\nTABLE.append(2)"],
    "append in a comprehension": ["TABLE = []", "[TABLE.append(n) for n in range(3)]"],
    "method as a value": ["TABLE = []", "_ = list(map(TABLE.append, range(3)))"],
    "pop": ["TABLE = [1, 2]", "last = TABLE.pop()"],
    "del item": ["TABLE = {'a': 1, 'b': 2}", "del TABLE['a']"],
    "del name": ["a = b = 16\nTABLE = [a, b]\ndel a, b"],
    "del of a builtin's shadow": ["sum = 3", "TABLE = [sum]\ndel sum", "TABLE = sum(TABLE)"],
    "augmented": ["TABLE = 1", "TABLE += 1", "TABLE *= 5"],
    "augmented item": ["TABLE = [1]", "TABLE[0] += 1"],
    "global": ["def fill():\n    global TABLE\n    TABLE = 9", "fill()"],
    "global counter": ["TABLE = 0\ndef more():\n    global TABLE\n    TABLE += 1", "for _ in range(3):\n    more()"],
    "globals()": ["globals()['TABLE'] = 3"],
    "registry": ["REG = {}\ndef register(n):\n    def keep(f):\n        REG[n] = f\n        return f\n    return keep",
                 "@register('x')\ndef anything():\n    return BASE", "BASE = 2", "TABLE = {n: f() for n, f in REG.items()}"],
    "registry without a call": ["TABLE = []\ndef register(f):\n    TABLE.append(f.__name__)\n    return f", "@register\ndef a(): ..."],
    "registry through a helper": ["TABLE = []\ndef put(n):\n    TABLE.append(n)\ndef register(n):\n    put(n)", "register(1)\nregister(2)"],
    "class registry": ["TABLE = []\nclass Base:\n    def __init_subclass__(cls):\n        TABLE.append(cls.__name__)", "class A(Base): ..."],
    "handed over": ["TABLE = {}\ndef fill(d):\n    d['a'] = 1", "fill(TABLE)"],
    "setattr": ["class T: ...\nsetattr(T, 'bits', 3)\nTABLE = T.bits"],
    "standard library": ["import heapq\nTABLE = []", "heapq.heappush(TABLE, 3)"],
    "alias": ["TABLE = {}\nother = TABLE", "other['a'] = 1"],
    "alias in a loop": ["TABLE, B = [], []", "for t in (TABLE, B):\n    t.append(1)"],
    "part": ["inner = []\nTABLE = {'a': inner}", "inner.append(1)"],
    "default": ["D = []\ndef look(d=D):\n    return list(d)", "D.append(3)", "TABLE = look()"],
    "own method": ["class Box:\n    def __init__(self): self.x = 0\n    def up(self): self.x += 1", "box = Box()", "box.up()", "TABLE = box.x"],
    "loop variable": ["n = 5", "for n in range(3):\n    pass", "TABLE = n"],
    "loop variable elsewhere": ["n = 5\nTABLE = []", "for n in range(3):\n    TABLE.append(n)", "n = 1"],
    "order": ["K = 1", "A = K * 2", "K = 100", "TABLE = (A, K)"],
    "function called early": ["def f():\n    return K", "K = 1", "A = f()", "K = 2", "TABLE = [A, f()]"],
    "function wrapped": ["def f():\n    return K", "def wrap(f):\n    return lambda: f() + 1", "f = wrap(f)", "K = 2", "TABLE = f()"],
    "class body": ["W = 3", "class T:\n    bits = [W for _ in range(2)]", "W = 4", "TABLE = T.bits"],
    "comprehension": ["W = {1: 2}", "TABLE = [W[n] for n in W]", "W = {}"],
    "annotation only": ["TABLE = 3", "TABLE: int"],
    "tuple": ["TABLE, B = 1, 2", "B = 3"],
    "sorted in place": ["TABLE = [2, 1]", "TABLE.sort()"],
    "unknown method": ["class Log(list):\n    def note(self, x):\n        self.append(x)", "TABLE = Log()", "TABLE.note(3)"],
}  # fmt: skip


@pytest.mark.parametrize("cells", ABOVE.values(), ids=ABOVE)
def test_the_slice_answers_what_the_notebook_answers(read, cells):
    submission = read(*cells, answer("double", USE))
    want = run(*cells, USE)
    assert not isinstance(want, str), want
    assert run(submission.answers["double"].source) == want
    noisy = [part for cell in cells for part in (cell, CRASH)]
    source = read(*noisy, answer("double", USE), CRASH).answers["double"].source
    assert "1 / 0" not in source
    assert run(source) == want


BELOW = {
    "definition": ["TABLE = 3"],
    "definition with a change": ["TABLE = {}\nfor n in 'ab':\n    TABLE[n] = 1", "TABLE['c'] = 2"],
    "loop": ["for TABLE in range(3):\n    pass"],
    "helper": ["import math", "K = math.floor(2.5)", "TABLE = [K]"],
}


@pytest.mark.parametrize("cells", BELOW.values(), ids=BELOW)
def test_what_nothing_above_defines_comes_from_below(read, cells):
    submission = read(answer("double", USE), *cells, CRASH)
    assert run(submission.answers["double"].source) == run(USE, *cells)


CHANGED_BELOW = ["TABLE['b'] = 2", "TABLE.update(b=2)", "for n in 'bc':\n    TABLE[n] = 2", "del TABLE['a']", "TABLE |= {'b': 2}", "fill()",
                 "@register\ndef g(): ...", "K = 3", "K = 3\nTABLE[K] = 2"]  # fmt: skip


@pytest.mark.parametrize("below", CHANGED_BELOW)
@pytest.mark.parametrize("inside", [False, True], ids=["above", "in the cell"])
def test_what_changes_below_is_changed(read, below, inside):
    begin = "TABLE = {'a': 1}\ndef fill():\n    TABLE['f'] = 1\ndef register(f):\n    TABLE['g'] = 1\n    return f\n"
    cells = ["", begin + USE] if inside else [begin, USE]
    submission = read(cells[0], answer("double", cells[1]), below, CRASH)
    assert run(submission.answers["double"].source) == run(*cells, below)


def test_a_name_bound_anew_below_stays_as_it_was(read):
    for below in ("TABLE = None", "for TABLE in range(3):\n    pass", "def TABLE(config):\n    return config", "TABLE = {}\nTABLE['x'] = 1"):
        submission = read("TABLE = 1", answer("double", USE), "double(3)\n" + below)
        assert run(submission.answers["double"].source) == 1
        assert left_out(submission) == []


def test_an_unrelated_cell_does_not_come_along(read):
    noise = ["print(TABLE)", "import matplotlib.pyplot as plt\nplt.plot(TABLE)\nplt.show()", "for n in TABLE:\n    print(n, TABLE.get(n))",
             "assert TABLE == 3", "x = TABLE['none']", "TABLE.items()", "other = {}\nother['a'] = TABLE", "import torch\ntorch.manual_seed(0)",
             "double(3)\nfor n in range(10 ** 9):\n    double(n)", "input('who? ')", "sizes = []\nfor n in TABLE:\n    sizes.append(n)"]  # fmt: skip
    submission = read("TABLE = {3: 4}", *noise, answer("double", USE), *noise, "plt.hist([double(n) for n in range(3)])")
    assert submission.answers["double"].source.replace("# kvgrade: double\n", "").strip() == "TABLE = {3: 4}\n" + USE
    assert left_out(submission) == []


def test_trying_an_answer_that_remembers_is_no_change_of_it(read):
    remembers = "SEEN = {}\ndef double(x):\n    SEEN[x] = helper(x)\n    return SEEN[x]"
    submission = read("def helper(x):\n    SEEN.setdefault(x, 2 * x)\n    return 2 * x", answer("double", remembers),
                      "for n in range(9):\n    print(double(n))", "helper(1 / 0)")  # fmt: skip
    assert "range(9)" not in submission.answers["double"].source
    assert "1 / 0" not in submission.answers["double"].source
    assert run(submission.answers["double"].source) == 6


def test_a_notebook_with_a_call_of_check_between_brings_its_loops(read):
    cell = "from kvgrade import check\nTABLE = {}\nfor n in 'ab':\n    TABLE[n] = 1\ncheck('double', double)"
    submission = read(cell, answer("double", USE))
    assert run(submission.answers["double"].source) == {"a": 1, "b": 1}
    assert left_out(submission) == []


def test_what_cannot_come_along_is_said(read):
    loop = "for n in 'ab':\n    TABLE[n] = 1\n    check('double', double)"
    submission = read("from kvgrade import check\nTABLE = {}", loop, answer("double", USE))
    assert left_out(submission) == ["for n in 'ab':"]
    in_check = {**check("double"), "source": "TABLE['b'] = 1\ncheck('double', double)"}
    submission = read("TABLE = {}", answer("double", USE), in_check)
    assert left_out(submission) == ["TABLE['b'] = 1"]
    submission = read("TABLE = {}\nn = 1", answer("double", USE + ", n"), "for n in 'ab':\n    TABLE[n] = 1")
    assert run(submission.answers["double"].source) == ({}, 1)
    assert left_out(submission) == ["for n in 'ab':"]


def test_another_answer_comes_along_only_as_far_as_it_is_wanted(read):
    other = answer("square", "print('try')\nTABLE = {}\ndef square(x):\n    return x * x\n1 / 0")
    source = read(other, answer("double", "def double(x):\n    return TABLE, square(x)")).answers["double"].source
    assert "1 / 0" not in source and "print" not in source
    assert run(source) == ({}, 9)


def test_helpers_in_a_python_file_may_stand_in_loops(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("TABLE = {}\nfor n in 'ab':\n    TABLE[n] = 1\n\n" + USE + "\n\nif __name__ == '__main__':\n    print(double(3))\n")
    source = read_submission(path, EXERCISES).answers["double"].source
    assert (run(source), "__main__" in source) == ({"a": 1, "b": 1}, False)


# no function here binds or changes a name at the top: calls of what the answer uses itself are tries, and stay away
NAMES = ("A", "B", "C", "f", "g")
LINES = ("{0} = [1]", "{0} = {{}}", "{0} = {1}", "{0} = [{1}, {2}]", "{0} = (str({1}), {2})", "{0}.append(str({1}))", "{0}['k'] = len(str({1}))",
         "def {0}(x=0):\n    return str({1})", "{0} = {1}(2)", "{1}({0})", "{0}.update(a=1)",
         "def {0}(x=0):\n    x['p'] = 1", "for {0} in [1, 2]:\n    pass", "del {0}",
         "for i in 'ab':\n    {0}[i] = {1}", "{0} += [2]", "if {1}:\n    {0} = 3", "try:\n    {0}.append(3)\nexcept AttributeError:\n    {0} = {1}",
         "@{1}\ndef {0}(x=0):\n    return {2}", "with open('/dev/null') as {0}:\n    {0} = 3", "{0} = lambda x=0: {1}", "{0} = [{1} for {2} in 'ab']")  # fmt: skip


def test_for_random_notebooks_the_slice_answers_what_the_notebook_answers(read):
    draw, compared, shorter = random.Random(7), 0, 0
    while compared < 250:
        cells: list[str] = []
        while len(cells) < 9:
            line = draw.choice(LINES).format(*draw.choices(NAMES, k=3))
            if not isinstance(run(*cells, line, "def double(x):\n    return 0"), str):
                cells.append(line)
        use = f"def double(x):\n    return [str({draw.choice(NAMES)}).partition(' at ')[0] for _ in 'a']"
        want = run(*cells, use)
        if want == "NameError":
            continue
        source = read(*cells, answer("double", use)).answers["double"].source
        assert run(source) == want, "\n".join([*cells, use, "---", source])
        compared += 1
        shorter += len(source) < len("\n".join([*cells, use]))
    assert shorter > 150, "a slice is not the whole notebook"


# what it costs

LONG = {
    "items": "B = {}\n" + "".join(f"B[{n}] = {n}\n" for n in range(9000)),
    "own items": "B = {}\n" + "B[len(B)] = B\n" * 9000,
    "augmented": "B = []\n" + "B += [1]\n" * 9000,
    "functions": "".join(f"def f{n}(): return f{n - 1}()\n" for n in range(1, 9000)) + "B = f8999\n",
    "decorated": "def d(f):\n    B[f] = 1\n    return f\nB = {}\n" + "".join(f"@d\ndef f{n}(): return f{n - 1}, B\n" for n in range(1, 4000)),
    "aliases": "B = []\n" + "".join(f"x{n} = x{n - 1} if {n} > 1 else B\nx{n}.append(1)\n" for n in range(1, 4500)),
    "one line": "B = 1; " * 9000 + "B = 1",
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_a_long_file_costs_what_its_lines_cost(read, text):
    started = time.monotonic()
    submission = read(text, answer("double", "def double(x):\n    return B"), "B.append(1)\n" * 900)
    assert "double" in submission.answers
    assert time.monotonic() - started < 12


def test_too_many_statements_are_refused_with_a_reason(read, tmp_path):
    started = time.monotonic()
    for text in ("a=1\n" * 48_000, "a?\n" * 60_000, "a;" * 90_000):
        with pytest.raises(Unreadable) as error:
            read(text)
        assert error.value.message.id == "file-too-many-statements"
    path = tmp_path / "a.py"
    path.write_text("# %%\na=1\n" * 1_999 + "# %%\nx = '" + "a" * 190_000 + "'\n# %%\n" * 3)
    with pytest.raises(Unreadable):
        read_submission(path, EXERCISES)
    assert time.monotonic() - started < 12


@pytest.mark.parametrize("text", [" " * 190_000 + "%x", " " * 190_000 + "x", "\n" * 190_000 + "x", "a" * 190_000 + "?", "a, " * 60_000 + "!",
                                  "# \n" * 60_000 + "%%x", "x = 1  " + " \t" * 90_000 + "!"], ids=range(7))  # fmt: skip
def test_magics_are_found_in_linear_time(read, text):
    started = time.monotonic()
    assert "double" in read(text, answer("double", USE)).answers
    assert time.monotonic() - started < 3
