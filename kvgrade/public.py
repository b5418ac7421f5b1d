"""The public checks, in the notebook's own kernel: level 0. They stop honest mistakes, and say no more than that.

Invariant: `check` prints and never raises, whatever the answer does; what it prints is the same on every machine.
"""

import linecache
import shlex
import sys
import traceback
from pathlib import Path
from typing import Any

import torch

from kvgrade import exercises as catalogue
from kvgrade.exercises import HOME, Exercise, exercise
from kvgrade.messages import raised, say
from kvgrade.session import AnswerRaised, Session, SessionLost
from kvgrade.testing import Failed, Kept, Trial
from kvgrade.worker.host import Host
from kvlib.errors import SpecError

PUBLIC = "<public checks>"
LONGEST = 120  # characters of a value that is shown


def check(id: str, answer: Any) -> None:
    """Run an exercise's public checks on an answer and print what they found, in the notebook's language."""
    try:
        asked = exercise(id)
    except SpecError as error:
        print(error)
        return
    print(report(asked, answer))


def report(asked: Exercise, answer: Any) -> str:
    """What `check` prints."""
    host = _Here(_names_beside(answer) | {asked.entry: answer})
    trial = Shown(Session(host), asked.entry, f"public/{asked.id}")
    names = {"id": asked.id, "entry": asked.entry, "points": asked.points, "command": _command(asked)}
    public: dict[str, Any] = {"__name__": "__public__"}
    try:
        exec(compile(asked.public, PUBLIC, "exec"), public)  # noqa: S102  from our manifest
        public["public"](trial)
    except AnswerRaised as error:
        if error.type == "NotImplementedError" and not trial.held:
            return say("public-not-attempted", names)
        why = say(raised(error.type), {"type": error.type, "text": error.text})
        return _failed(names, why, failed_line(asked, error), _own_frames(host.error, answer))
    except Failed as failed:
        if failed.fields.get("got") == "NotImplementedError":
            return say("public-not-attempted", names)
        shown = trial.shown if failed.id in ("value", "nan") else ""
        return _failed(names, say(failed.id, failed.fields), failed_line(asked, failed), shown)
    except SessionLost as lost:
        return _failed(names, say(lost.reason), failed_line(asked, lost))
    except Exception as error:  # noqa: BLE001  the check could not use what it was given
        why = say("public-unusable", {**names, "type": type(error).__name__, "text": str(error)})
        return _failed(names, why, failed_line(asked, error))
    return say("public-passed" if catalogue.HIDDEN.is_dir() else "public-passed-alone", names)


class _Here(Host):
    """A transport to a host in this very process, which remembers what the answer raised."""

    error: BaseException | None = None

    def _call(self, request: dict, blobs: list[bytes]) -> tuple[Any, dict]:
        try:
            return super()._call(request, blobs)
        except BaseException as error:
            self.error = error
            raise

    def ask(self, request: dict, blobs: list[bytes]) -> tuple[dict, list[bytes]]:
        return self.handle(request, blobs)


class Shown(Trial):
    """A trial that keeps the two values that differed, for public checks have nothing to hide; and counts those that did not."""

    shown: str = ""
    held: int = 0

    def equal(self, got: Any, want: Any) -> None:
        try:
            super().equal(got, want)
        except Failed:
            self.shown = _both(got, want)
            raise
        self.held += 1

    def close(self, got: Any, want: Any, dtype: torch.dtype | None = torch.float32, times: float = 1.0) -> None:
        try:
            super().close(got, want, dtype, times)
        except Failed:
            self.shown = _both(got, want)
            raise
        self.held += 1


def _failed(names: dict[str, Any], why: str, *more: str) -> str:
    return "\n".join([say("public-failed", {**names, "why": why}).rstrip(" ：:"), *filter(None, more)])


def failed_line(asked: Exercise, error: Exception) -> str:
    """The line of the public checks that did not hold, with the answer's own name in it."""
    numbers = [number for frame, number in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == PUBLIC]
    lines = asked.public.splitlines()
    if not numbers or numbers[-1] > len(lines):
        return ""
    return say("public-line", {"code": lines[numbers[-1] - 1].strip().replace("t.answer(", f"{asked.entry}(")})


def _both(got: Any, want: Any) -> str:
    """Both values, short; of two tensors of one shape the entries that are farthest apart."""
    tensors = isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor)
    if not tensors or got.shape != want.shape or not got.numel():
        return say("public-values", {"got": _short(got), "want": _short(want)})
    apart = (got.double() - want.double()).abs().nan_to_num(nan=torch.inf).flatten()
    index = int(apart.argmax())
    at = ", ".join(str(int(i)) for i in torch.unravel_index(torch.tensor(index), got.shape))
    values = {name: _short(t.flatten()[index].item()) for name, t in (("got", got), ("want", want))}
    return say("public-values-at", {"at": f"[{at}]", **values})


def _short(value: Any) -> str:
    if isinstance(value, Kept):
        text = value.ref.type
    elif isinstance(value, torch.Tensor):
        text = f"tensor {tuple(value.shape)} {str(value.dtype).removeprefix('torch.')}"
    elif isinstance(value, float):
        text = f"{value:.6g}"
    else:
        text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def _own_frames(error: BaseException | None, answer: Any) -> str:
    """Where in the learner's own code it happened; a cell has no name that means anything to its author."""
    lines = []
    for frame, number in traceback.walk_tb(error.__traceback__ if error else None):
        if frame.f_globals.get("__name__") == getattr(answer, "__module__", "__main__"):
            code = linecache.getline(frame.f_code.co_filename, number).strip()
            lines.append(say("public-frame", {"name": frame.f_code.co_name, "number": number, "code": code}))
    return "\n".join(lines[-5:])


def _names_beside(answer: Any) -> dict[str, Any]:
    """What else the notebook defines: checks may ask for code that the exercise gave."""
    module = sys.modules.get(getattr(answer, "__module__", None) or "")
    return dict(vars(module)) if module else {}


def _command(asked: Exercise) -> str:
    """The command that runs the hidden tests on the notebook that is open, as typed in the book's folder; elsewhere with the
    whole path, which holds in any folder."""
    here = Path.cwd().resolve()
    file = here / f"{asked.sheet}.ipynb"
    return f"kvgrade check {shlex.quote((file.relative_to(HOME) if here.is_relative_to(HOME) else file).as_posix())}"
