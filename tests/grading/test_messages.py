"""The catalogue: every sentence in both languages, with the same fields; every id that the grader says is there."""

import ast
import string
from pathlib import Path

import pytest

import kvgrade
from kvgrade.messages import MESSAGES, plain, say
from kvlib.i18n import LANGUAGES

HOME = Path(kvgrade.__file__).parent
STATUSES = ("passed", "partial", "failed", "skipped", "not-attempted", "missing")


def fields(text: str) -> set[str]:
    """The names in braces."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def said_ids() -> dict[str, str]:
    """Every id that stands in the code as the first argument of what says one, with a place."""
    found = {}
    for path in sorted(HOME.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name not in ("Message", "Failed", "_fail", "SessionLost", "Lost", "Unreadable", "say"):
                continue
            first = node.args[0]
            for value in (first.body, first.orelse) if isinstance(first, ast.IfExp) else (first,):
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    found[value.value] = f"{path.name}:{node.lineno}"
    return found


@pytest.mark.parametrize("id", MESSAGES)
def test_a_message_has_both_languages_with_the_same_fields(id):
    assert list(MESSAGES[id]) == list(LANGUAGES)
    zh, en = (MESSAGES[id][lang] for lang in LANGUAGES)
    assert fields(zh) == fields(en)
    assert zh.strip() == zh and en.strip() == en or "\n" in zh or zh.startswith("  ")
    if fields(zh) != {"text"}:
        assert any("\u4e00" <= c <= "\u9fff" for c in zh)
        assert not any("\u4e00" <= c <= "\u9fff" for c in en)


def test_every_id_that_is_said_is_in_the_catalogue():
    said = said_ids()
    assert len(said) > 20, "the search finds nothing"
    assert {id: place for id, place in said.items() if id not in MESSAGES} == {}


def test_every_reason_and_status_is_in_the_catalogue():
    for reason in ("died", "timeout", "memory", "protocol", "too-large"):
        assert reason in MESSAGES
    for status in STATUSES:
        assert f"status-{status}" in MESSAGES
    for level in (1, 2):
        assert f"unstopped-{level}" in MESSAGES
    for lang in LANGUAGES:
        assert len({say(f"status-{status}", lang=lang) for status in STATUSES}) == len(STATUSES)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_field_may_be_per_language_and_a_variant_is_named(lang):
    both = {"zh-TW": "總和", "en": "the sum"}
    text = say("value", {"equals": both}, lang)
    assert both[lang] in text and text.startswith(say("value", {}, lang))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_an_import_of_the_book_is_explained(lang):
    raised = {"type": "ModuleNotFoundError", "trace": ""}
    explained = say("imports-book", {}, lang)
    assert explained in say("raised", {**raised, "text": "No module named 'kvlib'"}, lang)
    assert explained in say("raised", {**raised, "text": "No module named 'kvgrade.testing'"}, lang)
    assert explained not in say("raised", {**raised, "text": "No module named 'kvlibs'"}, lang)


def test_fields_cannot_steer_a_terminal():
    text = say("raised", {"type": "E", "text": "\x1b[2J \u202e \r\n\t{braces} {0}"}, "en")
    assert "{braces} {0}" in text
    assert not any(c in text for c in "\x1b\u202e\r\t")
    assert plain("a\nb\tc") == "a\nb   c"


def test_an_unknown_id_is_an_error():
    with pytest.raises(KeyError):
        say("no-such-id")
