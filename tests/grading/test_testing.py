"""What a hidden test may rely on: comparisons fail when they must, and only then; the same seed asks the same questions."""

import math
from types import SimpleNamespace

import pytest
import torch

from kvgrade.session import AnswerRaised, local
from kvgrade.testing import Failed, Kept, Trial, prop, properties

SOURCE = """
import torch

class Box:
    def __init__(self, n):
        self.items = torch.zeros(n)
        self.count = {"n": n}
    def put(self, i, x):
        self.items[i] = x
        return self.items[: i + 1]

def double(x):
    return 2 * x

def spoil(x):
    x += 1

def loops(n):
    total = 0
    for i in range(n):
        total += i
    return total

def fails(kind):
    raise {"value": ValueError, "key": KeyError}[kind]("no")
"""


def trial(entry: str = "double", seed: str = "s") -> Trial:
    return Trial(local(SOURCE), entry, seed)


def message(call) -> str:
    with pytest.raises(Failed) as caught:
        call()
    return caught.value.id


def test_a_trial_asks_the_same_for_the_same_seed_and_another_for_another():
    def asked(seed):
        t = trial(seed=seed)
        return t.integer(0, 10**9), t.normal(3).tolist(), t.tokens(2, 2, vocab=1000).tolist()

    assert asked("a") == asked("a") != asked("b")


def test_values_travel_both_ways_and_keep_their_type():
    t = trial()
    for value in (3, 2.5, "ab", [1, 2], (1, 2), 10**300):
        assert t.answer(value) == 2 * value
        assert type(t.answer(value)) is type(value)
    x = t.normal(2, 3, dtype=torch.bfloat16)
    assert torch.equal(t.answer(x), 2 * x)


def test_an_answer_cannot_change_the_graders_copy():
    t, x = trial("spoil"), torch.ones(3)
    t.answer(x)
    assert torch.equal(x, torch.ones(3))
    held = t.hold(x)
    t.answer(held)
    assert message(lambda: t.unchanged(held, x, "x")) == "changed-input"


def test_an_object_stays_with_the_answer_and_is_read_piece_by_piece():
    box = trial("Box").answer(3)
    assert isinstance(box, Kept)
    view = box.keep("put", 1, 5.0)
    box.call("put", 0, 7.0)
    assert view.value().tolist() == [7.0, 5.0], "a view shows what is written later"
    assert box.attr("count") == {"n": 3}
    assert box.attr("items").tolist() == [7.0, 5.0, 0.0]


@pytest.mark.parametrize(("got", "want", "says"), [
    (1, 2, "value"), (1.0, 1, "type"), (True, 1, "type"), (torch.tensor(1), 1, "type"), ([1], (1,), "type"),
    (torch.ones(2), torch.ones(3), "shape"), (torch.ones(2), torch.ones(2).double(), "dtype"),
    (torch.zeros(2), torch.ones(2), "value"), ((1.0,), (1,), "type"), ({"a": [1]}, {"a": [True]}, "type"),
    ({"a": 1}, {"b": 1}, "value"), ([1, 2], [1], "value"), ((torch.ones(2),), (torch.zeros(2),), "value"),
])  # fmt: skip
def test_equal_wants_the_same_value_of_the_same_type(got, want, says):
    assert message(lambda: trial().equal(got, want)) == says
    trial().equal(want, want)


@pytest.mark.parametrize(("got", "says"), [
    (torch.full((2, 2), math.nan), "nan"), (torch.full((2, 2), math.inf), "nan"), (torch.zeros(2, 2), "value"),
    (torch.ones(4), "shape"), (torch.ones(2, 2).double(), "dtype"), ([1.0], "type"), (1.0, "type"),
    (torch.ones(2, 2) + 1e-4, "value"),
])  # fmt: skip
def test_close_refuses_what_is_not_close(got, says):
    assert message(lambda: trial().close(got, torch.ones(2, 2).double())) == says


def test_close_allows_the_rounding_of_the_dtype_and_no_more():
    want = torch.ones(2, 2).double()
    trial().close((want + 1e-6).float(), want)
    trial().close((want + 5e-3).bfloat16(), want, dtype=torch.bfloat16)
    assert message(lambda: trial().close(want + 1e-6, want, dtype=torch.float64)) == "value"
    infinite = torch.tensor([-math.inf, 1.0]).double()
    trial().close(infinite.float(), infinite)
    assert message(lambda: trial().close(torch.tensor([0.0, 1.0]), infinite)) == "value"


