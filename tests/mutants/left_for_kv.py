"""Wrong solutions of `left-for-kv`."""

from kvgrade.answers import Mutant

USABLE = "n_gpus * (capacity * UNITS[unit] * utilization_percent // 100)"
WEIGHTS = "-(-n_params * weight_bits // 8)"
RUNTIME = "n_gpus * runtime_gb * 10**9"
RETURN = "max(0, usable - weights - runtime - activation_bytes)"
# Sorted by what they get right: where two give the same wrong value, the one that failed no earlier property is named.
MUTANTS = [
    Mutant("negative", {"zh-TW": "放不下時是負數的結果", "en": "a negative result where the model does not fit"},
           ((RETURN, "usable - weights - runtime - activation_bytes"),)),
    Mutant("through-float", {"zh-TW": "經過 float、失去精度的結果", "en": "the result after a detour through float"},
           ((USABLE, "n_gpus * int(capacity * UNITS[unit] * (utilization_percent / 100))"),)),
    Mutant("always-16-bits", {"zh-TW": "權重一律用 2 個位元組的結果", "en": "the result with 2 bytes per weight whatever its bits"},
           ((WEIGHTS, "2 * n_params"),)),
    Mutant("weights-rounded-down", {"zh-TW": "權重捨去不足 1 位元組的結果", "en": "the result with the weights rounded down to bytes"},
           ((WEIGHTS, "n_params * weight_bits // 8"),)),
    Mutant("any-percentage", {"zh-TW": "不檢查使用比例的結果", "en": "the result without a check of the percentage"},
           (("if not 1 <= utilization_percent <= 100:", "if False:"),)),
    Mutant("half-at-least", {"zh-TW": "使用比例不到 50 就拒絕的結果", "en": "the result that refuses percentages below 50"},
           (("if not 1 <= utilization_percent <= 100:", "if not 50 <= utilization_percent <= 100:"),)),
    Mutant("one-percent-refused", {"zh-TW": "使用比例是 1 也拒絕的結果", "en": "the result that refuses 1 percent as well"},
           (("if not 1 <= utilization_percent <= 100:", "if not 1 < utilization_percent <= 100:"),)),
    Mutant("spaces-in-the-unit", {"zh-TW": "不管單位前後空白的結果", "en": "the result of a unit with spaces around it"},
           (("if unit not in UNITS:", "if (unit := unit.strip()) not in UNITS:"),)),
    Mutant("unit-in-any-case", {"zh-TW": "單位不分大小寫的結果", "en": "the result of a unit in any case"},
           (("if unit not in UNITS:", "unit = {name.lower(): name for name in UNITS}.get(unit.lower(), unit)\n    if unit not in UNITS:"),)),
    Mutant("any-unit", {"zh-TW": "不認得的單位當成 GB 的結果", "en": "the result with GB for an unknown unit"},
           (("if unit not in UNITS:", "if False:"), (USABLE, USABLE.replace("UNITS[unit]", "UNITS.get(unit, 10**9)")))),
    Mutant("mb-for-mib", {"zh-TW": "把 MiB 當成 10⁶ 的結果", "en": "the result with 10⁶ bytes in a MiB"},
           (('"MiB": 2**20', '"MiB": 10**6'),)),
    Mutant("utilization-of-the-rest", {"zh-TW": "使用比例乘在剩下部分的結果", "en": "the result with the percentage taken of what is left"},
           ((USABLE, "n_gpus * capacity * UNITS[unit]"), (RETURN, RETURN + " * utilization_percent // 100"))),
    Mutant("utilization-ignored", {"zh-TW": "忽略使用比例的結果", "en": "the result that ignores the utilization"},
           ((USABLE, "n_gpus * capacity * UNITS[unit]"),)),
    Mutant("no-activations", {"zh-TW": "忘了啟動值的結果", "en": "the result without the activations"},
           ((RETURN, "max(0, usable - weights - runtime)"),)),
    Mutant("activations-per-card", {"zh-TW": "每張卡都扣一次啟動值的結果", "en": "the result with the activations taken off every card"},
           ((RETURN, "max(0, usable - weights - runtime - n_gpus * activation_bytes)"),)),
    Mutant("gb-for-gib", {"zh-TW": "把 GiB 當成 10⁹ 的結果", "en": "the result with 10⁹ bytes in a GiB"},
           (('"GiB": 2**30', '"GiB": 10**9'),)),
    Mutant("runtime-in-the-unit", {"zh-TW": "執行環境跟著容量單位走的結果", "en": "the result with the runtime in the unit of the capacity"},
           ((RUNTIME, 'n_gpus * runtime_gb * max(10**9, UNITS[unit])'),)),
    Mutant("runtime-once", {"zh-TW": "執行環境只扣一張卡的結果", "en": "the result with the runtime of a single card"},
           ((RUNTIME, "runtime_gb * 10**9"),)),
    Mutant("runtime-in-gib", {"zh-TW": "執行環境以 GiB 計的結果", "en": "the result with the runtime in GiB"},
           ((RUNTIME, "n_gpus * runtime_gb * 2**30"),)),
    Mutant("no-runtime", {"zh-TW": "忘了執行環境的結果", "en": "the result without the runtime"}, ((RUNTIME, "0"),)),
    Mutant("gib-for-gb", {"zh-TW": "把 GB 當成 2³⁰ 的結果", "en": "the result with 2³⁰ bytes in a GB"},
           (('"GB": 10**9', '"GB": 2**30'),)),
    Mutant("bits-for-bytes", {"zh-TW": "權重以位元而不是位元組計的結果", "en": "the result with the weights in bits instead of bytes"},
           ((WEIGHTS, "n_params * weight_bits"),)),
    Mutant("weights-on-every-card", {"zh-TW": "每張卡各放一份完整權重的結果", "en": "the result with a copy of the weights on every card"},
           ((WEIGHTS, "n_gpus * -(-n_params * weight_bits // 8)"),)),
    Mutant("one-card", {"zh-TW": "只算一張卡容量的結果", "en": "the result with the capacity of a single card"},
           ((USABLE, "capacity * UNITS[unit] * utilization_percent // 100"),)),
    Mutant("a-float", {"zh-TW": "是 float 的結果", "en": "a float"}, ((WEIGHTS, "n_params * weight_bits / 8"),)),
]  # fmt: skip
