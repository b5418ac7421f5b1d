"""Where lines end: beside Han characters, but not before what closes, after what opens, or inside a number with its unit."""

from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from kvlib.reports import screen
from kvlib.reports.wrap import PIECE

CLOSES, OPENS = "，。；：）」、", "（「"


def lines(text: str, width: int) -> list[str]:
    """The text as `say` prints it on a screen of `width` cells."""
    screen.console()
    out = StringIO()
    screen.say(Console(file=out, width=width, highlight=False), text, "")
    return out.getvalue().splitlines()


@settings(deadline=None)
@given(st.text("層留下的快取x8，。；：）」、（「", max_size=60), st.integers(12, 40))
def test_no_line_begins_with_what_closes_or_ends_with_what_opens(text, width):
    shown = lines(text, width)
    assert "".join(shown) == text
    assert all(cell_len(line) <= width and line == line.rstrip() for line in shown)
    if max((cell_len(piece.rstrip()) for piece in PIECE.findall(text)), default=0) <= width:  # else it must be cut somewhere
        assert not any(line[0] in CLOSES for line in shown[1:])
        assert not any(line[-1] in OPENS for line in shown[:-1])


def test_chinese_fills_its_lines():
    text = "每一層都留下全部的鍵與值" * 10
    shown = lines(text, 30)
    assert {cell_len(line) for line in shown[:-1]} == {30}


@pytest.mark.parametrize("words", ["1,594,368 B", "496.00 KiB", "80·10⁹ B", "1.25 GB", "4,096 tokens", "4,096 個"])
def test_a_number_stays_with_its_unit(words):
    for width in range(14, 40):
        assert any(words in line for line in lines(f"狀態每層 state {words} 其餘 and others", width)), width
        assert any(words in line for line in lines(f"state of a layer {words} × 2", width)), width


def test_western_text_breaks_at_spaces_only():
    text = "a/b-c (d, e) --no-hybrid config.json https://example.org/x"
    assert PIECE.findall(text) == [f"{word} " for word in text.split()[:-1]] + text.split()[-1:]
