"""The one error that wrong input raises, and the check that most inputs share."""


from operator import index


class SpecError(ValueError):
    """Input that is unknown, incomplete or contradictory. The message names the field, the value and the way out."""


class MissingField(SpecError):
    """A config field that is absent or null and decides the answer."""


def short(value: object) -> str:
    """`value` as a message shows it: its repr, cut where it would fill the screen."""
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


def whole(name: str, value: object, minimum: int = 1) -> int:
    """`value` as an int if it is a whole number ≥ `minimum`; else a SpecError that names it. A bool is no number."""
    try:
        number = None if isinstance(value, bool) else index(value)  # int, and the integers of numpy and torch
    except TypeError:
        number = None
    if number is None or number < minimum:
        raise SpecError(f"{name} is {short(value)}; expected a whole number ≥ {minimum}")
    return number
