"""The common slips: what a learner is told names the slip, not only that something is wrong."""

import pytest
from slips import SLIPS

from kvgrade.exercises import exercise, hidden_tests
from kvgrade.grading import grade
from kvgrade.outcome import FAILED, NOT_ATTEMPTED, PARTIAL
from kvgrade.session import local
from kvgrade.testing import properties


@pytest.mark.parametrize("slip", [s for s in SLIPS if not s.slow], ids=lambda s: s.name)
def test_a_slip_gets_the_message_that_fits(slip):
    asked = exercise(slip.exercise)
    result = grade(asked, properties(hidden_tests(asked.id)), lambda: local(slip.code, asked.given), "slips", name_variants=False)
    if slip.says is None:
        assert result.status == NOT_ATTEMPTED
        return
    assert result.status in (FAILED, PARTIAL)
    said = [o.message for o in result.outcomes if o.message]
    assert slip.says in [message.id for message in said]
    if slip.says == "raised":
        assert said[0].fields["trace"], "the learner's own frames are shown"
