"""Where a line may end, on the screen and in help texts: rich knows spaces only, and Chinese has none.

A line may end beside a Han character or its full-width punctuation too; never before what closes, never after what opens,
and never between a number and its unit.
"""

import re

_WIDE = "\u2e80-\u9fff\uf900-\ufaff\uff01-\uffe6"  # Han, kana and their punctuation
_CLOSES = "，。、；：！？）」』】》〉…％" + re.escape(")],;:!?%/")
_OPENS = "（「『【《〈" + re.escape("([")

_UNIT = r"(?<=[\d⁰⁹]) (?=(?:(?:[KMGT]i?)?B|tokens?)\b|個)"  # the space of 16 KiB, 10⁹ B, 4,096 tokens
_BESIDE_HAN = rf"(?<![{_OPENS}\s])(?![{_CLOSES}])(?:(?<=[{_WIDE}])|(?=[{_WIDE}]))"
PIECE = re.compile(rf"\s*(?:{_UNIT}|\S)+?(?:(?!{_UNIT})\s+|{_BESIDE_HAN}|$)")
"""What stays on one line, and the spaces behind it."""


def wrap_chinese() -> None:
    """Let rich break lines at these places. Its own are in one pattern, which has no public name."""
    from rich import _wrap

    _wrap.re_word = PIECE
