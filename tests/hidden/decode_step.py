"""Hidden tests of `decode-step`: one step against a float64 Llama, on histories that no prompt ever gave.

Invariant: a property that takes several steps needs those that a step writes its slot and moves the length; all others take
one step each, so that one slip there does not fail everything.
"""

import torch
from hidden_lenient import cast, close_or_say
from hidden_oracle import Llama, random_weights

from kvgrade.testing import TOLERANCE, prop

NAN = float("nan")
TIMES = 5  # of the tolerance: a whole model of float32 operations
STEPS = ("one-step", "writes", "advances")  # what several steps in a row rest on


class Case:
    """A random model, and a cache on the answer's side with a random history in it."""

    def __init__(self, t, length=None, spare=None, batch=None, dtype=torch.float32, store=None, tail=1.0,
                 n_kv_heads=None, scale=1.0):  # fmt: skip
        self.t, self.dtype, self.store = t, dtype, store
        n_kv_heads = n_kv_heads or t.integer(1, 3)
        self.config = {
            "n_layers": t.integer(2, 3), "n_heads": n_kv_heads * t.integer(2, 3), "n_kv_heads": n_kv_heads,
            "head_dim": t.choice(4, 6), "eps": t.choice(1e-3, 1e-1), "theta": t.choice(100.0, 1_000.0, 500_000.0),
        }  # fmt: skip
        self.vocab = t.integer(17, 40)
        self.weights = random_weights(t, self.config, t.choice(12, 15), t.choice(10, 21), self.vocab, dtype)
        self.oracle = Llama(self.weights, self.config)
        self.batch = t.integer(2, 3) if batch is None else batch
        length = t.integer(1, 7) if length is None else length
        self.capacity = length + (t.integer(2, 5) if spare is None else spare)  # the last slot: see `full`
        n, heads, dim = self.config["n_layers"], n_kv_heads, self.config["head_dim"]
        self.buffers = {kind: t.normal(n, self.batch, heads, self.capacity, dim, dtype=store or dtype) for kind in "kv"}
        self.buffers["k"] *= scale
        for buffer in self.buffers.values():
            buffer[:, :, :, length:] = tail
        self.cache = t.hold({**self.buffers, "length": length})
        self.past = [[[(k[:, s], v[:, s]) for s in range(length)] for k, v in zip(ks, vs, strict=True)]
                     for ks, vs in zip(*(b.double().transpose(0, 1) for b in self.buffers.values()), strict=True)]  # fmt: skip

    def tokens(self):
        return self.t.tokens(self.batch, vocab=self.vocab)

    def want(self, tokens, attended=None):
        """The logits, and past grows."""
        attended = attended or [None] * self.batch
        rows = zip(tokens.tolist(), self.past, attended, strict=True)
        return torch.stack([self.oracle.step(token, past, self.store, new) for token, past, new in rows])

    def in_the_cache(self, slot):
        """Per row and layer: the (k, v) that lie in a slot of the cache, or None where the cache has lost its form."""
        k, v = (self.cache.item(kind) for kind in "kv")
        if any(not isinstance(x, torch.Tensor) or x.shape != self.buffers["k"].shape for x in (k, v)):
            return None
        return [[(k[i, b, :, slot].double(), v[i, b, :, slot].double()) for i in range(len(k))] for b in range(self.batch)]

    def step(self, zh="", en=""):
        """A step whose logits must be right; with words, these are what the learner reads where they are not."""
        tokens = self.tokens()
        got = cast(self.t.answer(self.weights, self.config, tokens, self.cache), self.dtype)
        if en:
            close_or_say(self.t, got, self.want(tokens), self.dtype, TIMES, zh=zh, en=en)
        else:
            self.t.close(got, self.want(tokens), self.dtype, TIMES)

    def logits_or_not(self):
        """A step for what it does to the cache; its logits are judged elsewhere."""
        tokens = self.tokens()
        self.t.answer(self.weights, self.config, tokens, self.cache)
        self.want(tokens)

    def put_length(self, n):
        """Set the length, where the answer left another."""
        if self.cache.item("length") != n:
            self.cache.keep("__setitem__", "length", n)

    def written(self, length):
        """The cache after a step: the slot at `length` holds the new token, and nothing else changed."""
        t = self.t
        for kind, zh, en in (("k", "轉過的 k", "the rotated k"), ("v", " v", "v")):
            buffer, before = self.cache.item(kind), self.buffers[kind]
            same = isinstance(buffer, torch.Tensor) and buffer.shape == before.shape and buffer.dtype == before.dtype
            t.expect(same, zh=f'cache["{kind}"] 換了形狀或 dtype', en=f'cache["{kind}"] changed its shape or dtype')
            slot = buffer[:, :, :, length], before[:, :, :, length]
            t.expect(not torch.equal(*slot), zh=f'cache["{kind}"] 的新格子沒有寫入', en=f'the new slot of cache["{kind}"] was not written')
            close_or_say(t, slot[0], self.stored(kind)[:, :, :, length], before.dtype, TIMES if before.dtype == self.dtype else 1,
                         zh=f'cache["{kind}"] 新格子的內容不是這一層、這一列{zh}', en=f'the new slot of cache["{kind}"] does not hold {en} of its layer and row')  # fmt: skip
            others = [s for s in range(before.shape[3]) if s != length]
            t.expect(torch.equal(buffer[:, :, :, others], before[:, :, :, others]),
                     zh=f'cache["{kind}"] 有新格子以外的格子被改動', en=f'a slot of cache["{kind}"] other than the new one was changed')  # fmt: skip

    def stored(self, kind):
        """What the cache must hold in its filled part: (layers, batch, heads, length, dim)."""
        which = "kv".index(kind)
        return torch.stack([torch.stack([torch.stack([token[which] for token in layer], 1) for layer in row])
                            for row in self.past], 1)  # fmt: skip


