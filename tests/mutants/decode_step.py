"""Wrong solutions of `decode-step`."""

from kvgrade.answers import Mutant

SOFTMAX = "p = (q @ keys.mT / D**0.5).softmax(-1)"
GROUP = "q = q.reshape(B, keys.shape[1], -1, D)  # group query heads by KV head\n"
KEYS = 'keys = cache["k"][i, :, :, : pos + 1].to(x.dtype)  # (B, Hkv, T, D)\n'
VALUES = 'values = cache["v"][i, :, :, : pos + 1].to(x.dtype)\n'
WRITE_K, WRITE_V = 'cache["k"][i, :, :, pos] = k  # (B, Hkv, D)\n', 'cache["v"][i, :, :, pos] = v\n'
TURN = "q, k = apply_rope(q, pos, theta), apply_rope(k, pos, theta)\n"
ADVANCE = 'cache["length"] = pos + 1  # once, after the last layer\n'
FULL = "    if pos == cache[\"k\"].shape[3]:\n        raise ValueError(f\"the cache is full: {pos} tokens\")\n"
OUT = "x = x + (p @ values).reshape(B, -1) @ w[\"wo\"][i].T"
EMBED = 'x = w["embed"][tokens]  # (B, hidden)\n'


def m(name, zh, en, *change):
    return Mutant(name, {"zh-TW": zh, "en": en}, change)


def softmax(name, zh, en, new):
    return m(name, zh, en, (SOFTMAX, new))


def heads(name, zh, en, order):
    """Query heads that read other KV heads."""
    line = "        "
    spread = (f"G = q.shape[1] // keys.shape[1]\n{line}order = {order}\n{line}keys, values = keys[:, order], values[:, order]\n"
              f"{line}q = q[:, :, None]\n")  # fmt: skip
    return m(name, zh, en, (GROUP, spread))


RECOMPUTES = '''
import torch
import torch.nn.functional as F

SEEN = {}


def decode_step(weights, config, tokens, cache):
    w, D, eps, theta = weights, config["head_dim"], config["eps"], config["theta"]
    B, pos = len(tokens), cache["length"]
    if pos == cache["k"].shape[3]:
        raise ValueError("full")
    text = SEEN.setdefault(cache["k"].data_ptr(), [])
    del text[pos:]
    text += [tokens] * (pos - len(text) + 1)
    at = torch.arange(pos + 1)
    x = w["embed"][torch.stack(text, 1)]  # (B, T, hidden): all of it, every time
    for i in range(config["n_layers"]):
        y = rms_norm(x, w["attn_norm"][i], eps)
        q, k, v = ((y @ w[n][i].T).view(B, pos + 1, -1, D).transpose(1, 2) for n in ("wq", "wk", "wv"))
        q, k = apply_rope(q, at, theta), apply_rope(k, at, theta)
        cache["k"][i, :, :, pos], cache["v"][i, :, :, pos] = k[:, :, pos], v[:, :, pos]
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + out.transpose(1, 2).reshape(B, pos + 1, -1) @ w["wo"][i].T
        y = rms_norm(x, w["ffn_norm"][i], eps)
        x = x + (F.silu(y @ w["w_gate"][i].T) * (y @ w["w_up"][i].T)) @ w["w_down"][i].T
    cache["length"] = pos + 1
    return rms_norm(x[:, -1], w["final_norm"], eps) @ w["unembed"].T
'''

