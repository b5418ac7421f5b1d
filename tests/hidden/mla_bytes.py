"""Hidden tests of `mla-bytes`: configs with every decoy, against what is stored per token and layer."""

from hidden_lenient import whole

from kvgrade.session import AnswerRaised
from kvgrade.testing import prop


def config(t, n_layers=None):
    """Random sizes, all different from each other where a wrong formula would use them."""
    return {
        "num_hidden_layers": n_layers or t.integer(2, 70), "num_attention_heads": t.choice(16, 32, 128),
        "num_key_value_heads": 128, "hidden_size": 7168, "vocab_size": 129_280, "intermediate_size": 18_432,
        "head_dim": 56, "q_lora_rank": t.choice(None, 1536), "kv_lora_rank": t.choice(256, 384, 512, 101),
        "qk_rope_head_dim": t.choice(16, 32, 64, 7), "qk_nope_head_dim": 128, "v_head_dim": 96, "torch_dtype": "float32",
    }  # fmt: skip


def add_up(fields, n_tokens, batch=1, n_bytes=2):
    stored = [0] * (fields["kv_lora_rank"] + fields["qk_rope_head_dim"])  # one token of one layer
    return sum(len(stored) * n_bytes for _layer in range(fields["num_hidden_layers"])) * n_tokens * batch


@prop(5, zh="每個 token、每層一個潛在向量和旋轉的部分", en="one latent and the rotary part per token and layer")
def stored(t):
    for _ in range(6):
        fields, n_tokens = config(t), t.integer(2, 300)
        batch = t.choice(3, 5, 7, 9)
        for n_bytes in (1, 4):
            t.equal(whole(t.answer(fields, n_tokens, batch, n_bytes)), add_up(fields, n_tokens, batch, n_bytes))
        t.equal(whole(t.answer(fields, n_tokens)), add_up(fields, n_tokens))
    t.equal(whole(t.answer(fields, 0)), 0)


@prop(2, zh="其他欄位不影響答案", en="other fields do not matter")
def decoys(t):
    fields, n_tokens = config(t), t.integer(1, 300)
    three = {name: fields[name] for name in ("num_hidden_layers", "kv_lora_rank", "qk_rope_head_dim")}
    t.equal(whole(t.answer(three, n_tokens)), add_up(fields, n_tokens))
    fewer = {**fields, "num_key_value_heads": 1, "num_attention_heads": 1, "head_dim": None}
    t.equal(whole(t.answer(fewer, n_tokens)), add_up(fields, n_tokens))


@prop(2, zh="欄位沒有或是 null 時，錯誤訊息寫出它的名稱", en="an error about an absent or null field names the field")
def absent_fields(t):
    whole_config, texts = config(t), set()
    for name in ("num_hidden_layers", "kv_lora_rank", "qk_rope_head_dim"):
        null = {**whole_config, name: None}
        absent = {key: value for key, value in null.items() if key != name}
        for fields in (absent, null):
            t.raises(("KeyError", "ValueError"), lambda fields=fields: t.answer(fields, 5),
                     zh="少了一定要有的欄位時", en="when a required field is missing")  # fmt: skip
            try:
                t.answer(fields, 5)
            except AnswerRaised as error:
                t.expect(name in error.text, zh="錯誤訊息裡沒有那個欄位的名稱", en="the error does not name the missing field")
                texts.add((error.text, fields is null))
    t.expect(len(texts) == 6, zh="不管少了哪個欄位，錯誤訊息都一樣", en="the error is the same whichever field is missing")


@prop(1, zh="不改動 config；結果是 int，大數也精確，而且不跑迴圈", en="leaves config alone; an int, exact for huge numbers, without a loop")
def tidy(t):
    fields = config(t)
    held, n_tokens = t.hold(fields), t.integer(10**14, 10**15) * 2 + 1
    got, _work = t.answer.counted(held, n_tokens, 3, 1, lines=20_000)
    t.equal(got, n_tokens * add_up(fields, 1, 3, 1))
    t.unchanged(held, fields, "config")
