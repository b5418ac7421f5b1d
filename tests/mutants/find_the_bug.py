"""Wrong solutions of `find-the-bug`: each bug left alone in the corrected class, and all of them together."""

from kvgrade.answers import Mutant

KEYS = "self.keys = [torch.zeros(shape) for _ in range(n_layers)]  # 1: one each"
VALUES = "self.values = [torch.zeros(shape) for _ in range(n_layers)]"
FULL = '        if self.length == self.capacity:  # 2: a slice past the end is empty\n            raise ValueError("the cache is full")\n'
CUT = "keys, values = keys[:, :, :end], values[:, :, :end]  # 3: filled part\n"
SPREAD_K, SPREAD_V = "keys.repeat_interleave(groups, dim=1)  # 4: 0 0 1 1, not 0 1 0 1", "values.repeat_interleave(groups, dim=1)"
SCALE = "q.shape[-1] ** 0.5  # 5: √head_dim"
ADVANCE = "self.length += 1  # 6: not a local variable"
TRUNCATE = "self.length = n  # 7: keep n, not drop n"


def m(name, zh, en, *change):
    return Mutant(name, {"zh-TW": zh, "en": en}, change)


MUTANTS = [
    Mutant("nothing-mended", {"zh-TW": "原來那段有錯的程式", "en": "that of the code as it came"}, source="""
class FixedAttention(BuggyAttention):
    pass
"""),
    m("keys-shared", "各層共用 K 的結果", "that of K shared by all layers", (KEYS, "self.keys = [torch.zeros(shape)] * n_layers")),
    m("values-shared", "各層共用 V 的結果", "that of V shared by all layers", (VALUES, "self.values = [torch.zeros(shape)] * n_layers")),
    m("layers-shared", "各層共用快取的結果", "that of a cache shared by all layers",
      (KEYS, "self.keys = [torch.zeros(shape)] * n_layers"), (VALUES, "self.values = [torch.zeros(shape)] * n_layers")),
    m("silent-overflow", "滿了卻不吭聲的結果", "that of a full cache that says nothing", (FULL, "")),
    m("full-one-late", "晚一個 token 才發現滿了的結果", "that of noticing one token late that it is full",
      ("if self.length == self.capacity:", "if self.length > self.capacity:")),
    m("full-one-early", "最後一格不用的結果", "that of a last slot that is never used",
      ("if self.length == self.capacity:", "if self.length + 1 >= self.capacity:")),
    m("other-exception", "丟出別種例外的結果", "that of another kind of exception", ('raise ValueError("the cache is full")', 'raise IndexError("full")')),
    m("wraps-around", "滿了就繞回開頭覆寫的結果", "that of a full cache that wraps around", (FULL, "        self.length %= self.capacity\n")),
    m("refuses-and-writes", "丟出例外之前先寫進第 0 格的結果", "that of a refusal that first writes into slot 0",
      ('            raise ValueError("the cache is full")', '            self.keys[layer][:, :, :1], self.values[layer][:, :, :1] = k, v\n            raise ValueError("the cache is full")')),
    m("high-water-mark", "讀到曾經寫過的最後一格的結果", "the result of reading as far as was ever written",
      (CUT, "self.high = max(getattr(self, 'high', 0), end)\n        keys, values = keys[:, :, : self.high], values[:, :, : self.high]\n")),
    m("keys-of-0-are-empty", "把 k 是 0 的格子當成空的結果", "the result that takes slots with a k of 0 for empty",
      (CUT, "\n"), ("scores.softmax(dim=-1)", "scores.masked_fill((keys == 0).all(-1)[:, :, None], -torch.inf).softmax(dim=-1)")),
    m("scores-of-0-are-empty", "把分數是 0 的格子當成空的結果", "the result that takes slots with a score of 0 for empty",
      ("scores.softmax(dim=-1)", "scores.masked_fill(scores == 0, -torch.inf).softmax(dim=-1)")),
    m("no-maximum", "沒有先減去最大值的 softmax", "the result of a softmax that overflows",
      ("scores.softmax(dim=-1)", "(scores.exp() / scores.exp().sum(dim=-1, keepdim=True))")),
    m("concatenates", "每步用 torch.cat 串接的結果", "that of a torch.cat at every step",
      (KEYS, "self.keys = [torch.zeros(batch, n_kv_heads, 0, head_dim) for _ in range(n_layers)]"),
      (VALUES, "self.values = [torch.zeros(batch, n_kv_heads, 0, head_dim) for _ in range(n_layers)]"),
      ("        keys[:, :, here], values[:, :, here] = k, v\n",
       "        self.keys[layer] = keys = torch.cat([keys[:, :, : end - 1], k], 2)\n        self.values[layer] = values = torch.cat([values[:, :, : end - 1], v], 2)\n")),
    m("unwritten-slots", "沒寫過的格子也分走權重的結果", "the result of slots never written that take weight", (CUT, "\n")),
    m("without-itself", "新 token 看不到自己的結果", "the result of a token that does not see itself", (CUT, "keys, values = keys[:, :, : max(1, end - 1)], values[:, :, : max(1, end - 1)]\n")),
    m("repeat", "用 repeat 攤開 KV 頭的結果", "the result of repeat in place of repeat_interleave",
      (SPREAD_K, "keys.repeat(1, groups, 1, 1)"), (SPREAD_V, "values.repeat(1, groups, 1, 1)")),
    m("values-repeat", "只有 V 用 repeat 的結果", "the result of repeat for V alone", (SPREAD_V, "values.repeat(1, groups, 1, 1)")),
    m("scale-n-heads", "除以 √n_heads 的結果", "the result of a division by √n_heads", (SCALE, "self.n_heads**0.5")),
    m("no-scale", "沒有除以 √head_dim 的結果", "the result without the division by √head_dim", (SCALE, "1")),
    m("divides-by-d", "除以 head_dim 的結果", "the result of a division by head_dim", (SCALE, "q.shape[-1]")),
    m("never-advances", "長度從不前進的結果", "that of a length that never moves", (ADVANCE, "length = self.length\n        length += 1")),
    m("advances-per-layer", "每一層都前進一次的結果", "that of a length that moves once per layer", (ADVANCE, "pass"),
      ("return scores.softmax(dim=-1) @ values", "self.length += 1\n        return scores.softmax(dim=-1) @ values")),
    m("truncate-drops", "truncate 當成刪掉 n 個的結果", "that of a truncate that removes n tokens", (TRUNCATE, "self.length -= n")),
    m("truncate-off-by-one", "truncate 多留一個的結果", "that of a truncate that keeps one too many", (TRUNCATE, "self.length = min(self.length, n + 1)")),
]  # fmt: skip
