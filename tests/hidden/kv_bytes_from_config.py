"""Hidden tests of `kv-bytes-from-config`: random and published configs against numbers from their parts."""

from hidden_lenient import whole

from kvgrade.session import AnswerRaised
from kvgrade.testing import prop

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "fp8": 1, "int8": 1}
ABSENT = object()
DECOYS = {"vocab_size": 32_000, "intermediate_size": 11_008, "max_position_embeddings": 4_096, "hidden_act": "silu",
          "quantization_config": {"quant_method": "fp8", "bits": 8}, "tie_word_embeddings": False,
          "architectures": ["LlamaForCausalLM"], "rope_scaling": None}  # fmt: skip


def config(n_layers, n_heads, hidden, n_kv_heads=ABSENT, head_dim=ABSENT, torch_dtype=ABSENT):
    fields = {"num_hidden_layers": n_layers, "num_attention_heads": n_heads, "hidden_size": hidden,
              "num_key_value_heads": n_kv_heads, "head_dim": head_dim, "torch_dtype": torch_dtype}  # fmt: skip
    return {name: value for name, value in {**DECOYS, **fields}.items() if value is not ABSENT}


def add_up(n_layers, heads, width, n_tokens, n_bytes, batch=1):
    one_head = width * n_bytes + width * n_bytes  # K and V
    return sum(heads * one_head for _ in range(n_layers)) * n_tokens * batch


def shape(t):
    """(layers, KV heads, query heads per KV head, derived width)"""
    return t.integer(3, 9), t.choice(3, 5, 6), t.choice(3, 4, 5), t.choice(3, 8, 30, 100)


@prop(4, zh="GQA：config 寫明 KV 頭，寬度用推算的", en="GQA: stated KV heads, derived width")
def derived_width(t):
    for _ in range(4):
        n_layers, heads, group, width = shape(t)
        n_tokens, batch = t.integer(2, 300), t.integer(3, 9)
        given = config(n_layers, heads * group, heads * group * width, heads, ABSENT, "bfloat16")
        t.equal(whole(t.answer(given, n_tokens, batch)), add_up(n_layers, heads, width, n_tokens, 2, batch))
        t.equal(whole(t.answer(given, n_tokens)), add_up(n_layers, heads, width, n_tokens, 2))


@prop(3, zh="寫明的 head_dim 優先，不管推算的比較大還是比較小", en="a stated head_dim wins, be it larger or smaller than the derived")
def stated_width(t):
    for stated in (1, -1, 1, -1):
        n_layers, heads, group, width = shape(t)
        stated = width + stated * t.integer(1, 2)
        n_tokens = t.integer(1, 300)
        given = config(n_layers, heads * group, heads * group * width, heads, stated, "bfloat16")
        t.equal(whole(t.answer(given, n_tokens)), add_up(n_layers, heads, stated, n_tokens, 2))
    uneven = config(92, 96, 5120, 8, 128, "bfloat16")  # 5120 / 96 leaves a remainder, and need not be taken
    t.equal(whole(t.answer(uneven, 1)), add_up(92, 8, 128, 1, 2))


@prop(1, zh="head_dim 是 null，就用推算的寬度", en="a null head_dim means the derived width")
def null_width(t):
    n_layers, heads, group, width = shape(t)
    n_tokens = t.integer(1, 300)
    given = config(n_layers, heads * group, heads * group * width, heads, None, "bfloat16")
    t.equal(whole(t.answer(given, n_tokens)), add_up(n_layers, heads, width, n_tokens, 2))


@prop(2, zh="沒寫 KV 頭，或是 null，就是 MHA", en="absent or null KV heads mean MHA")
def multi_head(t):
    for kv_heads in (ABSENT, None):
        n_layers, heads, _, width = shape(t)
        n_tokens = t.integer(1, 300)
        t.equal(whole(t.answer(config(n_layers, heads, heads * width, kv_heads, ABSENT, "float16"), n_tokens)),
                add_up(n_layers, heads, width, n_tokens, 2))  # fmt: skip


