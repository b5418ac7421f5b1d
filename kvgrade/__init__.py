"""Grades the book's exercises: in a notebook cell, alone, against a clock, for a class.

The verdict is made where the answer is not: see `session` (what travels), `testing` (what a hidden test is), `grading`.
"""

from typing import Any

__all__ = ["check"]


def check(id: str, answer: Any) -> None:
    """Run the public checks of an exercise on an answer, in this kernel, and print what they found. Never raises."""
    from kvgrade.public import check  # needs torch; the command line and the answer's process do without

    check(id, answer)
