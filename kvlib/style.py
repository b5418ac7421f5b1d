"""How the book looks. One line for authors, in the first cell of every chapter:

    from kvlib.style import T, figure, use
    use(LANG)

Invariant: after `use` every figure draws Chinese with the font shipped in kvlib/fonts,
whatever fonts the machine has, and one thing has one colour in all chapters (`COLORS`).
"""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

# On a new machine matplotlib reports on stderr that it looks for fonts: not the reader's concern.
_font_log = logging.getLogger("matplotlib.font_manager")
_level = _font_log.level
_font_log.setLevel(logging.ERROR)
import matplotlib
from cycler import cycler
from matplotlib.font_manager import fontManager

from kvlib.figures import CSS_PIXELS_PER_INCH, figure
from kvlib.i18n import T, language, set_language
from kvlib.tables import table

_font_log.setLevel(_level)

__all__ = ["COLORS", "FONT_FAMILY", "FONT_FILE", "T", "figure", "language", "table", "use"]

FONT_FAMILY = "KVBook Sans TC"
FONT_FILE = Path(__file__).parent / "fonts" / "KVBookSansTC-Regular.otf"

# Okabe and Ito's colour-blind-safe palette, https://jfly.uni-koeln.de/color/
BLUE, ORANGE, GREEN, VERMILLION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE, YELLOW = "#56B4E9", "#CC79A7", "#F0E442"
INK, GREY, PALE = "#2B2B2B", "#8C8C8C", "#E6E6E6"

COLORS = {
    "weights": BLUE,
    "kv": ORANGE,
    "activations": PURPLE,
    "runtime": GREY,
    "free": PALE,
    "waste": YELLOW,  # reserved, but never written
    "query": GREEN,
    "compute": SKY,
    "highlight": VERMILLION,
    "muted": GREY,  # what something is compared with
    "ink": INK,
}
"""The colour of each role. Never the only carrier: label or hatch as well."""

RC = {
    "font.family": [FONT_FAMILY, "DejaVu Sans"],
    "font.size": 10.5,
    "axes.unicode_minus": True,
    "axes.prop_cycle": cycler(color=[BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, GREY]),
    "axes.titlesize": 12.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": PALE,
    "grid.linewidth": 0.8,
    "lines.linewidth": 2.0,
    "patch.edgecolor": "white",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.edgecolor": "none",
    "legend.framealpha": 0.85,
    "figure.figsize": (7.0, 3.8),
    "figure.dpi": CSS_PIXELS_PER_INCH,
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.w_pad": 0.08,
    "figure.constrained_layout.h_pad": 0.08,
    "svg.hashsalt": "kvlib",
}


def use(lang: str) -> None:
    """Set the language of `T` and the look of every figure that follows.

    Raises ValueError for a language that the book is not in.
    """
    set_language(lang)
    _register_font()
    matplotlib.rcdefaults()
    matplotlib.rcParams.update(RC)


def _register_font() -> None:
    """Tell matplotlib about the shipped font, once; it stands in for its own bold, too."""
    if any(entry.fname == str(FONT_FILE) for entry in fontManager.ttflist):
        return
    fontManager.addfont(FONT_FILE)
    regular = fontManager.ttflist[-1]
    fontManager.ttflist.append(dataclasses.replace(regular, weight=700))
