"""What a teacher hands out: one language of the book, its exercise sheets, and the tools, without a solution or a hidden test.

Invariant: only files on the allowlist go in, no notebook links to what stays out, and the same book gives the same bytes.
"""

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from kvgrade.exercises import HOME
from kvlib.errors import SpecError
from kvlib.i18n import LANGUAGES

ALLOWED = (
    "LICENSE", "LICENSE-TEXT", "pyproject.toml", "constraints.txt", "tools/reading_copy.py", "tools/lab/overrides.json",
    "kvlib/*.py", "kvlib/kernels/*.py", "kvlib/kernels/*.cu", "kvlib/models/*.json", "kvlib/fonts/*",
    "kvgrade/**/*.py", "kvgrade/classroom/templates/*.html", "kvgrade/sheets/*.json",
    "notebooks/{lang}/*.ipynb", "exercises/{lang}/*.ipynb", "assets/*.{lang}.png",
)  # fmt: skip
TARGETS = ("lab", "help", ".venv/.book", ".venv/pyvenv.cfg")  # of the Makefile, those a student needs

_TIME = (1980, 1, 1, 0, 0, 0)
_LINK = re.compile(r"\[([^\]\n]*)\]\((?!https?:|mailto:|#)([^)\s]*)\)")
_RULE = re.compile(r"^([\w./]+(?: [\w./]+)*):(?!=)", re.MULTILINE)

NOTE = {
    "zh-TW": "> 這一份是老師發的：隱藏測試由老師執行，所以 `kvgrade check` 在這裡不能用，`kvgrade drill` 只有公開檢查。"
    "做完練習請存檔，把練習的筆記本交給老師。",
    "en": "> This copy is from your teacher, who runs the hidden tests: `kvgrade check` does not work in it, and `kvgrade drill` "
    "has the public checks alone. When you have done the exercises, save, and hand the exercise notebook in.",
}
README = {
    "zh-TW": """# KV 快取：從公式到解碼

1. 安裝 Python 3.11、3.12 或 3.13，以及 `make`。在這個資料夾執行 `make lab`，JupyterLab 會打開起始頁
   （沒有 GPU 的 Linux：加上 `TORCH_INDEX=https://download.pytorch.org/whl/cpu`）。
2. 你寫在自己的副本 `reading/` 裡：章節在 `reading/notebooks/zh-TW`，練習在 `reading/exercises/zh-TW`。
3. 每一題的答案寫在標著 `# kvgrade: …` 的儲存格，再執行下面的 `check(…)`。它只跑公開檢查；隱藏測試由老師執行，
   所以 `kvgrade check` 在這裡不能用。
4. 不要改函式名稱，也不要刪除或複製作答的儲存格。需要的 import 可以寫在任何一個儲存格。
5. 存檔後，交出 `reading/exercises/zh-TW` 裡的 `.ipynb`。
""",
    "en": """# The KV cache, from the formula to the decode step

1. Install Python 3.11, 3.12 or 3.13 and `make`. In this folder run `make lab`: JupyterLab opens on the start page
   (Linux without a GPU: add `TORCH_INDEX=https://download.pytorch.org/whl/cpu`).
2. You write in a copy of your own, `reading/`: chapters are in `reading/notebooks/en`, exercises in `reading/exercises/en`.
3. Answer each exercise in the cell marked `# kvgrade: …` and run the `check(…)` below it. It runs the public checks alone;
   your teacher runs the hidden tests, so `kvgrade check` does not work here.
4. Leave the names of the functions as they are, and neither delete nor copy an answer's cell. Imports may stand in any cell.
5. Save, and hand in the `.ipynb` from `reading/exercises/en`.
""",
}


