"""Hidden tests of `count-params`: against a list of every weight matrix, and against published models."""

from math import prod

from hidden_lenient import whole

from kvgrade.session import AnswerRaised
from kvgrade.testing import prop

REQUIRED = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
DECOYS = {"max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16", "rope_theta": 10_000.0,
          "hidden_act": "silu", "bos_token_id": 1, "pad_token_id": None}  # fmt: skip


def shapes(c):
    """The shape of every weight tensor of the model."""
    h, n_heads = c["hidden_size"], c["num_attention_heads"]
    n_kv_heads = n_heads if c.get("num_key_value_heads") is None else c["num_key_value_heads"]
    d = h // n_heads if c.get("head_dim") is None else c["head_dim"]
    yield c["vocab_size"], h
    for _layer in range(c["num_hidden_layers"]):
        yield n_heads * d, h  # q
        yield n_kv_heads * d, h  # k
        yield n_kv_heads * d, h  # v
        yield h, n_heads * d  # o
        yield from [(c["intermediate_size"], h)] * 2  # gate, up
        yield h, c["intermediate_size"]  # down
        yield from [(h,)] * 2
    yield (h,)
    if c.get("tie_word_embeddings") is not True:
        yield c["vocab_size"], h


def count(config):
    return sum(prod(shape) for shape in shapes(config))


def config(t, **fields):
    """Random sizes with GQA and a derived width; separate head."""
    n_kv_heads, group, width = t.integer(2, 5), t.integer(2, 4), t.choice(4, 8, 30, 64)
    n_heads = n_kv_heads * group
    return {**DECOYS, "vocab_size": t.integer(100, 40_000), "hidden_size": n_heads * width,
            "intermediate_size": t.integer(50, 9_000), "num_hidden_layers": t.integer(2, 40),
            "num_attention_heads": n_heads, "num_key_value_heads": n_kv_heads, **fields}  # fmt: skip


@prop(4, zh="每一個矩陣都數到：GQA、分開的輸出頭", en="every matrix counts: GQA, separate head")
def every_matrix(t):
    for _ in range(5):
        given = config(t)
        t.equal(whole(t.answer(given)), count(given))
    given = config(t, tie_word_embeddings=False)
    t.equal(whole(t.answer(given)), count(given))


@prop(2, zh="輸出頭與詞向量共用時只算一次", en="a head tied to the embedding counts once")
def tied(t):
    for value in (True, False, None):
        given = config(t, tie_word_embeddings=value)
        t.equal(whole(t.answer(given)), count(given))


@prop(2, zh="寫明的 head_dim 優先", en="a stated head_dim wins")
def stated_width(t):
    for more in (1, -1):
        given = config(t)
        given["head_dim"] = given["hidden_size"] // given["num_attention_heads"] + more * t.integer(1, 2)
        t.equal(whole(t.answer(given)), count(given))


@prop(1, zh="head_dim 是 null，就用推算的寬度", en="a null head_dim means the derived width")
def null_width(t):
    given = config(t, head_dim=None)
    t.equal(whole(t.answer(given)), count(given))


@prop(2, zh="沒寫 KV 頭，或是 null，就是 MHA", en="absent or null KV heads mean MHA")
def multi_head(t):
    null = config(t, num_key_value_heads=None)
    absent = {name: value for name, value in config(t).items() if name != "num_key_value_heads"}
    for given in (null, absent):
        t.equal(whole(t.answer(given)), count(given))


@prop(2, zh="真實的模型，數到個位數；結果是 int", en="published models, to the last digit; an int")
def published(t):
    names = (*REQUIRED, "num_key_value_heads", "head_dim", "tie_word_embeddings")
    for total, *sizes in [
        (6_738_415_616, 32_000, 4096, 11_008, 32, 32, None, None, False),
        (68_976_648_192, 32_000, 8192, 28_672, 80, 64, 8, None, False),
        (8_030_261_248, 128_256, 4096, 14_336, 32, 32, 8, None, False),
        (1_235_814_400, 128_256, 2048, 8192, 16, 32, 8, 64, True),
        (23_572_403_200, 131_072, 5120, 32_768, 40, 32, 8, 128, False),
    ]:
        given = {**DECOYS, **dict(zip(names, sizes, strict=True))}
        given = {name: value for name, value in given.items() if name != "head_dim" or value}
        assert total == count(given)
        t.equal(t.answer(given), total)


@prop(2, zh="少了欄位時說出名稱；不改動 config", en="names an absent field; leaves config alone")
def absent_fields(t):
    texts = set()
    for name in REQUIRED:
        given = config(t)
        del given[name]
        t.raises(("KeyError", "ValueError"), lambda given=given: t.answer(given),
                 zh="少了一定要有的欄位時", en="when a required field is absent")  # fmt: skip
        try:
            t.answer(given)
        except AnswerRaised as error:
            t.expect(name in error.text, zh="錯誤訊息裡沒有那個欄位的名稱", en="the error does not name the absent field")
            texts.add(error.text)
    t.expect(len(texts) == len(REQUIRED), zh="不管少了哪個欄位，錯誤訊息都一樣", en="the error is the same whichever field is absent")
    given = config(t)
    held = t.hold(given)
    got, _work = t.answer.counted(held, lines=50_000)
    t.equal(whole(got), count(given))
    t.unchanged(held, given, "config")
