"""python -m tools.lint looks at every part of a book."""

import pytest

from tools.lint.__main__ import main


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_clean_book_passes(toy, capsys):
    assert main(toy.root) == 0
    assert capsys.readouterr().out == "0 problems\n"


def break_source(toy):
    edit(toy.root / toy.source / "01-toy.md", "暫無。", "默認暫無。")


def break_notebook(toy):
    edit(toy.notebook("01-toy", "zh-TW"), '"execution_count": 2', '"execution_count": 9')


def break_link(toy):
    edit(toy.notebook("01-toy", "en"), "../zh-TW/01-toy.ipynb", "../zh-TW/01-gone.ipynb")


def break_page(toy):
    (toy.root / "README.md").write_text("[start](notebooks/en/00-gone.ipynb)", encoding="utf-8")


def break_twin_page(toy):
    (toy.root / "README.md").write_text("It takes 16.05 GB.", encoding="utf-8")
    (toy.root / "README.zh-TW.md").write_text("占 16.05 GiB。", encoding="utf-8")


def break_picture(toy):
    (toy.root / "README.md").write_text("![256 to 257](assets/01-toy.en.png)", encoding="utf-8")


def break_library(toy):
    (toy.root / "kvlib").mkdir()
    (toy.root / "kvlib" / "words.py").write_text('X = "\\n內存"\nY = "循環"\n', encoding="utf-8")


def break_library_comment(toy):
    (toy.root / "kvlib").mkdir()
    (toy.root / "kvlib" / "words.py").write_text("# 缓存\n", encoding="utf-8")


def refuse_source(toy):
    edit(toy.root / toy.source / "01-toy.md", '+++ {"lang": "en"}', "+++")


BREAKS = {
    break_source: "(zh-TW): 默認 is not used",
    break_notebook: "notebooks/zh-TW/01-toy.ipynb cell 3: has execution count 9",
    break_link: "notebooks/en/01-toy.ipynb cell 2: link to ../zh-TW/01-gone.ipynb",
    break_page: "README.md: link to notebooks/en/00-gone.ipynb",
    break_twin_page: "README.md: numbers differ from the zh-TW twin: only here `16.05 GB`; only there `16.05 GiB`",
    break_picture: "README.md: 257 is not in the code or output",
    break_library_comment: "kvlib/words.py:1 (zh-TW): 缓 is a simplified character",
    break_library: "kvlib/words.py:2 (zh-TW): 循環 is not used",
    refuse_source: "01-toy.md:26: prose with no language",
}


@pytest.mark.parametrize(("change", "message"), BREAKS.items(), ids=[c.__name__ for c in BREAKS])
def test_it_reports_and_fails(toy, capsys, change, message):
    change(toy)
    assert main(toy.root) == 1
    assert message in capsys.readouterr().out
