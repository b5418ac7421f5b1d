"""Hidden tests of `engine-log`: logs written from known numbers, in the formats of three versions of the engine."""

from kvgrade.testing import prop

NOISE = (
    "INFO 12-02 09:14:01 config.py:350] Defaulting to use mp for distributed inference, world size 2",
    "INFO 12-02 09:14:03 llm_engine.py:237] Initializing an LLM engine with config: max_seq_len=8192, block_size=32, seed=0",
    "INFO 12-02 09:14:33 model_runner.py:1077] Loading model weights took 14.9888 GB",
    "INFO 12-02 09:14:50 worker.py:232] Memory profiling results: total_gpu_memory=23.58GiB kv_cache_size=3.81GiB",
    "INFO 12-02 09:15:02 gpu_worker.py:298] Available KV cache memory: 36.57 GiB",
    "WARNING 12-02 09:15:07 utils.py:44] 31,232 tokens, 1,952 blocks, 1.56x: GPU KV cache usage: 12.3%",
    "",
)


def whole(n, commas):
    return f"{n:,}" if commas else str(n)


def concurrency_of(tokens, max_len):
    return f"{tokens / max_len:.2f}"


def clear(tokens, max_len):
    """Is the quotient well away from the edge of rounding?"""
    return abs(tokens / max_len * 100 % 1 - 0.5) > 0.05


# almost the phrases: other words, case, spaces or punctuation
LOOKALIKES = (
    "GPU KV cache size: 3.81 GiB", "GPU KV cache size: 4,096 MiB (usable)", "gpu kv cache size: 99 tokens",
    "GPU KV cache size:  99 tokens", "GPU KV cache size:99 tokens", "GPU KV cache size 99 tokens", "GPU blocks: 7",
    "#GPU blocks: 7", "# GPU blocks:7", "# GPU blocks 7", "# gpu blocks: 7", "#  GPU blocks: 7",
    "Maximum concurrency for 10 tokens per batch: 9.87x", "Maximum concurrency for 10 tokens per request: 9.87",
    "maximum concurrency for 10 tokens per request: 9.87x", "Maximum concurrency for 10 tokens: 9.87x",
    "Maximum concurrency for 10 tokens per request: 9.87 requests", "Maximum concurrency  for 10 tokens per request: 9.87x",
)  # fmt: skip


def sizes(t, block_size=16):
    """(blocks, max_len)"""
    while True:
        blocks, max_len = t.integer(700, 40_000), t.choice(t.integer(1000, 50_000), 2**t.integer(10, 17))
        if clear(blocks * block_size, max_len):
            return blocks, max_len


def old(t, blocks, max_len, printed, commas=False):
    others = whole(t.integer(100, 9000), commas)
    size = f"# GPU blocks: {whole(blocks, commas)}, # CPU blocks: {others}"
    requests = f"Maximum concurrency for {whole(max_len, commas)} tokens per request: {printed}x"
    return [f"INFO 12-02 09:14:55 gpu_executor.py:76] {size}", f"INFO 12-02 09:14:55 gpu_executor.py:80] {requests}"]


def new(tokens, max_len, printed, commas=True, one_line=False):
    size = f"GPU KV cache size: {whole(tokens, commas)} tokens"
    requests = f"Maximum concurrency for {whole(max_len, commas)} tokens per request: {printed}x"
    if one_line:
        return [f"(EngineCore_0 pid=411) INFO 02-19 23:56:55 [kv_cache_utils.py:2044] {size}, {requests}"]
    return [f"INFO 02-19 23:56:55 [kv_cache_utils.py:524] {size}", f"INFO 02-19 23:56:55 [kv_cache_utils.py:527] {requests}"]


def noisy(t, lines):
    """The lines in their order, with others in between."""
    text = []
    for line in lines:
        text += [t.choice(*NOISE) for _ in range(t.integer(0, 3))] + [line]
    return "\n".join([*text, t.choice(*NOISE)])


def number(got, want):
    """An int for a float or a float for an int, where it is the same number."""
    both = type(got) in (int, float) and type(want) in (int, float)
    return type(want)(got) if both and type(want)(got) == got else got


def same(t, got, want, any_type=True):
    t.expect(isinstance(got, dict), zh="應該回傳 dict", en="it must return a dict")
    right = set(got) == set(want)
    t.expect(right, zh="dict 的鍵不是題目的那五個", en="the keys of the dict are not the five of the statement")
    for key, value in want.items():
        if any_type:  # `newer` judges the types
            got[key] = number(got[key], value)
        kind = type(got[key]) is type(value)
        t.expect(kind, zh=f"{key} 的型別應為 {type(value).__name__}", en=f"{key} must be of type {type(value).__name__}")
        t.equal(got[key], value)


def answer(blocks, max_len, printed, block_size=16, agrees=True, tokens=None):
    tokens = blocks * block_size if tokens is None else tokens
    return {"tokens": tokens, "blocks": blocks, "max_len": max_len, "concurrency": float(printed), "agrees": agrees}


