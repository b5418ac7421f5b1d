"""Hidden tests of `decode-step`: one step against a float64 Llama, on histories that no prompt ever gave."""

import torch
from hidden_oracle import Llama, random_weights

from kvgrade.testing import TOLERANCE, prop

NAN = float("nan")
TIMES = 5  # of the tolerance: a whole model of float32 operations


class Case:
    """A random model, and a cache on the answer's side with a random history in it."""

    def __init__(self, t, length=None, spare=None, batch=None, dtype=torch.float32, store=None, tail=1.0,
                 n_kv_heads=None):  # fmt: skip
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
        self.capacity = length + (t.integer(1, 5) if spare is None else spare)
        n, heads, dim = self.config["n_layers"], n_kv_heads, self.config["head_dim"]
        self.buffers = {kind: t.normal(n, self.batch, heads, self.capacity, dim, dtype=store or dtype) for kind in "kv"}
        for buffer in self.buffers.values():
            buffer[:, :, :, length:] = tail
        self.cache = t.hold({**self.buffers, "length": length})
        self.past = [[[(k[:, s], v[:, s]) for s in range(length)] for k, v in zip(ks, vs, strict=True)]
                     for ks, vs in zip(*(b.double().transpose(0, 1) for b in self.buffers.values()), strict=True)]  # fmt: skip

    def tokens(self):
        return self.t.tokens(self.batch, vocab=self.vocab)

    def want(self, tokens):
        """The logits, and past grows."""
        rows = zip(tokens.tolist(), self.past, strict=True)
        return torch.stack([self.oracle.step(token, past, self.store) for token, past in rows])

    def step(self, tokens=None, times=TIMES):
        tokens = self.tokens() if tokens is None else tokens
        got = self.t.answer(self.weights, self.config, tokens, self.cache)
        self.t.close(got, self.want(tokens), self.dtype, times)
        return got

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


@prop(6, zh="從空的快取逐步解碼，每一步都等於整段不用快取的計算",
      en="decoding from an empty cache equals, at every step, the whole text without a cache")  # fmt: skip
def equals_full_forward(t):
    for dtype in (torch.float32, torch.float64):
        case = Case(t, length=0, spare=t.integer(8, 11), batch=2, dtype=dtype)
        text = torch.stack([case.tokens() for _ in range(8)])  # (steps, batch)
        want = torch.stack([case.oracle.full(row) for row in text.T.tolist()], 1)  # (steps, batch, vocab)
        for tokens, logits in zip(text, want, strict=True):
            t.close(t.answer(case.weights, case.config, tokens, case.cache), logits, dtype, TIMES)


@prop(4, zh="快取裡只多了新的一格，長度每步只加 1", en="the cache gains the new slot and nothing else, and the length grows by 1 per step")
def writes(t):
    for length in (0, t.integer(1, 6)):
        case = Case(t, length, spare=4)
        for n in (length + 1, length + 2):
            case.step()
            t.equal(case.cache.item("length"), n)
            for kind in "kv":
                buffer, before = case.cache.item(kind), case.buffers[kind]
                t.expect(isinstance(buffer, torch.Tensor) and buffer.shape == before.shape and buffer.dtype == before.dtype,
                         zh="快取的張量換了形狀或 dtype", en="a tensor of the cache changed its shape or dtype")  # fmt: skip
                t.close(buffer[:, :, :, :n], case.stored(kind), times=TIMES)
                old = torch.equal(buffer[:, :, :, :length], before[:, :, :, :length])
                tail = torch.equal(buffer[:, :, :, n:], before[:, :, :, n:])
                t.expect(old and tail, zh="動到了新的那一格以外的格子", en="a slot other than the new one was changed")
    # the very tensors that the caller allocated
    case = Case(t, 2, spare=3)
    mine = {kind: case.cache.keep("__getitem__", kind) for kind in "kv"}
    case.step()
    for kind, buffer in mine.items():
        t.close(buffer.value()[:, :, :, :3], case.stored(kind), times=TIMES)


