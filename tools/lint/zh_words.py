"""Words of the mainland that a reader in Taiwan stumbles over, and what to write instead.

A word is looked for anywhere in a text, after every phrase of ``ALLOWED`` has been set aside.
A simplified character is one that Big5, Taiwan's own encoding, does not have.
"""

import re

BANNED = {
    "默認": "預設",
    "數據": "資料",
    "代碼": "程式碼",
    "加載": "載入",
    "質量": "品質",
    "軟件": "軟體",
    "硬件": "硬體",
    "網絡": "網路",
    "信息": "資訊、訊息",
    "函數": "函式",
    "變量": "變數",
    "數組": "陣列",
    "循環": "迴圈",
    "接口": "介面",
    "支持": "支援",
    "服務器": "伺服器",
    "顯卡": "GPU、顯示卡",
    "視頻": "影片",
    "文檔": "文件",
    "打印": "印出",
    "調用": "呼叫",
    "返回值": "回傳值",
    "內存": "記憶體",
    "顯存": "GPU 記憶體",
    "緩存": "快取",
    "帶寬": "頻寬",
    "線程": "執行緒",
    "內核": "核心（kernel）",
    "隊列": "佇列",
    "調度": "排程",
    "並發": "並行",
    "字節": "位元組",
    "比特": "位元",
    "令牌": "token（詞元）",
    "滑動窗口": "滑動視窗",
    "訪存": "記憶體存取",
    "時延": "延遲",
    "譯碼": "解碼",
    "激活": "啟動",
    "投機解碼": "推測解碼",
    "分位值": "百分位數",
    "塊表": "區塊表",
    "推理": "推論（inference）",
    "串列": "序列",
}

ALLOWED = {  # phrase: reason
    "數學函數": "a function of mathematics is 函數; 函式 is a program's",
    "指數函數": "a function of mathematics",
    "線性函數": "a function of mathematics",
    "損失函數": "a function of mathematics",
    "區塊表": "the right word for block table; it contains 塊表",
    "內存放": "內 + 存放 (kept inside), not 內存",
    "內存有": "內 + 存有 (holds inside), not 內存",
    "內存下": "內 + 存下 (stored inside), not 內存",
    "記憶體內存": "記憶體內 + 存 (stored in memory), not 內存",
    "快取內存": "快取內 + 存 (stored in the cache), not 內存",
    "推理模型": "a reasoning model; 推理 is reasoning",
    "推理能力": "the ability to reason",
    "邏輯推理": "logical reasoning",
    "鏈結串列": "a linked list; 串列 is a list",
}

SIMPLIFIED_IN_BIG5 = "网体与机价优儿党厂听坏异怀惊扰据极构洁种胜荐触适"  # other characters, of no use here
NOT_IN_BIG5 = {  # traditional all the same: reason
    "\u3400": "the first of a block, as regular expressions name it",
    "\u9fff": "the last of a block, as regular expressions name it",
}


def banned_words(text: str) -> list[tuple[str, str]]:
    """(word, what to write instead) for every banned word in ``text``."""
    for phrase in ALLOWED:
        text = text.replace(phrase, "　")
    return [(word, instead) for word, instead in BANNED.items() if word in text]


def simplified(text: str) -> list[str]:
    """The characters of ``text`` that are written otherwise in Taiwan, each once."""
    han = dict.fromkeys(re.findall(r"[\u3400-\u9fff]", text))
    return [char for char in han if char in SIMPLIFIED_IN_BIG5 or not (_in_big5(char) or char in NOT_IN_BIG5)]


def _in_big5(char: str) -> bool:
    return len(char.encode("cp950", errors="ignore")) > 0
