"""The file that a drill writes: statement, given code and starter, as .py or .ipynb. Invariant: no file is ever overwritten."""

import json
from pathlib import Path
from typing import Any

from kvgrade.command.wrap import wrap_markdown
from kvgrade.exercises import Exercise
from kvlib.errors import SpecError
from kvlib.i18n import T, language

WIDTH = 96


def write_paper(exercise: Exercise, folder: Path, notebook: bool) -> Path:
    """A fresh file for an exercise: ID.py, or ID-2.py where that exists. Raises SpecError where it cannot be written."""
    text = as_notebook(exercise) if notebook else as_python(exercise)
    suffix = ".ipynb" if notebook else ".py"
    folder = folder.expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        n = 1
        while True:
            path = folder / f"{exercise.id}{f'-{n}' if n > 1 else ''}{suffix}"
            try:
                with path.open("x", encoding="utf-8", newline="\n") as file:
                    file.write(text)
                return path
            except FileExistsError:
                n += 1
    except OSError as error:
        raise SpecError(T(f"無法在 {folder} 寫檔（{type(error).__name__}）；請用 --dir 換一個資料夾",
                          f"cannot write in {folder} ({type(error).__name__}); choose another folder with --dir")) from None  # fmt: skip


def as_python(exercise: Exercise) -> str:
    """The statement as comments, the given code, the starter below its marker."""
    lines = "\n".join(f"# {line}".rstrip() for line in wrap_markdown(exercise.statement[language()], WIDTH))
    given = f"# %% {T('給定的程式，不用改', 'given, leave it as it is')}\n{exercise.given}\n\n" if exercise.given else ""
    return f"# %% [markdown]\n{lines}\n\n{given}# %%\n# kvgrade: {exercise.id}\n{exercise.starter}\n"


def as_notebook(exercise: Exercise) -> str:
    """The same as cells, with the public checks."""
    cells = [_cell("markdown", exercise.statement[language()], "statement")]
    if exercise.given:
        cells.append(_cell("code", exercise.given, "given", exercise.id))
    cells.append(_cell("code", f"# kvgrade: {exercise.id}\n{exercise.starter}", "answer", exercise.id))
    check = f'from kvgrade import check\n\ncheck("{exercise.id}", {exercise.entry})'
    cells.append(_cell("code", check, "check", exercise.id))
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, ensure_ascii=False, indent=1) + "\n"


def _cell(kind: str, source: str, role: str, id: str | None = None) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "id": role, "metadata": {}, "source": source.splitlines(keepends=True)}
    if kind == "code":
        cell |= {"metadata": {"kvgrade": {"exercise": id, "role": role}}, "execution_count": None, "outputs": []}
    return cell
