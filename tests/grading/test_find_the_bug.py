"""find-the-bug keeps its promise: every bug mended gains points, whichever others are left, and none ever costs any."""

from functools import partial
from itertools import combinations

import pytest

from kvgrade.exercises import Exercise, hidden_tests
from kvgrade.grading import grade
from kvgrade.session import local
from kvgrade.testing import properties
from tools.matrix import exercises

SHEET, SOURCE = exercises()["find-the-bug"]
EXERCISE = Exercise(sheet=SHEET.source.slug, **SOURCE.manifest())
FILL = "        keys, values = keys[:, :, : self.length + 1], values[:, :, : self.length + 1]\n        groups ="
FIXES = {  # the property that is about the bug: what is changed in the code as it came
    "layers": [("[torch.zeros(shape)] * n_layers", "[torch.zeros(shape) for _ in range(n_layers)]")],
    "full": [("        here = slice", '        if self.length == self.capacity:\n            raise ValueError("full")\n        here = slice')],
    "filled-part": [("        groups =", FILL)],
    "heads": [("keys.repeat(1, groups, 1, 1)", "keys.repeat_interleave(groups, 1)"),
              ("values.repeat(1, groups, 1, 1)", "values.repeat_interleave(groups, 1)")],
    "scale": [("self.n_heads**0.5", "q.shape[-1]**0.5")],
    "advances": [("        length = self.length\n        length += 1", "        self.length += 1")],
    "truncates": [("self.length -= n", "self.length = n")],
}  # fmt: skip
SUBSETS = [frozenset(chosen) for size in range(len(FIXES) + 1) for chosen in combinations(FIXES, size)]


def passed(mended: frozenset[str]) -> dict[str, int]:
    """The properties that hold, and their points, for the code as it came with these bugs mended."""
    code = EXERCISE.given.replace("BuggyAttention", "FixedAttention")
    for name in mended:
        for old, new in FIXES[name]:
            assert old in code, f"{name}: {old!r} is not in the code as it came"
            code = code.replace(old, new)
    result = grade(
        EXERCISE, properties(hidden_tests("find-the-bug")), partial(local, code), "subsets", name_variants=False
    )
    return {o.property: o.points for o in result.outcomes if o.status == "passed"}


@pytest.fixture(scope="module")
def by_subset() -> dict[frozenset[str], dict[str, int]]:
    return {mended: passed(mended) for mended in SUBSETS}


def test_the_properties_that_hold_are_those_of_the_bugs_mended(by_subset):
    assert {mended: set(held) for mended, held in by_subset.items()} == {
        mended: {"first", *mended} for mended in SUBSETS
    }


def test_one_more_bug_mended_always_gains_points(by_subset):
    score = {mended: sum(held.values()) for mended, held in by_subset.items()}
    for mended in SUBSETS:
        assert all(score[mended | {bug}] > score[mended] for bug in FIXES if bug not in mended)
    assert score[frozenset(FIXES)] == EXERCISE.points