def make_bundle(lang: str, out: Path, home: Path = HOME) -> Path:
    """Write the bundle of one language to the file `out`, and return it. Raises SpecError when the book is not built."""
    if lang not in LANGUAGES:
        raise SpecError(f"no language {lang!r} in this book; use one of {', '.join(LANGUAGES)}")
    if out.is_dir():
        raise SpecError(f"{out} is a folder; give the name of the zip to write, such as student.zip")
    files = dict(contents(lang, home))
    for folder in ("notebooks", "exercises"):
        if not any(name.startswith(f"{folder}/{lang}/") for name in files):
            raise SpecError(f"there is no {folder}/{lang} here; run make build first")
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f".{out.name}.part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(f"kv-cache-book-{lang}/{name}", _TIME)
            info.create_system, info.external_attr = 3, 0o100644 << 16  # the same on every platform
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, files[name])
    part.replace(out)
    return out


def contents(lang: str, home: Path = HOME) -> Iterator[tuple[str, bytes]]:
    """Every file of the bundle by its name in it."""
    yield "README.md", README[lang].encode()
    yield "Makefile", _makefile((home / "Makefile").read_text(encoding="utf-8"), lang).encode()
    for pattern in ALLOWED:
        for path in sorted(home.glob(pattern.format(lang=lang))):
            if path.is_file() and not path.is_symlink():
                data = path.read_bytes()
                if path.suffix == ".ipynb":
                    noted = path.parent.parent.name == "exercises" or path.name.startswith("00-")
                    data = _notebook(data, lang, noted)
                yield path.relative_to(home).as_posix(), data


def _notebook(data: bytes, lang: str, noted: bool) -> bytes:
    """A notebook without links to what is not in the bundle: our solutions and the other language. `noted`: says what is missing."""
    notebook = json.loads(data)
    cells = [cell for cell in notebook["cells"] if cell["metadata"].get("kvgrade", {}).get("role") != "solutions"]
    for cell in cells:
        if cell["cell_type"] == "markdown":
            cell["source"] = _text("".join(cell["source"]), lang).splitlines(keepends=True)
    title = next((place for place, cell in enumerate(cells) if cell["cell_type"] == "markdown"), None)
    if noted and title is not None:
        note = {"cell_type": "markdown", "id": "handed-out", "metadata": {"lang": lang}, "source": [NOTE[lang]]}
        cells.insert(title + 1, note)
    return (json.dumps({**notebook, "cells": cells}, ensure_ascii=False, indent=1) + "\n").encode()


def _text(text: str, lang: str) -> str:
    """Markdown without those links; a list item or a last column of a table that holds nothing else goes with them."""
    lines, table = text.split("\n"), []
    for place, line in enumerate([*lines, ""]):
        if line.startswith("|"):
            table.append(place)
        elif table:
            if any(_outside(lines[row].split("|")[-2], lang) for row in table):
                for row in table:
                    lines[row] = lines[row].rstrip().removesuffix("|").rpartition("|")[0] + "|"
            table = []
    kept = [line for line in lines if not (line.startswith("- ") and _outside(line, lang))]
    return _LINK.sub(lambda link: link[1] if _leaves(link[2], lang) else link[0], "\n".join(kept))


def _outside(text: str, lang: str) -> bool:
    """Whether every link in it leaves the bundle, and there are some."""
    links = [link[2] for link in _LINK.finditer(text)]
    return bool(links) and all(_leaves(link, lang) for link in links)


def _leaves(link: str, lang: str) -> bool:
    folders = link.split("/")[:-1]
    return "solutions" in folders or any(other in folders for other in LANGUAGES if other != lang)


def _makefile(text: str, lang: str) -> str:
    """The book's Makefile with what a student needs of it."""
    kept = []
    for block in text.split("\n\n"):
        rules = [name for match in _RULE.finditer(block) for name in match[1].split() if not name.startswith(".PHONY")]
        if not rules or any(name in TARGETS for name in rules):
            kept.append(block)
    text = "\n\n".join(kept)
    text = re.sub(r"^# make (?!lab\b).*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"; (?:TEST_ARGS|ARGS)=…[^\n]*|, TEST_ARGS[^\n]*", "", text)
    text = re.sub(r"^\.PHONY:.*$", ".PHONY: help lab", text, flags=re.MULTILINE)
    return re.sub(r"^BOOK_LANG \?= .*$", f"BOOK_LANG ?= {lang}", text, flags=re.MULTILINE)
