"""What the tests of the commands share."""

import pytest

from kvlib import i18n


@pytest.fixture
def english(monkeypatch):
    """The commands build their help once, in the language of the first call: keep it English, and put it back."""
    before = i18n.language()
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    yield
    i18n.set_language(before)
