"""Hidden tests of `kv-cache`: the cache beside lists of everything that was appended."""

import torch

from kvgrade.session import AnswerRaised
from kvgrade.testing import prop

NAN = float("nan")


class Twin:
    """A cache of the answer's and, per layer, the list of what it must hold."""

    def __init__(self, t, n_layers, batch, heads, dim, capacity, dtype=torch.float32):
        self.t, self.n_layers, self.form, self.dtype = t, n_layers, (batch, heads, dim), dtype
        self.cache = t.answer.keep(n_layers, batch, heads, dim, capacity, dtype)
        self.back = False  # whether truncate or reset came before
        self.held = [[] for _ in range(n_layers)]  # per layer: (k, v) of each token, (batch, heads, 1, dim)

    def new(self, q_len):
        """Random k and v of q_len tokens, never alike."""
        batch, heads, dim = self.form
        return tuple(self.t.normal(batch, heads, q_len, dim, dtype=self.dtype) for _ in range(2))

    def want(self, layer):
        return tuple(torch.cat(kind, dim=2) for kind in zip(*self.held[layer], strict=True))

    def append(self, layer, q_len):
        k, v = self.new(q_len)
        self.held[layer] += zip(k.split(1, 2), v.split(1, 2), strict=True)
        self.matches(self.call("append", layer, k, v), layer)

    def matches(self, got, layer):
        two = isinstance(got, (tuple, list)) and len(got) == 2
        self.t.expect(two, zh="append 應回傳 (k_all, v_all)", en="append should return (k_all, v_all)")
        for mine, theirs in zip(self.want(layer), got, strict=True):
            self.t.equal(theirs, mine)

    def step(self, q_len):
        before = len(self.held[0])
        for layer in range(self.n_layers):
            self.append(layer, q_len)
            self.length(before)
        self.call("advance", q_len)
        self.length(before + q_len)

    def call(self, method, *args):
        """A call that must not raise; where it does although it is right again after truncate or reset, that is said."""
        try:
            return self.cache.call(method, *args)
        except AnswerRaised as error:
            if not self.back or error.type in ("NotImplementedError", "NameMissing"):
                raise
            said = f"{error.type}: {error.text[:300]}"
            self.t.expect(False, zh=f"truncate 或 reset 之後，照規矩的 {method} 卻丟出例外（{said}）",
                          en=f"after truncate or reset, a proper {method} raised an exception ({said})")  # fmt: skip

    def truncate(self, n):
        self.cache.call("truncate", n)
        self.forget(n)

    def reset(self):
        self.cache.call("reset")
        self.forget(0)

    def forget(self, n):
        self.back = True
        self.held = [tokens[:n] for tokens in self.held]
        self.length(n)

    def length(self, n):
        self.t.equal(self.cache.attr("length"), n)

    def view(self, layer, q_len, which):
        """Append, and keep what is returned for K (0) or V (1) on the answer's side."""
        k, v = self.new(q_len)
        self.held[layer] += zip(k.split(1, 2), v.split(1, 2), strict=True)
        return self.cache.keep("append", layer, k, v).keep("__getitem__", which)


def some(t, capacity, dtype=torch.float32, n_layers=None):
    return Twin(t, n_layers or t.integer(2, 4), t.integer(2, 3), t.integer(1, 3), t.choice(1, 3, 8), capacity, dtype)


@prop(5, zh="每一層都拿回到目前為止的 K 與 V，長度每步前進一次",
      en="each layer gets its K and V so far, and the length moves once per step")  # fmt: skip
def history(t):
    for capacity in (1, t.integer(2, 4), 30, 100, 255):
        twin, left = some(t, capacity + t.integer(0, 3)), capacity
        for _ in range(5):
            if left:
                n = t.integer(1, left)
                twin.step(n)
                left -= n
    twin = Twin(t, 1, 1, 1, 1, 1)
    twin.step(1)