@prop(6, zh="接在一段歷史之後的 logits 正確", en="the logits behind a history are right")
def one_step(t):
    Case(t, 3, n_kv_heads=2).step()
    Case(t, t.integer(4, 9), n_kv_heads=3).step()
    Case(t, 1).step()
    Case(t, 30, batch=2, n_kv_heads=2).step()
    Case(t, 5, dtype=torch.float64).step()


@prop(3, zh="新的一格寫進快取，其他格子都不動", en="the new slot is written into the cache, and no other is touched")
def writes(t):
    for length in (0, t.integer(1, 6)):
        case = Case(t, length, spare=4)
        case.logits_or_not()
        case.written(length)
    # the very tensors that the caller allocated
    case = Case(t, 2, spare=3)
    mine = {kind: case.cache.keep("__getitem__", kind) for kind in "kv"}
    case.logits_or_not()
    for kind, buffer in mine.items():
        close_or_say(t, buffer.value()[:, :, :, :3], case.stored(kind), case.dtype, TIMES, zh=f'cache["{kind}"] 原本的張量沒有寫入：換成了新的',
                     en=f'the tensor that cache["{kind}"] was is not written: it was replaced by a new one')  # fmt: skip


@prop(1, zh="長度每步只加 1", en="the length grows by 1 per step")
def advances(t):
    for length in (0, t.integer(1, 6)):
        case = Case(t, length, spare=4)
        for n in (length + 1, length + 2, length + 3):
            case.logits_or_not()
            now = case.cache.item("length")
            t.expect(type(now) is int, zh='cache["length"] 不再是 int', en='cache["length"] is no longer an int')
            t.expect(now != n - 1, zh='cache["length"] 沒有前進', en='cache["length"] did not move')
            t.expect(now == n, zh='cache["length"] 一步加的不是 1', en='cache["length"] does not grow by 1 in a step')


@prop(5, zh="從空的快取逐步解碼，每一步都等於整段不用快取的計算",
      en="decoding from an empty cache equals, at every step, the whole text without a cache", needs=STEPS)  # fmt: skip
def equals_full_forward(t):
    for dtype in (torch.float32, torch.float64):
        case = Case(t, length=0, spare=t.integer(9, 11), batch=2, dtype=dtype)
        text = torch.stack([case.tokens() for _ in range(8)])  # (steps, batch)
        want = torch.stack([case.oracle.full(row) for row in text.T.tolist()], 1)  # (steps, batch, vocab)
        for tokens, logits in zip(text, want, strict=True):
            t.close(cast(t.answer(case.weights, case.config, tokens, case.cache), dtype), logits, dtype, TIMES)


