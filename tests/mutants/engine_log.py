"""Wrong solutions of `engine-log`."""

from kvgrade.exercises import Mutant

TOKENS = 'r"GPU KV cache size: ([\\d,]+) tokens"'
BLOCKS = 'r"# GPU blocks: ([\\d,]+)"'
AGREES = "fits and round(tokens / max_len, 2) == printed"
# Sorted by what they get right: where two give the same wrong value, the one that failed no earlier property is named.
MUTANTS = [
    Mutant("first-start", {"zh-TW": "用了第一次啟動的數字的結果", "en": "the result with the numbers of the first start"},
           (("requests[-1][0]", "requests[0][0]"), ("requests[-1][1]", "requests[0][1]"),
            ("whole(all_blocks[-1])", "whole(all_blocks[0])"), ("whole(all_tokens[-1])", "whole(all_tokens[0])"))),
    Mutant("mixed-starts", {"zh-TW": "最大長度來自第一次啟動的結果", "en": "the result with the maximum length of the first start"},
           (("requests[-1][0]", "requests[0][0]"),)),
    Mutant("blocks-of-16", {"zh-TW": "區塊一律 16 個 token 的結果", "en": "the result with blocks of 16 whatever block_size"},
           (("    all_tokens, all_blocks =", "    block_size = 16\n    all_tokens, all_blocks ="),)),
    Mutant("always-agrees", {"zh-TW": "永遠說對得起來的結果", "en": "the result that always agrees"}, ((AGREES, "True"),)),
    Mutant("looks-at-the-concurrency-only", {"zh-TW": "只檢查並行數的結果", "en": "the result that checks the concurrency only"},
           ((AGREES, "round(tokens / max_len, 2) == printed"),)),
    Mutant("looks-at-the-blocks-only", {"zh-TW": "只檢查區塊數的結果", "en": "the result that checks the blocks only"},
           ((AGREES, "fits"),)),
    Mutant("rounds-to-one-decimal", {"zh-TW": "只比到小數一位的結果", "en": "the result that compares one decimal only"},
           ((AGREES, "fits and abs(tokens / max_len - printed) < 0.05"),)),
    Mutant("computes-the-concurrency", {"zh-TW": "回傳算出來而不是印出來的並行數", "en": "the concurrency that was computed, not the one printed"},
           (('"concurrency": printed', '"concurrency": round(tokens / max_len, 2)'),)),
    Mutant("needs-no-concurrency", {"zh-TW": "缺了並行那一句也照算的結果", "en": "the result without a line of the concurrency"},
           (("if not requests or not (all_tokens or all_blocks):", "if not (all_tokens or all_blocks):"),
            ("    max_len, printed", '    requests = requests or [("1", "1.00")]\n    max_len, printed'))),
    Mutant("corrects-the-log", {"zh-TW": "對不上就改數字的結果", "en": "the result that corrects the printed numbers"},
           (('"tokens": tokens', '"tokens": blocks * block_size'),)),
    Mutant("needs-lines-of-its-own", {"zh-TW": "只認得獨立成行的片語的結果", "en": "the result that wants each phrase on a line of its own"},
           ((TOKENS, 'r"GPU KV cache size: ([\\d,]+) tokens(?:\\n|$)"'),)),
    Mutant("tokens-are-blocks", {"zh-TW": "把 token 數當成區塊數的結果", "en": "the result that takes tokens for blocks"},
           (("blocks = tokens // block_size if", "blocks = tokens if"),)),
    Mutant("cpu-blocks", {"zh-TW": "拿了 CPU 區塊數的結果", "en": "the result with the blocks of the CPU"},
           ((BLOCKS, 'r"blocks: ([\\d,]+)"'),)),
    Mutant("stops-at-the-comma", {"zh-TW": "讀到千分位逗號就停的結果", "en": "the result that stops reading at a comma"},
           ((BLOCKS, 'r"# GPU blocks: (\\d+)"'), (TOKENS, 'r"GPU KV cache size: (\\d+)"'))),
    Mutant("no-commas", {"zh-TW": "讀不懂千分位逗號的結果", "en": "the result that cannot read commas"},
           (('text.replace(",", "")', 'text.removesuffix(",")'),)),
    Mutant("blocks-are-tokens", {"zh-TW": "把區塊數當成 token 數的結果", "en": "the result that takes blocks for tokens"},
           (("else blocks * block_size\n", "else blocks\n"),)),
    Mutant("not-rounded", {"zh-TW": "沒有四捨五入就比較的結果", "en": "the result that compares without rounding"},
           ((AGREES, "fits and tokens / max_len == printed"),)),
]  # fmt: skip
