"""Wrong solutions of `ragged-decode`."""

from kvgrade.answers import Mutant

FULL = '    if (active & (lengths == capacity)).any():\n        raise ValueError("an active row is full")\n'
TURN_Q = "q = apply_rope(q, lengths[:, None], theta)  # each row at its own position\n"
TURN_K = "k = apply_rope(k, lengths[:, None], theta)\n"
N = "n = int(lengths[b])\n"
WRITE_K, WRITE_V = "k_cache[b, :, n] = k[b]\n", "v_cache[b, :, n] = v[b]\n"
READ = "keys, values = k_cache[b, :, : n + 1], v_cache[b, :, : n + 1]\n"
GROUP = "grouped = q[b].view(len(keys), -1, D)  # (Hkv, G, D)\n"
SOFTMAX = "p = (grouped @ keys.mT / D**0.5).softmax(-1)  # (Hkv, G, n + 1)\n"
ROWS = "for b in active.nonzero().flatten().tolist():\n"


def m(name, zh, en, *change):
    return Mutant(name, {"zh-TW": zh, "en": en}, change)


def heads(name, zh, en, order):
    line = "        "
    return m(name, zh, en, (GROUP, f"order = {order}\n{line}keys, values = keys[order], values[order]\n{line}grouped = q[b][:, None]\n"))


