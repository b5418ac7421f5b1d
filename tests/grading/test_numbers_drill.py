"""Estimation questions: right answers by kvlib and by hand, slips recognised, replies read as people type them."""

import io
import math
import random

import pytest

from kvgrade import progress
from kvgrade.cli import main
from kvgrade.command.report import console
from kvgrade.numbers import RIGHT, SLIP, WRONG, estimates
from kvgrade.numbers.drill import numbers_drill
from kvgrade.numbers.quantity import BYTES, COUNT, MILLISECONDS, read_quantity
from kvlib import i18n
from kvlib.errors import SpecError
from kvlib.units import GB, GiB, KiB, MiB


@pytest.fixture(autouse=True)
def _alone(tmp_path, monkeypatch):
    before = i18n.language()
    monkeypatch.setenv("KVGRADE_DATA", str(tmp_path))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    i18n.set_language("en")
    yield
    i18n.set_language(before)


class Chosen:
    """Stands for random.Random and chooses what the test says, from what may be chosen."""

    def __init__(self, *choices):
        self.choices = list(choices)

    def choice(self, options):
        value = self.choices.pop(0)
        assert value in options, (value, options)
        return value


SERVING = ("llama-2-70b", "h100-80gb", 2, 4096)
ALL = tuple(q for seed in range(6) for q in estimates.questions(len(estimates.KINDS), f"s{seed}"))


