"""A conversation in the terminal: lines asked and answered, with a clock under the prompt where the terminal can show one.

Invariant: whoever asks does not know which kind it is. Without a tty it is plain lines, so that pipes and tests can drive it.
"""

import sys
from collections.abc import Callable
from typing import Protocol

Clock = Callable[[], str]


class Terminal(Protocol):
    """Asks for one line. Raises EOFError when there are no more, KeyboardInterrupt for Ctrl-C."""

    def ask(self, prompt: str) -> str: ...


class Plain:
    """Lines from stdin, prompts on stdout. `clock`: shown with every prompt, where given."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock

    def ask(self, prompt: str) -> str:
        if self._clock:
            prompt = f"[{self._clock()}] {prompt}"
        print(prompt, end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            print()
            raise EOFError
        if not sys.stdin.isatty():
            print(line.rstrip("\n"))  # a record of a piped session reads like one that was typed
        return line.strip()


class Running:
    """prompt_toolkit, with a clock below that goes on while you think."""

    def __init__(self, clock: Clock) -> None:
        from prompt_toolkit import PromptSession

        self._session: PromptSession[str] = PromptSession(bottom_toolbar=clock, refresh_interval=1)

    def ask(self, prompt: str) -> str:
        return self._session.prompt(prompt).strip()


def open_terminal(clock: Clock) -> Terminal:
    """The best kind there is here."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        try:
            return Running(clock)
        except Exception:  # noqa: BLE001  not installed, or a terminal that it does not know
            return Plain(clock)
    return Plain(clock)
