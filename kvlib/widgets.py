"""A lab bench: turn a control, and the figure and the number follow.

    explore(draw, gpu=choice("GPU", ["h100-80gb", "a100-80gb"]),
            n_tokens=slider(T("上下文長度", "Context length"), 1024, 131072, value=4096))

`draw(n_tokens=…, gpu=…)` returns a matplotlib figure and one line of text.
Invariant: picture and number always belong to the values that the controls show.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Sequence

import ipywidgets
from IPython.display import display
from matplotlib.figure import Figure

from kvlib.figures import css_width, png
from kvlib.i18n import T

VIEW = "application/vnd.jupyter.widget-view+json"
LOOK = {"style": {"description_width": "11em"}, "layout": {"width": "40em", "max_width": "100%"}}


def slider(label: str, low: float, high: float, *, value: float,
           step: float = 1) -> ipywidgets.IntSlider | ipywidgets.FloatSlider:
    """A slider from `low` to `high`; whole numbers where all four are. Answers on release."""
    whole = all(isinstance(number, int) for number in (low, high, value, step))
    kind = ipywidgets.IntSlider if whole else ipywidgets.FloatSlider
    return kind(value, min=low, max=high, step=step, description=label, tooltip=label,
                readout_format=",d" if whole else ".2f", continuous_update=False, **LOOK)


def choice(label: str, options: Sequence, *, value=None) -> ipywidgets.Dropdown:
    """A menu of `options`, each a value or a pair (words, value); the first unless `value`."""
    menu = ipywidgets.Dropdown(options=options, description=label, tooltip=label, **LOOK)
    if value is not None:
        menu.value = value
    return menu


def image(fig: Figure, *, alt: str) -> str:
    """`fig` as an HTML image; unlike ipywidgets' own Image it has a text alternative."""
    data = base64.b64encode(png(fig)).decode("ascii")
    return (f'<img class="kv-figure" alt="{html.escape(alt)}" width="{css_width(fig)}" '
            f'style="max-width: 100%" src="data:image/png;base64,{data}">')


def explore(draw: Callable[..., tuple[Figure, str]],
            **controls: ipywidgets.ValueWidget) -> None:
    """Show `controls` with what `draw` makes of their values, again after each change.

    An error in the first drawing is the cell's; a later one is shown in place of the number.
    For authors and tests the page's parts carry the CSS classes kv-bench, kv-control,
    kv-readout and kv-figure. Saved without its widgets, the output is one sentence of text.
    """
    readout = ipywidgets.HTML(style={"font_size": "1.6em"}).add_class("kv-readout")
    picture = ipywidgets.HTML()

    def redraw() -> None:
        fig, text = draw(**{name: control.value for name, control in controls.items()})
        picture.value = image(fig, alt=text)
        readout.value = html.escape(text)

    def follow(_change: object) -> None:
        try:
            redraw()
        except Exception as error:  # noqa: BLE001 - else it vanishes, and the old number stays
            picture.value = ""
            readout.value = html.escape(f"{type(error).__name__}: {error}")

    redraw()
    for control in controls.values():
        control.add_class("kv-control").observe(follow, names="value")
    bench = ipywidgets.VBox([*controls.values(), readout, picture]).add_class("kv-bench")
    words = T("請執行這一格，控制項就會出現。", "Run this cell to get the controls.")
    view = {"version_major": 2, "version_minor": 0, "model_id": bench.model_id}
    display({VIEW: view, "text/plain": words}, raw=True)
