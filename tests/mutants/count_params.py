"""Wrong solutions of `count-params`."""

from kvgrade.answers import Mutant

ATTENTION = "2 * h * n_heads * d + 2 * h * n_kv_heads * d"
RETURN = 'embedding + config["num_hidden_layers"] * one_layer + h + head'
# Sorted by what they get right: where two give the same wrong value, the one that failed no earlier property is named.
MUTANTS = [
    Mutant("null-width", {"zh-TW": "head_dim 是 null 就出錯的結果", "en": "the count that takes a null head_dim for a number"},
           (('config.get("head_dim") or h // n_heads', 'config.get("head_dim", h // n_heads)'),)),
    Mutant("does-not-name-the-field", {"zh-TW": "錯誤訊息沒寫出欄位名稱的結果", "en": "the count whose error names no field"},
           (('config["vocab_size"] * h', '(config.get("vocab_size") or int("incomplete")) * h'),)),
    Mutant("names-every-field", {"zh-TW": "錯誤訊息一律列出所有欄位的結果", "en": "the count whose error lists all required fields"},
           (("    h, n_heads = config", ('    needed = "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads"\n'
             "    if not set(needed.split()) <= set(config):\n        raise ValueError(needed)\n    h, n_heads = config")),)),
    Mutant("changes-config", {"zh-TW": "改動了 config 的結果", "en": "the count that fills in the caller's config"},
           (('d = config.get("head_dim") or h // n_heads', 'd = config["head_dim"] = config.get("head_dim") or h // n_heads'),)),
    Mutant("square-q-and-o", {"zh-TW": "q、o 投影當成 h × h 的結果", "en": "the count with q and o taken for h × h"},
           ((ATTENTION, "2 * h * h + 2 * h * n_kv_heads * d"),)),
    Mutant("derived-width", {"zh-TW": "忽略 head_dim 的結果", "en": "the count that ignores a stated head_dim"},
           (('config.get("head_dim") or h // n_heads', "h // n_heads"),)),
    Mutant("never-tied", {"zh-TW": "共用的詞向量算了兩次的結果", "en": "the count with a tied embedding twice"},
           (('0 if config.get("tie_word_embeddings") else embedding', "embedding"),)),
    Mutant("query-heads", {"zh-TW": "k、v 投影也用查詢頭的結果", "en": "the count with query heads in the k and v projections"},
           ((ATTENTION, "4 * h * n_heads * d"),)),
    Mutant("no-output-projection", {"zh-TW": "漏掉 o 投影的結果", "en": "the count without the o projection"},
           ((ATTENTION, "h * n_heads * d + 2 * h * n_kv_heads * d"),)),
    Mutant("keys-without-values", {"zh-TW": "k、v 只算一個的結果", "en": "the count with one of k and v only"},
           ((ATTENTION, "2 * h * n_heads * d + h * n_kv_heads * d"),)),
    Mutant("no-gate", {"zh-TW": "前饋只有 2 個矩陣的結果", "en": "the count with 2 matrices in the feed-forward block"},
           (("3 * h * config", "2 * h * config"),)),
    Mutant("no-norms", {"zh-TW": "漏掉每層正規化的結果", "en": "the count without the norms of the layers"},
           (("attention + feed_forward + 2 * h", "attention + feed_forward"),)),
    Mutant("one-norm", {"zh-TW": "每層只有 1 個正規化的結果", "en": "the count with 1 norm per layer"},
           (("attention + feed_forward + 2 * h", "attention + feed_forward + h"),)),
    Mutant("no-last-norm", {"zh-TW": "漏掉最後那個正規化的結果", "en": "the count without the last norm"},
           ((RETURN, 'embedding + config["num_hidden_layers"] * one_layer + head'),)),
    Mutant("always-tied", {"zh-TW": "一律當成共用詞向量的結果", "en": "the count without an output head"},
           ((RETURN, 'embedding + config["num_hidden_layers"] * one_layer + h'),)),
    Mutant("embedding-per-layer", {"zh-TW": "每層都算一次詞向量的結果", "en": "the count with an embedding in every layer"},
           ((RETURN, 'config["num_hidden_layers"] * (one_layer + embedding) + h + head'),)),
    Mutant("with-biases", {"zh-TW": "多算了 q、k、v 偏置的結果", "en": "the count with biases of q, k and v"},
           ((ATTENTION, ATTENTION + " + (n_heads + 2 * n_kv_heads) * d"),)),
]  # fmt: skip
