"""Hidden tests of `kv-bytes`: against sizes added up head by head, and against published models."""

from hidden_lenient import whole

from kvgrade.testing import prop

BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4}


def add_up(n_layers, n_tokens, n_kv_heads, head_dim, dtype, batch):
    bits = 0
    for _sequence in range(batch):
        for _layer in range(n_layers):
            for _head in range(n_kv_heads):
                for _k_or_v in "kv":
                    bits += n_tokens * head_dim * BITS[dtype]
    assert bits % 8 == 0
    return bits // 8


@prop(4, zh="七個因數都算進去", en="all seven factors count")
def product(t):
    for _ in range(6):
        n_layers, n_kv_heads, batch = t.rng.sample([3, 5, 6, 7, 9, 10, 11, 12], 3)  # no wrong factor looks like another
        sizes = n_layers, t.integer(13, 300), n_kv_heads, t.choice(3, 30, 64, 100, 255)
        t.equal(whole(t.answer(*sizes, "bf16", batch)), add_up(*sizes, "bf16", batch))
    for sizes in [(80, 8192, 8, 128), (32, 1000, 8, 128), (1, 1, 1, 1)]:  # with the defaults: bf16, one sequence
        t.equal(whole(t.answer(*sizes)), add_up(*sizes, "bf16", 1))


@prop(2, zh="每一種型別", en="every dtype")
def dtypes(t):
    for dtype in BITS:
        sizes = t.integer(1, 9), t.integer(1, 300), t.integer(1, 9), t.choice(1, 3, 30, 64)
        t.equal(whole(t.answer(*sizes, dtype)), add_up(*sizes, dtype, 1))
        t.equal(whole(t.answer(*sizes, dtype=dtype, batch=2)), add_up(*sizes, dtype, 2))


@prop(1, zh="結果的型別是 int，0 個 token 也一樣", en="the result is an int, for no tokens as well")
def empty(t):
    for dtype in ("bf16", "int4"):
        sizes = t.integer(1, 9), 2 * t.integer(1, 30), t.integer(1, 9), 128, dtype
        t.equal(t.answer(*sizes), add_up(*sizes, 1))
        t.equal(t.answer(sizes[0], 0, *sizes[2:]), 0)


@prop(2, zh="結果是 int，數字很大時仍然精確，而且不跑迴圈", en="an int, exact for huge numbers, without a loop")
def huge(t):
    for dtype in ("bf16", "int4", "fp32"):
        n_layers, n_tokens, n_kv_heads, head_dim = 127, t.integer(10**15, 10**16) * 2 + 1, 7, 255
        got, _work = t.answer.counted(n_layers, n_tokens, n_kv_heads, head_dim, dtype, 1001, lines=500)
        t.equal(got, n_tokens * add_up(n_layers, 1, n_kv_heads, head_dim, dtype, 1) * 1001)


@prop(1, zh="不認得的型別會丟出 ValueError", en="an unknown dtype raises ValueError")
def unknown_dtype(t):
    for dtype in ("bfloat17", "", "int3", "fp64", "int16", "fp4", "int32", "BF16", "Int4", "fp8 ", " bf16"):
        t.raises("ValueError", lambda d=dtype: t.answer(2, 5, 2, 8, d),
                 zh="型別名稱不認得時", en="for an unknown dtype")  # fmt: skip
