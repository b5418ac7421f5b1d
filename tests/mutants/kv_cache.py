"""Wrong solutions of `kv-cache`."""

from kvgrade.answers import Mutant

WRITE_K, WRITE_V = "self.k[layer, :, :, self.length : end] = k", "self.v[layer, :, :, self.length : end] = v"
RETURN = "return self.k[layer, :, :, :end], self.v[layer, :, :, :end]"
FULL = "        if end > capacity:\n            raise ValueError(f\"{end} tokens in {capacity} slots\")\n"
MOVE = "self.next_layer, self.q_len = layer + 1, q_len"


def m(name, zh, en, *change):
    return Mutant(name, {"zh-TW": zh, "en": en}, change)


MUTANTS = [
    m("never-advances", "長度從不前進的結果", "that of a length that never moves", ("self.length += q_len", "pass")),
    m("advances-per-layer", "每一層都前進一次的結果", "that of a length that moves once per layer",
      (MOVE, MOVE + "\n        self.length = end"), ("self.length += q_len", "pass")),
    m("advances-in-last-append", "最後一層的 append 就前進的結果", "that of a length moved by the last layer's append",
      (MOVE, MOVE + "\n        if layer == n_layers - 1:\n            self.length = end"), ("self.length += q_len", "pass")),
    m("advances-by-one", "每步只前進 1 的結果", "that of a step that always counts as 1", ("self.length += q_len", "self.length += 1")),
    m("silent-overflow", "超過容量卻不吭聲的結果", "that of a full cache that says nothing",
      (FULL, "        end = min(end, capacity)\n        k, v = k[:, :, : end - self.length], v[:, :, : end - self.length]\n")),
    m("wraps-around", "滿了就繞回開頭覆寫的結果", "that of a full cache that wraps around",
      (FULL, "        slots = torch.arange(self.length, end) % capacity\n"),
      (WRITE_K, "self.k[layer][:, :, slots] = k"), (WRITE_V, "self.v[layer][:, :, slots] = v")),
    m("raises-runtime-error", "丟出別種例外的結果", "that of another kind of exception",
      ("raise ValueError(f\"{end} tokens in {capacity} slots\")", "raise RuntimeError(\"full\")")),
    m("whole-buffer", "連沒寫過的格子也回傳的結果", "that of returning slots never written",
      (RETURN, "return self.k[layer], self.v[layer]")),
    m("without-the-new", "不含新 token 的結果", "the result without the new tokens",
      (RETURN, "return self.k[layer, :, :, : self.length], self.v[layer, :, :, : self.length]")),
    m("only-the-new", "只回傳新 token 的結果", "that of returning the new tokens only", (RETURN, "return k, v")),
    m("returns-copies", "回傳副本的結果", "that of returning copies",
      (RETURN, "return self.k[layer, :, :, :end].clone(), self.v[layer, :, :, :end].clone()")),
    m("kv-swapped", "K 與 V 對調的結果", "the result with K and V swapped",
      (RETURN, "return self.v[layer, :, :, :end], self.k[layer, :, :, :end]")),
    m("one-buffer", "K 與 V 共用一塊緩衝區的結果", "that of one buffer for both K and V",
      ("self.v = torch.empty(shape, dtype=dtype)", "self.v = self.k"),),
    m("one-layer", "所有層共用第 0 層的結果", "that of all layers in layer 0",
      (WRITE_K, "self.k[0, :, :, self.length : end] = k"), (WRITE_V, "self.v[0, :, :, self.length : end] = v"),
      (RETURN, "return self.k[0, :, :, :end], self.v[0, :, :, :end]")),
    m("reads-layer-0", "每一層都讀第 0 層的結果", "that of reading layer 0 in every layer",
      (RETURN, "return self.k[0, :, :, :end], self.v[0, :, :, :end]")),
    m("row-0-everywhere", "每一列都存第 0 列的結果", "that of row 0 stored in every row",
      (WRITE_K, "self.k[layer, :, :, self.length : end] = k[:1]"), (WRITE_V, "self.v[layer, :, :, self.length : end] = v[:1]")),
    m("off-by-one-slot", "晚寫一格的結果", "that of writing one slot too far",
      ("end = self.length + q_len", "end = self.length + q_len + 1"), (WRITE_K, "self.k[layer, :, :, end - q_len : end] = k"),
      (WRITE_V, "self.v[layer, :, :, end - q_len : end] = v")),
    m("last-token-only", "只存每次最後 1 個 token 的結果", "that of storing the last of several tokens only",
      (WRITE_K, "self.k[layer, :, :, self.length : end] = k[:, :, -1:]"),
      (WRITE_V, "self.v[layer, :, :, self.length : end] = v[:, :, -1:]")),
    m("dtype-ignored", "一律存成 float32 的結果", "that of storing float32 always",
      ("self.k = torch.empty(shape, dtype=dtype)", "self.k = torch.empty(shape)"),
      ("self.v = torch.empty(shape, dtype=dtype)", "self.v = torch.empty(shape)"),
      ("            if x.dtype != self.k.dtype:\n                raise ValueError(f\"{x.dtype}, expected {self.k.dtype}\")\n", "")),
    m("dtype-unchecked", "不檢查 dtype 的結果", "the result without a check of the dtype", ("if x.dtype != self.k.dtype:", "if False:")),
    m("shape-unchecked", "不檢查形狀的結果", "the result without a check of the shapes",
      ("if q_len == 0 or x.shape != (batch, heads, q_len, dim):", "if q_len == 0:")),
    m("dtype-checked-in-layer-0", "只在第 0 層檢查 dtype 的結果", "the result of checking the dtype in layer 0 only",
      ("if x.dtype != self.k.dtype:", "if layer == 0 and x.dtype != self.k.dtype:")),
    m("checked-in-layer-0", "只在第 0 層檢查 k、v 的結果", "the result of checking k and v in layer 0 only",
      ("for x in (k, v):", "for x in (k, v) if layer == 0 else ():")),
    m("v-checked-in-layer-0", "v 只在第 0 層檢查的結果", "the result of checking v in layer 0 only",
      ("for x in (k, v):", "for x in (k, v) if layer == 0 else (k,):")),
    m("dtype-by-size", "只比 dtype 大小的結果", "the result of comparing the size of the dtypes only",
      ("if x.dtype != self.k.dtype:", "if x.dtype.itemsize != self.k.dtype.itemsize:")),
    m("integers-accepted", "整數的 k、v 也收的結果", "that of accepting k and v of integers",
      ("if x.dtype != self.k.dtype:", "if x.is_floating_point() and x.dtype != self.k.dtype:")),
    m("needs-contiguous-inputs", "k、v 要連續才收的結果", "that of k and v that must be contiguous", (WRITE_K, "k.view(-1), v.view(-1)\n        " + WRITE_K)),
    m("v-unchecked", "只檢查 k 的結果", "the result of checking k only", ("for x in (k, v):", "for x in (k,):")),
    m("batch-broadcasts", "讓批次 1 廣播的結果", "that of a batch of 1 that broadcasts",
      ("x.shape != (batch, heads, q_len, dim)", "x.shape[1:] != (heads, q_len, dim) or len(x) not in (1, batch)")),
    m("layers-unchecked", "不檢查層順序的結果", "the result without a check of the order of layers",
      ("if layer != self.next_layer or layer == n_layers:", "if not 0 <= layer < n_layers:")),
    m("repeats-allowed", "允許同一層重複的結果", "that of allowing a layer twice",
      ("if layer != self.next_layer or layer == n_layers:", "if not 0 <= layer <= self.next_layer or layer == n_layers:")),
    m("advance-unchecked", "advance 不檢查的結果", "that of an advance without checks",
      ("if self.next_layer != len(self.k) or q_len != self.q_len:", "if False:")),
    m("advance-any-length", "advance 不檢查 q_len 的結果", "that of an advance by any q_len",
      ("if self.next_layer != len(self.k) or q_len != self.q_len:", "if self.next_layer != len(self.k):")),
    m("q-len-may-change", "同一步各層 q_len 可以不同的結果", "that of a q_len that may change within a step",
      ("if layer > 0 and q_len != self.q_len:", "if False:")),
    m("moves-before-checks", "檢查之前就動了狀態的結果", "that of state moved before the checks",
      ("        q_len = k.shape[2] if k.dim() == 4 else 0\n", "        self.next_layer += 1\n        q_len = k.shape[2] if k.dim() == 4 else 0\n")),
    m("truncate-ignored", "truncate 什麼都不做的結果", "that of a truncate that does nothing",
      ("self.length, self.next_layer, self.q_len = n, 0, None", "self.next_layer, self.q_len = 0, None")),
    m("truncate-removes", "truncate 當成刪掉 n 個的結果", "that of a truncate that removes n tokens",
      ("self.length, self.next_layer, self.q_len = n, 0, None", "self.length, self.next_layer, self.q_len = self.length - n, 0, None")),
    m("truncate-keeps-the-step", "truncate 沒有作廢半步的結果", "that of a truncate that keeps the unfinished step",
      ("self.length, self.next_layer, self.q_len = n, 0, None", "self.length = n")),
    m("refused-truncate-drops-the-step", "truncate 被拒絕時仍作廢半步的結果", "that of a refused truncate that drops the step",
      ("        if not 0 <= n <= self.length:", "        self.next_layer, self.q_len = 0, None\n        if not 0 <= n <= self.length:")),
    m("truncate-clones-k", "truncate 複製 K 緩衝區的結果", "that of a truncate that copies the buffer of K",
      ("        if not 0 <= n <= self.length:", "        self.k = self.k.clone()\n        if not 0 <= n <= self.length:")),
    m("truncate-clones-v", "truncate 複製 V 緩衝區的結果", "that of a truncate that copies the buffer of V",
      ("        if not 0 <= n <= self.length:", "        self.v = self.v.clone()\n        if not 0 <= n <= self.length:")),
    m("truncate-copies-the-rest", "truncate 把留下的部分複製一遍的結果", "that of a truncate that copies what is left",
      ("        self.length, self.next_layer, self.q_len = n, 0, None",
       "        for x in (self.k, self.v):\n            x[:, :, :, :n] = x[:, :, :, :n].clone()\n        self.length, self.next_layer, self.q_len = n, 0, None")),
    m("reset-reallocates", "reset 重新配置記憶體的結果", "that of a reset that allocates anew",
      ("        self.truncate(0)", "        self.k, self.v = torch.empty_like(self.k), torch.empty_like(self.v)\n        self.truncate(0)")),
    m("truncate-unchecked", "truncate 不檢查範圍的結果", "that of a truncate without a check",
      ("if not 0 <= n <= self.length:", "if False:")),
    m("truncate-beyond", "truncate 可以變長的結果", "that of a truncate that may lengthen", ("if not 0 <= n <= self.length:", "if n < 0:")),
    m("reset-half", "reset 沒有作廢半步的結果", "that of a reset that keeps the unfinished step",
      ("        self.truncate(0)", "        self.length = 0")),
    m("nbytes-of-k", "只算 K 的位元組", "the bytes of K alone", ("self.nbytes = self.k.nbytes + self.v.nbytes", "self.nbytes = self.k.nbytes")),
    m("nbytes-counts-numbers", "數字的個數而不是位元組", "the count of numbers, not bytes",
      ("self.nbytes = self.k.nbytes + self.v.nbytes", "self.nbytes = self.k.numel() + self.v.numel()")),
    Mutant("concatenates", {"zh-TW": "每步串接的結果", "en": "that of concatenating at every step"}, source='''
import torch


class KVCache:
    def __init__(self, n_layers, batch, n_kv_heads, head_dim, capacity, dtype=torch.float32):
        self.form, self.capacity, self.dtype, self.length = (batch, n_kv_heads, head_dim), capacity, dtype, 0
        self.store, self.due, self.q_len = [None] * n_layers, 0, None
        self.nbytes = 2 * n_layers * batch * n_kv_heads * capacity * head_dim * dtype.itemsize

    def append(self, layer, k, v):
        if layer != self.due or layer == len(self.store) or k.dim() != 4 or k.shape != v.shape or not k.shape[2]:
            raise ValueError
        if (k.shape[0], k.shape[1], k.shape[3]) != self.form or k.dtype != self.dtype or v.dtype != self.dtype:
            raise ValueError
        if self.length + k.shape[2] > self.capacity or (layer and k.shape[2] != self.q_len):
            raise ValueError
        if self.length:
            old = [x[:, :, : self.length] for x in self.store[layer]]
            self.store[layer] = [torch.cat([a, b], 2) for a, b in zip(old, (k, v))]
        else:
            self.store[layer] = [k, v]  # the caller's own
        self.due, self.q_len = layer + 1, k.shape[2]
        return tuple(self.store[layer])

    def advance(self, q_len):
        if self.due != len(self.store) or q_len != self.q_len:
            raise ValueError
        self.length, self.due = self.length + q_len, 0

    def truncate(self, n):
        if not 0 <= n <= self.length:
            raise ValueError
        self.length, self.due = n, 0

    def reset(self):
        self.truncate(0)
'''),
]  # fmt: skip