@pytest.mark.parametrize(
    ("kind", "choices", "answer"),
    [
        ("per_token", ["llama-2-70b"], 2 * 80 * 8 * 128 * 2),
        ("per_token", ["llama-3-8b"], 128 * KiB),
        ("context", ["llama-2-70b", 4096, 32], 40 * GiB),
        ("fp8", ["llama-2-70b", 4096, 1], 640 * MiB),
        ("without_gqa", ["llama-2-70b", 4096], 10 * GiB),
        ("one_rank", ["llama-2-70b", 4096, 2], 640 * MiB),
        ("one_rank", ["llama-2-70b", 4096, 16], 160 * MiB),
        ("sequences", [*SERVING, "decimal", 1.0, "bf16", "bf16"], 11.96),
        ("sequences", [*SERVING, "reported", 1.0, "bf16", "bf16"], 19.31),
        ("sequences", [*SERVING, "reported", 0.9, "bf16", "bf16"], 6.65),
        ("longest_context", [*SERVING, "decimal", 1.0, "bf16", "bf16", 1], (154 * GB - 137_953_296_384) // 327_680),
        ("cards", ["llama-2-70b", "h100-80gb", 1, 4096, "decimal", 1.0, "bf16", "bf16", 8], 2),
        ("cards", ["llama-2-70b", "h100-80gb", 1, 4096, "decimal", 1.0, "bf16", "bf16", 16], 4),
        ("tpot_floor", [*SERVING, "decimal", 1.0, "bf16", "bf16", 1], 20.79),
        ("crossover", ["llama-2-70b", "bf16"], 137_953_296_384 / 327_680),
    ],
)
def test_the_numbers_that_interviews_ask_for(kind, choices, answer):
    question = getattr(estimates, kind)(Chosen(*choices))
    assert math.isclose(question.answer, answer, rel_tol=6e-4)
    assert question.judge(f"{question.answer!r}") == (RIGHT, "")


@pytest.mark.parametrize("question", ALL, ids=lambda q: q.kind)
def test_right_within_the_tolerance_and_not_beyond(question):
    exact, tolerance = question.answer, question.tolerance
    assert question.judge(f"{exact!r}")[0] == RIGHT
    for share in (-0.9, 0.9):
        assert question.judge(f"{exact * (1 + share * tolerance)!r}")[0] == RIGHT
    if tolerance:
        assert question.judge(f"{exact * (1 + 1.1 * tolerance)!r}")[0] != RIGHT
        assert f"±{round(100 * tolerance)} %" in question.text
    assert question.judge(f"{97.3 * exact + 1e6!r}")[0] == WRONG


@pytest.mark.parametrize("question", ALL, ids=lambda q: q.kind)
def test_every_slip_is_wrong_and_recognised(question):
    assert question.slips
    for value, why in question.slips:
        if value in question.accepts or (question.unit == BYTES and value < 1000):
            continue
        verdict, said = question.judge(f"{value!r}")
        assert verdict == SLIP and said
        near = [w for v, w in question.slips if abs(v - value) <= max(2 * question.tolerance, 1e-9) * abs(v)]
        assert said == why or said in near, (said, why)


@pytest.mark.parametrize("question", ALL, ids=lambda q: q.kind)
def test_the_arithmetic_ends_in_the_answer(question):
    text = " ".join(question.working)
    if question.unit == BYTES:
        assert f"{int(question.answer):,} B" in text
    elif question.unit == MILLISECONDS:
        assert f"{question.answer:.2f} ms" in text
    else:
        assert f"{question.answer:.2f}" in text or f"{question.answer:,.0f}" in text


def test_the_commonest_slips_are_named():
    question = estimates.per_token(Chosen("llama-2-70b"))
    assert question.judge("2.5 MiB")[0] == SLIP and "64 query heads" in question.judge("2.5 MiB")[1]
    assert question.judge("160 KiB")[0] == SLIP and "K and V" in question.judge("160 KiB")[1]
    assert question.judge("4 KiB")[0] == SLIP and "layer" in question.judge("4 KiB")[1]
    budget = estimates.sequences(Chosen(*SERVING, "decimal", 1.0, "bf16", "bf16"))
    assert "2³⁰" in budget.judge("20.75")[1]


@pytest.mark.parametrize(("typed", "named"), [("40 GB", "GiB"), ("42.9 GiB", "GB")])
def test_gb_for_gib_is_named(typed, named):
    question = estimates.context(Chosen("llama-2-70b", 4096, 32))
    verdict, why = question.judge(typed)
    assert verdict == SLIP and named in why
    assert question.judge("40 GiB")[0] == question.judge("42.95 GB")[0] == question.judge("42949672960")[0] == RIGHT


def test_whole_sequences_are_right_and_one_too_many_is_not():
    question = estimates.sequences(Chosen(*SERVING, "reported", 0.9, "bf16", "bf16"))
    assert [question.judge(reply)[0] == RIGHT for reply in ("6.65", "6", "7", "5")] == [True, True, False, False]


def test_the_same_seed_asks_the_same_in_both_languages():
    asked = {}
    for lang in i18n.LANGUAGES:
        i18n.set_language(lang)
        asked[lang] = estimates.questions(12, "x")
    english, chinese = asked["en"], asked["zh-TW"]
    assert [(q.kind, q.answer, [v for v, _ in q.slips]) for q in english] == [(q.kind, q.answer, [v for v, _ in q.slips]) for q in chinese]
    assert estimates.questions(12, "x") == english != estimates.questions(12, "y")
    assert all(any("\u4e00" <= c <= "\u9fff" for c in q.text + "".join(w for _, w in q.slips)) for q in chinese)
    assert not any("\u4e00" <= c <= "\u9fff" for q in english for c in q.text + "".join(w for _, w in q.slips) + "".join(q.working))


def test_questions_come_in_all_kinds_and_never_twice():
    many = estimates.questions(60, "many")
    assert len({q.text for q in many}) == 60
    assert len({q.kind for q in many[: len(estimates.KINDS)]}) == len(estimates.KINDS)


def test_a_question_states_its_convention():
    for question in ALL:
        assert "layers" in question.text and "KV heads" in question.text
        if question.kind in ("sequences", "longest-context", "cards"):
            for part in ("weights in", "KV in", "Count a card as", "runtime 3 GB"):
                assert part in question.text


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1.25 GiB", BYTES, 1.25 * GiB), ("320 KiB", BYTES, 320 * KiB), ("1.3e9", BYTES, 1.3e9), ("１．２５　ＧｉＢ", BYTES, 1.25 * GiB),
        ("2^30", BYTES, GiB), ("1.25·2³⁰", BYTES, 1.25 * GiB), ("1.34 × 10⁹ B", BYTES, 1.34e9), ("~40gib", BYTES, 40 * GiB),
        ("1,342,177,280", BYTES, 1_342_177_280), ("１，３４２，１７７，２８０ 位元組", BYTES, 1_342_177_280), ("327680 bytes", BYTES, 327_680),
        ("20.8", MILLISECONDS, 20.8), ("0.0208 s", MILLISECONDS, 20.8), ("２０．８毫秒", MILLISECONDS, 20.8), ("208 µs", MILLISECONDS, 0.208),
        ("10.4", COUNT, 10.4), ("8×", COUNT, 8), ("8 倍", COUNT, 8), ("13,156 tokens", COUNT, 13_156), ("421k", COUNT, 421_000),
        ("42.1萬", COUNT, 421_000), ("11 個序列", COUNT, 11), ("4 張卡", COUNT, 4), ("約 4 張", COUNT, 4),
    ],
)  # fmt: skip
def test_replies_are_read_as_people_type_them(text, kind, value):
    assert math.isclose(read_quantity(text, kind).value, value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("", BYTES), ("abc", COUNT), ("10.4", BYTES), ("320K", BYTES), ("1,25 GiB", BYTES), ("3 h", MILLISECONDS), ("nan", COUNT),
     ("inf", COUNT), ("-", COUNT), ("e9", BYTES), ("1e999", BYTES), ("1.2.3", COUNT), ("5 GiB", COUNT), ("__import__('os')", COUNT)],
)  # fmt: skip
def test_what_can_be_read_in_two_ways_or_none_is_refused(text, kind):
    with pytest.raises(SpecError):
        read_quantity(text, kind)