@prop(3, zh="讀的真的是快取：改動快取，輸出就照著變", en="it really reads the cache: change it, and the output follows")
def reads_the_cache(t):
    case = Case(t, length=0, spare=9)
    for _ in range(3):
        case.step()
    buffers = {kind: t.normal(*case.buffers[kind].shape) for kind in "kv"}
    for kind, buffer in buffers.items():
        case.cache.keep("__getitem__", kind).keep("copy_", buffer)
    for b, row in enumerate(case.past):
        for layer, tokens in enumerate(row):
            tokens[:] = [(buffers["k"][layer, b, :, s].double(), buffers["v"][layer, b, :, s].double()) for s in range(3)]
    case.step()
    case.cache.keep("__setitem__", "length", 2)  # two tokens taken back
    for row in case.past:
        for tokens in row:
            del tokens[2:]
    case.step()
    case.step()


@prop(3, zh="沒填的格子裡放什麼都不影響", en="what lies in slots that are not filled does not matter")
def tail(t):
    for rest in (NAN, float("inf"), 1e4, 0.0):
        case = Case(t, t.choice(1, 2, 30), spare=t.choice(1, 3, 100), tail=rest)
        case.step()
        if case.capacity - len(case.past[0][0]):
            case.step()


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
    t.close(got[[0, 2]], want, times=TIMES)
    case = Case(t, 3, batch=1)
    case.step()


@prop(2, zh="滿了就丟出 ValueError，什麼都不改", en="when full it raises ValueError and changes nothing")
def full(t):
    for length, spare in ((0, 2), (4, 0), (1, 1)):
        case = Case(t, length, spare=spare)
        for _ in range(spare):
            case.step()
        before = case.cache.value()
        for _ in range(2):
            t.raises("ValueError", lambda c=case: t.answer(c.weights, c.config, c.tokens(), c.cache),
                     zh="快取滿了時", en="when the cache is full")  # fmt: skip
            for kind in "kv":
                t.equal(case.cache.item(kind), before[kind])
            t.equal(case.cache.item("length"), length + spare)


@prop(2, zh="貪婪解碼出同樣的 token", en="greedy decoding gives the same tokens")
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
    t.equal(got, want)


@prop(1, zh="bfloat16 的快取維持 bfloat16，運算維持權重的 dtype",
      en="a bfloat16 cache stays bfloat16, and the dtype of the weights is that of the logits")  # fmt: skip
def low_precision_cache(t):
    for dtype in (torch.float32, torch.float64):
        case = Case(t, t.integer(2, 5), spare=3, dtype=dtype, store=torch.bfloat16)
        for n in (1, 2):
            tokens = case.tokens()
            got = t.answer(case.weights, case.config, tokens, case.cache)
            # a value in the middle between two bfloat16 numbers may be rounded either way
            t.close(got, case.want(tokens), dtype, TOLERANCE[torch.bfloat16] / TOLERANCE[dtype])
            for kind in "kv":
                stored = case.cache.item(kind)
                t.expect(isinstance(stored, torch.Tensor) and stored.dtype == torch.bfloat16 and stored.shape == case.buffers[kind].shape,
                         zh="快取的 dtype 變了", en="the cache's dtype changed")  # fmt: skip
                length = len(case.past[0][0])
                t.close(stored[:, :, :, :length], case.stored(kind), torch.bfloat16)
            t.equal(case.cache.item("length"), len(case.past[0][0]))


@prop(1, zh="不重算、不算沒填的格子，也不改動權重", en="nothing is computed twice or for slots not filled, and the weights are left alone")
def work(t):
    case = Case(t, length=5, spare=400, tail=0.0)
    held, config, tokens = t.hold(case.weights), t.hold(case.config), case.tokens()
    c = case.config
    numbers = sum(case.weights[name].numel() for name in ("wq", "wk", "wv", "wo", "w_gate", "w_up", "w_down", "unembed"))
    for _ in range(12):
        length = len(case.past[0][0]) + 1
        given = t.hold(tokens)
        got, counted = t.answer.counted(held, config, given, case.cache)
        t.close(got, case.want(tokens), times=TIMES)
        t.unchanged(given, tokens, "tokens")
        needed = 2 * case.batch * (numbers + 2 * c["n_layers"] * c["n_heads"] * c["head_dim"] * length)
        t.expect(counted.flops <= 1.5 * needed, zh="浮點運算比一步所需的多得多", en="far more FLOPs than one step needs")
        tokens = case.tokens()
    for name, original in case.weights.items():
        t.expect(torch.equal(held.item(name), original), zh="改動了權重", en="it changed the weights")
    t.unchanged(config, case.config, "config")
