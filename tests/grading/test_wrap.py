"""Lines that fit, in text where Chinese and Latin stand side by side."""

import random

import pytest
from rich.cells import cell_len

from kvgrade.command.wrap import wrap, wrap_markdown

ALPHABET = "記憶體快取，。（）「」abc def  .,;:()√×1234567890 -_`"


@pytest.mark.parametrize("width", [10, 23, 79])
def test_lines_fit_and_nothing_is_lost(width):
    rng = random.Random(width)
    for _ in range(300):
        text = "".join(rng.choice(ALPHABET) for _ in range(rng.randint(0, 200)))
        lines = wrap(text, width)
        assert all(cell_len(line) <= width for line in lines)
        assert "".join("".join(lines).split()) == "".join(text.split())


def test_no_line_begins_with_a_closing_or_ends_with_an_opening_mark():
    text = "這裡有一句話，後面還有（一個很長很長的括號），最後。" * 5
    for width in range(12, 40):
        lines = wrap(text, width)
        assert not any(line[0] in "，。）" for line in lines)
        assert not any(line[-1] == "（" for line in lines)


def test_a_word_stays_whole_where_it_fits():
    assert wrap("one two three", 9) == ["one two", "three"]
    assert wrap("supercalifragilistic", 8) == ["supercal", "ifragili", "stic"]


def test_code_tables_and_formulas_stay_as_they_are():
    kept = "```python\nx = [" + "1, " * 40 + "]\n```\n| a | " + "b " * 60 + "|\n$$\nE = " + "m " * 60 + "\n$$"
    assert "\n".join(wrap_markdown(kept, 40)) == kept


def test_paragraphs_and_items_are_wrapped_each_for_itself():
    text = "first " * 20 + "\nsecond\n\n- item " + "more " * 20 + "\n  end\n- short\n1. one"
    lines = list(wrap_markdown(text, 40))
    assert all(len(line) <= 40 for line in lines)
    assert [line for line in lines if line.startswith(("- ", "1. "))] == [next(x for x in lines if x.startswith("- item")), "- short", "1. one"]
    assert lines.count("") == 1 and "  " in lines[lines.index("- short") - 1]


def test_short_text_is_left_alone():
    text = "# Title\n\nline one\nline two\n\n- a\n- b"
    assert "\n".join(wrap_markdown(text, 40)) == text
