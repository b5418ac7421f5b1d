"""Wrong solutions of `tpot-floor`."""

from kvgrade.answers import Mutant


def wrong(name, zh, en, *change):
    return Mutant(name, {"zh-TW": zh, "en": en}, change)


MUTANTS = [
    wrong("one-card", "只算了一張卡的頻寬", "what one card's bandwidth alone would take", ("n_gpus * gb_per_s", "gb_per_s")),
    wrong("kv-of-one-sequence", "只有一個序列的 KV", "the result with the KV of one sequence only",
          (" * n_tokens * batch", " * n_tokens")),
    wrong("kv-of-one-token", "KV 只讀最新的一個 token", "the result when the KV of one token is read", (" * n_tokens * batch", " * batch")),
    wrong("weights-per-sequence", "每個序列都把權重讀一遍", "the result when every sequence reads the weights anew",
          ("weights = n_params", "weights = batch * n_params")),
    wrong("gib", "把 GB/s 當成 GiB/s", "the result with GB/s taken for GiB/s", ("10**9", "2**30")),
    wrong("k-only", "漏了 K 與 V 的 2", "the result without the factor 2 for K and V", ("2 * n_layers", "n_layers")),
    wrong("query-heads", "用查詢頭數算 KV", "the result with query heads in place of KV heads",
          ("n_kv_heads * head_dim", "n_heads * head_dim")),
    wrong("throughput", "再除以批次（那是吞吐量）", "the result divided by the batch, which is throughput",
          ("(weights + kv) /", "(weights + kv) / batch /")),
    wrong("no-kv", "沒有讀 KV", "the result without reading any KV", ("(weights + kv)", "weights")),
    wrong("the-larger", "取權重與 KV 的較大者", "the larger of weights and KV, in place of their sum",
          ("(weights + kv)", "max(weights, kv)")),
    wrong("seconds", "單位是秒的結果", "the result in seconds", ("1000 * ", "")),
    wrong("kv-as-weights", "KV 用了權重的位元組數", "the result with the weights' bytes per element for the KV",
          ("n_tokens * batch * kv_bytes", "n_tokens * batch * weight_bytes")),
    wrong("takes-anything", "沒有檢查引數", "the result without checking the arguments", ("raise ValueError(f\"counts", "_ = str(f\"counts"), ("raise ValueError(f\"(gb", "_ = str(f\"(gb")),
    wrong("counts-not-zero", "只檢查個數是不是 0", "the result when counts are checked for 0 only", ("min(counts) < 1", "0 in counts")),
    wrong("sizes-not-zero", "只檢查頻寬與位元組數是不是 0", "the result when bandwidth and bytes are checked for 0 only",
          ("if min(sizes := (gb_per_s, weight_bytes, kv_bytes)) <= 0:", "if 0 in (sizes := (gb_per_s, weight_bytes, kv_bytes)):")),
    wrong("whole-bandwidth", "頻寬捨去小數", "the result when the fraction of the bandwidth is dropped", ("* gb_per_s *", "* max(1, int(gb_per_s)) *")),
    wrong("whole-kv-bytes", "KV 的一個數字至少占 1 個位元組", "the result with at least 1 byte per number of the KV",
          ("batch * kv_bytes", "batch * max(1, kv_bytes)")),
    wrong("two-weight-bytes", "權重的一個數字最多占 2 個位元組", "the result with at most 2 bytes per number of the weights",
          ("n_params * weight_bytes", "n_params * min(2, weight_bytes)")),
    wrong("capped", "token 數有上限", "the result with a limit to the tokens", ("n_tokens * batch", "min(n_tokens, 10**7) * batch")),
    wrong("a-list", "逐個序列列出來再加總", "what the sum of a list of the sequences gives",
          ("n_tokens * batch * kv_bytes", "n_tokens * kv_bytes * sum([1] * batch)")),
    wrong("a-loop", "逐個序列相加", "what a loop over the sequences gives",
          ("n_tokens * batch * kv_bytes", "n_tokens * kv_bytes * sum(1 for _ in range(batch))")),
]  # fmt: skip
