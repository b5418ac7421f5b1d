"""Wrong solutions of `token-forwards`."""

from kvgrade.answers import Mutant

WITHOUT = "n * P + n * (n - 1) // 2"
WITH = "P + n - 1 if n else 0"
# Sorted by what they get right: where two give the same wrong value, the one that failed no earlier property is named.
MUTANTS = [
    Mutant("prefill-for-nothing", {
        "zh-TW": "什麼都不生成卻仍然預填的次數",
        "en": "the count that prefills although nothing is generated",
    }, ((WITH, "P + n - 1"),)),
    Mutant("through-float", {
        "zh-TW": "經過 float、失去精度的結果",
        "en": "the count after a detour through float",
    }, ((WITHOUT, "int(n * P + n * (n - 1) / 2)"),)),
    Mutant("walks-the-steps", {
        "zh-TW": "逐步跑迴圈的結果",
        "en": "the count of a loop over the steps",
    }, (("without = n * P + n * (n - 1) // 2", "without = 0\n    for i in range(n):\n        without += P + i"),)),
    Mutant("accepts-anything", {
        "zh-TW": "不檢查輸入的結果",
        "en": "the result without a check of the input",
    }, (("if P < 1 or n < 0:", "if False:"),)),
    Mutant("last-token-sent-back", {
        "zh-TW": "把最後一個 token 也送進模型的次數",
        "en": "the count in which the last token is sent in too",
    }, ((WITH, "P + n if n else 0"),)),
    Mutant("prompt-counts-once", {
        "zh-TW": "把整個提示只算 1 次的結果",
        "en": "the count in which the whole prompt is 1 token-forward",
    }, ((WITH, "n"),)),
    Mutant("prompt-sent-every-step", {
        "zh-TW": "有快取卻每一步重送提示的次數",
        "en": "the count that sends the prompt again at every step although there is a cache",
    }, ((WITH, "n * P"),)),
    Mutant("no-growth", {
        "zh-TW": "忘了序列每一步多一個 token 的結果",
        "en": "the count in which the sequence does not grow",
    }, ((WITHOUT, "n * P"),)),
    Mutant("series-one-too-far", {
        "zh-TW": "第 1 步就多算一個 token 的結果",
        "en": "the count whose first step already sends one token more than the prompt",
    }, ((WITHOUT, "n * P + n * (n + 1) // 2"),)),
    Mutant("final-length-every-step", {
        "zh-TW": "每一步都用最後的長度去算的結果",
        "en": "the count that sends the final length at every step",
    }, ((WITHOUT, "n * (P + n - 1)"),)),
    Mutant("swapped", {
        "zh-TW": "兩個數字順序顛倒的結果",
        "en": "the two numbers in the wrong order",
    }, (("return without, with_cache", "return with_cache, without"),)),
]
