"""Wrong solutions of `attend-one-row`."""

from kvgrade.answers import Mutant

SCALED = "scores / math.sqrt(q.shape[-1])"
SOFTMAX = "torch.softmax(scores / math.sqrt(q.shape[-1]), dim=-1)"
SCORES = 'torch.einsum("hd,htd->ht", q, k)'
OUT = 'torch.einsum("ht,htd->hd", weights, v)'
# Sorted by what they get right: where two give the same wrong value, the one that failed no earlier property is named.
MUTANTS = [
    Mutant("scales-q-in-place", {"zh-TW": "就地改動 q 的結果", "en": "the result of scaling q in place"},
           ((SCORES, 'torch.einsum("hd,htd->ht", q.div_(math.sqrt(q.shape[-1])), k)'), (SCALED, "scores"))),
    Mutant("scales-k-in-place-in-bfloat16", {"zh-TW": "bfloat16 時就地改動 k 的結果", "en": "the result of scaling k in place where it is bfloat16"},
           ((SCORES, SCORES.replace("k)", "k.div_(math.sqrt(q.shape[-1])) if q.dtype == torch.bfloat16 else k)")),
            (SCALED, "(scores if q.dtype == torch.bfloat16 else scores / math.sqrt(q.shape[-1]))"))),
    Mutant("puts-k-right-again", {"zh-TW": "就地改動 k、事後再還原的結果", "en": "the result of scaling k in place and back again"},
           ((OUT, "(k.div_(math.sqrt(q.shape[-1])).mul_(math.sqrt(q.shape[-1])), " + OUT + ")[1]"),)),
    Mutant("first-256-keys", {"zh-TW": "只看前 256 個 token 的結果", "en": "the result that sees the first 256 tokens only"},
           ((SCORES, SCORES.replace("k)", "k[:, :256])")), (OUT, OUT.replace("v)", "v[:, :256])")))),
    Mutant("mean-for-a-small-q", {"zh-TW": "q 很小就直接平均 V 的結果", "en": "the result that takes a small q for 0"},
           ((SOFTMAX, f"torch.softmax({SCALED} * bool(q.abs().max() > 1e-3), dim=-1)"),)),
    Mutant("a-square-of-scores", {"zh-TW": "算出整個方陣再取最後一列的結果", "en": "the last row of a whole square of scores"},
           source='''import math

import torch


def attend_one_row(q, k, v):
    rows = q[:, None].expand(-1, k.shape[1], -1)  # (n_heads, kv_len, head_dim)
    scores = rows @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
    return (scores.softmax(-1) @ v)[:, -1]
'''),
    Mutant("overflowing-softmax", {"zh-TW": "沒有先減去最大值的 softmax", "en": "the result of a softmax that overflows"},
           ((SOFTMAX, "(e := torch.exp(scores / math.sqrt(q.shape[-1]))) / e.sum(-1, keepdim=True)"),)),
    Mutant("always-float32", {"zh-TW": "永遠回傳 float32 的結果", "en": "the result in float32 whatever the input"},
           ((SCORES, 'torch.einsum("hd,htd->ht", q.float(), k.float())'), (OUT, 'torch.einsum("ht,htd->hd", weights, v.float())'))),
    Mutant("no-scale", {"zh-TW": "沒有除以 √d 的結果", "en": "the result without 1/√d"}, ((SCALED, "scores"),)),
    Mutant("divide-by-d", {"zh-TW": "除以 d 而不是 √d 的結果", "en": "the result divided by d instead of √d"},
           ((SCALED, "scores / q.shape[-1]"),)),
    Mutant("scale-by-length", {"zh-TW": "除以 √kv_len 而不是 √head_dim 的結果",
                               "en": "the result divided by √kv_len instead of √head_dim"},
           ((SCALED, "scores / math.sqrt(k.shape[1])"),)),
    Mutant("no-softmax", {"zh-TW": "沒有做 softmax 的結果", "en": "the result without a softmax"}, ((SOFTMAX, SCALED),)),
    Mutant("softmax-over-heads", {"zh-TW": "softmax 做在頭那一維的結果", "en": "the result with the softmax over the heads"},
           (("dim=-1", "dim=0"),)),
    Mutant("uniform-average", {"zh-TW": "忽略 q·k、直接平均 V 的結果", "en": "the plain mean of V, which ignores q·k"},
           ((SOFTMAX, "torch.ones_like(scores) / k.shape[1]"),)),
    Mutant("base-2", {"zh-TW": "用 2 而不是 e 當底的 softmax", "en": "the result of a softmax to base 2"},
           ((SCALED, "scores / math.sqrt(q.shape[-1]) * math.log(2)"),)),
    Mutant("not-normalised", {"zh-TW": "權重沒有除以總和的結果", "en": "the result with weights that do not sum to 1"},
           ((SOFTMAX, "torch.exp(scores / math.sqrt(q.shape[-1]))"),)),
    Mutant("first-head-only", {"zh-TW": "所有頭都看第 0 個頭的 K、V 的結果", "en": "the result with every head on K and V of head 0"},
           ((SCORES, 'torch.einsum("hd,htd->ht", q, k[:1].expand_as(k))'), (OUT, 'torch.einsum("ht,htd->hd", weights, v[:1].expand_as(v))'))),
    Mutant("heads-reversed", {"zh-TW": "V 的頭順序顛倒的結果", "en": "the result with the heads of V reversed"},
           ((OUT, 'torch.einsum("ht,htd->hd", weights, v.flip(0))'),)),
    Mutant("k-for-v", {"zh-TW": "平均了 K 而不是 V 的結果", "en": "the weighted mean of K instead of V"},
           ((OUT, 'torch.einsum("ht,htd->hd", weights, k)'),)),
    Mutant("only-the-first-key", {"zh-TW": "只看第 0 個 token 的結果，也就是 V[0]",
                                  "en": "V[0]: the result that sees the first token only"},
           ((OUT, "v[:, 0]"),)),
    Mutant("forgets-the-newest", {"zh-TW": "漏看最新 token 的結果", "en": "the result that does not see the newest token"},
           ((SOFTMAX, "torch.softmax((scores / math.sqrt(q.shape[-1])).index_fill(1, torch.tensor([-1]) % k.shape[1], -1e30), dim=-1)"),)),
]  # fmt: skip
