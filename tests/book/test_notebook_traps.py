"""Each trap in a built notebook is caught when someone walks into it again."""

import base64

import pytest
from nbformat import v4

from tools import book
from tools.lint import NOTEBOOK_LINTS, lint_links

COMPUTES, WIDGET, SHOWS = 2, 3, 4  # indices of the toy's cells
PROSE = 1


def problems(nb) -> str:
    return "\n".join(str(problem) for lint in NOTEBOOK_LINTS for problem in lint(nb, "toy.ipynb"))


def test_the_built_toy_is_clean(notebook):
    assert [notebook.cells[i].cell_type for i in (PROSE, COMPUTES)] == ["markdown", "code"]
    assert problems(notebook) == ""


def strip_count(nb):
    nb.cells[COMPUTES].execution_count = None


def shuffle_count(nb):
    nb.cells[COMPUTES].execution_count = 7


def keep_widget_state(nb):
    nb.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {}}


def keep_widget_view(nb):
    nb.cells[WIDGET].outputs[0].data["application/vnd.jupyter.widget-view+json"] = {}


def widget_alone(nb):
    del nb.cells[SHOWS]


def warn(nb):
    nb.cells[COMPUTES].outputs.append(v4.new_output("stream", name="stderr", text="Warning: x"))


def fail(nb):
    nb.cells[COMPUTES].outputs = [v4.new_output("error", ename="KeyError", evalue="x")]


def print_address(nb):
    nb.cells[COMPUTES].outputs[0].text += "<object at 0x7f3a5c2d1e80>"


def print_path(nb):
    nb.cells[COMPUTES].outputs[0].text += "/home/me/kv"


def drop_alt(nb):
    nb.cells[SHOWS].outputs[0].metadata = {}


def grow(nb):
    nb.cells[SHOWS].outputs[0].data["image/png"] = base64.b64encode(bytes(400_000)).decode()


TRAPS = {
    strip_count: "never run",
    shuffle_count: "execution count 7, in a clean run 2",
    keep_widget_state: "holds widget state",
    keep_widget_view: "keeps a widget model",
    widget_alone: "is a widget; let one of the next two",
    warn: "wrote to stderr",
    fail: "raised KeyError",
    print_address: "prints an address",
    print_path: "prints an absolute path",
    drop_alt: "without a text alternative",
    grow: "kB, allowed 500",
}


@pytest.mark.parametrize(("trap", "message"), TRAPS.items(), ids=[t.__name__ for t in TRAPS])
def test_lint_catches(notebook, trap, message):
    trap(notebook)
    assert message in problems(notebook)


def test_number_that_no_cell_computes_is_caught(notebook):  # test_numbers.py: which ones
    notebook.cells[PROSE].source += "\n\nIt is 3.27 GiB."
    assert "3.27 GiB is not in the code or output" in problems(notebook)


LINKS = {
    "missing file": ("[next](02-next.ipynb)", "there is no 02-next.ipynb"),
    "missing heading": ("[up](#Objectives)", "no heading gives #Objectives"),
    "missing heading elsewhere": ("[twin](../zh-TW/01-toy.ipynb#學習)", "no heading gives #學習"),
    "missing picture": ("![figure](figure.png)", "there is no figure.png"),
    "missing HTML target": ('<a href="gone.ipynb">gone</a>', "there is no gone.ipynb"),
    "heading": ("[up](#Learning-objectives)", ""),
    "heading elsewhere": ("[twin](../zh-TW/01-toy.ipynb#學習目標)", ""),
    "the web": ("[paper](https://example.org/a) <https://example.org/b>", ""),
    "code": ("`[not](a-link.ipynb)`", ""),
}


@pytest.mark.parametrize(("text", "message"), LINKS.values(), ids=LINKS)
def test_link_to(toy, notebook, text, message):
    notebook.cells[PROSE].source += f"\n\n{text}"
    page = toy.notebook("01-toy", "en")
    book.write(notebook, page)
    found = "\n".join(map(str, lint_links(page, "toy.ipynb")))
    assert message in found if message else found == ""