@prop(3, zh="讀的真的是快取：改動快取，輸出就照著變", en="it really reads the cache: change it, and the output follows")
def reads_the_cache(t):
    words = {"zh": "改動 cache 的內容之後，logits 沒有照著變", "en": "after a change of what the cache holds the logits do not follow"}
    case = Case(t, length=0, spare=9)
    for n in (1, 2, 3):
        case.logits_or_not()
        case.put_length(n)
    buffers = {kind: t.normal(*case.buffers[kind].shape) for kind in "kv"}
    for kind, buffer in buffers.items():
        case.cache.keep("__getitem__", kind).keep("copy_", buffer)

    def go_back(n):
        """Only the first n tokens of the new content are there."""
        case.put_length(n)
        for b, row in enumerate(case.past):
            for layer, tokens in enumerate(row):
                tokens[:] = [(buffers["k"][layer, b, :, s].double(), buffers["v"][layer, b, :, s].double()) for s in range(n)]

    for n in (3, 2, 1):  # one token more is taken back each time
        go_back(n)
        case.step(**words)


@prop(1, zh="分數大到幾百時仍然正確", en="right for scores of several hundred")
def large_scores(t):
    for scale in (100.0, -100.0):
        case = Case(t, 9, spare=2, batch=3, n_kv_heads=3, scale=scale)
        tokens = case.tokens()
        got = cast(t.answer(case.weights, case.config, tokens, case.cache))
        close_or_say(t, got, case.want(tokens), times=20 * TIMES,  # scores of 500 are off by 1e-4
                     zh="分數很大時 logits 不對", en="the logits are wrong for large scores")  # fmt: skip


@prop(3, zh="沒填的格子裡放什麼都不影響，也不會被改動", en="what lies in slots that are not filled does not matter, and stays")
def tail(t):
    for rest in (NAN, float("inf"), 1e4, 0.0):
        for _ in range(2):
            case = Case(t, t.choice(1, 2, 30), spare=t.choice(2, 3, 100), tail=rest)
            case.step(zh="沒填的格子放了 NaN 或很大的數，logits 就不對", en="the logits are wrong when slots that are not filled hold NaN or large numbers")
            for kind in "kv":
                now, before = (x[:, :, :, len(case.past[0][0]) :] for x in (case.cache.item(kind), case.buffers[kind]))
                t.expect(now.shape == before.shape and bool(((now == before) | (now.isnan() & before.isnan())).all()),
                         zh=f'cache["{kind}"] 裡沒填的格子被改動', en=f'slots of cache["{kind}"] that are not filled were changed')  # fmt: skip


@prop(2, zh="各列互不影響", en="rows do not touch each other")
def rows(t):
    case = Case(t, 4, spare=2, batch=3)
    for kind in "kv":
        case.cache.keep("__getitem__", kind).keep("select", 1, 1).keep("fill_", NAN)  # row 1
    tokens = case.tokens()
    case.past[1] = case.past[0]
    want = torch.stack([case.oracle.step(int(tokens[b]), [list(layer) for layer in case.past[b]]) for b in (0, 2)])
    got = t.answer(case.weights, case.config, tokens, case.cache)
    t.expect(isinstance(got, torch.Tensor) and got.shape == (3, case.vocab), zh="logits 的形狀不是 (B, vocab)",
             en="the logits are not of shape (B, vocab)")  # fmt: skip
    words = {"zh": "一列的 logits 隨別列的內容改變", "en": "the logits of a row change with what is in another row"}
    close_or_say(t, cast(got)[[0, 2]], want, times=TIMES, **words)
    case = Case(t, 3, batch=1)
    case.step(zh="批次只有 1 列時 logits 不對", en="the logits are wrong for a batch of 1 row")


@prop(2, zh="滿了就丟出 ValueError，什麼都不改；最後一格仍可用", en="when full it raises ValueError and changes nothing; the last slot is used")
def full(t):
    for length in (4, 1, t.integer(5, 30)):
        case = Case(t, length, spare=0)
        for _ in range(2):
            t.raises("ValueError", lambda c=case: t.answer(c.weights, c.config, c.tokens(), c.cache),
                     zh="快取滿了時", en="when the cache is full")  # fmt: skip
            for kind in "kv":
                now = case.cache.item(kind)
                t.expect(isinstance(now, torch.Tensor) and torch.equal(now, case.buffers[kind]),
                         zh=f'快取滿了，丟出例外之前卻改了 cache["{kind}"]', en=f'cache["{kind}"] was changed although the cache was full')  # fmt: skip
            t.expect(case.cache.item("length") == length, zh='快取滿了，cache["length"] 卻變了',
                     en='cache["length"] changed although the cache was full')  # fmt: skip
        case = Case(t, length, spare=1)
        case.step(zh="填最後一格的那一步，logits 就已經不對", en="the step that fills the last slot already gives wrong logits")


