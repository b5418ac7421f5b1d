"""Wrong solutions of `max-sequences`."""

from kvgrade.answers import Mutant

HEADS = "max(1, n_kv_heads // tp)"
ONE = "2 * n_layers * heads * head_dim * bytes_per_value"
BLOCKS = "-(-n_tokens // block_size)"
RETURN = "left_per_gpu // (blocks * block_size * one_token)"
# Sorted by what they get right: where two give the same wrong value, the one that failed no earlier property is named.
MUTANTS = [
    Mutant("through-float", {"zh-TW": "經過 float、失去精度的結果", "en": "the result after a detour through float"},
           ((RETURN, "int(left_per_gpu / (blocks * block_size * one_token))"),)),
    Mutant("one-by-one", {"zh-TW": "一個一個放的結果", "en": "the result of placing one after the other"},
           (("    return left_per_gpu // (blocks * block_size * one_token)",
             "    n = 0\n    while (n + 1) * blocks * block_size * one_token <= left_per_gpu:\n        n += 1\n    return n"),)),
    Mutant("at-least-one", {"zh-TW": "放不下也回傳 1 的結果", "en": "the result that is never less than 1"},
           ((RETURN, "max(1, left_per_gpu // (blocks * block_size * one_token))"),)),
    Mutant("any-split", {"zh-TW": "除不盡也照算的結果", "en": "the result that drops the remainder of the heads"},
           (("if max(tp, n_kv_heads) % min(tp, n_kv_heads):", "if False:"),)),
    Mutant("any-numbers", {"zh-TW": "不檢查輸入的結果", "en": "the result without a check of the input"},
           (("if min(n_tokens, block_size, tp) < 1:", "if False:"),)),
    Mutant("any-negative-cards", {"zh-TW": "只檢查卡數是不是 0 的結果", "en": "the result that checks the cards for 0 only"},
           (("if min(n_tokens, block_size, tp) < 1:", "if min(n_tokens, block_size) < 1 or tp == 0:"),)),
    Mutant("zeros-only", {"zh-TW": "只檢查是不是 0 的結果", "en": "the result that checks for 0 only"},
           (("if min(n_tokens, block_size, tp) < 1:", "if 0 in (n_tokens, block_size, tp):"),)),
    Mutant("blocks-of-16", {"zh-TW": "區塊一律 16 個 token 的結果", "en": "the result with blocks of 16 whatever block_size"},
           (("    blocks = ", "    block_size = 16\n    blocks = "),)),
    Mutant("no-heads-left", {"zh-TW": "卡數超過 KV 頭數時變成 0 個頭的結果", "en": "the result with no head on a card"},
           ((HEADS, "n_kv_heads // tp"),)),
    Mutant("never-copied", {"zh-TW": "把 KV 平均分給所有卡、不算複本的結果", "en": "the result with KV shared evenly by all cards, without copies"},
           ((HEADS, "n_kv_heads"), (RETURN, "left_per_gpu * tp // (blocks * block_size * one_token)"))),
    Mutant("one-head-per-card", {"zh-TW": "每張卡只有 1 個頭的結果", "en": "the result with one head on a card"},
           ((HEADS, "1 if tp > 1 else n_kv_heads"),)),
    Mutant("fraction-of-a-head", {"zh-TW": "卡數超過 KV 頭數時把頭切碎的結果", "en": "the result with less than one head on a card"},
           ((HEADS, "n_kv_heads / tp"), (RETURN, "int(left_per_gpu // (blocks * block_size * one_token))"))),
    Mutant("all-heads-on-every-card", {"zh-TW": "每張卡都存全部 KV 頭的結果", "en": "the result with all heads on every card"},
           ((HEADS, "n_kv_heads"),)),
    Mutant("summed-over-cards", {"zh-TW": "把所有卡的餘裕加起來的結果", "en": "the result with the room of all cards added up"},
           ((RETURN, "left_per_gpu * tp // (blocks * block_size * one_token)"),)),
    Mutant("blocks-rounded-down", {"zh-TW": "區塊捨去而不是進位的結果", "en": "the result with the blocks rounded down"},
           ((BLOCKS, "max(1, n_tokens // block_size)"),)),
    Mutant("no-blocks", {"zh-TW": "不管區塊、只算 token 的結果", "en": "the result of bare tokens, without blocks"},
           ((RETURN, "left_per_gpu // (n_tokens * one_token)"),)),
    Mutant("always-one-more-block", {"zh-TW": "剛好整除時也多一個區塊的結果", "en": "the result with one block too many where nothing is left over"},
           ((BLOCKS, "n_tokens // block_size + 1"),)),
    Mutant("block-per-layer-only", {"zh-TW": "一個區塊只有一層的結果", "en": "the result with one layer in a block"},
           ((ONE, "2 * heads * head_dim * bytes_per_value"),)),
    Mutant("no-factor-2", {"zh-TW": "漏掉 K 與 V 的 2 的結果", "en": "the result without the 2 for K and V"},
           ((ONE, "n_layers * heads * head_dim * bytes_per_value"),)),
    Mutant("bits-for-bytes", {"zh-TW": "以位元而不是位元組計的結果", "en": "the result in bits instead of bytes"},
           ((ONE, "8 * " + ONE),)),
    Mutant("sequences-rounded-up", {"zh-TW": "序列數進位的結果", "en": "the result with the sequences rounded up"},
           ((RETURN, "-(-left_per_gpu // (blocks * block_size * one_token))"),)),
]  # fmt: skip