@pytest.mark.parametrize(("got", "says"), [(1.1, "value"), (math.nan, "nan"), ("1", "type"), (True, "type")])
def test_close_judges_plain_numbers_too(got, says):
    assert message(lambda: trial().close(got, 1.0)) == says
    trial().close(1, 1.0)


def test_raises_wants_an_error_of_the_named_class():
    t = trial("fails")
    words = {"zh": "當…時", "en": "when …"}
    t.raises("ValueError", lambda: t.answer("value"), **words)
    t.raises(("IndexError", "LookupError"), lambda: t.answer("key"), **words)
    assert message(lambda: t.raises("ValueError", lambda: t.answer("key"), **words)) == "wrong-error"
    t = trial("double")
    assert message(lambda: t.raises("ValueError", lambda: t.answer(1), **words)) == "no-error"


def test_what_is_not_written_yet_passes_for_no_error():
    t = Trial(local("def f():\n    raise NotImplementedError"), "f", "s")
    with pytest.raises(AnswerRaised, match="NotImplementedError"):
        t.raises("RuntimeError", t.answer, zh="當…時", en="when …")


def test_lines_are_counted_and_capped():
    t = trial("loops")
    value, work = t.answer.counted(10, lines=1000)
    assert value == 45
    assert 20 <= work.lines <= 30
    with pytest.raises(AnswerRaised, match="TooMuchWork"):
        t.answer.counted(10**9, lines=1000)


def test_lines_of_code_made_on_the_fly_count_and_those_of_libraries_do_not():
    made = "def f(n):\n    names = {'__name__': 'elsewhere'}\n    exec('for i in range(n):\\n    pass', names | {'n': n})"
    with pytest.raises(AnswerRaised, match="TooMuchWork"):
        Trial(local(made), "f", "s").answer.counted(10**6, lines=1000)
    library = "import textwrap\ndef f(n):\n    return len(textwrap.wrap('a ' * n))"
    assert Trial(local(library), "f", "s").answer.counted(1000, lines=10)[0] > 0


def test_a_view_made_in_inference_mode_can_be_poked_at():
    source = """
import torch
class Box:
    @torch.inference_mode()
    def __init__(self):
        self.items = torch.zeros(3)
    def view(self):
        return self.items[:2]
"""
    box = Trial(local(source), "Box", "s").answer()
    box.keep("view").call("fill_", 7.0)
    assert box.attr("items").tolist() == [7.0, 7.0, 0.0]


def test_an_exceptions_text_is_one_line():
    with pytest.raises(AnswerRaised) as caught:
        Trial(local("def f():\n    raise ValueError('a\\n  15/15  PASS')"), "f", "s").answer()
    assert caught.value.text == "a 15/15 PASS"


def test_a_lazily_negated_tensor_is_its_value():
    t = Trial(local("import torch\ndef f(x):\n    return torch._neg_view(x)"), "f", "s")
    t.equal(t.answer(torch.ones(2)), -torch.ones(2))


def test_tensor_work_is_counted_exactly():
    source = "import torch\ndef f(a, b):\n    return (a @ b).T.contiguous()[0]"
    t = Trial(local(source), "f", "s")
    _, work = t.answer.counted(torch.ones(3, 5), torch.ones(5, 7))
    assert work.flops == 2 * 3 * 5 * 7
    assert work.bytes_written == 2 * 3 * 7 * 4, "the product and its transposed copy; the views write nothing"


def test_properties_need_the_first_unless_they_say_otherwise():
    one = prop(1, zh="一", en="one")(lambda t: None)
    module = SimpleNamespace(
        a_first=one,
        b=prop(2, zh="二", en="two")(_named("second")),
        c=prop(3, zh="三", en="three", needs=())(_named("third")),
    )
    first, second, third = properties(module)
    assert first.needs == ()
    assert second.needs == (first.name,)
    assert third.needs == ()


def _named(name):
    def test(t):
        pass

    test.__name__ = name
    return test