@prop(2, zh="貪婪解碼出同樣的 token", en="greedy decoding gives the same tokens", needs=STEPS)
def greedy(t):
    for _ in range(20):  # until no two best tokens are close
        case = Case(t, length=t.integer(0, 2), spare=12)
        first = tokens = case.tokens()
        want, clear = [], True
        for _ in range(10):
            logits = case.want(tokens)
            best = logits.topk(2).values
            clear &= bool((best[:, 0] - best[:, 1] > 100 * TOLERANCE[torch.float32] * logits.abs().max()).all())
            tokens = logits.argmax(-1)
            want.append(tokens.tolist())
        if clear:
            break
    tokens, got = first, []
    for _ in want:
        logits = t.answer(case.weights, case.config, tokens, case.cache)
        t.expect(isinstance(logits, torch.Tensor) and logits.shape == (case.batch, case.vocab),
                 zh="logits 的形狀不是 (B, vocab)", en="the logits are not of shape (B, vocab)")  # fmt: skip
        tokens = logits.argmax(-1)
        got.append(tokens.tolist())
    t.expect(got == want, zh="貪婪解碼出的 token 與參考答案不同：有一步的 logits 不對",
             en="greedy decoding gives other tokens than the reference: the logits of some step are wrong")  # fmt: skip


@prop(1, zh="bfloat16 的快取維持 bfloat16，logits 的 dtype 與權重相同",
      en="a bfloat16 cache stays bfloat16, and the dtype of the logits is that of the weights", needs=("one-step", "writes"))  # fmt: skip
def low_precision_cache(t):
    for dtype in (torch.float32, torch.float64):
        for length in (1, t.integer(2, 5)):
            case = Case(t, length, spare=3, dtype=dtype, store=torch.bfloat16)
            tokens = case.tokens()
            got = t.answer(case.weights, case.config, tokens, case.cache)
            # what lies in the new slot: a value in the middle between two bfloat16 numbers may be rounded either way
            close_or_say(t, got, case.want(tokens, case.in_the_cache(length)), dtype, TIMES,
                         zh="快取是 bfloat16 時 logits 不對：K、V 要讀快取存下來的（新 token 的也是），轉回權重的 dtype 再算",
                         en="the logits are wrong with a bfloat16 cache: K and V are those that the cache has stored, the new token's "
                            "too, converted to the dtype of the weights before computing")  # fmt: skip
            case.written(length)
    for dtype in (torch.float32, torch.float64):
        case = Case(t, 3, dtype=dtype)
        tokens = case.tokens()
        t.close(t.answer(case.weights, case.config, tokens, case.cache), case.want(tokens), dtype, TIMES)


@prop(1, zh="不重算、不算沒填的格子，也不改動權重", en="nothing is computed twice or for slots not filled, and the weights are left alone", needs=STEPS)
def work(t):
    case = Case(t, length=5, spare=8000, tail=0.0)
    held, config, tokens = t.hold(case.weights), t.hold(case.config), case.tokens()
    c = case.config
    numbers = sum(case.weights[name].numel() for name in ("wq", "wk", "wv", "wo", "w_gate", "w_up", "w_down", "unembed"))
    for _ in range(12):
        length = len(case.past[0][0]) + 1
        given = t.hold(tokens)
        got, counted = t.answer.counted(held, config, given, case.cache)
        close_or_say(t, cast(got), case.want(tokens), times=TIMES, zh="數浮點運算之前，logits 就已經不對",
                     en="the logits were wrong before any FLOPs were counted")  # fmt: skip
        t.unchanged(given, tokens, "tokens")
        needed = 2 * case.batch * (numbers + 2 * c["n_layers"] * c["n_heads"] * c["head_dim"] * length)
        t.expect(counted.flops <= 1.5 * needed, zh="浮點運算比一步所需的多得多", en="far more FLOPs than one step needs")
        t.expect(counted.bytes_written <= case.buffers["k"].nbytes, zh="張量運算寫出的位元組隨 capacity 變多：沒填的格子也算了",
                 en="tensor operations write bytes in proportion to the capacity: slots that are not filled are computed too")  # fmt: skip
        tokens = case.tokens()
    now = held.value()
    t.expect(now.keys() == case.weights.keys(), zh="改動了 weights：多了或少了鍵", en="it changed weights: keys were added or removed")
    for name, original in case.weights.items():
        t.expect(torch.equal(now[name], original), zh="改動了權重", en="it changed the weights")
    t.unchanged(config, case.config, "config")
