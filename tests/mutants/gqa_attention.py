"""Wrong solutions of `gqa-attention`."""

from kvgrade.answers import Mutant

SCORES = "scores = q @ k.mT / D**0.5  # (B, Hkv, G·Q, T)"
GROUP = "q = q.reshape(B, Hkv, -1, D)  # a group's G·Q queries, of one KV head"
WEIGH = "return (scores.softmax(-1) @ v).view(B, Hq, Q, D)"
HIDE = "scores.masked_fill(~mask[:, :, None], -torch.inf)"


def m(name, zh, en, *change):
    return Mutant(name, {"zh-TW": zh, "en": en}, change)


def heads(name, zh, en, order):
    return m(name, zh, en, (GROUP, f"order = {order}\n    k, v = k[:, order], v[:, order]\n    Hkv = Hq\n    {GROUP}"))


MUTANTS = [
    m("no-scale", "沒有除以 √head_dim 的結果", "the result without the division by √head_dim", (SCORES, "scores = q @ k.mT")),
    m("divides-by-d", "除以 head_dim 而不是 √head_dim 的結果", "the result of a division by head_dim instead of √head_dim", (SCORES, "scores = q @ k.mT / D")),
    m("scales-by-length", "除以 √kv_len 的結果", "the result of a division by √kv_len", (SCORES, "scores = q @ k.mT / T**0.5")),
    m("no-softmax", "沒有 softmax 的結果", "the result without a softmax", ("scores.softmax(-1)", "scores")),
    m("softmax-over-queries", "softmax 取錯軸的結果", "the result of a softmax over the wrong axis", ("scores.softmax(-1)", "scores.softmax(-2)")),
    m("uniform", "所有鍵一律平均的結果", "the result of a plain average over the keys", (SCORES, "scores = q @ k.mT * 0")),
    m("base-2", "以 2 為底的 softmax", "the result of a softmax of base 2", (SCORES, "scores = q @ k.mT / D**0.5 * 0.6931471805599453")),
    m("exp-unstable", "分母少了一項的結果", "the result of a softmax with 1 added below the line",
      ("scores.softmax(-1)", "(scores.exp() / (1 + scores.exp().sum(-1, keepdim=True)))")),
    m("no-maximum", "沒有先減去最大值的 softmax", "the result of a softmax that overflows",
      ("scores.softmax(-1)", "(scores.exp() / scores.exp().sum(-1, keepdim=True))")),
    m("epsilon-below-the-line", "沒有減最大值、分母加一點點的結果", "the result of a softmax without the maximum and with 1e-12 below the line",
      ("scores.softmax(-1)", "(scores.exp() / (scores.exp().sum(-1, keepdim=True) + 1e-12))")),
    m("one-maximum-for-all", "所有列一起減同一個最大值的結果", "the result of one maximum subtracted in all rows",
      ("scores.softmax(-1)", "((e := (scores - scores.max()).exp()) / e.sum(-1, keepdim=True))")),
    m("scores-clamped", "把分數夾在 ±60 之間的結果", "the result of scores clamped to ±60", (SCORES, "scores = (q @ k.mT / D**0.5).clamp(-60, 60)")),
    m("mask-as-minus-100", "把被遮住的分數設成 −100 的結果", "the result of hidden scores set to −100", (HIDE, "scores.masked_fill(~mask[:, :, None], -100.0)")),
    m("mask-as-minus-10000", "把被遮住的分數設成 −10000 的結果", "the result of hidden scores set to −10000",
      (HIDE, "scores.masked_fill(~mask[:, :, None], -1e4)")),
    m("mask-as-30-below-the-smallest", "把被遮住的分數設成最小值減 30 的結果", "the result of hidden scores 30 below the smallest",
      (HIDE, "scores.masked_fill(~mask[:, :, None], float(scores.min()) - 30)")),
    m("needs-contiguous-inputs", "輸入要連續才算得出來的結果", "that of inputs that must be contiguous", (GROUP, "q, k, v = q.view(B, Hkv, -1, D), k.view(k.shape), v.view(-1).view(v.shape)")),
    heads("repeat", "用 repeat 攤開 KV 頭的結果", "the result of repeat in place of repeat_interleave", "torch.arange(Hq) % Hkv"),
    heads("kv-head-0", "所有頭都讀第 0 個 KV 頭的結果", "the result of all heads on KV head 0", "torch.zeros(Hq, dtype=torch.long)"),
    heads("heads-reversed", "KV 頭順序顛倒的結果", "the result of KV heads in reverse", "torch.arange(Hq).flip(0) // (Hq // Hkv)"),
    heads("repeat-interleave", "把 K、V 複製成每個查詢頭一份的結果", "that of a copy of K and V per query head", "torch.arange(Hq) // (Hq // Hkv)"),
    m("matmul-broadcasts", "讓 matmul 廣播 K、V 的結果", "that of a matmul that broadcasts K and V",
      (GROUP, "q, k, v = q.view(B, Hkv, -1, Q, D), k[:, :, None], v[:, :, None]"),
      ("        scores = scores.view(B, Hkv, -1, Q, T)\n", ""), (HIDE + ".flatten(2, 3)", HIDE)),
    m("groups-interleaved", "組和查詢排錯的結果", "the result of groups laid out wrongly",
      (GROUP, "q = q.view(B, -1, Hkv, Q, D).transpose(1, 2).reshape(B, Hkv, -1, D)")),
    m("output-interleaved", "輸出的頭排錯的結果", "the result of output heads laid out wrongly",
      (WEIGH, "return (scores.softmax(-1) @ v).view(B, Hkv, -1, Q, D).transpose(1, 2).reshape(B, Hq, Q, D)")),
    m("kv-swapped", "K 與 V 對調的結果", "the result with K and V swapped", (SCORES, "k, v = v, k\n    " + SCORES)),
    m("mask-ignored", "沒有遮罩的結果", "the result without the mask", ("if mask is not None:", "if False:")),
    m("mask-inverted", "遮罩相反的結果", "the result of an inverted mask", (HIDE, "scores.masked_fill(mask[:, :, None], -torch.inf)")),
    m("mask-after-softmax", "softmax 之後才遮、沒有重新正規化的結果", "the result of a mask after the softmax",
      (HIDE + ".flatten(2, 3)", "scores.flatten(2, 3)"),
      (WEIGH, "p = scores.softmax(-1).view(B, Hkv, -1, Q, T)\n    p = p if mask is None else p * mask[:, :, None]\n    return (p.flatten(2, 3) @ v).view(B, Hq, Q, D)")),
    m("mask-as-zero", "把被遮住的分數設成 0 的結果", "the result of hidden scores set to 0", (HIDE, "scores.masked_fill(~mask[:, :, None], 0)")),
    m("mask-added", "把布林遮罩加到分數上的結果", "the result of the boolean mask added to the scores", (HIDE, "(scores + mask[:, :, None])")),
    m("mask-of-row-0", "每一列都用第 0 列遮罩的結果", "the result of row 0's mask for every row", (HIDE, "scores.masked_fill(~mask[:1, :, None], -torch.inf)")),
    m("mask-of-last-query", "每個查詢都用最後一個遮罩的結果", "the result of the last query's mask for all", (HIDE, "scores.masked_fill(~mask[:, :, None, -1:], -torch.inf)")),
    m("always-causal", "一律加上左上三角遮罩的結果", "the result of is_causal=True",
      (SCORES, SCORES + "\n    scores = scores.view(B, Hkv, -1, Q, T).masked_fill(torch.ones(Q, T).triu(1).bool(), -torch.inf).flatten(2, 3)")),
    m("row-0", "每一列都讀第 0 列 K、V 的結果", "the result of reading row 0's K and V for every row", (SCORES, "k, v = k[:1], v[:1]\n    " + SCORES)),
    m("float32-always", "一律用 float32 算的結果", "that of computing in float32 always",
      (SCORES, "dtype, q, k, v = q.dtype, q.float(), k.float(), v.float()\n    " + SCORES), (WEIGH, WEIGH + ".to(dtype)")),
    m("returns-float32", "輸出一律 float32 的結果", "that of an output of float32 always", (WEIGH, WEIGH + ".float()")),
    m("scales-q-in-place", "就地縮放 q 的結果", "that of scaling q in place", (GROUP, "q /= D**0.5\n    " + GROUP), (SCORES, "scores = q @ k.mT")),
    m("flips-mask-in-place", "就地反轉遮罩的結果", "that of inverting the mask in place",
      (HIDE, "scores.masked_fill(mask.logical_not_()[:, :, None], -torch.inf)")),
]  # fmt: skip