def test_random_replies_never_break_it():
    rng = random.Random(1)
    alphabet = "0123456789.,eE+-^*×·x kKMGTiB倍萬億１．⁹³ \t²{}$"
    for _ in range(3000):
        text = "".join(rng.choice(alphabet) for _ in range(rng.randint(0, 12)))
        for kind in (BYTES, MILLISECONDS, COUNT):
            try:
                assert math.isfinite(read_quantity(text, kind).value)
            except SpecError:
                pass


@pytest.mark.parametrize(("lang", "twice"), [("en", "16 cards, 8 KV heads: each head is stored twice, hence × 2"),
                                             ("zh-TW", "16 張卡、8 個 KV 頭：每個頭存 2 份，所以 × 2")])  # fmt: skip
def test_more_cards_than_kv_heads_are_priced_with_the_copies(lang, twice):
    i18n.set_language(lang)
    question = estimates.cards(Chosen("llama-3.1-405b", "h100-80gb", 1, 4096, "decimal", 1.0, "bf16", "bf16", 8))
    text = " ".join(question.working)
    assert question.answer == 16
    assert "2 × 126 × 8 × 128 × 2 B × 4,096 × 2 = 4,227,858,432 B" in text and twice in text
    assert "÷ 4,227,858,432 B = 99.4" in text


def test_as_many_cards_as_heads_need_no_copies():
    question = estimates.cards(Chosen("llama-2-70b", "h100-80gb", 1, 4096, "decimal", 1.0, "bf16", "bf16", 16))
    assert [line for line in question.working if "1,342,177,280 B = 1.25 GiB" in line] == [question.working[0]]
    assert "stored" not in " ".join(question.working)


@pytest.mark.parametrize(("lang", "one", "many"), [("en", "1 sequence of 8,192 tokens", "Batch 8, 8,192 tokens each"),
                                                   ("zh-TW", "1 個 8,192 token 的序列", "批次 8、每個序列 8,192 個 token")])  # fmt: skip
def test_one_sequence_is_no_batch(lang, one, many):
    i18n.set_language(lang)
    for kind in (estimates.context, estimates.fp8):
        texts = [kind(Chosen("llama-3.1-8b", 8192, batch)).text for batch in (1, 8)]
        assert one in texts[0] and many in texts[1]
    for question in (q for seed in range(20) for q in estimates.questions(len(estimates.KINDS), f"one{seed}")):
        assert not any(words in question.text for words in ("Batch 1,", "Batch 1:", "批次 1、", "批次 1，"))
        assert not any(line.endswith("× 1 ") or "× 1 =" in line or "× 1)" in line for line in question.working)


@pytest.mark.parametrize(("lang", "typed", "said"), [
    ("en", "1", "1 byte? Add the unit, as in 1 GiB"), ("en", "10.4", "10.4 bytes? Add the unit, as in 10.4 GiB"),
    ("zh-TW", "1", "1 位元組？請加上單位，例如 1 GiB")])  # fmt: skip
def test_a_bare_small_number_is_asked_back_with_its_unit(lang, typed, said):
    i18n.set_language(lang)
    with pytest.raises(SpecError) as error:
        read_quantity(typed, BYTES)
    assert str(error.value) == said


@pytest.mark.parametrize(("n", "said"), [(1, "1 estimate (seed r)"), (2, "2 estimates (seed r)")])
def test_one_estimate_is_one(capsys, n, said):
    numbers_drill(n, "r", console(), Learner())
    assert said in capsys.readouterr().out


class Learner:
    """Replies in turn, then closes the terminal."""

    def __init__(self, *replies):
        self.replies = list(replies)

    def ask(self, prompt):
        if not self.replies:
            raise EOFError
        return self.replies.pop(0)


def test_a_typing_error_is_asked_again_and_a_round_is_remembered(capsys):
    asked = estimates.questions(2, "r")
    right, done = numbers_drill(2, "r", console(), Learner(f"{asked[0].answer!r}", "what?", "1e30"), now=iter(range(99)).__next__)
    assert right == 1
    (each,) = done.rounds
    assert (each.right, each.asked) == (1, 2)
    text = capsys.readouterr().out
    assert all(line.split()[0] in text for q in asked for line in q.working)


def test_what_was_not_asked_does_not_count(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(["drill", "--numbers", "--seed", "1", "--lang", "en"]) == 1
    assert progress.load().rounds == []
    right, done = numbers_drill(5, "r", console(), Learner("1e30", "q"))
    assert (right, done.rounds[0].asked) == (0, 1)
