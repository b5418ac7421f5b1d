"""python tools/reading_copy.py: give the reader a copy of the book to write in.

`make lab` opens the copy in ``reading/``, which git ignores: what a reader changes there is never overwritten, and never
gets in the way of `make test` or `git pull`. A notebook that the reader has not changed follows the book. The copy has the
folders of the book itself, so that a link from one notebook to another is the same in both.

Uses the standard library alone: it runs before anything else does.
"""

import hashlib
import json
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES = ("en", "zh-TW")
FOLDERS = ("notebooks", "exercises", "solutions")


def refresh(root: Path = ROOT) -> list[str]:
    """Copy what is new or unchanged by the reader; returns the notebooks that were kept although the book moved on."""
    copies = root / "reading"
    ledger = copies / ".copied.json"
    copied = json.loads(ledger.read_text(encoding="utf-8")) if ledger.is_file() else {}
    copied = _moved(copies, copied)
    kept = []
    for folder in (f"{folder}/{lang}" for folder in FOLDERS for lang in LANGUAGES):
        for source in sorted((root / folder).glob("*.ipynb")):
            target = copies / folder / source.name
            name, new = f"{folder}/{source.name}", _digest(source)
            if not target.exists() or _digest(target) in (copied.get(name), new):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
                copied[name] = new
            elif new != copied.get(name):
                kept.append(name)
    copies.mkdir(exist_ok=True)
    ledger.write_text(json.dumps(copied, indent=1) + "\n", encoding="utf-8")
    return kept


def _moved(copies: Path, copied: dict[str, str]) -> dict[str, str]:
    """The ledger, after a copy whose chapters lay in ``reading/en`` has got the book's folders; nothing is overwritten."""
    for lang in LANGUAGES:
        for old in sorted((copies / lang).glob("*")):
            new = copies / "notebooks" / lang / old.name
            if not new.exists():
                new.parent.mkdir(parents=True, exist_ok=True)
                old.rename(new)
        if (copies / lang).is_dir() and not any((copies / lang).iterdir()):
            (copies / lang).rmdir()
    return {f"notebooks/{name}" if name.startswith(tuple(f"{lang}/" for lang in LANGUAGES)) else name: digest
            for name, digest in copied.items()}  # fmt: skip


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    for name in refresh():
        print(f"reading/{name} has your changes and stays; the book has a newer one: delete yours to get it")
