"""Hidden tests of `max-sequences`: against sequences that are placed one after the other."""

from math import ceil

from hidden_lenient import whole

from kvgrade.testing import prop


def one_sequence(n_tokens, n_layers, n_kv_heads, head_dim, tp=1, bytes_per_value=2, block_size=16):
    """Bytes on one card: the heads that card 0 stores, block by block."""
    if tp <= n_kv_heads:
        heads = [head for head in range(n_kv_heads) if head * tp // n_kv_heads == 0]
    else:
        heads = [0]  # a copy
    slots = 0
    while slots < n_tokens:
        slots += block_size
    numbers = sum(slots * head_dim for _k_or_v in "kv" for _head in heads for _layer in range(n_layers))
    return numbers * bytes_per_value


def place(left, *case, **more):
    placed, size = 0, one_sequence(*case, **more)
    while left >= size:
        placed, left = placed + 1, left - size
    return placed


def shape(t):
    """(n_layers, n_kv_heads, head_dim)"""
    return t.integer(2, 80), t.choice(2, 4, 8), t.choice(30, 64, 100, 128)


def room(t, *case, **more):
    """A little more than a few sequences: between a whole number of them and half a block's worth above."""
    size = one_sequence(*case, **more)
    return t.integer(5, 40) * size + t.integer(0, size // 40)


@prop(4, zh="一張卡，長度剛好是整數個區塊", en="one card, lengths of whole blocks")
def one_card(t):
    for _ in range(5):
        case = 16 * t.integer(2, 60), *shape(t)
        left = room(t, *case)
        t.equal(whole(t.answer(left, *case)), place(left, *case))
        more = {"bytes_per_value": t.choice(1, 4)}
        t.equal(whole(t.answer(left, *case, **more)), place(left, *case, **more))


@prop(3, zh="每個序列的區塊數要進位", en="the blocks of a sequence are rounded up")
def blocks(t):
    for block_size in (16, 1, 3, 256, t.integer(5, 100)):
        for n_tokens in (1, block_size, block_size + 1, t.integer(2, 9) * block_size - 1, t.integer(2, 9) * block_size + 1):
            case, more = (n_tokens, *shape(t)), {"block_size": block_size}
            left = room(t, *case, **more)
            t.equal(whole(t.answer(left, *case, **more)), place(left, *case, **more))


@prop(3, zh="張量平行：KV 頭分給各張卡，超過就複製", en="tensor parallelism: heads are split, and beyond that copied")
def parallel(t):
    for tp in (2, 4, 8, 16, 32):
        for n_kv_heads in (8, 2, 1):
            case, more = (t.integer(20, 500), t.integer(2, 80), n_kv_heads, 64), {"tp": tp}
            left = room(t, *case, **more)
            t.equal(whole(t.answer(left, *case, **more)), place(left, *case, **more))
    case = t.integer(20, 500), 3, 12, 64
    for tp in (3, 6, 24):
        left = room(t, *case, tp=tp)
        t.equal(whole(t.answer(left, *case, tp=tp)), place(left, *case, tp=tp))


@prop(2, zh="一個都放不下，和差一個位元組", en="none fits, and one byte too few")
def edges(t):
    for more in ({}, {"tp": 2}, {"tp": 16}):
        case = t.integer(20, 500), *shape(t)
        size, n = one_sequence(*case, **more), t.integer(1, 9)
        for left, fit in [(0, 0), (size - 1, 0), (size, 1), (n * size - 1, n - 1), (n * size, n)]:
            t.equal(whole(t.answer(left, *case, **more)), fit)


@prop(1, zh="結果是 int，數字很大時仍然精確，而且不一個一個放", en="an int, exact for huge numbers, without placing one by one")
def huge(t):
    n, case = 10**17 + t.integer(1, 10**6), (1_000_001, 127, 8, 100)
    size = ceil(case[0] / 16) * 16 * 2 * 127 * 4 * 100 * 2  # two cards: half of the heads on each
    for left, fit in [(n * size, n), (n * size - 1, n - 1)]:
        got, _work = t.answer.counted(left, *case, tp=2, lines=500)
        t.equal(got, fit)


@prop(2, zh="不合理的輸入會丟出 ValueError", en="impossible input raises ValueError")
def errors(t):
    for n_kv_heads, tp in [(8, 3), (8, 12), (4, 6), (6, 4)]:
        t.raises("ValueError", lambda h=n_kv_heads, tp=tp: t.answer(10**9, 100, 4, h, 64, tp=tp),
                 zh="KV 頭數與卡數除不盡時", en="when neither of heads and cards divides the other")  # fmt: skip
    for n_tokens, more in [(0, {}), (-4, {}), (100, {"block_size": 0}), (100, {"tp": 0}), (-16, {}),
                          (100, {"block_size": -16}), (100, {"block_size": -1}), (100, {"tp": -1}), (100, {"tp": -8})]:
        t.raises("ValueError", lambda n=n_tokens, more=more: t.answer(10**9, n, 4, 8, 64, **more),
                 zh="n_tokens、block_size 或 tp 小於 1 時", en="for an n_tokens, block_size or tp below 1")  # fmt: skip