@prop(2, zh="KV 的型別：給的、config 的、預設的", en="the KV dtype: given, the config's, the default")
def dtypes(t):
    n_layers, heads, group, width = shape(t)
    n_tokens = t.integer(1, 300)

    def bytes_with(torch_dtype, kv_dtype):
        given = config(n_layers, heads * group, heads * group * width, heads, ABSENT, torch_dtype)
        return whole(t.answer(given, n_tokens, kv_dtype=kv_dtype))

    for name, size in BYTES.items():
        t.equal(bytes_with("float32" if size < 4 else "float16", name), add_up(n_layers, heads, width, n_tokens, size))
    for name in ("float32", "bfloat16", "float16"):
        t.equal(bytes_with(name, None), add_up(n_layers, heads, width, n_tokens, BYTES[name]))
    for name in ("fp8", "int8"):  # the same names in both places
        t.equal(bytes_with(name, None), add_up(n_layers, heads, width, n_tokens, 1))
    for name, size in BYTES.items():  # a torch_dtype that is not in use need not be known
        t.equal(bytes_with("mxfp4", name), add_up(n_layers, heads, width, n_tokens, size))
    for nothing in (ABSENT, None):
        t.equal(bytes_with(nothing, None), add_up(n_layers, heads, width, n_tokens, 2))


@prop(1, zh="錯誤訊息寫出缺的欄位；用不到的欄位可以沒有", en="an error names the absent field; what is not needed may be absent")
def absent_fields(t):
    texts = set()
    for name in ("num_hidden_layers", "num_attention_heads", "hidden_size"):
        given = config(4, 8, 64, 2, ABSENT, "bfloat16")
        del given[name]
        t.raises(("KeyError", "ValueError"), lambda given=given: t.answer(given, 5),
                 zh="少了一定要有的欄位時", en="when a required field is absent")  # fmt: skip
        try:
            t.answer(given, 5)
        except AnswerRaised as error:
            t.expect(name in error.text, zh="錯誤訊息裡沒有那個欄位的名稱", en="the error does not name the absent field")
            texts.add(error.text)
    t.expect(len(texts) == 3, zh="不管少了哪個欄位，錯誤訊息都一樣", en="the error is the same whichever field is absent")
    stated = config(92, 96, ABSENT, 8, 128, "bfloat16")  # no hidden_size, and no need of one
    t.equal(whole(t.answer(stated, 3)), add_up(92, 8, 128, 3, 2))


@prop(1, zh="除不盡與不認得的型別會丟出 ValueError", en="remainders and unknown dtypes raise ValueError")
def errors(t):
    for heads, kv_heads in [(8, 3), (6, 4), (2, 4)]:
        for head_dim in (16, ABSENT):
            given = config(4, heads, heads * 16, kv_heads, head_dim, "bfloat16")
            t.raises("ValueError", lambda given=given: t.answer(given, 5),
                     zh="查詢頭不是 KV 頭的整數倍時", en="when the query heads are no multiple of the KV heads")  # fmt: skip
    given = config(4, 6, 6 * 16 + t.integer(1, 5), 2, ABSENT, "bfloat16")
    t.raises("ValueError", lambda: t.answer(given, 5),
             zh="hidden_size 除不盡時", en="when hidden_size leaves a remainder that matters")  # fmt: skip
    for torch_dtype, kv_dtype in [("bfloat16", "fp7"), ("float8", None)]:
        given = config(4, 8, 64, 2, ABSENT, torch_dtype)
        t.raises("ValueError", lambda given=given, kv_dtype=kv_dtype: t.answer(given, 5, kv_dtype=kv_dtype),
                 zh="型別名稱不認得時", en="for an unknown dtype")  # fmt: skip


@prop(1, zh="不改動 config；結果是 int，大數也精確", en="leaves config alone; an int, and exact for huge numbers")
def tidy(t):
    given = config(126, 128, 16384, 8, ABSENT, "bfloat16")
    held, n_tokens = t.hold(given), t.integer(10**15, 10**16) * 2 + 1
    got, _work = t.answer.counted(held, n_tokens, 7, lines=20_000)
    t.equal(got, n_tokens * add_up(126, 8, 128, 1, 2, 7))
    t.equal(whole(t.answer(given, 0, 3)), 0)
    t.unchanged(held, given, "config")
