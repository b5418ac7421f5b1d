"""What is said of an exercise's properties: a message that comes again is pointed to, not repeated.

Invariant: for readers other than the learner's own terminal (`kept=True`: class pages, Gradescope) an exception is told by its class
and the answer's own frames, without its text. A class is graded with one seed, and the text may well hold what the answer was asked
("bad shape (3, 7)"); `kvgrade check` draws anew and shows it. This keeps an honest accident off a page: an answer that is written to
give its inputs away can still put them into a shape or a class name, so hand the pages out after the deadline.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvgrade.messages import plain, say

if TYPE_CHECKING:
    from kvgrade.outcome import Message, Outcome

WITHOUT_TEXT = {"raised": "raised-type", "too-much-work": "too-much-work-type"}


@dataclass(frozen=True)
class Told:
    """One property with what is said of it and the answer's frames, both empty where there is nothing to say."""

    outcome: "Outcome"
    text: str = ""
    trace: str = ""


def tell(outcomes: Iterable["Outcome"], lang: str, kept: bool = False) -> Iterator[Told]:
    """Every outcome; what was said just before is "same as above", what was said earlier "the same as at …"."""
    said: dict[tuple[str, str], str] = {}  # by text and frames: where
    last = None
    for outcome in outcomes:
        if outcome.message is None:
            yield Told(outcome)
            continue
        this = sentence(outcome.message, lang, kept), frames(outcome.message)
        if this not in said:
            said[this] = outcome.title[lang]
            yield Told(outcome, *this)
        else:
            id = "same-above" if this == last else "same-as"
            yield Told(outcome, say(id, {"title": said[this]}, lang))
        last = this


def sentence(message: "Message", lang: str, kept: bool = False) -> str:
    """The message in words."""
    return say(WITHOUT_TEXT.get(message.id, message.id) if kept else message.id, message.fields, lang)


def frames(message: "Message") -> str:
    """Where in the answer it happened."""
    return plain(str(message.fields.get("trace", ""))).rstrip()
