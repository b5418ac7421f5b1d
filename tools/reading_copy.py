"""python tools/reading_copy.py: give the reader a copy of the book to write in.

`make lab` opens the copy in ``reading/``, which git ignores: what a reader changes there is never overwritten, and never
gets in the way of `make test` or `git pull`. A notebook that the reader has not changed follows the book.

Uses the standard library alone: it runs before anything else does.
"""

import hashlib
import json
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES = ("en", "zh-TW")


def refresh(root: Path = ROOT) -> list[str]:
    """Copy what is new or unchanged by the reader; returns the notebooks that were kept although the book moved on."""
    copies = root / "reading"
    ledger = copies / ".copied.json"
    copied = json.loads(ledger.read_text(encoding="utf-8")) if ledger.is_file() else {}
    kept = []
    for lang in LANGUAGES:
        for source in sorted((root / "notebooks" / lang).glob("*.ipynb")):
            target = copies / lang / source.name
            name, new = f"{lang}/{source.name}", _digest(source)
            if not target.exists() or _digest(target) == copied.get(name):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
                copied[name] = new
            elif new != copied.get(name):
                kept.append(name)
    ledger.write_text(json.dumps(copied, indent=1) + "\n", encoding="utf-8")
    return kept


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    for name in refresh():
        print(f"reading/{name} has your changes and stays; the book has a newer one: delete yours to get it")
