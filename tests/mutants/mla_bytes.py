"""Wrong solutions of `mla-bytes`."""

from kvgrade.answers import Mutant

RETURN = "n_layers * n_tokens * (latent + rope) * bytes_per_value * batch"
HEADS = 'config.get("num_attention_heads", 1)'
# Sorted by what they get right: where two give the same wrong value, the one that failed no earlier property is named.
MUTANTS = [
    Mutant("null-fields", {"zh-TW": "欄位是 null 就算不下去的結果", "en": "the result that takes a null field for a number"},
           (("if config.get(name) is None:", "if name not in config:"),)),
    Mutant("does-not-name-the-field", {"zh-TW": "錯誤訊息沒寫出欄位名稱的結果", "en": "the result whose error names no field"},
           (('f"{name} is absent: not a model with MLA"', '"not a model with MLA"'),)),
    Mutant("names-every-field", {"zh-TW": "錯誤訊息每次都列出三個欄位的結果", "en": "the result whose error lists all three fields every time"},
           (('f"{name} is absent: not a model with MLA"', '"needs num_hidden_layers, kv_lora_rank, qk_rope_head_dim"'),)),
    Mutant("factor-2", {"zh-TW": "多乘了 K 與 V 的 2 的結果", "en": "the result with the factor 2 for K and V"},
           ((RETURN, "2 * " + RETURN),)),
    Mutant("no-rope-part", {"zh-TW": "漏掉旋轉那一段的結果", "en": "the result without the rotary part"},
           ((RETURN, RETURN.replace("(latent + rope)", "latent")),)),
    Mutant("factor-2-no-rope", {"zh-TW": "2 乘潛在向量、又漏掉旋轉那一段的結果",
                                "en": "the result with 2 times the latent and no rotary part"},
           ((RETURN, RETURN.replace("(latent + rope)", "2 * latent")),)),
    Mutant("latent-twice", {"zh-TW": "潛在向量算了兩次（K 一次、V 一次）的結果", "en": "the result with the latent twice, for K and for V"},
           ((RETURN, RETURN.replace("(latent + rope)", "(2 * latent + rope)")),)),
    Mutant("rope-only", {"zh-TW": "只有旋轉那一段的結果", "en": "the result of the rotary part alone"},
           ((RETURN, RETURN.replace("(latent + rope)", "rope")),)),
    Mutant("times-heads", {"zh-TW": "又乘上頭數的結果", "en": "the result multiplied by the number of heads"},
           ((RETURN, RETURN + f" * {HEADS}"),)),
    Mutant("rope-per-head", {"zh-TW": "每個頭各存一份旋轉部分的結果", "en": "the result with a rotary part for every head"},
           ((RETURN, RETURN.replace("rope)", f"rope * {HEADS})")),)),
    Mutant("as-heads", {"zh-TW": "當成一般的多頭、K 與 V 都展開的結果", "en": "the result of full K and V heads, as if expanded"},
           ((RETURN, RETURN.replace("(latent + rope)", f'{HEADS} * (config["qk_nope_head_dim"] + rope + config["v_head_dim"])')),)),
    Mutant("hidden-size", {"zh-TW": "用 2·hidden_size 的一般公式的結果", "en": "the result of the usual formula with 2·hidden_size"},
           ((RETURN, RETURN.replace("(latent + rope)", '2 * config["hidden_size"]')),)),
    Mutant("with-query-latent", {"zh-TW": "連查詢的潛在向量也存的結果", "en": "the result that stores the latent of the queries as well"},
           ((RETURN, RETURN.replace("rope)", 'rope + (config.get("q_lora_rank") or 1536))')),)),
    Mutant("batch-twice", {"zh-TW": "批次乘了兩次的結果", "en": "the result with the batch counted twice"},
           ((RETURN, RETURN + " * batch"),)),
    Mutant("bits-for-bytes", {"zh-TW": "以位元而不是位元組計的結果", "en": "the result in bits instead of bytes"},
           ((RETURN, "8 * " + RETURN),)),
    Mutant("torch-dtype", {"zh-TW": "改用 torch_dtype 的位元組數的結果", "en": "the result with the bytes of torch_dtype instead"},
           ((RETURN, RETURN.replace("bytes_per_value", '{"float32": 4}.get(config.get("torch_dtype"), 2)')),)),
]  # fmt: skip
