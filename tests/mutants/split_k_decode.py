"""Wrong solutions of `split-k-decode`."""

from kvgrade.answers import Mutant


def wrong(name, zh, en, *change):
    return Mutant(name, {"zh-TW": zh, "en": en}, change)


KEYS = "slice(s * size, min((s + 1) * size, length))"
SCORES = "queries[b] @ k[b, :, keys].float().mT"
VALUES = "scores.softmax(-1) @ v[b, :, keys].float()"
SIZE = "-(-max_len // n_splits)"
TOP = "lse.amax(0).clamp(min=torch.finfo(torch.float32).min)"
SPREAD = "    k, v = (x.repeat_interleave(n_heads // n_kv_heads, 1) for x in (k, v))\n    n_kv_heads = n_heads\n"
DIVIDED = "out / weights.sum(0).clamp(min=1)[..., None]"

MUTANTS = [
    wrong("no-scale", "沒有除以 √d", "the result without 1/√d", (" / head_dim**0.5", "")),
    wrong("divides-by-d", "除以 d", "the result divided by d", ("head_dim**0.5", "head_dim")),
    wrong("no-softmax", "沒有 softmax", "the result without softmax", (VALUES, "scores @ v[b, :, keys].float()")),
    wrong("uniform", "對 V 取平均，忽略 q·k", "the mean of V, which ignores q·k",
          (SCORES, f"0 * ({SCORES})")),
    wrong("softmax-over-heads", "softmax 沿錯了軸", "the result with a softmax over the heads of a group",
          ("scores.softmax(-1)", "scores.softmax(-2)")),
    wrong("interleaved-heads", "查詢頭 h 讀了 KV 頭 h % n_kv_heads", "the result when query head h reads KV head h % n_kv_heads",
          ("unflatten(1, (n_kv_heads, -1))", "unflatten(1, (-1, n_kv_heads)).transpose(1, 2)"),
          ("mean.flatten(0, 1)", "mean.transpose(0, 1).flatten(0, 1)"),
          ("scores.logsumexp(-1).flatten()", "scores.logsumexp(-1).mT.flatten()")),
    wrong("kv-head-0", "所有的頭都讀 KV 頭 0", "the result when all heads read KV head 0",
          (SCORES, SCORES.replace("[b, :,", "[b, :1,")), (VALUES, VALUES.replace("[b, :,", "[b, :1,"))),
    wrong("k-and-v-swapped", "K 與 V 對調", "the result with K and V swapped",
          (SCORES, SCORES.replace("k[", "v[")), (VALUES, VALUES.replace("v[", "k["))),
    wrong("floor-size", "段長向下取整，最後幾個鍵沒人讀", "the result with the size of a split rounded down, which leaves out keys",
          (SIZE, "max(1, max_len // n_splits)")),
    wrong("last-split-dropped", "少了最後一段", "the result without the last split",
          ("if keys.start < keys.stop", "if keys.start < keys.stop and s < max(1, n_splits - 1)")),
    wrong("boundary-off-by-one", "每一段都少讀一個鍵", "the result when each split leaves out its last key",
          (KEYS, "slice(s * size, min((s + 1) * size - (n_splits > 1), length))")),
    wrong("overlap", "段與段重疊一個鍵", "the result when splits overlap by one key",
          (KEYS, "slice(s * size, min((s + 1) * size + 1, length))")),
    wrong("reads-the-tail", "讀了沒寫過的格子", "what the unwritten slots held",
          (KEYS, "slice(s * size, min((s + 1) * size, max_len))")),
    wrong("one-slot-too-many", "多讀了一格", "the result with one slot too many",
          (KEYS, "slice(s * size, min((s + 1) * size, length + 1))")),
    wrong("newest-left-out", "漏了最新的 token", "the result without the newest token",
          (KEYS, "slice(s * size, min((s + 1) * size, max(1, length - 1)))")),
    wrong("first-length", "每一列都用第一列的長度", "the result with the first row's length for all rows",
          ("enumerate(lengths.tolist())", "enumerate([int(lengths[0])] * batch)")),
    wrong("rows-leak", "每一列都讀第一列的快取", "the result when every row reads the first row's cache",
          (SCORES, SCORES.replace("k[b", "k[0")), (VALUES, VALUES.replace("v[b", "v[0"))),
    wrong("plain-mean", "各段的平均", "the plain mean of the splits", (DIVIDED, "part.mean(0)")),
    wrong("unweighted-by-sum", "合併時沒有除以總和", "the merge without dividing by the sum of the weights",
          (DIVIDED, "out")),
    wrong("no-shift", "合併前沒有減去最大值", "the merge without subtracting the maximum", (TOP, "torch.zeros_like(lse[0])")),
    wrong("base-2", "合併時把自然對數當成以 2 為底", "the merge with base 2 in place of e", ("(lse - top).exp()", "(lse - top).exp2()")),
    wrong("numerators", "存了還沒正規化的分子", "the parts before they are divided by their sum",
          ("scores.softmax(-1)", "(scores - scores.amax(-1, keepdim=True)).exp()")),
    wrong("empty-nan", "空的段變成 NaN", "NaN from an empty split", ("part = torch.zeros", "part = torch.nan * torch.ones")),
    wrong("empty-lse-0", "空的段 log-sum-exp 是 0", "the result when an empty split has log-sum-exp 0", ("-torch.inf", "0.0")),
    wrong("float32-out", "輸出成了 float32", "the result in float32", ("out.to(q.dtype)", "out")),
    wrong("sixteen-bit", "以 16 位元計算", "the result computed in 16 bits",
          ("q.float()", "q"), (SCORES, "queries[b] @ k[b, :, keys].mT"), (VALUES, "scores.softmax(-1) @ v[b, :, keys]")),
    wrong("scaled-in-sixteen-bits", "除以 √d 時還是 16 位元", "the result with the division by √d in 16 bits",
          ("q.float().unflatten(1, (n_kv_heads, -1)) / head_dim**0.5", "(q / head_dim**0.5).float().unflatten(1, (n_kv_heads, -1))")),
    wrong("merged-from-sixteen-bits", "合併的是 16 位元的各段", "the merge of parts in 16 bits",
          ("(weights[..., None] * part).sum(0)", "(weights[..., None] * part.to(q.dtype).float()).sum(0)")),
    wrong("only-nan-hidden", "沒寫過的格子只清掉 NaN", "the result when slots that were never written are cleaned of NaN only",
          (KEYS, "slice(s * size, min((s + 1) * size, max_len))"),
          ("    size = ", "    v = torch.where(v.isnan(), 0, v)\n    size = "),
          (SCORES, f"{SCORES}\n                scores = scores.masked_fill(torch.arange(max_len)[keys] >= length, -torch.inf)"),
          (VALUES, f"({VALUES.split(' @ ')[0]}).nan_to_num(0) @ v[b, :, keys].float()")),
    wrong("any-negative-splits", "只檢查段數是不是 0", "the result when the number of splits is checked for 0 only",
          ("n_splits < 1", "n_splits == 0")),
    wrong("fewer-query-heads", "查詢頭比 KV 頭少時沒有檢查", "the result when fewer query heads than KV heads are not refused",
          ("n_heads % n_kv_heads", "n_heads > n_kv_heads and n_heads % n_kv_heads"),
          ("    size = ", "    k, v, n_kv_heads = k[:, :n_heads], v[:, :n_heads], min(n_heads, n_kv_heads)\n    size = ")),
    wrong("changes-lengths", "就地改動 lengths", "the result after changing lengths in place", ("    return ", "    lengths.copy_(lengths.sort().values)\n    return ")),
    wrong("k-spread-out", "把 K 攤開", "the result with K spread out",
          ("    size = ", "    spread = k.repeat_interleave(n_heads // n_kv_heads, 1)\n    size = "),
          (SCORES, "(queries[b] @ spread[b, :: n_heads // n_kv_heads, keys].float().mT)")),
    wrong("spread-out", "把 K、V 攤開", "the result with K and V spread out",
          ("    size = ", SPREAD + "    size = ")),
    wrong("all-per-split", "每一段都重算全部", "the result when every split computes all keys",
          (SCORES, "(queries[b] @ k[b, :, :length].float().mT)[..., keys]")),
    wrong("in-place", "就地改動輸入", "the result after changing the caller's tensors",
          ("    size = ", "    k[:, :, lengths.max() :], v[:, :, lengths.min() :] = 0, 0\n    size = ")),
    wrong("takes-anything", "沒有檢查引數", "the result without checking the arguments", ("raise ValueError", "_ = str")),
]  # fmt: skip
