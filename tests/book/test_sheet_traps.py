"""Each trap in an exercise sheet is caught when someone walks into it again."""

import pytest

from tools import book
from tools.lint import lint_book, lint_python_twins, lint_sheet, lint_sheet_numbers
from tools.sheet import Sheet
from tools.source import SourceError

SLUG = "01-toy"


def problems(sheet) -> str:
    return "\n".join(map(str, lint_sheet(sheet, "01-toy.md")))


def test_the_toy_sheet_is_clean(toy_sheet):
    assert problems(toy_sheet()) == ""


def test_what_is_built_of_it_is_clean(sheets_once):
    found = [problem for problem in lint_book(sheets_once) if problem.where.startswith(("exercises/", "solutions/"))]
    assert found == []


STARTER = '''def toy_bytes(n_tokens: int) -> int:
    """Bytes of a cache of n_tokens."""
    raise NotImplementedError'''
TRAPS = {
    "number in a statement": ("4,096 tokens take", "4,095 tokens take", "numbers differ"),
    "number in a hint": ("Think of one token", "Think of 12 tokens", "numbers differ"),
    "word in an explanation": ("乘上去就好", "用循環乘上去就好", "循環 is not used"),
    "half-width mark in a follow-up": ("丟出錯誤。", "丟出錯誤.", "half-width"),
    "deleted twin of a hint": ('+++ {"lang": "en", "tags": ["hint"]}\n\nMake it first.', "", "hints in en"),
    "directive": ("Just multiply.", ":::{note}\nJust multiply.\n:::\n", "MyST directive"),
    "two titles": ("# Exercises: compute", "# Exercises\n\n# Compute", "has 2 titles"),
    "heading twice": ("## A cache", "## Bytes", "headings occur twice: Bytes"),
    "no heading": ("## A cache", "A cache", "must begin with its heading"),
    "two headings": ("Write `ToyCache`.", "## More\n\nWrite `ToyCache`.", "a second `## ` heading in en"),
    "id with capitals": ("toy-bytes", "Toy-Bytes", "an id has lower-case words"),
    "difficulty": ("difficulty: 2", "difficulty: 6", "its difficulty is 6"),
    "check of another exercise": ('check("toy-bytes"', 'check("toy-cache"', 'must be check("toy-bytes", toy_bytes)'),
    "signature of a function": (STARTER, STARTER.replace("n_tokens: int", "n: int"), "the starter has toy_bytes(n: int) -> int"),
    "default of a function": (STARTER, STARTER.replace(": int)", ": int = 1)"), "the starter has toy_bytes(n_tokens: int=1)"),
    "signature of a method": ("def append(self, x: int)", "def append(self, y: int)", "the starter has ToyCache.append(self, y: int)"),
    "starter that is solved": (STARTER, STARTER.replace("raise NotImplementedError", "return 8"), "raise NotImplementedError"),
    "entry": ("entry: ToyCache", "entry: ToyCash", "must define ToyCash"),
    "answer that needs the library": (
        "return n_tokens * B", "import kvlib\n    return n_tokens * B", "imports kvlib, which is not there"),
    "public checks by another name": ("def public(t):\n    cache", "def check(t):\n    cache", "a function public(t)"),
    "long example": ("BYTES_PER_TOKEN = 8", "x = 1\n" * 41, "41 lines, allowed 40"),
    "two prints": ("BYTES_PER_TOKEN = 8", "print(1)\nprint(2)", "2 prints"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), TRAPS.values(), ids=TRAPS)
def test_lint_or_parser_catches(toy_sheet, old, new, message):
    try:
        found = problems(toy_sheet(old, new, everywhere=message.startswith("an id")))
    except SourceError as refused:
        found = str(refused)
    assert message in found
    assert "01-toy.md" in found


def test_an_answer_may_be_longer_than_a_cell_of_a_chapter(toy_sheet):
    long = toy_sheet("        self.kept.append(x)\n", "        self.kept.append(x)\n" + "        self.n = 1\n" * 30)
    assert problems(long) == ""


def numbers(root, changed: str = "") -> str:
    sheet = Sheet.read(root / "exercises" / "src" / f"{SLUG}.md")
    nb = book.read(root / "solutions" / "en" / f"{SLUG}.ipynb")
    next(cell for cell in nb.cells if cell.source.startswith("Just multiply.")).source += changed
    return "\n".join(map(str, lint_sheet_numbers(nb, sheet, "toy.ipynb")))


def test_numbers_are_proved_by_the_public_checks(sheets_once):
    assert numbers(sheets_once, " That is 32,768.") == ""
    assert "32,769 is not in the code or output" in numbers(sheets_once, " That is 32,769.")


def test_numbers_are_proved_by_code_of_the_explanation(sheets_once):
    assert numbers(sheets_once, " So 32.5 KiB.") == ""
    assert "32.6 KiB is not" in numbers(sheets_once, " So 32.6 KiB.")


def test_what_a_statement_gives_may_be_repeated(sheets_once):
    assert numbers(sheets_once, " For 4,096 tokens.") == ""
    assert "4,097 is not" in numbers(sheets_once, " For 4,097 tokens.")


def test_a_sheets_sums_need_no_proof_and_wrong_ones_are_caught(sheets_once):
    sheet = Sheet.read(sheets_once / "exercises" / "src" / f"{SLUG}.md")
    nb = book.read(sheets_once / "solutions" / "en" / f"{SLUG}.ipynb")
    title = next(cell for cell in nb.cells if cell.source.startswith("# Exercises"))
    title.source += "\n\nAll are worth 10 points."
    assert lint_sheet_numbers(nb, sheet, "toy.ipynb") == []
    title.source += " All are worth 12 points."
    assert "12 is not in" in str(*lint_sheet_numbers(nb, sheet, "toy.ipynb"))


SAID = {
    "T": ('T("內存", "memory")', "內存 is not used"),
    "keywords": ('prop(1, zh="看,聽", en="look, listen")', "half-width"),
    "mapping": ('x = {"zh-TW": "占 16 GB", "en": "takes 61 GB"}', "numbers differ"),
    "Chinese in English": ('x = {"zh-TW": "記憶體", "en": "記憶體"}', "Chinese in the English"),
    "no space": ('raises(zh="寫n個時", en="when n are written")', "no space between"),
    "a field": ('x = {"zh-TW": "得到 {got}，應為 {want}", "en": "got {got}, expected {want}"}', ""),
    "one": ('T("一半", "1/2 of it")', "numbers differ"),
    "a unit": ('T("差 2 倍", "a factor of 2")', ""),
}


@pytest.mark.parametrize(("code", "message"), SAID.values(), ids=SAID)
def test_what_a_module_says(code, message):
    found = "\n".join(map(str, lint_python_twins(code, "hidden.py")))
    assert message in found if message else found == ""
