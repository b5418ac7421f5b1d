"""The reader's language: one switch, and one helper for words inside code.

Invariant: there is one current language per process, and it is one of LANGUAGES.
"""

from __future__ import annotations

from collections.abc import Mapping

LANGUAGES = ("zh-TW", "en")

_language = "en"


def set_language(lang: str) -> None:
    """Make `lang` the language that `T` answers in.

    Raises ValueError for anything but the book's two languages.
    """
    global _language
    if lang not in LANGUAGES:
        raise ValueError(f"no language {lang!r} in this book; use one of {', '.join(LANGUAGES)}")
    _language = lang


def language() -> str:
    """The current language, "zh-TW" or "en"; "en" until `set_language` is called."""
    return _language


def T(zh_tw: str, en: str) -> str:
    """The one of two strings that is in the current language."""
    return zh_tw if _language == "zh-TW" else en


def language_from_locale(env: Mapping[str, str]) -> str:
    """The book's language for the locale variables in `env` (usually `os.environ`).

    As in POSIX the first non-empty one of LC_ALL, LC_MESSAGES and LANG decides.
    Readers of Traditional Chinese (zh_TW, zh_HK, zh_MO, zh_Hant) get "zh-TW", all others "en".
    """
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    locale = next((env[name] for name in names if env.get(name)), "")
    parts = locale.split(".")[0].split("@")[0].replace("-", "_").lower().split("_")
    traditional = parts[0] == "zh" and {"tw", "hk", "mo", "hant"} & set(parts)
    return "zh-TW" if traditional else "en"