@prop(3, zh="回傳的是同一塊緩衝區的檢視，不複製歷史", en="what is returned is a view of one buffer; the history is not copied")
def views(t):
    for which in (0, 1):
        twin = some(t, 40)
        first = [twin.view(layer, 3, which) for layer in range(twin.n_layers)]
        twin.cache.call("advance", 3)
        second = [twin.view(layer, 2, which) for layer in range(twin.n_layers)]
        for layer in range(twin.n_layers):
            mark = float(layer + 70)
            second[layer].keep("narrow", 2, 1, 1).keep("fill_", mark)
            seen = first[layer].value()
            t.expect(isinstance(seen, torch.Tensor) and bool((seen[:, :, 1] == mark).all()),
                     zh="前後兩步回傳的張量不在同一塊記憶體", en="the tensors returned by two steps do not share memory")  # fmt: skip
    for which in (0, 1):  # the same memory also after truncate and reset
        twin = some(t, 9)
        first = [twin.view(layer, 3, which) for layer in range(twin.n_layers)]
        twin.cache.call("advance", 3)
        for mark, (n, back) in enumerate(((1, lambda w: w.truncate(1)), (0, lambda w: w.reset())), 70):
            back(twin)
            for layer in range(twin.n_layers):
                twin.view(layer, 2, which).keep("narrow", 2, n, 1).keep("fill_", mark)
                seen = first[layer].value()
                t.expect(isinstance(seen, torch.Tensor) and bool((seen[:, :, n] == mark).all()),
                         zh="truncate 或 reset 之後換了一塊記憶體", en="truncate or reset has moved to other memory")  # fmt: skip
            twin.cache.call("advance", 2)
    twin = Twin(t, 2, 2, 2, 16, 200)
    twin.step(200)
    _, work = twin.cache.counted("truncate", 199)
    t.expect(work.bytes_written <= sum(x.nbytes for x in twin.want(0)) // 10, zh="truncate 寫出的位元組隨歷史變多",
             en="truncate writes bytes in proportion to the history")  # fmt: skip
    twin = Twin(t, 2, 2, 2, 16, 300)
    twin.step(200)
    new = twin.new(1)
    for layer in range(2):
        _, work = twin.cache.counted("append", layer, *new)
        t.expect(work.bytes_written <= 16 * (new[0].nbytes + new[1].nbytes),
                 zh="加 1 個 token 寫出的位元組隨歷史變多", en="appending 1 token writes bytes in proportion to the history")  # fmt: skip


@prop(2, zh="快取自有記憶體，不留著也不改動呼叫者的張量", en="the cache has memory of its own: it neither keeps nor changes the caller's tensors")
def own_memory(t):
    for q_len in (1, t.integer(2, 5)):
        for before in (0, 3):
            twin = some(t, 16, n_layers=1)
            if before:
                twin.step(before)
            k, v = twin.new(q_len)
            twin.held[0] += zip(k.split(1, 2), v.split(1, 2), strict=True)
            held = t.hold(k), t.hold(v)
            twin.matches(twin.cache.call("append", 0, *held), 0)
            twin.cache.call("advance", q_len)
            for name, tensor, original in zip("kv", held, (k, v), strict=True):
                t.unchanged(tensor, original, name)
                tensor.keep("fill_", NAN)
            twin.step(2)
    twin = some(t, 16, n_layers=1)
    k, v = twin.new(4)
    held = t.hold(k), t.hold(v)
    twin.cache.call("append", 0, *held)
    twin.reset()
    twin.step(4)
    for name, tensor, original in zip("kv", held, (k, v), strict=True):
        t.unchanged(tensor, original, name)


@prop(4, zh="truncate 與 reset 之後，和從來沒寫過一樣", en="after truncate and reset it is as if the rest had never been written")
def goes_back(t):
    twin = some(t, 30)
    twin.step(8)
    for n in (8, t.integer(3, 7), 2, 0):
        twin.truncate(n)
        twin.step(t.integer(1, 4))
        twin.truncate(n)
    twin.step(30)  # the capacity is all there again
    twin.reset()
    twin.step(30)
    twin.truncate(5)
    for layers in range(1, twin.n_layers + 1):  # a step left unfinished
        for layer in range(layers):
            twin.append(layer, 2)
        twin.truncate(5)
        twin.step(1)
        twin.truncate(5)
    twin.append(0, 3)
    twin.reset()
    twin.step(4)
    # what lay behind the length is poisoned, through the views that were given out
    twin = some(t, 12)
    for which in (0, 1):
        views = [twin.view(layer, 6, which) for layer in range(twin.n_layers)]
        twin.cache.call("advance", 6)
        for view in views:
            view.keep("narrow", 2, 2, 4).keep("fill_", NAN)
        twin.truncate(2)
        twin.step(1)
        twin.step(3)
        twin.reset()


@prop(1, zh="nbytes 是兩個緩衝區的大小", en="nbytes is the size of the two buffers")
def size(t):
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        n, b, h, d, c = t.integer(2, 5), t.integer(1, 3), t.integer(1, 4), t.choice(3, 8), t.choice(1, 30, 255)
        twin = Twin(t, n, b, h, d, c, dtype)
        t.equal(twin.cache.attr("nbytes"), 2 * n * b * h * c * d * dtype.itemsize)
        twin.step(1)
        t.equal(twin.cache.attr("nbytes"), 2 * n * b * h * c * d * dtype.itemsize)


@prop(1, zh="dtype 照要求的，一個位元都不變；k、v 在記憶體裡不連續也可以",
      en="the dtype is the one asked for, and not a bit changes; k and v need not be contiguous")  # fmt: skip
