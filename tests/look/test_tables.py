"""Tables in notebooks: what is shown is what was given."""

import pytest

from kvlib.style import table


def test_numbers_are_formatted_and_right_aligned(shown):
    rows = [("a|", 1234567, 0.5), ("b", 1, 12345.678)]
    [(data, _metadata)] = shown(table, ["name", "B", "share"], rows)
    assert data["text/markdown"].splitlines() == [
        "| name | B | share |",
        "| :--- | ---: | ---: |",
        r"| a\| | 1,234,567 | 0.50 |",
        "| b | 1 | 12,345.68 |",
    ]


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="expected 2"):
        table(["a", "b"], [(1, 2), (3,)])
