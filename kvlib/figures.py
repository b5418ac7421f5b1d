"""From a matplotlib figure to what a reader sees: a picture, its alternative, its caption.

Invariant: the same figure gives the same bytes, no figure stays open, and no
character is ever drawn as an empty box.
"""

from __future__ import annotations

import base64
import html
import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from PIL import Image

from kvlib.i18n import T

CSS_PIXELS_PER_INCH = 100
SHARPNESS = 2  # image pixels per CSS pixel: crisp on high-density screens


@contextmanager
def _a_missing_glyph_raises() -> Iterator[None]:
    """Raise UserWarning where matplotlib would draw a box: it warns in text, but logs in math."""

    def refuse(record: logging.LogRecord) -> bool:
        if "does not have a glyph" in record.msg:
            raise UserWarning(record.getMessage())
        return True

    math_log = logging.getLogger("matplotlib.mathtext")
    math_log.addFilter(refuse)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="Glyph .* missing from font")
            yield
    finally:
        math_log.removeFilter(refuse)


def png(fig: Figure) -> bytes:
    """`fig` as PNG bytes, the same bytes each time; closes `fig`.

    Raises ValueError where a character of the figure is in none of its fonts.
    """
    raw, small = io.BytesIO(), io.BytesIO()
    try:
        with _a_missing_glyph_raises():
            fig.savefig(raw, format="png", dpi=SHARPNESS * CSS_PIXELS_PER_INCH)
    except UserWarning as warning:
        raise ValueError(
            f"this figure has a character that its fonts lack: {warning} Call kvlib.style.use(LANG) "
            "before drawing, keep Chinese out of $…$, and if that is not it, use another "
            "character or add this one in tools/make_font.py.") from None
    finally:
        plt.close(fig)
    # 256 colours are plenty for a diagram and halve the size of the committed notebooks.
    Image.open(raw).convert("RGB").quantize(256).save(small, "PNG", optimize=True)
    return small.getvalue()


def css_width(fig: Figure) -> int:
    """The width in CSS pixels at which the PNG of `fig` is sharp."""
    return round(fig.get_figwidth() * CSS_PIXELS_PER_INCH)


def figure(fig: Figure, *, alt: str, caption: str) -> None:
    """Show `fig` with its caption, and in words for those who cannot see it.

    alt says what is to be seen, with its numbers; caption states the conclusion.
    The alternative text goes where programs look for it (the PNG's `alt` metadata, which
    nbconvert honours and JupyterLab does not, and text/plain) and, folded, under the caption.
    Outside a notebook nothing is shown, but the figure is checked and closed all the same.

    Raises ValueError for an empty alt or caption, or a character that the fonts lack.
    """
    for name, text in (("alt", alt), ("caption", caption)):
        if not text.strip():
            raise ValueError(f"figure() got an empty {name}; give {name}=T('…', '…'): "
                             "alt describes the picture, caption states its conclusion")
    width = css_width(fig)
    picture = base64.b64encode(png(fig)).decode("ascii")
    from IPython import get_ipython  # not at the top: a figure in a file needs no notebook
    from IPython.display import display

    if get_ipython() is None:
        return
    summary = T("圖的文字說明", "The figure in words")
    words = (f"{caption}\n\n<details><summary>{summary}</summary>"
             f"<p>{html.escape(alt, quote=False)}</p></details>")
    display({"image/png": picture, "text/plain": alt},
            metadata={"image/png": {"alt": alt, "width": width}}, raw=True)
    display({"text/markdown": words, "text/plain": caption}, raw=True)
