"""Which notebooks are up to date: a digest of all that went in and of what came out.

Stamps live in the git-ignored ``.build/``; ``--check`` never reads them. A stamp holds only
while both the inputs and the notebook on disk are byte for byte what they were.
"""

import hashlib
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

BUILDER_MODULES = ("source.py", "book.py", "execute.py", "stamps.py", "showcase.py", "build.py")
OUTPUT_MAKERS = ("ipykernel", "matplotlib", "nbclient", "numpy", "torch")


def input_digest(source: Path, inputs: Iterable[Path]) -> str:
    """One digest of a source, of the files that its outputs depend on, and of the versions."""
    digest = hashlib.sha256(f"Python {sys.version_info[:2]}".encode())
    for package in OUTPUT_MAKERS:
        digest.update(f"{package}=={version(package)}\n".encode())
    for file in (source, *inputs):
        digest.update(f"{file.name}\n{_digest(file)}\n".encode())
    return digest.hexdigest()


def is_current(stamp: Path, inputs: str, notebook: Path) -> bool:
    """True if this notebook was built from these inputs and has not been touched since."""
    if not (stamp.is_file() and notebook.is_file()):
        return False
    return stamp.read_text(encoding="utf-8") == _content(inputs, notebook)


def write(stamp: Path, inputs: str, notebook: Path) -> None:
    """Record that ``notebook`` was just built from ``inputs``."""
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(_content(inputs, notebook), encoding="utf-8")


def _content(inputs: str, notebook: Path) -> str:
    return f"inputs {inputs}\nnotebook {_digest(notebook)}\n"


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
