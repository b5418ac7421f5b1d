"""Wrong solutions of `history-mask`."""

from kvgrade.answers import Mutant

RULE = "return (j <= start + i) & (j < length)"


def m(name, zh, en, *change):
    return Mutant(name, {"zh-TW": zh, "en": en}, change)


def rule(name, zh, en, new):
    return m(name, zh, en, (RULE, "return " + new))


MUTANTS = [
    rule("square-unshifted", "三角形靠左上的遮罩", "the mask whose triangle sits at the top left", "(j <= i + 0 * start) & (j < length)"),
    rule("no-triangle", "沒有三角形、只遮尾巴的遮罩", "the mask without a triangle", "(j < length).expand(-1, 1, q_len, -1).clone()"),
    rule("no-tail", "沒有遮掉尾巴的遮罩", "the mask that does not hide the tail", "(j <= start + i) & (length > 0)"),
    rule("excludes-itself", "看不到自己的遮罩", "the mask under which a token does not see itself", "(j < start + i) & (j < length)"),
    rule("sees-the-next", "多看到一個 token 的遮罩", "the mask under which a token sees the next one", "(j <= start + i + 1) & (j < length)"),
    rule("tail-off-by-one", "尾巴多看到一格的遮罩", "the mask that shows one slot of the tail", "(j <= start + i) & (j <= length)"),
    rule("right-of-the-buffer", "三角形靠緩衝區右邊的遮罩", "the mask whose triangle sits at the right of the buffer",
         "(j <= kv_len - q_len + i + 0 * start) & (j < length)"),
    rule("right-of-the-length", "以 length − q_len 為起點的遮罩", "the mask that begins at length − q_len", "(j <= length - q_len + i) & (j < length)"),
    rule("row-0", "每一列都用第 0 列的遮罩", "the mask of row 0 for every row", "((j <= start[:1] + i) & (j < length[:1])).expand(len(starts), -1, -1, -1).clone()"),
    rule("longest-row", "每一列都用最長那一列長度的遮罩", "the mask with the longest row's length for all", "(j <= start + i) & (j < length.max())"),
    rule("inverted", "相反的遮罩", "the inverted mask", "~((j <= start + i) & (j < length))"),
    rule("window-back", "倒過來的三角形", "the triangle upside down", "(j >= start + i) & (j < length)"),
    rule("padding-hidden", "填充的查詢什麼都看不到的遮罩", "the mask under which queries that are padding see nothing",
         "(j <= start + i) & (j < length) & (start + i < length)"),
    rule("history-hidden", "看不到歷史的遮罩", "the mask that hides the history", "(j <= start + i) & (j < length) & (j >= start)"),
    rule("numbers", "0 與 1 而不是布林的遮罩", "the mask as 0 and 1, not booleans", "((j <= start + i) & (j < length)).long()"),
    rule("no-head-axis", "少了頭那一維的遮罩", "the mask without the axis of heads", "((j <= start + i) & (j < length))[:, 0]"),
    m("changes-starts", "就地改動 starts 的結果", "that of a change of starts in place", (RULE, "starts += 1\n    return (j < start + i) & (j < length)")),
    m("half-positions", "位置以 float16 表示的遮罩", "the mask with positions in float16", ("j = torch.arange(kv_len)", "j = torch.arange(kv_len).half()")),
    m("short-positions", "位置以 int16 表示的遮罩", "the mask with positions in int16", (RULE, "start, length = start.short(), length.short()\n    " + RULE)),
    Mutant("loops-over-queries", {"zh-TW": "用 Python 迴圈逐一走訪查詢的結果", "en": "that of a Python loop over the queries"}, source='''
import torch


def history_mask(starts, lengths, q_len, kv_len):
    j = torch.arange(kv_len)
    rows = [(j <= starts[:, None] + i) & (j < lengths[:, None]) for i in range(q_len)]
    return torch.stack(rows, 1)[:, None]
'''),
    Mutant("loops", {"zh-TW": "用 Python 迴圈逐格計算的結果", "en": "that of Python loops over every slot"}, source='''
import torch


def history_mask(starts, lengths, q_len, kv_len):
    out = torch.zeros(len(starts), 1, q_len, kv_len, dtype=torch.bool)
    for b, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist())):
        for i in range(q_len):
            for j in range(kv_len):
                out[b, 0, i, j] = j <= start + i and j < length
    return out
'''),
]  # fmt: skip
