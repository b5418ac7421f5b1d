"""What a lint reports."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Problem:
    """One thing to fix: where it is (``file:line`` or ``file cell k``), and how to fix it."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


def quoted(items: Iterable[str]) -> str:
    """Items for a message: quoted, in order, or "nothing"."""
    return ", ".join(f"`{item}`" for item in items) or "nothing"
