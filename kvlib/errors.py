"""The one error that wrong input raises, and the check that most inputs share."""


class SpecError(ValueError):
    """Input that is unknown, incomplete or contradictory. The message names the field, the value and the way out."""


def whole(name: str, value: object, minimum: int = 1) -> int:
    """`value` as an int if it is a whole number ≥ `minimum`; else a SpecError that names it. A bool is no number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise SpecError(f"{name} is {value!r}; expected a whole number ≥ {minimum}")
    if value < minimum:
        raise SpecError(f"{name} is {value}; expected a whole number ≥ {minimum}")
    return value
