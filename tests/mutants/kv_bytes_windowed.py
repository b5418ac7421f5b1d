"""Wrong solutions of `kv-bytes-windowed`."""

from kvgrade.answers import Mutant

WINDOW = "n_tokens if sliding_window is None else sliding_window"
MIN = "min(n_tokens, window)"
FULL = '"full_attention": n_tokens'
RETURN = "2 * tokens * n_kv_heads * head_dim * bytes_per_value * batch"
# Sorted by what they get right: where two give the same wrong value, the one that failed no earlier property is named.
MUTANTS = [
    Mutant("accepts-any-layer", {"zh-TW": "把不認得的層當成全域層的結果", "en": "the result that takes an unknown layer for a full one"},
           (("unknown := set(layer_types) - set(kept)", "unknown := ()"), ("kept[name]", "kept.get(name, n_tokens)"))),
    Mutant("last-layer-unchecked", {"zh-TW": "沒有檢查最後一層名稱的結果", "en": "the result that does not check the last layer"},
           (("set(layer_types) - set(kept)", "set(layer_types[:-1]) - set(kept)"), ("kept[name]", "kept.get(name, 0)"))),
    Mutant("first-letters", {"zh-TW": "只看名稱開頭的結果", "en": "the result that looks at how a name begins only"},
           (("set(layer_types) - set(kept)", "[n for n in layer_types if not n.startswith(('full', 'sliding'))]"),
            ("kept[name]", 'kept["full_attention" if name.startswith("full") else "sliding_attention"]'))),
    Mutant("huge-means-none", {"zh-TW": "把很大的視窗當成沒有視窗的結果", "en": "the result that takes a huge window for none"},
           ((WINDOW, "n_tokens if sliding_window is None or sliding_window >= 10**12 else sliding_window"),)),
    Mutant("none-means-zero", {"zh-TW": "把 None 當成長度 0 的視窗的結果", "en": "the result that takes None for a window of 0"},
           ((WINDOW, "sliding_window or 0"),)),
    Mutant("token-by-token", {"zh-TW": "逐 token 計算的結果", "en": "the result of a loop over the tokens"},
           ((f"    kept = {{{FULL}", f"    seen = 0\n    for _ in range({MIN}):\n        seen += 1\n    kept = {{{FULL}"),)),
    Mutant("always-the-window", {"zh-TW": "視窗還沒滿也算 W 個的結果", "en": "the result with W tokens before the window is full"},
           ((MIN, "window"),)),
    Mutant("window-ignored", {"zh-TW": "沒有套用視窗的結果", "en": "the result without the window"}, ((MIN, "n_tokens"),)),
    Mutant("window-everywhere", {"zh-TW": "每一層都套用視窗的結果", "en": "the result with the window in every layer"},
           ((FULL, f'"full_attention": {MIN}'),)),
    Mutant("window-plus-one", {"zh-TW": "視窗留了 W + 1 個的結果", "en": "the result with W + 1 tokens in a window"},
           ((MIN, "min(n_tokens, window + 1)"),)),
    Mutant("kinds-swapped", {"zh-TW": "兩種層弄反的結果", "en": "the result with the two kinds of layers swapped"},
           ((FULL, '"sliding_attention": n_tokens'), ('"sliding_attention": min', '"full_attention": min'))),
    Mutant("half-the-layers", {"zh-TW": "假設視窗層和全域層各半的結果", "en": "the result that takes half of the layers for windowed"},
           (("sum(kept[name] for name in layer_types)", "len(layer_types) * sum(kept.values()) // 2"),)),
    Mutant("batch-twice", {"zh-TW": "批次乘了兩次的結果", "en": "the result with the batch counted twice"},
           ((RETURN, RETURN + " * batch"),)),
    Mutant("window-minus-one", {"zh-TW": "視窗只留 W − 1 個的結果", "en": "the result with W − 1 tokens in a window"},
           ((MIN, "min(n_tokens, window - 1)"),)),
    Mutant("full-layers-only", {"zh-TW": "只算全域層的結果", "en": "the result of the full layers alone"}, ((MIN, "0"),)),
    Mutant("sliding-layers-only", {"zh-TW": "只算視窗層的結果", "en": "the result of the windowed layers alone"},
           ((FULL, '"full_attention": 0'),)),
    Mutant("the-dropped-tokens", {"zh-TW": "留下視窗外面那些 token 的結果", "en": "the result that keeps what is outside the window"},
           ((MIN, "max(0, n_tokens - window)"),)),
    Mutant("no-factor-2", {"zh-TW": "漏掉 K 與 V 的 2 的結果", "en": "the result without the 2 for K and V"},
           ((RETURN, RETURN.removeprefix("2 * ")),)),
    Mutant("bits-for-bytes", {"zh-TW": "以位元而不是位元組計的結果", "en": "the result in bits instead of bytes"},
           ((RETURN, "8 * " + RETURN),)),
]  # fmt: skip