MUTANTS = [
    m("no-maximum", "softmax 沒有先減去最大值的結果", "the result of a softmax without the maximum subtracted",
      (SOFTMAX, "e = (grouped @ keys.mT / D**0.5).exp()\n        p = e / e.sum(-1, keepdim=True)\n")),
    m("one-maximum", "所有列共用一個最大值的結果", "the result of a softmax with one maximum for all rows",
      (ROWS, "top = -torch.inf\n    for b in active.nonzero().flatten().tolist():\n        n = int(lengths[b])\n"
       "        keys = torch.cat([k_cache[b, :, :n], k[b][:, None]], 1)\n"
       "        top = max(top, float((q[b].view(len(keys), -1, D) @ keys.mT / D**0.5).max()))\n    " + ROWS),
      (SOFTMAX, "e = (grouped @ keys.mT / D**0.5 - top).exp()\n        p = e / e.sum(-1, keepdim=True)\n")),
    m("times-active", "結束的列也算、再乘以 0 的結果", "that of computing rows that have ended and multiplying by 0",
      (ROWS, "for b in range(len(q)):\n        if lengths[b] == capacity:\n            continue\n"),
      (WRITE_K, "k_cache[b, :, n] = torch.where(active[b], k[b], k_cache[b, :, n])\n"),
      (WRITE_V, "v_cache[b, :, n] = torch.where(active[b], v[b], v_cache[b, :, n])\n"),
      ("(p @ values).view(-1, D)", "(p @ values).view(-1, D) * active[b]")),
    m("cleans-the-tail", "把沒寫過的格子清掉的結果", "that of cleaning slots that were never written",
      (WRITE_V, WRITE_V + "        v_cache[b, :, n + 1 :].nan_to_num_(0.0, 0.0, 0.0)\n")),
    m("clears-ended-doubles", "float64 時把結束的列清成 0 的結果", "that of clearing rows that have ended in float64",
      ("    out = torch.zeros_like(q)\n", "    out = torch.zeros_like(q)\n    if k.dtype == torch.float64:\n        k_cache[~active] = 0\n")),
    m("no-scale", "沒有除以 √D 的結果", "the result without the division by √D", (SOFTMAX, "p = (grouped @ keys.mT).softmax(-1)\n")),
    m("divides-by-d", "除以 D 而不是 √D 的結果", "the result of a division by D instead of √D", (SOFTMAX, "p = (grouped @ keys.mT / D).softmax(-1)\n")),
    m("no-softmax", "沒有 softmax 的結果", "the result without a softmax", (SOFTMAX, "p = grouped @ keys.mT / D**0.5\n")),
    m("uniform", "所有鍵一律平均的結果", "the result of a plain average over the keys", (SOFTMAX, "p = torch.zeros_like(grouped @ keys.mT).softmax(-1)\n")),
    m("base-2", "以 2 為底的 softmax", "the result of a softmax of base 2", (SOFTMAX, "p = (grouped @ keys.mT / D**0.5 * 0.6931471805599453).softmax(-1)\n")),
    heads("repeat", "用 repeat 攤開 KV 頭的結果", "the result of repeat in place of repeat_interleave", "torch.arange(q.shape[1]) % len(keys)"),
    heads("kv-head-0", "所有頭都讀第 0 個 KV 頭的結果", "the result of all heads on KV head 0", "torch.zeros(q.shape[1], dtype=torch.long)"),
    heads("heads-reversed", "KV 頭順序顛倒的結果", "the result of KV heads in reverse", "torch.arange(q.shape[1]).flip(0) // (q.shape[1] // len(keys))"),
    m("kv-swapped", "K 與 V 對調的結果", "the result with K and V swapped", (READ, READ + "        keys, values = values, keys\n")),
    m("position-of-row-0", "每一列都用第 0 列位置的結果", "the result of row 0's position for every row",
      (TURN_Q, "q = apply_rope(q, lengths[:1, None], theta)\n"), (TURN_K, "k = apply_rope(k, lengths[:1, None], theta)\n")),
    m("position-of-longest", "每一列都用最長那一列位置的結果", "the result of the longest row's position for every row",
      (TURN_Q, "q = apply_rope(q, lengths.max(), theta)\n"), (TURN_K, "k = apply_rope(k, lengths.max(), theta)\n")),
    m("position-0", "每一步都當成位置 0 的結果", "the result of position 0 at every step", (TURN_Q, "q = apply_rope(q, 0, theta)\n"), (TURN_K, "k = apply_rope(k, 0, theta)\n")),
    m("position-off-by-one", "位置多 1 的結果", "the result of a position 1 too high",
      (TURN_Q, "q = apply_rope(q, lengths[:, None] + 1, theta)\n"), (TURN_K, "k = apply_rope(k, lengths[:, None] + 1, theta)\n")),
    m("no-rope", "沒有旋轉的結果", "the result without any rotation", (TURN_Q, "\n"), (TURN_K, "\n")),
    m("v-turned", "連 v 也轉的結果", "the result of a rotation of v too", (TURN_K, TURN_K + "    v = apply_rope(v, lengths[:, None], theta)\n")),
    m("slot-of-longest", "每一列都寫進最長那一列下一格的結果", "the result of every row written behind the longest",
      (WRITE_K, "end = int(lengths.max())\n        k_cache[b, :, end] = k[b]\n"), (WRITE_V, "v_cache[b, :, end] = v[b]\n")),
    m("length-of-longest", "每一列都讀到最長那一列長度的結果", "the result of reading every row to the longest row's length", (READ, READ.replace("n + 1", "int(lengths.max()) + 1"))),
    m("length-of-row-0", "每一列都用第 0 列長度的結果", "the result of row 0's length for every row", (N, "n = int(lengths[0])\n")),
    m("shortest", "只讀到最短那一列長度的結果", "the result of reading to the shortest row's length", (READ, READ.replace("n + 1", "int(lengths.min()) + 1"))),
    m("without-itself", "新 token 看不到自己的結果", "the result of a token that does not see itself", (READ, READ.replace(": n + 1", ": max(n, 1)"))),
    m("reads-the-tail", "連沒寫過的格子也算進去的結果", "the result of slots never written", (READ, "keys, values = k_cache[b], v_cache[b]\n")),
    m("one-slot-too-many", "多讀一格的結果", "the result of reading one slot too many", (READ, READ.replace("n + 1", "n + 2"))),
    m("mask-only-scores", "只遮分數、沒有處理 V 的結果", "that of hiding the scores but not V",
      (READ, "keys, values = k_cache[b], v_cache[b]\n"), (SOFTMAX, "s = grouped @ keys.mT / D**0.5\n        s[..., n + 1 :] = -torch.inf\n        p = s.softmax(-1)\n")),
    m("row-0", "每一列都讀第 0 列快取的結果", "the result of reading row 0's cache for every row", (READ, READ.replace("cache[b", "cache[0"))),
    m("row-0-stored", "每一列都存第 0 列的結果", "the result of storing row 0 in every row", (WRITE_K, "k_cache[b, :, n] = k[0]\n"), (WRITE_V, "v_cache[b, :, n] = v[0]\n")),
    m("ended-rows-write", "結束的列照寫的結果", "that of rows that have ended and write all the same",
      (ROWS, "for b in (lengths < capacity).nonzero().flatten().tolist():\n"), ("    return out", "    out[~active] = 0\n    return out")),
    m("ended-rows-speak", "結束的列也有輸出的結果", "that of rows that have ended and give an output", (ROWS, "for b in (lengths < capacity).nonzero().flatten().tolist():\n")),
    m("ended-rows-raise", "結束的列滿了也報錯的結果", "that of an error for a full row that has ended", ("(active & (lengths == capacity)).any()", "(lengths == capacity).any()")),
    m("ended-rows-cleared", "把結束的列清成 0 的結果", "that of clearing the cache of rows that have ended",
      ("    out = torch.zeros_like(q)\n", "    out = torch.zeros_like(q)\n    k_cache[~active] = 0\n")),
    m("silent-overflow", "滿了卻不吭聲的結果", "that of a full row that says nothing", (FULL, ""),
      (WRITE_K, "k_cache[b, :, n : n + 1] = k[b][:, None]\n"), (WRITE_V, "v_cache[b, :, n : n + 1] = v[b][:, None]\n")),
    m("raises-half-way", "寫了幾列才報錯的結果", "that of an error after some rows were written", (FULL, ""),
      (N, N + '        if n == capacity:\n            raise ValueError("full")\n')),
    m("wraps-around", "滿了就繞回開頭覆寫的結果", "that of a full row that wraps around", (FULL, ""),
      (WRITE_K, "k_cache[b, :, n % capacity] = k[b]\n"), (WRITE_V, "v_cache[b, :, n % capacity] = v[b]\n")),
    m("advances-lengths", "就地改動 lengths 的結果", "that of changing lengths in place", ("    return out", "    lengths += active\n    return out")),
]  # fmt: skip
