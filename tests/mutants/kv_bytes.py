"""Wrong solutions of `kv-bytes`."""

from kvgrade.answers import Mutant

VALUES = "2 * n_layers * n_tokens * n_kv_heads * head_dim * batch"
RETURN = "values * BITS[dtype] // 8"
# Sorted by what they get right: where two give the same wrong value, the one that failed no earlier property is named.
MUTANTS = [
    Mutant("accepts-any-dtype", {"zh-TW": "不認得的型別當成 bf16 的結果", "en": "the result with bf16 for an unknown dtype"},
           (("if dtype not in BITS:", "if False:"), (RETURN, "values * BITS.get(dtype, 16) // 8"))),
    Mutant("any-case", {"zh-TW": "不分大小寫、也不管空白的結果", "en": "the result of names in any case, with spaces or without"},
           (("if dtype not in BITS:", "if (dtype := dtype.lower().strip()) not in BITS:"),)),
    Mutant("by-width", {"zh-TW": "只看名稱裡的位元數的結果", "en": "the result of any name that holds one of the widths"},
           (("if dtype not in BITS:", "if (bits := int(''.join(c for c in dtype if c.isdigit()) or 0)) not in (32, 16, 8, 4):"),
            (RETURN, "values * bits // 8"))),
    Mutant("through-float", {"zh-TW": "經過 float、失去精度的結果", "en": "the result after a detour through float"},
           ((RETURN, "int(values * BITS[dtype] / 8)"),)),
    Mutant("loops-over-tokens", {"zh-TW": "逐 token 相加的結果", "en": "the result of adding token by token"},
           (("    return values * BITS[dtype] // 8",
             "    total = 0\n    for _ in range(n_tokens):\n        total += values * BITS[dtype] // 8 // n_tokens\n    return total"),)),
    Mutant("dtype-ignored", {"zh-TW": "一律用 2 個位元組的結果", "en": "the result with 2 bytes for any dtype"},
           ((RETURN, "values * 2"),)),
    Mutant("int4-as-a-byte", {"zh-TW": "把 int4 當成 1 個位元組的結果", "en": "the result with a whole byte for int4"},
           ((RETURN, "values * max(8, BITS[dtype]) // 8"),)),
    Mutant("divides-first", {"zh-TW": "先把位元數除以 8 再乘的結果", "en": "the result of dividing the bits by 8 first"},
           ((RETURN, "values * (BITS[dtype] // 8)"),)),
    Mutant("no-factor-2", {"zh-TW": "漏掉 K 與 V 的 2 的結果", "en": "the result without the 2 for K and V"},
           ((VALUES, VALUES.removeprefix("2 * ")),)),
    Mutant("factor-2-twice", {"zh-TW": "K 與 V 的 2 乘了兩次的結果", "en": "the result with the 2 for K and V twice"},
           ((VALUES, "2 * " + VALUES),)),
    Mutant("bits-for-bytes", {"zh-TW": "以位元而不是位元組計的結果", "en": "the result in bits instead of bytes"},
           ((RETURN, "values * BITS[dtype]"),)),
    Mutant("batch-twice", {"zh-TW": "批次乘了兩次的結果", "en": "the result with the batch counted twice"},
           ((VALUES, VALUES + " * batch"),)),
    Mutant("no-batch", {"zh-TW": "忘了批次的結果", "en": "the result for one sequence instead of the batch"},
           ((VALUES, VALUES.removesuffix(" * batch")),)),
    Mutant("one-layer", {"zh-TW": "只有一層的結果", "en": "the result of a single layer"},
           ((VALUES, "2 * n_tokens * n_kv_heads * head_dim * batch"),)),
    Mutant("one-head", {"zh-TW": "只有一個 KV 頭的結果", "en": "the result of a single KV head"},
           ((VALUES, "2 * n_layers * n_tokens * head_dim * batch"),)),
    Mutant("a-float", {"zh-TW": "用 / 除出來的 float", "en": "a float, from a division with /"},
           ((RETURN, "values * BITS[dtype] / 8"),)),
    Mutant("in-gib", {"zh-TW": "以 GiB 計的結果", "en": "the result in GiB"}, ((RETURN, RETURN + " // 2**30"),)),
]  # fmt: skip
