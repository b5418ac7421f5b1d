"""From an answer to points: each property for itself, what depends on a failed one is skipped, a wrong variant is named."""

from dataclasses import replace

import pytest
import torch

from kvgrade import variants
from kvgrade.answers import Mutant
from kvgrade.exercises import Exercise
from kvgrade.grading import grade
from kvgrade.messages import say
from kvgrade.session import SessionLost, local
from kvgrade.testing import prop, properties

RIGHT = "import torch\ndef mean(x):\n    if x.numel() == 0:\n        raise ValueError('empty')\n    return x.sum() / x.numel()"
EXERCISE = Exercise("toy", "00-toy", "mean", 6, 5, 1, False, {}, {}, "", "def mean(x):\n    raise NotImplementedError", "", {}, {})
MUTANT = Mutant("sum", {"en": "the sum", "zh-TW": "總和"}, ((" / x.numel()", ""),))


class Toy:
    @prop(3, zh="平均", en="the mean")
    def values(t):
        x = t.normal(t.integer(2, 9))
        t.close(t.answer(x), x.double().mean())

    @prop(2, zh="空的", en="empty input")
    def empty(t):
        t.raises("ValueError", lambda: t.answer(torch.empty(0)), zh="空的時候", en="on empty input")

    @prop(1, zh="不改動輸入", en="leaves its input alone", needs=())
    def input_kept(t):
        held, x = t.hold(torch.ones(3)), torch.ones(3)
        t.answer(held)
        t.unchanged(held, x, "x")


@pytest.fixture(autouse=True)
def known_wrong(monkeypatch):
    monkeypatch.setattr(variants, "mutants", lambda id: (MUTANT,))
    monkeypatch.setattr(variants, "solutions", lambda sheet: {"toy": RIGHT})


def graded(source, **options):
    return grade(EXERCISE, properties(Toy), lambda: local(source), "seed", **options)


def test_a_right_answer_gets_full_points():
    result = graded(RIGHT)
    assert (result.status, result.points, result.max) == ("passed", 6, 6)
    assert [o.status for o in result.outcomes] == ["passed"] * 3


def test_the_starter_is_not_attempted():
    result = graded(EXERCISE.starter)
    assert (result.status, result.points, result.outcomes) == ("not-attempted", 0, ())


def test_what_needs_a_failed_property_is_skipped_and_the_rest_is_judged():
    result = graded(RIGHT.replace("x.sum()", "2 * x.sum()"))
    assert [o.status for o in result.outcomes] == ["failed", "skipped", "passed"]
    assert (result.status, result.points) == ("partial", 1)


def test_a_known_wrong_variant_is_named_and_an_unknown_one_is_not():
    named = graded(RIGHT.replace(" / x.numel()", "")).outcomes[0].message
    assert named.fields["equals"] == MUTANT.says
    assert named.fields["equals"] == MUTANT.says
    other = graded(RIGHT.replace("x.sum()", "2 * x.sum()")).outcomes[0].message
    assert "equals" not in other.fields


def test_an_error_is_reported_with_the_learners_own_frames_alone():
    result = graded(RIGHT.replace("x.sum()", "x.summ()"))
    message = result.outcomes[0].message
    assert message.id == "raised"
    assert message.fields["type"] == "AttributeError"
    assert "x.summ()" in message.fields["trace"]
    assert "host.py" not in message.fields["trace"]


def test_an_answer_that_does_not_load_fails_every_property_it_reaches():
    result = graded("def mean(x:\n    pass")
    assert result.points == 0
    assert result.outcomes[0].message.fields["type"] == "SyntaxError"


def test_losing_the_process_costs_that_property_and_opens_a_new_session():
    opened = []

    class Dying:
        def __init__(self, real, calls):
            self.real, self.calls = real, calls

        def ask(self, request, blobs):
            self.calls -= 1
            if self.calls < 0:
                raise SessionLost("died")
            return self.real.ask(request, blobs)

        def close(self):
            opened[-1] = "closed"

    def open_session():
        session = local(RIGHT)
        session._transport = Dying(session._transport, 1)
        opened.append("open")
        return session

    result = grade(EXERCISE, properties(Toy), open_session, "seed")
    assert [o.status for o in result.outcomes] == ["passed", "failed", "failed"]
    assert result.outcomes[1].message.id == "died"
    assert opened == ["closed", "closed"]


class Sizes:
    @prop(3, zh="兩個", en="of two")
    def two(t):
        x = t.normal(2)
        t.close(t.answer(x), x.double().mean())

    @prop(3, zh="五個", en="of five", needs=())
    def five(t):
        x = t.normal(5)
        t.close(t.answer(x), x.double().mean())


def test_of_several_variants_the_one_that_explains_most_is_named(monkeypatch):
    twice = Mutant("twice", {"en": "twice the mean", "zh-TW": "平均的兩倍"}, (("x.sum() /", "2 * x.sum() /"),))
    monkeypatch.setattr(variants, "mutants", lambda id: (twice, MUTANT))
    sums, doubles = (grade(EXERCISE, properties(Sizes), lambda m=m: local(m.of(RIGHT)), "seed") for m in (MUTANT, twice))
    assert [o.message.fields["equals"] for o in sums.outcomes] == [MUTANT.says] * 2
    assert [o.message.fields["equals"] for o in doubles.outcomes] == [twice.says] * 2


def test_a_variant_is_looked_for_when_the_answers_process_has_ended_and_no_further_than_the_failure(monkeypatch):
    events = []

    class Long:
        @prop(6, zh="平均", en="the mean")
        def values(t):
            for _ in range(50):
                x = t.normal(3)
                events.append("asked")
                t.close(t.answer(x), x.double().mean())

    def opened():
        session = local(RIGHT.replace("/ x", "* x"))
        monkeypatch.setattr(session, "close", lambda: events.append("closed"))
        return session

    grade(EXERCISE, properties(Long), opened, "seed")
    assert events == ["asked", "closed", "asked"]


def test_an_answer_that_never_ends_is_given_up_after_two_time_outs():
    opened = []

    def open_session():
        opened.append(1)
        raise SessionLost("timeout")

    props = tuple(replace(p, needs=()) for p in properties(Toy))
    result = grade(EXERCISE, props, open_session, "seed")
    assert [o.status for o in result.outcomes] == ["failed", "failed", "skipped"]
    assert len(opened) == 2


def test_the_same_seed_gives_the_same_result_as_data():
    wrong = RIGHT.replace(" / x.numel()", "")
    assert graded(wrong).as_dict() == graded(wrong).as_dict()


def test_every_message_a_comparison_can_give_is_in_the_catalogue_in_both_languages():
    fields = {"got": "a", "want": "b", "what": "c", "when": {"en": "d", "zh-TW": "e"}, "type": "f", "text": "g", "equals": "h"}
    for id in ("value", "nan", "shape", "dtype", "type", "changed-input", "wrong-error", "no-error", "text", "raised", "protocol"):
        for lang in ("en", "zh-TW"):
            assert say(id, fields, lang)


def test_a_mutant_whose_change_no_longer_applies_is_an_error():
    assert MUTANT.of(RIGHT) != RIGHT
    with pytest.raises(ValueError, match="occurs 0 times"):
        replace(MUTANT, change=(("nowhere", ""),)).of(RIGHT)
    assert replace(MUTANT, source="x = 1").of(RIGHT) == "x = 1"
