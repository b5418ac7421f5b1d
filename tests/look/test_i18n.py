"""One language at a time, and cheap to ask for."""

import subprocess
import sys

import pytest

from kvlib import i18n


@pytest.fixture(autouse=True)
def _restore_language():
    before = i18n.language()
    yield
    i18n.set_language(before)


@pytest.mark.parametrize("lang, expected", [("zh-TW", "快取"), ("en", "cache")])
def test_T_answers_in_the_current_language(lang, expected):
    i18n.set_language(lang)
    assert i18n.T("快取", "cache") == expected
    assert i18n.language() == lang


@pytest.mark.parametrize("lang", ["zh", "zh-tw", "zh_TW", "EN", "", None])
def test_another_language_is_refused_and_changes_nothing(lang):
    i18n.set_language("zh-TW")
    with pytest.raises(ValueError, match="zh-TW, en"):
        i18n.set_language(lang)
    assert i18n.language() == "zh-TW"


@pytest.mark.parametrize("env, expected", [
    ({}, "en"),
    ({"LANG": "C.UTF-8"}, "en"),
    ({"LANG": "zh_TW.UTF-8"}, "zh-TW"),
    ({"LANG": "zh_HK"}, "zh-TW"),
    ({"LANG": "zh-Hant"}, "zh-TW"),
    ({"LANG": "zh_Hant_TW.UTF-8@stroke"}, "zh-TW"),
    ({"LANG": "zh_CN.UTF-8"}, "en"),
    ({"LANG": "zh_Hans_SG"}, "en"),
    ({"LANG": "en_HK.UTF-8"}, "en"),
    ({"LC_ALL": "en_US.UTF-8", "LANG": "zh_TW.UTF-8"}, "en"),
    ({"LC_MESSAGES": "zh_TW.UTF-8", "LANG": "en_US.UTF-8"}, "zh-TW"),
    ({"LC_ALL": "zh_TW", "LC_MESSAGES": "en_US"}, "zh-TW"),
    ({"LC_ALL": "", "LANG": "zh_TW.UTF-8"}, "zh-TW"),
])
def test_the_locale_chooses_the_language_in_posix_order(env, expected):
    assert i18n.language_from_locale(env) == expected


def test_the_language_switch_imports_nothing_heavy():
    code = ("import sys, kvlib.i18n\n"
            "print({'torch', 'matplotlib', 'numpy', 'IPython', 'ipywidgets'} & set(sys.modules))")
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "set()"
