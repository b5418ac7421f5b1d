"""How a run of all tests is shared out, and what it says at its end."""

import pytest

MATRIX = "test_matrix.py"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """A file goes to one worker as a whole, but for the matrix: each exercise of it takes as long as a file."""
    from xdist.scheduler import LoadFileScheduling

    class ByFileAndExercise(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid if MATRIX in nodeid else super()._split_scope(nodeid)

    return ByFileAndExercise(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_terminal_summary(terminalreporter) -> None:
    """The matrix of solutions and wrong solutions, complete: its tests record their rows."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, ())]
    tables = [text for report in reports for name, text in getattr(report, "user_properties", ()) if name == "matrix"]
    if tables:
        rows = [row for table in sorted(tables) for row in table.splitlines()]
        bad = sum(row.startswith("BAD") for row in rows)
        terminalreporter.section(f"hidden tests: {len(tables)} exercises, {len(rows)} answers, {bad} not as they must be")
        terminalreporter.write("\n".join(rows) + "\n")
