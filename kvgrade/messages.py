"""Every sentence the grader says about an answer, by a stable id, in both languages.

Nothing here holds an input, an expected value or a line of a test. Fields in {braces}; a field may itself be per language.
"""

from collections.abc import Mapping
from typing import Any

from kvlib.i18n import language

MESSAGES: dict[str, dict[str, str]] = {
    "value": {"zh-TW": "數值與參考答案不符", "en": "the value differs from the reference"},
    "equals": {"zh-TW": "你的結果等於{equals}", "en": "your result equals {equals}"},
    "nan": {"zh-TW": "結果裡有 NaN 或無限大", "en": "the result holds NaN or infinity"},
    "shape": {"zh-TW": "形狀是 {got}，應為 {want}", "en": "the shape is {got}, expected {want}"},
    "dtype": {"zh-TW": "dtype 是 {got}，應為 {want}", "en": "the dtype is {got}, expected {want}"},
    "type": {"zh-TW": "得到 {got}，應為 {want}", "en": "got {got}, expected {want}"},
    "changed-input": {"zh-TW": "改動了呼叫者傳入的 {what}", "en": "it changed the caller's {what}"},
    "wrong-error": {"zh-TW": "{when}應丟出 {want}，卻丟出 {got}", "en": "{when} it must raise {want}; it raised {got}"},
    "no-error": {"zh-TW": "{when}應丟出 {want}，卻沒有", "en": "{when} it must raise {want}; it raised nothing"},
    "text": {"zh-TW": "{text}", "en": "{text}"},
    "raised": {"zh-TW": "丟出 {type}：{text}", "en": "it raised {type}: {text}"},
    "too-much-work": {"zh-TW": "做的工作遠多於所需：執行了{text}", "en": "it does far more work than needed: {text} ran"},
    "died": {"zh-TW": "執行答案的行程意外結束", "en": "the process that ran the answer ended"},
    "timeout": {"zh-TW": "太久沒有結果，已停止（無窮迴圈？）", "en": "stopped: no result in time (an endless loop?)"},
    "memory": {"zh-TW": "用掉的記憶體超過上限，已停止", "en": "stopped: it took more memory than allowed"},
    "protocol": {"zh-TW": "傳回的東西無法解讀成數值", "en": "what came back cannot be read as a value"},
    "too-large": {"zh-TW": "傳回的數值太大", "en": "the value that came back is too large"},
}


def say(id: str, fields: Mapping[str, Any] | None = None, lang: str | None = None) -> str:
    """The sentence in the language in force (or `lang`); with what the value equals, where that is known.

    Raises KeyError for an id that is not in the catalogue.
    """
    lang = lang or language()
    words = {key: value[lang] if isinstance(value, Mapping) and lang in value else value
             for key, value in (fields or {}).items()}  # fmt: skip
    sentence = MESSAGES[id][lang].format_map(words)
    if "equals" in words and id != "equals":
        joint = {"zh-TW": "；", "en": "; "}[lang]
        sentence += joint + MESSAGES["equals"][lang].format_map(words)
    return sentence
