"""Wrong solutions of `kv-bytes-from-config`."""

from kvgrade.answers import Mutant

HEADS = 'config.get("num_key_value_heads") or n_heads'
WIDTH = 'config.get("head_dim") or exact(config["hidden_size"], n_heads)'
DTYPE = 'kv_dtype or config.get("torch_dtype") or "bfloat16"'
LAYER = "2 * n_tokens * n_kv_heads * head_dim * BYTES[dtype]"
# Sorted by what they get right: where two give the same wrong value, the one that failed no earlier property is named.
MUTANTS = [
    Mutant("null-width", {"zh-TW": "head_dim 是 null 就出錯的結果", "en": "the result that takes a null head_dim for a number"},
           ((WIDTH, 'config["head_dim"] if "head_dim" in config else exact(config["hidden_size"], n_heads)'),)),
    Mutant("remainders-dropped", {"zh-TW": "除不盡就捨去餘數的結果", "en": "the result that drops a remainder"},
           (("if a % b:", "if False:"),)),
    Mutant("does-not-name-the-field", {"zh-TW": "錯誤訊息沒寫出欄位名稱的結果", "en": "the result whose error names no field"},
           (('config["num_hidden_layers"] *', '(config.get("num_hidden_layers") or int("incomplete")) *'),)),
    Mutant("names-every-field", {"zh-TW": "錯誤訊息一律列出所有欄位的結果", "en": "the result whose error lists all required fields"},
           (("    n_heads = config", ('    needed = ["num_hidden_layers", "num_attention_heads"] + ["hidden_size"] * (not config.get("head_dim"))\n'
             '    if not set(needed) <= set(config):\n        raise ValueError("num_hidden_layers, num_attention_heads, hidden_size")\n'
             "    n_heads = config")),)),
    Mutant("checks-both-dtypes", {"zh-TW": "用不到的 torch_dtype 也檢查的結果", "en": "the result that also checks a torch_dtype that is not in use"},
           (("if dtype not in BYTES:", 'if dtype not in BYTES or (config.get("torch_dtype") or dtype) not in BYTES:'),)),
    Mutant("no-fp8-in-config", {"zh-TW": "不接受 config 寫 fp8 的結果", "en": "the result that refuses fp8 as the torch_dtype"},
           (("if dtype not in BYTES:", 'if dtype not in BYTES or not kv_dtype and dtype in ("fp8", "int8"):'),)),
    Mutant("refuses-no-tokens", {"zh-TW": "不接受 0 個 token 的結果", "en": "the result that refuses 0 tokens"},
           (("    n_heads = config", '    if n_tokens < 1:\n        raise ValueError("no tokens")\n    n_heads = config'),)),
    Mutant("absent-heads-mean-one", {"zh-TW": "沒寫 KV 頭就當成 1 個的結果", "en": "the result with 1 KV head where none are stated"},
           ((HEADS, 'config.get("num_key_value_heads") or 1'),)),
    Mutant("null-heads", {"zh-TW": "KV 頭是 null 就出錯的結果", "en": "the result that takes null KV heads for a number"},
           ((HEADS, 'config.get("num_key_value_heads", n_heads)'),)),
    Mutant("kv-dtype-ignored", {"zh-TW": "忽略 kv_dtype 的結果", "en": "the result that ignores kv_dtype"},
           ((DTYPE, 'config.get("torch_dtype") or "bfloat16"'),)),
    Mutant("torch-dtype-ignored", {"zh-TW": "忽略 torch_dtype 的結果", "en": "the result that ignores torch_dtype"},
           ((DTYPE, 'kv_dtype or "bfloat16"'),)),
    Mutant("always-derived", {"zh-TW": "忽略 head_dim、一律用推算寬度的結果", "en": "the result that ignores a stated head_dim"},
           ((WIDTH, 'config["hidden_size"] // n_heads'),)),
    Mutant("the-larger-width", {"zh-TW": "寬度取寫明與推算中較大者的結果", "en": "the result with the larger of stated and derived width"},
           ((WIDTH, 'max(config.get("head_dim") or 0, config["hidden_size"] // n_heads)'),)),
    Mutant("query-heads", {"zh-TW": "用查詢頭而不是 KV 頭的結果", "en": "the result with query heads instead of KV heads"},
           ((LAYER, LAYER.replace("n_kv_heads", "n_heads")),)),
    Mutant("hidden-size", {"zh-TW": "用 hidden_size 代替 h_kv·d 的結果", "en": "the result with hidden_size in place of h_kv·d"},
           ((LAYER, LAYER.replace("n_kv_heads * head_dim", 'config["hidden_size"]')),)),
    Mutant("no-factor-2", {"zh-TW": "漏掉 K 與 V 的 2 的結果", "en": "the result without the 2 for K and V"},
           ((LAYER, LAYER.removeprefix("2 * ")),)),
    Mutant("width-from-kv-heads", {"zh-TW": "寬度用 hidden_size 除以 KV 頭的結果", "en": "the result with hidden_size divided by the KV heads"},
           ((WIDTH, 'config.get("head_dim") or config["hidden_size"] // n_kv_heads'),)),
    Mutant("weights-dtype", {"zh-TW": "把權重的量化當成 KV 型別的結果", "en": "the result with the dtype of the quantized weights"},
           ((DTYPE, '"fp8" if "quantization_config" in config else kv_dtype or "bfloat16"'),)),
    Mutant("batch-twice", {"zh-TW": "批次乘了兩次的結果", "en": "the result with the batch counted twice"},
           ((LAYER, LAYER + " * batch"),)),
    Mutant("bits-for-bytes", {"zh-TW": "以位元而不是位元組計的結果", "en": "the result in bits instead of bytes"},
           ((LAYER, "8 * " + LAYER),)),
    Mutant("with-the-weights", {"zh-TW": "把 K、V 投影的權重也算進去的結果", "en": "the result with the weights of the K and V projections on top"},
           ((LAYER, LAYER + ' + 2 * config["hidden_size"] * n_kv_heads * head_dim * BYTES[dtype]'),)),
    Mutant("changes-config", {"zh-TW": "改動了 config 的結果", "en": "the result that fills in the caller's config"},
           ((HEADS, 'config.get("num_key_value_heads") or n_heads\n    config["head_dim"] = config.get("head_dim") or 1'),)),
]  # fmt: skip