@prop(3, zh="舊版的紀錄：只有區塊數", en="logs of older versions, with blocks only")
def older(t):
    for commas in (False, True, False, True):
        blocks, max_len = sizes(t)
        printed = concurrency_of(blocks * 16, max_len)
        log = noisy(t, old(t, blocks, max_len, printed, commas))
        same(t, t.answer(log), answer(blocks, max_len, printed))


@prop(3, zh="新版的紀錄：只有 token 數，分成兩行或在同一行；型別照題目", en="logs of newer versions, with tokens only, on two lines or one; types as stated")
def newer(t):
    for commas, one_line in [(True, False), (True, True), (False, False), (False, True)]:
        blocks, max_len = sizes(t)
        printed = concurrency_of(blocks * 16, max_len)
        log = noisy(t, new(blocks * 16, max_len, printed, commas, one_line))
        same(t, t.answer(log), answer(blocks, max_len, printed), any_type=False)


@prop(2, zh="其他的區塊大小", en="other block sizes")
def block_sizes(t):
    for block_size in (1, 32, 64, t.integer(5, 100)):
        blocks, max_len = sizes(t, block_size)
        printed = concurrency_of(blocks * block_size, max_len)
        want = answer(blocks, max_len, printed, block_size)
        same(t, t.answer(noisy(t, old(t, blocks, max_len, printed)), block_size), want)
        same(t, t.answer(noisy(t, new(blocks * block_size, max_len, printed)), block_size=block_size), want)


@prop(2, zh="重新啟動過：用最後一次的", en="after a restart the last phrases count")
def restarted(t):
    for write in (lambda *case: old(t, *case), lambda b, *case: new(b * 16, *case),
                  lambda b, *case: new(b * 16, *case, one_line=True)):  # fmt: skip
        lines = []
        for _start in range(t.integer(2, 3)):
            blocks, max_len = sizes(t)
            printed = concurrency_of(blocks * 16, max_len)
            lines += write(blocks, max_len, printed)
        same(t, t.answer(noisy(t, lines)), answer(blocks, max_len, printed))
        same(t, t.answer(", ".join(lines)), answer(blocks, max_len, printed))


@prop(1, zh="只是像那三種片語的，不算", en="what only looks like one of the phrases does not count")
def lookalikes(t):
    blocks, max_len = sizes(t)
    printed = concurrency_of(blocks * 16, max_len)
    for lines in (old(t, blocks, max_len, printed), new(blocks * 16, max_len, printed)):
        for one in LOOKALIKES:
            for log in ([*lines, one], [one, *lines], [lines[0], one, lines[1]]):
                same(t, t.answer("\n".join(log)), answer(blocks, max_len, printed))
    for some in (LOOKALIKES, [*LOOKALIKES, lines[0]], [*LOOKALIKES, lines[1]]):
        t.raises("ValueError", lambda some=some: t.answer("\n".join(some)), zh="紀錄裡只有像那些片語的句子時",
                 en="when the log has only what looks like the phrases")  # fmt: skip


@prop(2, zh="對不上時 agrees 是 False，數字照印的", en="where numbers disagree, agrees is False and they are as printed")
def disagreements(t):
    for off in (0.02, -0.02, 0.5):
        blocks, max_len = sizes(t)
        printed = f"{blocks * 16 / max_len + off:.2f}"
        if float(printed) <= 0:
            printed = "9.87" if blocks * 16 / max_len < 9 else "1.23"
        same(t, t.answer(noisy(t, old(t, blocks, max_len, printed))), answer(blocks, max_len, printed, agrees=False))
    for _ in range(3):  # one unit of the last printed digit, to either side
        blocks, max_len = sizes(t)
        right = concurrency_of(blocks * 16, max_len)
        for off in (0.01, -0.01):
            printed = f"{float(right) + off:.2f}"
            same(t, t.answer(noisy(t, new(blocks * 16, max_len, printed))), answer(blocks, max_len, printed, agrees=False))
    for more in (0, 16 * t.integer(1, 9), -16, t.integer(1, 15), -t.integer(1, 15)):  # both sizes are printed; the concurrency is that of the tokens
        while True:
            blocks, max_len = sizes(t)
            tokens = blocks * 16 + more
            if clear(tokens, max_len):
                break
        printed = concurrency_of(tokens, max_len)
        lines = [*old(t, blocks, max_len, printed)[:1], *new(tokens, max_len, printed)]
        same(t, t.answer(noisy(t, lines)), answer(blocks, max_len, printed, agrees=not more, tokens=tokens))


@prop(2, zh="該有的片語沒有時丟出 ValueError", en="a missing phrase raises ValueError")
def errors(t):
    blocks, max_len = sizes(t)
    printed = concurrency_of(blocks * 16, max_len)
    before, after = old(t, blocks, max_len, printed), new(blocks * 16, max_len, printed)
    for lines in ([], before[:1], after[:1], [before[0], after[0]], before[1:], after[1:],
                  ["# CPU blocks: 2048", *before[1:]]):  # fmt: skip
        log = noisy(t, lines)
        t.raises("ValueError", lambda log=log: t.answer(log), zh="紀錄裡缺少該有的片語時", en="when a phrase is missing")
