"""Every sentence the grader says about an answer, by a stable id, in both languages.

Nothing here holds an input, an expected value or a line of a test. Fields in {braces}; a field may itself be per language.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kvlib.i18n import language

MESSAGES: dict[str, dict[str, str]] = {
    "value": {"zh-TW": "數值與參考答案不符", "en": "the value differs from the reference"},
    "equals": {
        "zh-TW": "你的結果與這種常見的錯誤吻合：{equals}",
        "en": "your result matches a known mistake: {equals}",
    },
    "nan": {
        "zh-TW": "結果裡有 NaN 或無限大：是不是讀到還沒寫入的位置，或除以 0？",
        "en": "the result holds NaN or infinity: does it read what was never written, or divide by 0?",
    },
    "shape": {"zh-TW": "形狀是 {got}，應為 {want}", "en": "its shape is {got}, expected {want}"},
    "dtype": {"zh-TW": "dtype 是 {got}，應為 {want}", "en": "its dtype is {got}, expected {want}"},
    "type": {"zh-TW": "型別是 {got}，應為 {want}", "en": "its type is {got}, expected {want}"},
    "changed-input": {
        "zh-TW": "改動了呼叫者傳入的 {what}；請先複製，或另外配置一份",
        "en": "it changed the caller's {what}; copy it first, or allocate anew",
    },
    "wrong-error": {"zh-TW": "{when}應丟出 {want}，卻丟出 {got}", "en": "{when} it must raise {want}; it raised {got}"},
    "no-error": {"zh-TW": "{when}應丟出 {want}，卻沒有丟出例外", "en": "{when} it must raise {want}; it raised nothing"},
    "text": {"zh-TW": "{text}", "en": "{text}"},
    "raised": {"zh-TW": "執行時丟出 {type}：{text}", "en": "it raised {type}: {text}"},
    "raised-type": {"zh-TW": "執行時丟出 {type}", "en": "it raised {type}"},
    "missing-name": {"zh-TW": "答案裡沒有定義 {text}；名稱要和題目一樣", "en": "the answer does not define {text}; use the exercise's name"},
    "too-much-work": {
        "zh-TW": "做的工作遠多於所需（{text}），已停止；是不是有東西重複計算了？",
        "en": "stopped: far more work than needed ({text}); is something computed again and again?",
    },
    "too-much-work-type": {
        "zh-TW": "做的工作遠多於所需，已停止；是不是有東西重複計算了？",
        "en": "stopped: far more work than needed; is something computed again and again?",
    },
    "died": {
        "zh-TW": "執行答案的行程意外結束（呼叫了 exit，或當掉了？）",
        "en": "the process that ran the answer ended (a call of exit, or a crash?)",
    },
    "timeout": {
        "zh-TW": "時限內沒有結果，已停止；是不是有無窮迴圈？",
        "en": "stopped: no result within the time limit; is there an endless loop?",
    },
    "memory": {"zh-TW": "用掉的記憶體超過上限，已停止", "en": "stopped: it took more memory than it may"},
    "protocol": {
        "zh-TW": "回傳的東西不是數值、張量，或由它們組成的 list、tuple、dict",
        "en": "what it returned is no number, tensor, or list, tuple or dict of them",
    },
    "too-large": {"zh-TW": "回傳的東西太大", "en": "what it returned is too large"},
    "imports-book": {
        "zh-TW": "作答時不能用 kvlib 或 kvgrade：批改的行程裡沒有它們，請自己寫",
        "en": "an answer cannot use kvlib or kvgrade: the process that grades has neither; write it yourself",
    },
    "skipped": {
        "zh-TW": "沒有執行：它以前面沒通過的那一項為前提",
        "en": "not run: it builds on one above that does not hold yet",
    },
    "same-above": {"zh-TW": "同上", "en": "same as above"},
    "same-as": {"zh-TW": "與前面「{title}」那一項相同", "en": "the same as at “{title}”"},
    # the state of an exercise or a property, in one word
    "status-passed": {"zh-TW": "通過", "en": "pass"},
    "status-partial": {"zh-TW": "部分通過", "en": "partial"},
    "status-failed": {"zh-TW": "未通過", "en": "FAIL"},
    "status-skipped": {"zh-TW": "略過", "en": "skip"},
    "status-not-attempted": {"zh-TW": "尚未作答", "en": "not attempted"},
    "status-missing": {"zh-TW": "檔案裡沒有", "en": "not in the file"},
    # what a level does not stop
    "unstopped-1": {
        "zh-TW": "擋不住：連上網路；在沒有 Landlock 的系統上，還有讀寫你的檔案。要批改別人寫的檔案，請用第 2 級",
        "en": "Not stopped: use of the network and, where there is no Landlock, reading and writing your files. For files that "
        "you did not write, use level 2",
    },
    "unstopped-2": {
        "zh-TW": "擋不住：作業系統核心本身的漏洞",
        "en": "Not stopped: holes in the operating system's own kernel",
    },
    # check() in a notebook
    "public-not-attempted": {
        "zh-TW": "{id}：還沒作答。寫好 {entry}，執行那一格，再執行這一格。",
        "en": "{id}: not attempted yet. Write {entry}, run its cell, then run this one again.",
    },
    "public-passed": {
        "zh-TW": "{id}：公開檢查通過。它在你自己的核心（kernel）裡執行（第 0 級），不計分。\n"
        "這一題的 {points} 分要看隱藏測試；請在終端機執行：\n  {command}",
        "en": "{id}: public checks passed. They ran in your own kernel (level 0) and are worth no points.\n"
        "The {points} points are for the hidden tests; in a terminal:\n  {command}",
    },
    "public-passed-alone": {
        "zh-TW": "{id}：公開檢查通過。它在你自己的核心（kernel）裡執行（第 0 級），不計分。\n"
        "這一題的 {points} 分要看隱藏測試，由老師執行：存檔，把這份筆記本交給老師。",
        "en": "{id}: public checks passed. They ran in your own kernel (level 0) and are worth no points.\n"
        "The {points} points are for the hidden tests, which your teacher runs: save, and hand this notebook in.",
    },
    "public-failed": {"zh-TW": "{id}：公開檢查沒過：{why}", "en": "{id}: a public check failed: {why}"},
    "public-unusable": {
        "zh-TW": "{entry} 回傳的東西，檢查無法使用（{type}：{text}）",
        "en": "the check cannot use what {entry} returned ({type}: {text})",
    },
    "public-values": {"zh-TW": "  得到 {got}\n  應為 {want}", "en": "  got      {got}\n  expected {want}"},
    "public-values-at": {
        "zh-TW": "  差最多的位置是 {at}：得到 {got}，應為 {want}",
        "en": "  farthest apart at {at}: got {got}, expected {want}",
    },
    "public-line": {"zh-TW": "  檢查 {code}", "en": "  check    {code}"},
    "public-frame": {"zh-TW": "  {name} 第 {number} 行：{code}", "en": "  {name}, line {number}: {code}"},
    # a file that is handed in
    "file-kind": {"zh-TW": "{file} 不是 .ipynb 或 .py 檔案", "en": "{file} is no .ipynb or .py file"},
    "file-absent": {"zh-TW": "找不到檔案 {file}", "en": "there is no file {file}"},
    "file-forbidden": {"zh-TW": "沒有讀取 {file} 的權限", "en": "you may not read {file}"},
    "file-unreadable": {"zh-TW": "檔案無法讀取（{why}）", "en": "the file cannot be read ({why})"},
    "file-too-large": {"zh-TW": "檔案有 {size} 位元組，上限是 {limit}；請清除輸出後再存檔",
                       "en": "the file has {size} bytes, the limit is {limit}; clear the outputs and save it again"},
    "file-nul": {"zh-TW": "檔案裡有 NUL 位元組，不是文字檔", "en": "the file holds NUL bytes; it is not text"},
    "file-not-utf8": {"zh-TW": "檔案不是 UTF-8 文字；請以 UTF-8 重新存檔",
                      "en": "the file is not UTF-8 text; save it again as UTF-8"},
    "file-nested": {"zh-TW": "檔案的巢狀結構超過 {limit} 層", "en": "the file is nested deeper than {limit} levels"},
    "file-not-json": {"zh-TW": "檔案不是完整的筆記本（JSON 無法解讀）；請重新下載或存檔",
                      "en": "the file is no whole notebook (its JSON cannot be read); save or download it again"},
    "file-not-notebook": {"zh-TW": "檔案是 JSON，但不是筆記本", "en": "the file is JSON but no notebook"},
    "file-nbformat": {"zh-TW": "筆記本的格式版本是 {got}，應為 4；請用 JupyterLab 開啟後重新存檔",
                      "en": "the notebook has format version {got}, expected 4; open it in JupyterLab and save it again"},
    "file-too-many-cells": {"zh-TW": "筆記本有 {got} 個儲存格，上限是 {limit}",
                            "en": "the notebook has {got} cells, the limit is {limit}"},
    "file-too-much-code": {"zh-TW": "筆記本的程式碼有 {got} 個字元，上限是 {limit}",
                           "en": "the notebook has {got} characters of code, the limit is {limit}"},
    "file-too-many-statements": {"zh-TW": "檔案有 {got} 個敘述，上限是 {limit}",
                                 "en": "the file has {got} statements, the limit is {limit}"},
    "file-unread": {"zh-TW": "{file} 無法讀取，裡面的答案都沒有批改：{why}",
                    "en": "{file} could not be read, and nothing in it was graded: {why}"},
    "file-older": {"zh-TW": "{file} 較舊，未採計；採計的是 {used}", "en": "{file} is older and does not count; {used} counts"},
    "file-other": {"zh-TW": "{file} 沒有任何一題的答案，未採計", "en": "{file} answers no exercise and does not count"},
    "class-unread": {"zh-TW": "{name}：{files} 無法讀取，未批改", "en": "{name}: {files} could not be read and was not graded"},
    "archive-link": {"zh-TW": "{file} 是連結或特殊檔案，略過", "en": "{file} is a link or a special file and was skipped"},
    "archive-outside": {"zh-TW": "{file} 的路徑指向壓縮檔之外，略過", "en": "{file} points outside the archive and was skipped"},
    "archive-encrypted": {"zh-TW": "{file} 有密碼保護，略過", "en": "{file} is protected by a password and was skipped"},
    "archive-too-large": {"zh-TW": "{file} 解壓縮後太大，略過", "en": "{file} is too large when unpacked and was skipped"},
    "archive-wrapper": {"zh-TW": "所有檔案都在 {file} 資料夾裡：裡面的每一個名稱各當成一位學生",
                        "en": "everything lies in the folder {file}: each name in it was taken for a learner"},
    "archive-one-learner": {"zh-TW": "所有檔案都在 {file} 資料夾裡，當成同一位學生的；如果那是全班的資料夾，請改為指定它",
                            "en": "everything lies in the folder {file} and was taken for one learner's; if that is the class, name it instead"},
    "archive-broken": {"zh-TW": "{file} 已損壞或無法解壓縮，略過", "en": "{file} is broken or cannot be unpacked and was skipped"},
    "grader-error": {"zh-TW": "批改程式出錯（{type}），這一題尚未批改；請告訴老師",
                     "en": "the grader failed ({type}); this exercise is not graded yet; tell your teacher"},
    # a place in it: {cell}, {used} and {cells} are words, as of Cell.where
    "place-cell": {"zh-TW": "第 {number} 個儲存格", "en": "cell {number}"},
    "place-line": {"zh-TW": "第 {number} 行起的一段", "en": "the block at line {number}"},
    "cell-malformed": {"zh-TW": "{cell}無法解讀，略過", "en": "{cell} cannot be read and was skipped"},
    "cell-not-python": {"zh-TW": "{cell}以 {magic} 開頭，不是 Python，略過",
                        "en": "{cell} begins with {magic}: it is not Python and was skipped"},
    "magic-dropped": {"zh-TW": "{cell}的這一行不會執行：{line}", "en": "this line of {cell} is not run: {line}"},
    "check-dropped": {"zh-TW": "{cell}裡的 {line} 與答案無關，略過",
                      "en": "{line} in {cell} is not part of the answer and was skipped"},
    "left-out": {"zh-TW": "{exercise} 用到 {name}，而{cell}的這一行會改變它，但無法一起批改：{line}",
                 "en": "{exercise} uses {name}, which this line of {cell} changes, but the line cannot be taken along: {line}"},
    "left-out-all": {"zh-TW": "{exercise} 用到的東西在檔案裡牽連太廣，只批改了作答的儲存格本身",
                     "en": "what {exercise} uses hangs together with too much of the file; its cell was graded alone"},
    "answer-missing": {"zh-TW": "找不到 {exercise} 的答案", "en": "there is no answer to {exercise}"},
    "answer-duplicate": {"zh-TW": "{exercise} 有多個答案（{cells}）；採用{used}",
                         "en": "{exercise} is answered more than once ({cells}); {used} counts"},
    "answer-elsewhere": {"zh-TW": "{exercise} 的答案不在原來的儲存格；採用{used}",
                         "en": "{exercise} is not answered in its own cell; {used} counts"},
    "answer-renamed": {"zh-TW": "{cell}（{exercise}）沒有定義 {entry}；名稱不能改",
                       "en": "{cell} ({exercise}) does not define {entry}; the name must stay"},
    "answer-not-code": {"zh-TW": "{exercise} 的答案在{cell}，但那裡不是程式碼",
                        "en": "the answer to {exercise} is in {cell}, which is no code"},
    "answer-unknown": {"zh-TW": "{cell}標示為 {exercise}，但沒有這一題",
                       "en": "{cell} is marked {exercise}; there is no such exercise"},
    "answers-moved": {"zh-TW": "答案的順序與練習不同（不影響分數）",
                      "en": "the answers are not in the sheet's order (this costs nothing)"},
    "points-ignored": {"zh-TW": "檔案裡 {exercise} 的配分寫成 {got}；以題目的 {want} 分為準",
                       "en": "the file says {exercise} is worth {got} points; it is worth {want}"},
}


def say(id: str, fields: Mapping[str, Any] | None = None, lang: str | None = None) -> str:
    """The sentence in the language in force (or `lang`); with what the value equals, or another remark, where that is known.

    Fields are shown without control characters. Raises KeyError for an id that is not in the catalogue.
    """
    lang = lang or language()
    words = {key: value[lang] if isinstance(value, Mapping) and lang in value else value
             for key, value in (fields or {}).items()}  # fmt: skip
    words = {key: plain(value) if isinstance(value, str) else value for key, value in words.items()}
    sentence = MESSAGES[id][lang].format_map(words)
    for remark in _remarks(id, words):
        sentence += {"zh-TW": "；", "en": "; "}[lang] + MESSAGES[remark][lang].format_map(words)
    return sentence


def raised(type: str) -> str:
    """The id of the message about an exception of this class."""
    return {"TooMuchWork": "too-much-work", "NameMissing": "missing-name"}.get(type, "raised")


def plain(text: str) -> str:
    """Text that cannot steer a terminal or reorder a line: newlines and what can be printed."""
    return "".join(c if c.isprintable() or c == "\n" else "�" for c in text.expandtabs(4))


def _remarks(id: str, words: Mapping[str, Any]) -> Iterator[str]:
    if "equals" in words and id != "equals":
        yield "equals"
    missing = id in ("raised", "raised-type") and words.get("type") in ("ModuleNotFoundError", "ImportError")
    if missing and re.search(r"\b(kvlib|kvgrade)\b", str(words.get("text"))):
        yield "imports-book"
