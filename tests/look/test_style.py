"""One line sets the look; one line shows a figure, in words as well."""

import base64
import io
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from kvlib import figures, i18n, style


def a_figure():
    fig, ax = plt.subplots()
    ax.plot([1, 2, 3], [1, 4, 9], label=style.T("上下文長度", "context length"))
    ax.legend()
    return fig


@pytest.fixture(params=i18n.LANGUAGES)
def lang(request):
    style.use(request.param)
    return request.param


def test_use_sets_the_language_of_T(lang):
    assert style.T("zh-TW", "en") == lang


def test_use_refuses_another_language():
    with pytest.raises(ValueError, match="fr"):
        style.use("fr")


def test_use_gives_the_same_look_whatever_was_set_before():
    style.use("en")
    fresh = dict(plt.rcParams)
    plt.rcParams.update({"font.size": 30, "axes.grid": False, "lines.linestyle": "--"})
    style.use("en")
    assert dict(plt.rcParams) == fresh


def test_use_leaves_alone_where_figures_go(monkeypatch):
    monkeypatch.setitem(plt.rcParams, "interactive", True)
    backend = plt.get_backend()
    style.use("en")
    assert (plt.isinteractive(), plt.get_backend()) == (True, backend)


def test_no_two_roles_of_a_budget_share_a_colour():
    roles = ("weights", "kv", "activations", "runtime", "free", "waste", "query", "compute",
             "highlight", "ink")
    assert len({style.COLORS[role] for role in roles}) == len(roles)


def test_a_figure_shows_picture_alternative_and_caption(lang, shown):
    outputs = shown(style.figure, a_figure(), alt="rises from 1 to 9; x < 4", caption="**Grows.**")
    (picture, metadata), (words, _) = outputs
    assert base64.b64decode(picture["image/png"]).startswith(b"\x89PNG")
    assert metadata["image/png"]["alt"] == picture["text/plain"] == "rises from 1 to 9; x < 4"
    assert words["text/markdown"].startswith("**Grows.**\n")
    assert "rises from 1 to 9; x &lt; 4" in words["text/markdown"]
    assert style.T("圖的文字說明", "The figure in words") in words["text/markdown"]


def test_a_figure_is_shown_at_half_its_pixels(lang, shown):
    (picture, metadata), _ = shown(style.figure, a_figure(), alt="a", caption="c")
    pixels = Image.open(io.BytesIO(base64.b64decode(picture["image/png"]))).width
    assert pixels == 2 * metadata["image/png"]["width"] == 1400


def test_a_shown_figure_is_closed(lang, shown):
    shown(style.figure, a_figure(), alt="a", caption="c")
    assert plt.get_fignums() == []


def test_outside_a_notebook_nothing_is_shown(lang, capsys):
    assert style.figure(a_figure(), alt="a", caption="c") is None
    assert capsys.readouterr() == ("", "")
    assert plt.get_fignums() == []


@pytest.mark.parametrize("words", [{"alt": " ", "caption": "c"}, {"alt": "a", "caption": ""}])
def test_a_figure_without_words_is_refused(lang, words):
    empty = next(name for name, text in words.items() if not text.strip())
    with pytest.raises(ValueError, match=f"empty {empty}"):
        style.figure(a_figure(), **words)


def test_the_same_figure_gives_the_same_bytes(lang):
    assert figures.png(a_figure()) == figures.png(a_figure())


def test_the_same_figure_gives_the_same_bytes_in_another_process():
    code = ("import hashlib, matplotlib.pyplot as plt; from kvlib import figures, style\n"
            "style.use('zh-TW'); fig, ax = plt.subplots(); ax.plot([1, 2]); ax.set_title('快取')\n"
            "print(hashlib.sha256(figures.png(fig)).hexdigest())")
    first, second = (subprocess.run([sys.executable, "-W", "error", "-c", code], check=True,
                                    capture_output=True, text=True) for _ in range(2))
    assert first.stdout == second.stdout
    assert first.stderr == second.stderr == ""


def test_a_picture_carries_no_date_and_no_program_name(lang):
    assert Image.open(io.BytesIO(figures.png(a_figure()))).info.keys() <= {"dpi"}


def test_an_ordinary_figure_stays_small_and_true_in_colour(lang):
    fig, ax = plt.subplots()
    for seed in range(7):
        ax.plot(np.random.default_rng(seed).normal(size=50).cumsum())
    data = figures.png(fig)
    assert len(data) < 60_000
    colours = {f"#{r:02X}{g:02X}{b:02X}" for _, (r, g, b) in
               Image.open(io.BytesIO(data)).convert("RGB").getcolors(256)}
    assert {style.BLUE, style.ORANGE, "#FFFFFF"} <= colours
