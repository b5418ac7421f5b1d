"""What a drill asks of the grader: public checks and hidden tests on a file, with one pool that is opened when first needed."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kvgrade import progress
from kvgrade.command import checking
from kvgrade.exercises import Exercise, hidden_tests
from kvgrade.marking import grade_submission, opener_of
from kvgrade.messages import raised, say
from kvgrade.outcome import Result
from kvgrade.public import PUBLIC, Shown, failed_line
from kvgrade.session import AnswerRaised, SessionLost
from kvgrade.submission import is_starter, read_submission
from kvgrade.testing import Failed
from kvlib.i18n import T


class Checker:
    """Grades one file again and again. Close it: it holds a process."""

    def __init__(self, seed: str, level: int | None) -> None:
        self.seed, self._wanted = seed, level
        self.digest: str | None = None  # of the answer that the hidden tests saw last
        self.level = (0, "none")  # in force, and the sandbox; known once something ran
        self._stack = contextlib.ExitStack()
        self._pool: Any = None

    def public(self, exercise: Exercise, path: Path) -> Iterator[str]:
        """What the public checks say, line by line. Raises SpecError for a file that cannot be read."""
        answer = read_submission(path).answers.get(exercise.id)
        if answer is None or is_starter(answer.cell, exercise.starter):
            yield T("還沒作答：檔案存檔了嗎？", "Not attempted yet: is the file saved?")
            return
        session, shown = None, []
        try:
            session = opener_of(self._ready())(exercise, answer.source)
            trial = Shown(session, exercise.entry, f"public/{exercise.id}")
            public: dict[str, Any] = {"__name__": "__public__"}
            exec(compile(exercise.public, PUBLIC, "exec"), public)  # noqa: S102  from our manifest
            public["public"](trial)
        except AnswerRaised as error:
            if error.type == "NotImplementedError":
                yield T("還沒作答：仍然丟出 NotImplementedError。", "Not attempted yet: it still raises NotImplementedError.")
                return
            yield say(raised(error.type), {"type": error.type, "text": error.text})
            shown = [failed_line(exercise, error), *error.trace.splitlines()]
        except Failed as failed:
            yield say(failed.id, failed.fields)
            shown = [failed_line(exercise, failed), *(trial.shown.splitlines() if failed.id in ("value", "nan") else ())]
        except SessionLost as lost:
            yield say(lost.reason)
            shown = [failed_line(exercise, lost)]
        except Exception as error:  # noqa: BLE001  the check could not use what it was given
            yield say("public-unusable", {"entry": exercise.entry, "type": type(error).__name__, "text": str(error)})
            shown = [failed_line(exercise, error)]
        else:
            yield T("公開檢查通過。隱藏測試要交卷（submit）才執行。", "The public checks pass. The hidden tests run when you submit.")
        finally:
            if session:
                session.close()
        yield from filter(None, shown)

    def hidden(self, exercise: Exercise, path: Path) -> Result:
        """The hidden tests' result. Raises NoHiddenTests, and SpecError for a file that cannot be read."""
        hidden_tests(exercise.id)
        submission = read_submission(path)
        (result,) = grade_submission(submission, [exercise], self._ready(), self.seed)
        self.digest = progress.digest(submission.answers[exercise.id].source) if exercise.id in submission.answers else None
        return result

    def close(self) -> None:
        """End the process."""
        self._stack.close()

    def _ready(self) -> Any:
        if self._pool is None:
            self._pool, *level = self._stack.enter_context(checking.pool_of(self._wanted))
            self.level = tuple(level)
        return self._pool