def dtypes(t):
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        twin = some(t, 9, dtype)
        twin.step(4)
        twin.step(1)
    for q_len in (2, 1, 3):  # laid out token by token, as a projection leaves them
        twin = Twin(t, 2, t.integer(1, 3), t.integer(2, 3), t.choice(1, 3, 8), 3)
        for layer in range(twin.n_layers):
            k, v = twin.new(q_len)
            twin.held[layer] += zip(k.split(1, 2), v.split(1, 2), strict=True)
            views = [t.hold(x.transpose(1, 2).contiguous()).keep("transpose", 1, 2) for x in (k, v)]
            twin.matches(twin.cache.call("append", layer, *views), layer)


@prop(2, zh="滿了就丟出 ValueError，什麼都不改", en="when full it raises ValueError and changes nothing")
def full(t):
    for capacity in (1, 3, 30):
        twin = some(t, capacity)
        for have in (0, capacity - 1, capacity):
            twin.reset()
            if have:
                twin.step(have)
            for too_many in (capacity - have + 1, capacity + 5):
                t.raises("ValueError", lambda n=too_many, twin=twin: twin.cache.call("append", 0, *twin.new(n)),
                         zh="寫超過容量時", en="when written past its capacity")  # fmt: skip
                twin.length(have)
            if have < capacity:
                twin.step(capacity - have)
        twin.truncate(capacity - 1)
        twin.step(1)


@prop(2, zh="違反合約就丟出 ValueError，什麼都不改", en="a breach of the contract raises ValueError and changes nothing")
def refuses(t):
    n_layers = t.integer(2, 3)
    twin = Twin(t, n_layers, 2, 3, 4, 20)
    twin.step(3)

    def refused(zh, en, method, *args):
        t.raises("ValueError", lambda: twin.cache.call(method, *args), zh=zh, en=en)
        twin.length(3)

    def layers(*wrong):
        for layer in wrong:
            refused("層的順序不對時", "when a layer is out of turn", "append", layer, *twin.new(2))

    def finish(first, q_len=2):
        for layer in range(first, n_layers):
            twin.append(layer, q_len)
        twin.cache.call("advance", q_len)
        twin.length(3 + q_len)
        twin.truncate(3)

    layers(1, n_layers - 1, -1, n_layers, 7)
    refused("還沒寫完每一層就 advance 時", "when advanced before every layer was written", "advance", 2)
    finish(0)
    twin.append(0, 2)
    for n in (-1, 4, 20):  # refused, so the step goes on
        refused("truncate 的 n 超出範圍時", "when truncated to what it does not hold", "truncate", n)
    layers(0, -1, n_layers)
    for n in (1, 3):
        refused("同一步各層的 q_len 不同時", "when q_len differs between layers of a step", "append", 1, *twin.new(n))
    refused("還沒寫完每一層就 advance 時", "when advanced before every layer was written", "advance", 2)
    finish(1)
    for layer in range(n_layers):
        twin.append(layer, 2)
    layers(0, n_layers, n_layers - 1)
    for n in (1, 3, 0):
        refused("advance 的 q_len 與寫入的不同時", "when advanced by another q_len than was written", "advance", n)
    finish(n_layers)
    refused("advance 兩次時", "when advanced twice", "advance", 2)

    k, v = twin.new(2)
    zh, en = "k 或 v 的形狀不符時", "when k or v has a wrong shape"
    bad = [k[:1], k.repeat(2, 1, 1, 1), k[:, :1], k.repeat(1, 2, 1, 1), k[..., :1], k[..., :3], k[:, :, 0], k[None],
           k[:, :, :1], k.transpose(1, 2)]  # fmt: skip
    for layer in range(n_layers):
        for wrong in bad:
            refused(zh, en, "append", layer, wrong.contiguous(), v)
            refused(zh, en, "append", layer, k, wrong.contiguous())
        for wrong in (k[:1], k[:, :1], k[..., :1], k[:, :, :0], k[:, :, 0]):
            refused(zh, en, "append", layer, wrong.contiguous(), wrong.contiguous())
        for dtype in (torch.float64, torch.bfloat16, torch.int32):
            for pair in ((k.to(dtype), v), (k, v.to(dtype)), (k.to(dtype), v.to(dtype))):
                refused("k 或 v 的 dtype 不符時", "when k or v has a wrong dtype", "append", layer, *pair)
        twin.append(layer, 2)
    finish(n_layers)
    for n in (-1, 4, 20):
        refused("truncate 的 n 超出範圍時", "when truncated to what it does not hold", "truncate", n)
    finish(0)
    twin.step(17)
    twin = Twin(t, n_layers, 2, 3, 4, 20, torch.bfloat16)
    twin.step(3)
    for layer in range(n_layers):  # other dtypes of the same size
        k, v = twin.new(2)
        for dtype in (torch.float16, torch.int16):
            for pair in ((k.to(dtype), v), (k, v.to(dtype)), (k.to(dtype), v.to(dtype))):
                refused("k 或 v 的 dtype 不符時", "when k or v has a wrong dtype", "append", layer, *pair)
        twin.append(layer, 2)
    finish(n_layers)
