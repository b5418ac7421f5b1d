"""Hidden tests of `kv-bytes-windowed`: against the set of tokens in sight of the last one, layer by layer."""

from hidden_lenient import whole

from kvgrade.testing import prop

SLIDING, FULL = "sliding_attention", "full_attention"


def kept(name, window, n_tokens):
    """Tokens j with 0 <= i - j < window, seen from the last token i; all of them in a full layer."""
    if name == FULL or window is None:
        return n_tokens
    return sum(1 for j in range(n_tokens) if (n_tokens - 1) - j < window)


def add_up(layer_types, window, n_tokens, n_kv_heads, head_dim, n_bytes=2, batch=1):
    one_token = n_kv_heads * head_dim * n_bytes + n_kv_heads * head_dim * n_bytes  # K and V
    return batch * sum(kept(name, window, n_tokens) * one_token for name in layer_types)


def mixed(t, low=2, high=20):
    """At least one layer of each kind, and more of the one than of the other."""
    n = t.integer(low, high)
    layers = [SLIDING] * (2 * n + 1) + [FULL] * n
    t.rng.shuffle(layers)
    return layers


@prop(5, zh="逐層加總：視窗已滿", en="adds up layer by layer when the windows are full")
def full_windows(t):
    for _ in range(5):
        window = t.integer(3, 200)
        case = mixed(t), window, window + t.integer(5, 300), t.integer(2, 9), t.choice(3, 30, 64, 255)
        t.equal(whole(t.answer(*case)), add_up(*case))
        rest = t.choice(1, 4), t.integer(3, 9)
        t.equal(whole(t.answer(*case, *rest)), add_up(*case, *rest))


@prop(3, zh="N 在 W 的前後一個 token，分毫不差", en="exact for N one token around W")
def around_the_window(t):
    for window in (1, 2, t.integer(3, 200), t.integer(3, 200)):
        layers, heads, width = mixed(t), t.integer(1, 5), t.choice(1, 8)
        for n_tokens in (0, 1, window - 1, window, window + 1, 2 * window, 2 * window + 1):
            t.equal(whole(t.answer(layers, window, n_tokens, heads, width)), add_up(layers, window, n_tokens, heads, width))


@prop(2, zh="全部有視窗，或全部沒有", en="all layers with a window, or none")
def all_alike(t):
    for name in (SLIDING, FULL):
        case = [name] * t.integer(1, 30), t.integer(3, 50), t.integer(60, 300), t.integer(1, 9), 64
        t.equal(whole(t.answer(*case)), add_up(*case))


@prop(2, zh="sliding_window 是 None：每一層都留下全部", en="a sliding_window of None: every layer keeps all", needs=())
def no_window(t):
    case = mixed(t), None, t.integer(1, 300), t.integer(1, 9), 64
    t.equal(whole(t.answer(*case)), add_up(*case))
    t.equal(whole(t.answer([SLIDING], None, 7, 2, 8)), add_up([SLIDING], None, 7, 2, 8))


@prop(1, zh="不認得的層名稱會丟出 ValueError", en="an unknown kind of layer raises ValueError")
def unknown_layer(t):
    for name in ("linear_attention", "full", "Sliding_Attention", "sliding_window_attention", "full_attention ", ""):
        for window in (t.integer(3, 50), None):
            some = mixed(t)
            middle = t.integer(1, len(some) - 1)
            for layers in ([name, *some], [*some, name], [*some[:middle], name, *some[middle:]], [name]):
                t.raises("ValueError", lambda layers=layers, window=window: t.answer(layers, window, 100, 2, 8),
                         zh="層的名稱不認得時", en="for an unknown kind of layer")  # fmt: skip


@prop(2, zh="結果是 int，數字很大時仍然精確，不逐 token 計算，不改動輸入", en="an int, exact for huge numbers, not token by token, inputs unchanged")
def huge(t):
    layers, window = mixed(t), t.integer(10**11, 10**12) * 2 + 1
    held, n_tokens = t.hold(layers), 10**12 * 3 + t.integer(1, 10**6)
    got, _work = t.answer.counted(held, window, n_tokens, 7, 255, 2, 3, lines=20_000)
    tokens = layers.count(FULL) * n_tokens + layers.count(SLIDING) * window
    t.equal(got, tokens * add_up([FULL], None, 1, 7, 255) * 3)
    case = [SLIDING, FULL, SLIDING], 10**12, 10**13 - t.integer(1, 10**6), 7, 255
    t.equal(whole(t.answer(*case)), (2 * case[1] + case[2]) * add_up([FULL], None, 1, 7, 255))
    t.unchanged(held, layers, "layer_types")
