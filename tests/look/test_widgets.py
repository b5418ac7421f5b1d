"""A lab bench follows its controls, and reads well before anything has run."""

import html
import re

import matplotlib.pyplot as plt
import pytest
from ipywidgets.widgets.widget import _instances

from kvlib import style
from kvlib.widgets import VIEW, choice, explore, slider


def draw(n_tokens, gpu):
    if n_tokens == 13:
        raise ValueError("thirteen <tokens>")
    fig, ax = plt.subplots(figsize=(3, 2))
    ax.barh([0], [n_tokens])
    return fig, f"{n_tokens} tokens & {gpu}"


@pytest.fixture
def bench(shown):
    style.use("en")
    controls = {"n_tokens": slider("Context length", 1, 100, value=10),
                "gpu": choice("GPU", [("one H100", "h100"), ("one A100", "a100")])}
    ((data, _),) = shown(explore, draw, **controls)
    box = _instances[data[VIEW]["model_id"]]
    readout = next(part for part in box.children if "kv-readout" in part._dom_classes)
    return controls, readout, box.children[-1]


def test_the_first_drawing_is_there_at_once(bench):
    _, readout, picture = bench
    assert readout.value == "10 tokens &amp; h100"
    assert re.search(r'<img class="kv-figure" alt="10 tokens &amp; h100" width="300"', picture.value)


@pytest.mark.parametrize("name, value, expected", [
    ("n_tokens", 90, "90 tokens & h100"),
    ("gpu", "a100", "10 tokens & a100"),
])
def test_number_and_picture_follow_each_control(bench, name, value, expected):
    controls, readout, picture = bench
    before = picture.value
    controls[name].value = value
    assert readout.value == html.escape(expected)
    assert f'alt="{html.escape(expected)}"' in picture.value
    if name == "n_tokens":
        assert picture.value.split("src=")[1] != before.split("src=")[1]


def test_no_figure_stays_open(bench):
    controls, _, _ = bench
    controls["n_tokens"].value = 20
    assert plt.get_fignums() == []


def test_an_error_replaces_the_number_instead_of_leaving_an_old_one(bench):
    controls, readout, picture = bench
    controls["n_tokens"].value = 13
    assert readout.value == "ValueError: thirteen &lt;tokens&gt;"
    assert picture.value == ""
    controls["n_tokens"].value = 14
    assert readout.value.startswith("14 tokens")


def test_an_error_in_the_first_drawing_is_the_cells(shown):
    with pytest.raises(ValueError, match="thirteen"):
        explore(draw, n_tokens=slider("n", 1, 100, value=13), gpu=choice("GPU", ["h100"]))


@pytest.mark.parametrize("lang, words", [("zh-TW", "請執行這一格"), ("en", "Run this cell")])
def test_without_its_widgets_the_output_is_a_sentence_in_the_readers_language(shown, lang, words):
    style.use(lang)
    ((data, metadata),) = shown(explore, draw, n_tokens=slider("n", 1, 9, value=2),
                                gpu=choice("GPU", ["h100"]))
    assert data.keys() == {VIEW, "text/plain"}
    assert data["text/plain"].startswith(words)
    assert metadata == {}


def test_sliders_of_whole_numbers_give_whole_numbers():
    assert isinstance(slider("n", 1, 9, value=2).value, int)
    assert isinstance(slider("u", 0.5, 1, value=0.9, step=0.05).value, float)


def test_a_slider_answers_on_release_and_shows_its_label_in_full():
    control = slider("Context length", 1, 9, value=2)
    assert not control.continuous_update
    assert control.tooltip == control.description == "Context length"


def test_a_menu_starts_where_it_is_told():
    assert choice("GPU", ["a", "b"]).value == "a"
    assert choice("GPU", ["a", "b"], value="b").value == "b"
