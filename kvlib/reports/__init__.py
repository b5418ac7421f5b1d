"""What the commands print: the formula with the numbers in it, as tables for people or as a dict for programs.

One module per command, loaded when it is asked for. The keys of `as_dict` are a promise to scripts: kvlib/schemas holds
them, and tests hold every command to its schema.
"""

from typing import Protocol


class Report(Protocol):
    """Something to show."""

    def as_dict(self) -> dict: ...
    def print(self) -> None: ...
