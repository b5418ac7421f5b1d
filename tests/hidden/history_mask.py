"""Hidden tests of `history-mask`."""

import torch
from hidden_oracle import mask

from kvgrade.testing import prop


def check(t, starts, lengths, q_len, kv_len):
    got = t.answer(torch.tensor(starts), torch.tensor(lengths), q_len, kv_len)
    if isinstance(got, torch.Tensor) and bool(((got == 0) | (got == 1)).all()):
        got = got.bool()  # its dtype is judged by a property of its own
    t.equal(got, mask(starts, lengths, q_len, kv_len))


@prop(4, zh="一列、剛好填滿：三角形靠右下", en="one row, exactly filled: the triangle sits at the bottom right")
def one_row(t):
    for start, q_len in ((0, 1), (0, 4), (1, 1), (5, 3), (t.integer(2, 30), t.integer(2, 9)), (99, 1), (0, 30), (30, 30)):
        check(t, [start], [start + q_len], q_len, start + q_len)


@prop(2, zh="緩衝區比內容長：尾巴看不到", en="a buffer longer than its content: the tail is hidden")
def tail(t):
    for start, q_len in ((0, 1), (0, 4), (6, 4), (t.integer(1, 20), t.integer(2, 5)), (100, 1)):
        for spare in (1, 2, 17):
            check(t, [start], [start + q_len], q_len, start + q_len + spare)


@prop(2, zh="每一列照自己的歷史與長度，填充也照規則", en="each row follows its own history and length, padding too")
def rows(t):
    for _ in range(8):
        batch, q_len = t.integer(2, 4), t.integer(1, 5)
        starts = [t.integer(0, 12) for _ in range(batch)]
        lengths = [start + t.integer(1, q_len) for start in starts]
        check(t, starts, lengths, q_len, max(lengths) + t.integer(0, 4))
    check(t, [4, 0, 9], [5, 3, 10], 3, 10)
    check(t, [0, 7], [1, 8], 1, 9)


@prop(1, zh="歷史很長也一樣", en="a long history makes no difference")
def far(t):
    starts = [2_048 + t.integer(1, 20), 32_767 + t.integer(1, 20), 126 + t.integer(1, 20), t.integer(66_000, 67_000)]
    for rows in (starts[:1], starts[1:3], starts[3:]):
        lengths = [start + t.integer(1, 3) for start in rows]
        check(t, rows, lengths, 3, max(lengths) + t.integer(0, 4))


@prop(1, zh="遮罩是布林張量；沒有逐一走訪的迴圈，不改動輸入", en="the mask is boolean; no loop over queries or keys, and the inputs are left alone")
def vectorised(t):
    starts, lengths, q_len, kv_len = [200, 0, 100], [800, 40, 700], 600, 801
    held = t.hold(torch.tensor(starts)), t.hold(torch.tensor(lengths))
    got, _ = t.answer.counted(*held, q_len, kv_len, lines=500)  # a loop over the rows stays far below, one over queries does not
    t.equal(got, mask(starts, lengths, q_len, kv_len))
    for name, tensor, original in zip(("starts", "lengths"), held, (starts, lengths), strict=True):
        t.unchanged(tensor, torch.tensor(original), name)
