"""Wrong solutions of `merge-splits`."""

from kvgrade.answers import Mutant


def wrong(name, zh, en, *change):
    return Mutant(name, {"zh-TW": zh, "en": en}, change)


MEAN = "(weights[..., None] * parts).sum(0) / total.clamp(min=1)[..., None]"
TOP = "lse.amax(0).clamp(min=torch.finfo(lse.dtype).min)"
NOT_AT_LEAST_ONE = ("total.clamp(min=1)", "torch.where(total == 0, 1, total)")  # where another maximum was subtracted

MUTANTS = [
    wrong("plain-mean", "各段輸出的平均", "the plain mean of the outputs", (MEAN, "parts.mean(0)")),
    wrong("sum", "沒有除以權重總和", "the weighted sum, not divided by the sum of the weights",
          (MEAN, "(weights[..., None] * parts).sum(0)")),
    wrong("no-shift", "沒有先減去最大值", "the result without subtracting the maximum", (TOP, "torch.zeros_like(lse[0])")),
    wrong("one-maximum", "所有的頭共用一個最大值", "the result with one maximum for all rows and heads",
          (TOP, f"{TOP}.amax().expand_as(lse[0])"), NOT_AT_LEAST_ONE),
    wrong("one-maximum-per-head", "同一個頭的各列共用一個最大值", "the result with one maximum for all rows of a head",
          (TOP, f"{TOP}.amax(0, keepdim=True).expand_as(lse[0])"), NOT_AT_LEAST_ONE),
    wrong("one-maximum-per-row", "同一列的各頭共用一個最大值", "the result with one maximum for all heads of a row",
          (TOP, f"{TOP}.amax(1, keepdim=True).expand_as(lse[0])"), NOT_AT_LEAST_ONE),
    wrong("inf-counts", "0 乘以無限大", "0 times infinity", ("out.masked_fill(lse[..., None] == -torch.inf, 0)", "torch.where(out.isnan(), 0, out)")),
    wrong("checks-the-splits-only", "只檢查段數與維數", "the result when only the numbers of splits and dimensions are checked",
          ("lse.shape != out.shape[:-1]", "lse.dim() != out.dim() - 1 or len(lse) != len(out)")),
    wrong("first-maximum", "用第一段當最大值", "the result when the first split's log-sum-exp is taken for the maximum",
          (TOP, "lse[0].clamp(min=torch.finfo(lse.dtype).min)")),
    wrong("base-2", "把自然對數當成以 2 為底", "the result with base 2 in place of e",
          ("(lse - top).exp()", "(lse - top).exp2()"), ("total.log()", "total.log2()")),
    wrong("weights-are-lse", "拿 log-sum-exp 本身當權重", "the result with the log-sum-exps themselves as weights",
          ("(lse - top).exp()", "(lse / lse.sum(0)).nan_to_num(0)")),
    wrong("nan-counts", "0 乘以 NaN", "0 times NaN", ("out.masked_fill(lse[..., None] == -torch.inf, 0)", "out")),
    wrong("all-empty-nan", "全空時 0 除以 0", "0 over 0 where all splits are empty", (".clamp(min=1)", "")),
    wrong("sum-of-lse", "log-sum-exp 直接相加", "the sum of the log-sum-exps", ("top + total.log()", "lse.sum(0)")),
    wrong("maximum-for-lse", "用最大值當 log-sum-exp", "the largest log-sum-exp in place of the merged one",
          ("top + total.log()", "lse.amax(0)")),
    wrong("last-dropped", "少了最後一段", "the result without the last split",
          ("    top = ", "    out, lse = (out[:-1], lse[:-1]) if len(out) > 1 else (out, lse)\n    top = ")),
    wrong("over-heads", "沿著頭正規化", "the result with weights that sum to 1 over the heads", ("total = weights.sum(0)",
          "total = weights.sum(2, keepdim=True).sum(0).expand_as(lse[0])")),
    wrong("in-place", "就地改動輸入", "the result after changing the caller's tensors", ("out.masked_fill(", "out.masked_fill_(")),
    wrong("always-float32", "一律以 float32 計算", "the result in float32",
          ("    top = ", "    out, lse = out.float(), lse.float()\n    top = ")),
    wrong("takes-any-shape", "沒有檢查形狀", "the result without checking shapes", ("raise ValueError", "_ = str")),
]  # fmt: skip
