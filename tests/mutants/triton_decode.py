"""Wrong solutions of `triton-decode`."""

from kvgrade.answers import Mutant


def wrong(name, zh, en, *change):
    return Mutant(name, {"zh-TW": zh, "en": en}, change)


LAUNCH = "def triton_decode(q, k, v, lengths, out) -> None:\n"
IN_TORCH = LAUNCH + '''    """Attention of one query per row, without a kernel."""
    group = q.shape[1] // k.shape[1]
    for b, n in enumerate(lengths.tolist()):
        keys, values = (x[b, :, :n].float().repeat_interleave(group, 0) for x in (k, v))
        weights = ({scores} * q.shape[-1] ** -0.5).softmax(-1)
        out[b] = ({mean}).to(out.dtype)
'''

MUTANTS = [
    wrong("no-scale", "沒有除以 √d", "the result without 1/√d", ("head_dim**-0.5", "1.0")),
    wrong("divides-by-d", "除以 d", "the result divided by d", ("head_dim**-0.5", "1 / head_dim")),
    wrong("base-2", "把 e 的次方換成 2 的次方", "the result with powers of 2 in place of e",
          ("tl.exp(scores - higher)", "tl.exp2(scores - higher)"), ("tl.exp(top - higher)", "tl.exp2(top - higher)")),
    wrong("no-rescale", "最大值變了，先前的加總沒有縮小", "the result when earlier sums are not scaled down for a larger maximum",
          ("tl.exp(top - higher)", "tl.exp(top * 0)")),
    wrong("acc-not-rescaled", "只縮小了總和，沒有縮小加權和", "the result when the sum is scaled down and the weighted sum is not",
          ("acc * shrink", "acc")),
    wrong("no-maximum", "沒有減去最大值", "the result without subtracting the maximum", ("tl.exp(scores - higher)", "tl.exp(scores)"),
          ("tl.exp(top - higher)", "tl.exp(top * 0)")),
    wrong("first-tile-only", "只讀第一個 tile", "the result of the first tile of keys", ("range(0, length, BLOCK)", "range(0, 1, BLOCK)")),
    wrong("whole-tiles-only", "漏了最後不滿一個 tile 的鍵", "the result without the last, incomplete tile",
          ("range(0, length, BLOCK)", "range(0, tl.maximum(length // BLOCK, 1) * BLOCK, BLOCK)")),
    wrong("padding-counts", "補上的鍵也分到權重", "the result when padded keys get a weight",
          ("tl.where((n < length)[None, :], scores, float(\"-inf\"))", "scores")),
    wrong("reads-the-tail", "讀了沒寫過的格子", "what the unwritten slots held",
          ("length = tl.load(lengths + row)", "length = tl.load(lengths + row) + 1")),
    wrong("newest-left-out", "漏了最新的 token", "the result without the newest token",
          ("length = tl.load(lengths + row)", "length = tl.maximum(tl.load(lengths + row) - 1, 1)")),
    wrong("first-length", "每一列都用第一列的長度", "the result with the first row's length for all rows",
          ("tl.load(lengths + row)", "tl.load(lengths)")),
    wrong("rows-leak", "每一列都讀第一列的快取", "the result when every row reads the first row's cache",
          ("k += row * k_row +", "k +="), ("v += row * v_row +", "v +=")),
    wrong("kv-head-0", "所有的頭都讀 KV 頭 0", "the result when all heads read KV head 0",
          (" + kv_head * k_head", ""), (" + kv_head * v_head", "")),
    wrong("interleaved-heads", "查詢頭 h 讀了 KV 頭 h % n_kv_heads", "the result when query head h reads KV head h % n_kv_heads",
          ("kv_head * GROUP + g", "kv_head + g * tl.num_programs(1)")),
    wrong("contiguous", "以為張量都是連續的", "what contiguous tensors would have held there",
          ("*k.stride()[:3], *v.stride()[:3]", "*k.contiguous().stride()[:3], *v.contiguous().stride()[:3]")),
    wrong("strides-of-k-for-v", "V 用了 K 的步幅", "what V holds at the strides of K", ("*v.stride()[:3]", "*k.stride()[:3]")),
    wrong("contiguous-out", "以為 out 是連續的", "the result written as if out were contiguous",
          ("*out.stride()[:2]", "*out.contiguous().stride()[:2]")),
    wrong("writes-padding", "補上的部分也寫了出去", "the result with the padding written as well",
          ("result, mask=real)", "result)")),
    wrong("values-are-keys", "V 也讀成 K", "the mean of K in place of V",
          ("tl.load(v + token * v_token", "tl.load(k + token * k_token")),
    wrong("in-sixteen-bits", "以 16 位元計算", "the result computed in 16 bits",
          ("keys, values = keys.to(tl.float32), values.to(tl.float32)",
           "queries = queries.to(k.dtype.element_ty)")),
    wrong("values-in-sixteen-bits", "權重乘 V 以 16 位元計算", "the result with weights times V in 16 bits",
          ("weights[:, :, None] * values[None, :, :]",
           "(weights[:, :, None].to(v.dtype.element_ty) * values[None, :, :].to(v.dtype.element_ty)).to(tl.float32)")),
    wrong("only-nan-hidden", "V 只擋住 NaN", "the result when NaN alone is kept out of V",
          ("tl.load(v + token * v_token + d, mask=stored, other=0.0)",
           "tl.load(v + token * v_token + d, mask=(d < HEAD_DIM) & (n < tl.minimum(length + 5, v_row // v_token))[:, None], other=0.0)"),
          ("keys, values = keys.to(tl.float32), values.to(tl.float32)",
           "keys, values = keys.to(tl.float32), tl.where(values == values, values, 0.0).to(tl.float32)")),
    Mutant("matmul-in-torch", {"zh-TW": "用 torch 的矩陣乘法算的結果", "en": "what torch's matrix products give"},
           source=IN_TORCH.format(scores="(keys @ q[b, :, :, None].float())[..., 0]",
                                  mean="weights[:, None] @ values).squeeze(1")),
    Mutant("torch-in-a-thread", {"zh-TW": "在另一個執行緒用 torch 算的結果", "en": "what torch computes in another thread"},
           source="import threading\n\n\n" + IN_TORCH.replace("def triton_decode", "def in_torch").format(
               scores="(keys * q[b, :, None].float()).sum(-1)", mean="(weights[..., None] * values).sum(1)")
           + "\n\n" + LAUNCH + "    thread = threading.Thread(target=in_torch, args=(q, k, v, lengths, out))\n    thread.start()\n    thread.join()\n"),
    Mutant("sums-in-torch", {"zh-TW": "用 torch 相乘再加總的結果", "en": "what torch's products and sums give"},
           source=IN_TORCH.format(scores="(keys * q[b, :, None].float()).sum(-1)",
                                  mean="(weights[..., None] * values).sum(1)")),
]  # fmt: skip