MUTANTS = [
    softmax("no-scale", "沒有除以 √D 的結果", "the result without the division by √D", "p = (q @ keys.mT).softmax(-1)"),
    softmax("divides-by-d", "除以 D 而不是 √D 的結果", "the result of a division by D instead of √D", "p = (q @ keys.mT / D).softmax(-1)"),
    softmax("no-softmax", "沒有 softmax 的結果", "the result without a softmax", "p = q @ keys.mT / D**0.5"),
    softmax("softmax-over-heads", "softmax 取錯軸的結果", "the result of a softmax over the wrong axis",
            "p = (q @ keys.mT / D**0.5).softmax(-2)"),
    softmax("uniform", "所有鍵一律平均的結果", "the result of a plain average over the keys",
            "p = torch.zeros_like(q @ keys.mT).softmax(-1)"),
    softmax("base-2", "以 2 為底的 softmax", "the result of a softmax of base 2",
            "p = (q @ keys.mT / D**0.5 * 0.6931471805599453).softmax(-1)"),
    softmax("scales-by-hidden", "除以 √hidden 的結果", "the result of a division by √hidden",
            "p = (q @ keys.mT / x.shape[-1] ** 0.5).softmax(-1)"),
    softmax("without-itself", "新 token 看不到自己的結果", "the result of a token that does not see itself",
            "p = (q @ keys.mT / D**0.5)\n        p[..., pos:] = -1e9\n        p = p.softmax(-1)"),
    softmax("is-causal", "傳了 is_causal=True 的結果", "the result of is_causal=True",
            "p = torch.zeros_like(q @ keys.mT)\n        p[..., 0] = 1"),
    softmax("no-maximum", "沒有先減去最大值的 softmax", "the result of a softmax that overflows",
            "p = (e := (q @ keys.mT / D**0.5).exp()) / e.sum(-1, keepdim=True)"),
    softmax("scores-clamped", "把分數夾在 ±50 之間的結果", "the result of scores clamped to ±50",
            "p = (q @ keys.mT / D**0.5).clamp(-50, 50).softmax(-1)"),
    softmax("softmax-in-the-caches-dtype", "用快取的 dtype 做 softmax 的結果", "the result of a softmax in the cache's dtype",
            'p = (q @ keys.mT / D**0.5).to(cache["k"].dtype).softmax(-1).to(x.dtype)'),
    softmax("attends-in-the-caches-dtype", "用快取的 dtype 做 attention 的結果", "the result of attention in the cache's dtype",
            'keys, values = keys.to(cache["k"].dtype), values.to(cache["v"].dtype)\n'
            "        p = (q.to(keys.dtype) @ keys.mT / D**0.5).softmax(-1)\n        values, p = values.to(x.dtype), p.to(x.dtype)"),
    m("attends-before-rounding", "新 token 用還沒存進快取的 K、V 的結果", "the result of the new token's K and V before they were stored",
      (KEYS, 'keys = torch.cat([cache["k"][i, :, :, :pos].to(x.dtype), k[:, :, None]], 2)\n'),
      (VALUES, 'values = torch.cat([cache["v"][i, :, :, :pos].to(x.dtype), v[:, :, None]], 2)\n')),
    m("value-before-rounding", "新 token 用還沒存進快取的 V 的結果", "the result of the new token's V before it was stored",
      (VALUES, 'values = torch.cat([cache["v"][i, :, :, :pos].to(x.dtype), v[:, :, None]], 2)\n')),
    m("cleans-the-tail", "清掉沒填的格子裡的 NaN 的結果", "that of cleaning the slots that are not filled of NaN",
      (WRITE_K, WRITE_K + '        cache["k"][i, :, :, pos + 1 :].nan_to_num_()\n')),
    m("all-slots-by-hand", "逐元素相乘、連沒填的格子也算的結果", "that of products by element over slots that are not filled",
      (KEYS, 'keys = cache["k"][i].to(x.dtype)\n'), (VALUES, 'values = cache["v"][i].to(x.dtype).clone()\n        values[:, :, pos + 1 :] = 0\n'),
      (SOFTMAX, "s = (q[:, :, :, None] * keys[:, :, None]).sum(-1) / D**0.5\n        s[..., pos + 1 :] = -torch.inf\n        p = s.softmax(-1)"),
      (OUT, 'x = x + (p[..., None] * values[:, :, None]).sum(-2).reshape(B, -1) @ w["wo"][i].T')),
    m("adds-a-weight", "在 weights 裡多放一個鍵的結果", "that of a key added to weights", (EMBED, EMBED + '    w["lm_head"] = w["unembed"]\n')),
    m("adds-to-config", "在 config 裡多放一個鍵的結果", "that of a key added to config",
      (EMBED, EMBED + '    config["group"] = config["n_heads"] // config["n_kv_heads"]\n')),
    heads("repeat", "用 repeat 攤開 KV 頭的結果", "the result of repeat in place of repeat_interleave",
          "torch.arange(q.shape[1]) % keys.shape[1]"),
    heads("kv-head-0", "所有頭都讀第 0 個 KV 頭的結果", "the result of all heads on KV head 0", "torch.zeros(q.shape[1], dtype=torch.long)"),
    heads("heads-reversed", "KV 頭順序顛倒的結果", "the result of KV heads in reverse", "torch.arange(q.shape[1]).flip(0) // G"),
    m("kv-swapped", "K 與 V 對調的結果", "the result with K and V swapped", (SOFTMAX, "keys, values = values, keys\n        " + SOFTMAX)),
    m("stores-kv-swapped", "存的時候 K 與 V 對調的結果", "the result of storing K as V and V as K",
      (WRITE_K, 'cache["v"][i, :, :, pos] = k\n'), (WRITE_V, 'cache["k"][i, :, :, pos] = v\n')),
    m("never-writes", "從不寫入快取的結果", "that of a cache that is never written", (WRITE_K, "\n"), (WRITE_V, "\n")),
    m("keeps-the-token-out", "新 token 只在這一步用、沒寫進快取的結果", "that of a new token that is used in its step and not written into the cache",
      (WRITE_K, "\n"), (WRITE_V, "\n"),
      (KEYS, 'keys = torch.cat([cache["k"][i, :, :, :pos].to(x.dtype), k[:, :, None]], 2)\n'),
      (VALUES, 'values = torch.cat([cache["v"][i, :, :, :pos].to(x.dtype), v[:, :, None]], 2)\n')),
    m("never-advances", "長度從不前進的結果", "that of a length that never moves", (ADVANCE, "\n")),
    m("advances-per-layer", "每一層都前進一次的結果", "that of a length that moves once per layer",
      (EMBED, EMBED), ("        y = rms_norm(x, w[\"attn_norm\"][i], eps)\n", "        y, pos = rms_norm(x, w[\"attn_norm\"][i], eps), cache[\"length\"]\n"),
      (OUT, OUT + '\n        cache["length"] += 1'), (ADVANCE, "\n")),
    m("counts-layers", "長度每步加 n_layers 的結果", "that of a length that grows by n_layers per step",
      (ADVANCE, 'cache["length"] = pos + config["n_layers"]\n')),
    m("position-off-by-one", "位置多 1 的結果", "the result of a position 1 too high",
      (TURN, "q, k = apply_rope(q, pos + 1, theta), apply_rope(k, pos + 1, theta)\n")),
    m("query-off-by-one", "q 的位置多 1 的結果", "the result of a query's position 1 too high",
      (TURN, "q, k = apply_rope(q, pos + 1, theta), apply_rope(k, pos, theta)\n")),
    m("position-0", "每一步都當成位置 0 的結果", "the result of position 0 at every step",
      (TURN, "q, k = apply_rope(q, 0, theta), apply_rope(k, 0, theta)\n")),
    m("no-rope", "沒有旋轉的結果", "the result without any rotation", (TURN, "\n")),
    m("q-not-turned", "只轉了 k 的結果", "the result of a rotation of k alone", (TURN, "k = apply_rope(k, pos, theta)\n")),
    m("k-not-turned", "只轉了 q 的結果", "the result of a rotation of q alone", (TURN, "q = apply_rope(q, pos, theta)\n")),
    m("v-turned", "連 v 也轉的結果", "the result of a rotation of v too", (TURN, TURN.strip() + "\n        v = apply_rope(v, pos, theta)\n")),
    m("turns-again", "讀出來又轉一次的結果", "the result of turning stored keys again",
      (VALUES, VALUES + "        keys = apply_rope(keys, torch.arange(pos + 1), theta)\n")),
    m("theta-fixed", "theta 固定為 10000 的結果", "the result of a theta of 10000 always",
      (TURN, "q, k = apply_rope(q, pos, 10_000.0), apply_rope(k, pos, 10_000.0)\n")),
    m("reads-the-tail", "連沒填的格子也算進去的結果", "the result of slots that are not filled",
      (KEYS, 'keys = cache["k"][i].to(x.dtype)\n'), (VALUES, 'values = cache["v"][i].to(x.dtype)\n')),
    m("one-slot-too-many", "多讀一格的結果", "the result of reading one slot too many",
      (KEYS, 'keys = cache["k"][i, :, :, : pos + 2].to(x.dtype)\n'), (VALUES, 'values = cache["v"][i, :, :, : pos + 2].to(x.dtype)\n')),
    m("masked-tail", "把整個緩衝區算完再遮掉的結果", "the result of computing all the buffer and hiding the tail",
      (KEYS, 'keys = cache["k"][i].to(x.dtype).nan_to_num(0, 0, 0)\n'), (VALUES, 'values = cache["v"][i].to(x.dtype).nan_to_num(0, 0, 0)\n'),
      (SOFTMAX, "p = q @ keys.mT / D**0.5\n        p[..., pos + 1 :] = -torch.inf\n        p = p.softmax(-1)")),
    m("drops-the-oldest", "少讀第 0 格的結果", "the result of leaving out slot 0",
      (KEYS, 'keys = cache["k"][i, :, :, min(pos, 1) : pos + 1].to(x.dtype)\n'),
      (VALUES, 'values = cache["v"][i, :, :, min(pos, 1) : pos + 1].to(x.dtype)\n')),
    m("new-token-only", "只看新 token 的結果", "the result of attending to the new token alone",
      (KEYS, 'keys = cache["k"][i, :, :, pos : pos + 1].to(x.dtype)\n'), (VALUES, 'values = cache["v"][i, :, :, pos : pos + 1].to(x.dtype)\n')),
    m("reads-layer-0", "每一層都讀第 0 層快取的結果", "the result of reading the cache of layer 0 in every layer",
      (KEYS, 'keys = cache["k"][0, :, :, : pos + 1].to(x.dtype)\n'), (VALUES, 'values = cache["v"][0, :, :, : pos + 1].to(x.dtype)\n')),
    m("layer-0", "所有層共用第 0 層快取的結果", "the result of one cache for all layers",
      (WRITE_K, 'cache["k"][0, :, :, pos] = k\n'), (WRITE_V, 'cache["v"][0, :, :, pos] = v\n'),
      (KEYS, 'keys = cache["k"][0, :, :, : pos + 1].to(x.dtype)\n'), (VALUES, 'values = cache["v"][0, :, :, : pos + 1].to(x.dtype)\n')),
    m("layer-0-weights", "每一層都用第 0 層權重的結果", "the result of the weights of layer 0 in every layer",
      ('w[n][i].T', 'w[n][0].T')),
    m("row-0", "每一列都讀第 0 列快取的結果", "the result of reading row 0's cache for every row",
      (SOFTMAX, "keys, values = keys[:1], values[:1]\n        " + SOFTMAX)),
    m("row-0-stored", "每一列都存第 0 列的結果", "the result of storing row 0 in every row",
      (WRITE_K, 'cache["k"][i, :, :, pos] = k[:1]\n'), (WRITE_V, 'cache["v"][i, :, :, pos] = v[:1]\n')),
    m("rows-share-norm", "各列一起正規化的結果", "the result of a norm over all rows together",
      ("return rms_norm(x, w[\"final_norm\"], eps)", "return x * torch.rsqrt(x.pow(2).mean() + eps) * w[\"final_norm\"]")),
    m("silent-overflow", "滿了卻不吭聲的結果", "that of a full cache that says nothing",
      (FULL, ""), (WRITE_K, 'cache["k"][i, :, :, pos : pos + 1] = k[:, :, None]\n'), (WRITE_V, 'cache["v"][i, :, :, pos : pos + 1] = v[:, :, None]\n')),
    m("wraps-around", "滿了就繞回開頭覆寫的結果", "that of a full cache that wraps around",
      (FULL, '    slot = pos % cache["k"].shape[3]\n'), (WRITE_K, 'cache["k"][i, :, :, slot] = k\n'), (WRITE_V, 'cache["v"][i, :, :, slot] = v\n')),
    m("raises-index-error", "寫到一半才丟出 IndexError 的結果", "that of an IndexError half-way", (FULL, "")),
    m("raises-late", "寫完才檢查容量的結果", "that of a check of the capacity after writing",
      (FULL, '    full = pos == cache["k"].shape[3]\n    pos -= full\n'),
      (ADVANCE, 'if full:\n        raise ValueError("full")\n    ' + ADVANCE)),
    m("refuses-the-last-slot", "最後一格不用的結果", "that of a last slot that is never used", ('if pos == cache["k"].shape[3]:', 'if pos >= cache["k"].shape[3] - 1:')),
    m("cache-upcast", "把快取換成權重 dtype 的結果", "that of a cache turned into the dtype of the weights",
      (EMBED, EMBED + '    cache["k"], cache["v"] = cache["k"].to(x.dtype), cache["v"].to(x.dtype)\n')),
    m("computes-in-cache-dtype", "用快取的 dtype 運算的結果", "that of computing in the cache's dtype",
      (TURN, TURN + '        q = q.to(cache["k"].dtype)\n'), (KEYS, 'keys = cache["k"][i, :, :, : pos + 1]\n'),
      (VALUES, 'values = cache["v"][i, :, :, : pos + 1]\n'), (OUT, OUT.replace('w["wo"][i].T', 'w["wo"][i].to(p.dtype).T')),
      ('return rms_norm(x, w["final_norm"], eps) @ w["unembed"].T', 'return (rms_norm(x, w["final_norm"], eps) @ w["unembed"].T).to(cache["k"].dtype)')),
    m("replaces-the-cache", "用 torch.cat 換掉快取的結果", "that of a cache replaced by torch.cat",
      (EMBED, EMBED + '    cache["k"], cache["v"] = cache["k"].clone(), cache["v"].clone()\n')),
    m("changes-embed", "就地改動 embed 的結果", "that of a change of embed in place",
      ('    return rms_norm', '    w["embed"][tokens] = x\n    return rms_norm')),
    m("scales-wq-in-place", "就地把 1/√D 乘進 wq 的結果", "that of a 1/√D multiplied into wq in place",
      (EMBED, EMBED + '    w["wq"].div_(D**0.5)\n'), (SOFTMAX, "p = (q @ keys.mT).softmax(-1)")),
    m("no-attention-residual", "少了注意力的殘差", "the result without the residual of attention", (OUT, OUT.replace("x = x + ", "x = "))),
    m("no-ffn-residual", "少了前饋層的殘差", "the result without the residual of the feed-forward layer",
      ("x = x + (F.silu(gate) * up)", "x = (F.silu(gate) * up)")),
    m("no-final-norm", "少了最後的 norm", "the result without the final norm", ('rms_norm(x, w["final_norm"], eps) @', "x @")),
    m("no-attn-norm", "注意力之前少了 norm", "the result without the norm before attention", ('rms_norm(x, w["attn_norm"][i], eps)', "x")),
    m("gate-and-up-swapped", "gate 與 up 對調的結果", "the result with gate and up swapped", ("F.silu(gate) * up", "gate * F.silu(up)")),
    m("gelu", "用 GELU 而不是 SiLU 的結果", "the result of GELU instead of SiLU", ("F.silu(gate)", "F.gelu(gate)")),
    m("eps-fixed", "eps 固定為 1e-5 的結果", "the result of an eps of 1e-5 always", ('(config[n] for n in ("head_dim", "eps", "theta"))', 'config["head_dim"], 1e-5, config["theta"]')),
    m("head-dim-from-hidden", "head_dim 用 hidden // n_heads 的結果", "the result of head_dim = hidden // n_heads",
      ('(config[n] for n in ("head_dim", "eps", "theta"))', 'weights["embed"].shape[1] // config["n_heads"], config["eps"], config["theta"]')),
    m("heads-interleaved", "把頭切成交錯的結果", "the result of heads cut in the wrong order",
      ("(y @ w[n][i].T).view(B, -1, D)", "(y @ w[n][i].T).view(B, D, -1).mT")),
    Mutant("recomputes", {"zh-TW": "每一步都重算全部、不讀快取的結果", "en": "that of computing everything anew, without reading the cache"},
           source=RECOMPUTES),
]  # fmt: skip
