"""The kinds of estimation questions: each draws a model, a context and a convention, and states all that decides its answer.

Invariant: every number, right or wrong, is computed by kvlib from a preset.
"""

import random
from collections.abc import Callable

from kvgrade.numbers import Question
from kvgrade.numbers.quantity import BYTES, COUNT, MILLISECONDS
from kvgrade.numbers.serving import (
    Serving,
    alike,
    heads_text,
    model_text,
    product_text,
    uniform_presets,
    with_query_heads,
)
from kvlib.errors import SpecError
from kvlib.hardware import GPUS
from kvlib.i18n import T
from kvlib.memory import kv_bytes
from kvlib.readers import load_spec
from kvlib.roofline import step_cost, tokens_where_kv_equals_weights
from kvlib.spec import ModelSpec
from kvlib.units import GB, TB, format_bytes

CARDS = ("a100-80gb", "h100-80gb", "h200-141gb", "rtx-4090-24gb", "rtx-5090-32gb")
CONTEXTS = (1024, 2048, 4096, 8192, 16_384, 32_768)


def questions(n: int, seed: str) -> list[Question]:
    """`n` questions, the same for the same seed: kinds in turn, in random order, no two alike."""
    rng = random.Random(f"numbers/{seed}")
    found: list[Question] = []
    while len(found) < n:
        kinds = rng.sample(KINDS, len(KINDS))
        for kind in kinds[: n - len(found)]:
            found.append(_draw(kind, rng, {q.text for q in found}))
    return found


def per_token(rng: random.Random) -> Question | None:
    """Bytes per token, bf16."""
    preset = rng.choice(uniform_presets())
    spec = load_spec(preset)
    text = T(f"{model_text(spec)}，K 與 V 存成 bf16。一個 token 的 KV 快取占多少？",
             f"{model_text(spec)}, K and V in bf16. How much KV cache does one token take?")  # fmt: skip
    answer = kv_bytes(spec, 1)
    slips = [*_head_slips(preset, 1), (answer / spec.n_layers, T("只算了一層", "that is one layer only")),
             (2 * answer, T("2 倍：bf16 每個值是 2 位元組，不是 4", "2×: bf16 takes 2 bytes per value, not 4"))]  # fmt: skip
    return _bytes_question("per-token", text, answer, (_price(spec, "bf16"),), slips)


def context(rng: random.Random) -> Question | None:
    """KV of a batch."""
    preset, n_tokens, batch = rng.choice(uniform_presets()), rng.choice(CONTEXTS), rng.choice((1, 4, 8, 16, 32, 64))
    spec = load_spec(preset)
    if n_tokens > spec.max_position_embeddings:
        return None
    text = T(f"{model_text(spec)}，bf16。{_batch(n_tokens, batch)}，KV 快取一共多少？",
             f"{model_text(spec)}, bf16. {_batch(n_tokens, batch)}: how much KV cache in all?")  # fmt: skip
    answer = kv_bytes(spec, n_tokens, batch)
    slips = [*_head_slips(preset, n_tokens, batch), *_batch_slip(answer, batch),
             (answer / spec.n_layers, T("只算了一層", "that is one layer only"))]  # fmt: skip
    return _bytes_question("context", text, answer, _working(spec, n_tokens, batch, "bf16"), slips)


def fp8(rng: random.Random) -> Question | None:
    """The same in FP8."""
    preset, n_tokens, batch = rng.choice(uniform_presets()), rng.choice(CONTEXTS), rng.choice((1, 8, 32))
    spec = load_spec(preset)
    if n_tokens > spec.max_position_embeddings:
        return None
    text = T(f"{model_text(spec)}，權重 bf16，KV 快取改用 FP8 存（不計縮放值）。{_batch(n_tokens, batch)}，KV 快取一共多少？",
             f"{model_text(spec)}, bf16 weights, KV cache in FP8 (scales not counted). {_batch(n_tokens, batch)}: "
             "how much KV cache?")  # fmt: skip
    answer = kv_bytes(spec, n_tokens, batch, "fp8")
    slips = [(kv_bytes(spec, n_tokens, batch), T("2 倍：FP8 每個值只占 1 位元組", "2×: FP8 takes 1 byte per value")),
             *_head_slips(preset, n_tokens, batch, "fp8"), *_batch_slip(answer, batch)]  # fmt: skip
    return _bytes_question("fp8", text, answer, _working(spec, n_tokens, batch, "fp8"), slips)


def without_gqa(rng: random.Random) -> Question | None:
    """What the cache would be with a KV head per query head."""
    preset, n_tokens = rng.choice(uniform_presets()), rng.choice(CONTEXTS)
    spec, full = load_spec(preset), with_query_heads(preset)
    if spec.n_kv_heads == spec.n_heads or n_tokens > spec.max_position_embeddings:
        return None
    text = T(f"{model_text(spec)}，bf16。假如它不用 GQA，改用多頭注意力（MHA），一個 {n_tokens:,} token 的序列要多少 KV 快取？",
             f"{model_text(spec)}, bf16. With multi-head attention instead of GQA, how much KV cache would one sequence of "
             f"{n_tokens:,} tokens need?")  # fmt: skip
    answer, group = kv_bytes(full, n_tokens), spec.n_heads // spec.n_kv_heads
    slips = [(kv_bytes(spec, n_tokens), T(f"這是 GQA 的大小：MHA 的 KV 頭和查詢頭一樣多，是 {group} 倍",
                                          f"that is the GQA size: MHA has a KV head per query head, {group}× as many")),
             (answer / 2, _half())]  # fmt: skip
    working = (*_working(full, n_tokens, 1, "bf16"),
               T(f"GQA 只要 {format_bytes(kv_bytes(spec, n_tokens))}：{group} 分之一",
                 f"GQA needs {format_bytes(kv_bytes(spec, n_tokens))}: 1/{group}"))  # fmt: skip
    return _bytes_question("without-gqa", text, answer, working, slips)


def one_rank(rng: random.Random) -> Question | None:
    """KV on one card under tensor parallelism, with heads to share out or to replicate."""
    preset, n_tokens, tp = rng.choice(uniform_presets()), rng.choice(CONTEXTS), rng.choice((2, 4, 8, 16))
    spec = load_spec(preset)
    heads = spec.n_kv_heads
    if n_tokens > spec.max_position_embeddings or spec.n_heads % tp or max(heads, tp) % min(heads, tp):
        return None
    text = T(f"{model_text(spec)}，bf16，張量平行 TP = {tp}。一個 {n_tokens:,} token 的序列，每張卡上的 KV 快取是多少？",
             f"{model_text(spec)}, bf16, tensor parallel over {tp} cards. One sequence of {n_tokens:,} tokens: how much KV cache "
             "does each card hold?")  # fmt: skip
    answer, whole = kv_bytes(spec, n_tokens, tp=tp), kv_bytes(spec, n_tokens)
    per_card = max(1, heads // tp)
    note = T(f"每張卡 {per_card} 個 KV 頭", f"{per_card} KV head{'s' * (per_card > 1)} per card")
    if tp > heads:
        note += T("（TP 超過 KV 頭數：每個頭複製到好幾張卡）", " (more cards than KV heads: each head is on several)")
    working = (note, f"2 × {spec.n_layers} × {per_card} × {spec.head_dim} × 2 B × {n_tokens:,} = {_both(answer)}")
    slips = [(whole / tp, T(f"直接除以 {tp} 了：KV 頭只有 {heads} 個，卡再多也只能複製",
                            f"you divided by {tp}; there are {heads} KV heads, more cards only replicate them")),
             (whole, T("這是所有的卡合計；題目問的是一張卡", "that is the sum over all cards; the question is one card's")),
             (kv_bytes(with_query_heads(preset), n_tokens, tp=tp), heads_text(spec)), (answer / 2, _half())]  # fmt: skip
    return _bytes_question("one-rank", text, answer, working, slips)


def sequences(rng: random.Random) -> Question | None:
    """How many sequences fit."""
    serving = Serving.draw(rng, CARDS, CONTEXTS)
    if serving is None or not 1 <= (answer := serving.ledger().sequences(serving.n_tokens)) <= 200:
        return None
    text = serving.text() + T(f"放得下幾個 {serving.n_tokens:,} token 的序列？（寫到小數一位，或只寫整數）",
                              f" How many sequences of {serving.n_tokens:,} tokens fit? (one decimal, or whole ones)")  # fmt: skip
    one = serving.ledger().kv_per_sequence(serving.n_tokens)
    working = (*serving.working(), T("一個序列：", "One sequence: ") + serving.sequence_text(serving.ledger(), serving.n_tokens),
               f"{format_bytes(serving.ledger().left_for_kv, 'GB')} ÷ {one:,} B = {answer:.2f}"
               + T(f"，整數 {int(answer)} 個", f", {int(answer)} whole"))  # fmt: skip
    slips = [(ledger.sequences(serving.n_tokens), why) for ledger, why in serving.slips()] + [(2 * answer, _half())]
    return Question("sequences", text + _within(3), COUNT, answer, 0.03, working, alike(slips, answer, 0.03),
                    accepts=(float(int(answer)),))  # fmt: skip


def longest_context(rng: random.Random) -> Question | None:
    """The longest context that memory allows."""
    serving = Serving.draw(rng, CARDS, CONTEXTS)
    batch = rng.choice((1, 4, 8, 16))
    if serving is None or not 1000 <= (answer := serving.longest(serving.ledger(), batch)) <= 2_000_000:
        return None
    text = serving.text() + T(f"{f'批次 {batch}，每個' if batch > 1 else '一個'}序列最長能到多少 token？（只看記憶體，不管模型本身的上限）",
                              f" {f'Batch {batch}: how many tokens can each' if batch > 1 else 'How many tokens can one'} sequence hold? (memory alone, not the model's limit)")  # fmt: skip
    per_token = serving.ledger().kv_per_sequence(1)
    working = (*serving.working(), T("一個 token：", "One token: ") + serving.sequence_text(serving.ledger(), 1),
               f"{format_bytes(serving.ledger().left_for_kv, 'GB')} ÷ {f'({per_token:,} B × {batch})' if batch > 1 else f'{per_token:,} B'} = {answer:,} tokens")  # fmt: skip
    slips = [(serving.longest(ledger, batch), why) for ledger, why in serving.slips()]
    slips += [(2 * answer, _half()), (batch * answer, T("忘了批次：這是所有序列合計", "you forgot the batch: that is all sequences together"))]
    return Question("longest-context", text + _within(3), COUNT, answer, 0.03, working, alike(slips, answer, 0.03))


def cards(rng: random.Random) -> Question | None:
    """The least number of cards that holds weights and cache."""
    serving, batch = Serving.draw(rng, CARDS, CONTEXTS, counts=None), rng.choice((8, 16, 32, 64))
    if serving is None or (answer := serving.cards_for(batch)) is None or answer == 1:
        return None
    text = serving.text(count=False) + T(
        f"要同時服務 {batch} 個 {serving.n_tokens:,} token 的序列，至少要幾張卡：1、2、4、8 還是 16 張（張量平行）？",
        f" To serve {batch} sequences of {serving.n_tokens:,} tokens at once, how many cards at least: 1, 2, 4, 8 or 16 "
        "(tensor parallel)?")  # fmt: skip
    working: list[str] = []
    for n in (answer // 2, answer):
        ledger = serving.ledger(n_gpus=n)
        fits, one = ledger.sequences(serving.n_tokens), ledger.kv_per_sequence(serving.n_tokens)
        priced = T("一個序列：", "One sequence: ") + serving.sequence_text(ledger, serving.n_tokens)
        working += [priced] if ledger.fits and priced not in working else []
        working.append(T(f"{n} 張：", f"{n} card{'s' * (n > 1)}: ") + serving.sum_text(ledger) + (
            f" ÷ {one:,} B = {fits:.1f} " + T("個序列", "sequences") if ledger.fits else T("，放不下", ": does not fit")))  # fmt: skip
    slips = [(serving.cards_for(batch, **change), why) for change, why in serving.changes()]
    slips += [(serving.cards_for(1), T("只算了一個序列的 KV", "you counted the KV of one sequence"))]
    known = [(n, why) for n, why in slips if n is not None]
    return Question("cards", text, COUNT, answer, 0, tuple(working), alike(known, answer, 0.1))


def tpot_floor(rng: random.Random) -> Question | None:
    """The least time per output token."""
    serving, batch = Serving.draw(rng, CARDS, CONTEXTS), rng.choice((1, 1, 8, 16, 32))
    if serving is None or serving.ledger().sequences(serving.n_tokens) < batch:
        return None
    spec, card, n, n_tokens = serving.spec, GPUS[serving.gpu], serving.n_gpus, serving.n_tokens
    if max(spec.n_kv_heads, n) != spec.n_kv_heads:
        return None  # replicated heads: every card reads more than its share
    cost = step_cost(spec, n_tokens, batch, serving.weight_dtype, serving.kv_dtype)
    if cost.nbytes / card.bandwidth < cost.flops / card.flops:
        return None
    bandwidth = n * card.bandwidth / 1000  # bytes per ms
    answer = 1e3 * cost.seconds(card, n)
    text = T(f"{model_text(spec, params=True)}，權重 {serving.weight_dtype}、KV {serving.kv_dtype}，{n} × {card.name}（每張 "
             f"{card.bandwidth / TB:g} TB/s）。{_batch(n_tokens, batch)}，已在快取裡。每個輸出 token 的時間（TPOT）"
             "下限是幾毫秒？（讀一次全部權重與 KV，頻寬用滿，不計通訊）",
             f"{model_text(spec, params=True)}, weights in {serving.weight_dtype}, KV in {serving.kv_dtype}, {n} × {card.name} "
             f"({card.bandwidth / TB:g} TB/s each). {_batch(n_tokens, batch)}, all cached. What is the least time per "
             "output token (TPOT), in ms? (all weights and KV read once at full bandwidth, no communication)")  # fmt: skip
    working = (T("權重 ", "Weights ") + format_bytes(cost.weight_bytes, "GB") + " + KV " + format_bytes(cost.kv_bytes, "GB")
               + f" = {format_bytes(cost.nbytes, 'GB')}",
               f"÷ ({n} × {card.bandwidth / TB:g} TB/s) = {answer:.2f} ms")  # fmt: skip
    heads = kv_bytes(with_query_heads(serving.preset), n_tokens, batch, serving.kv_dtype)
    slips = [(cost.weight_bytes / bandwidth, T("只讀了權重，忘了 KV", "weights only: the KV is read too")),
             (n * answer, T("忘了每張卡只讀自己那一份", "each card reads only its share")),
             ((cost.weight_bytes + cost.kv_bytes / batch) / bandwidth, T("只讀了一個序列的 KV", "the KV of one sequence only")),
             ((cost.weight_bytes + heads) / bandwidth, heads_text(spec)),
             (cost.kv_bytes / bandwidth, T("只讀了 KV，忘了權重", "KV only: the weights are read too"))]  # fmt: skip
    return Question("tpot-floor", text + _within(3), MILLISECONDS, answer, 0.03, working, alike(slips, answer, 0.03))


def crossover(rng: random.Random) -> Question | None:
    """Where reading KV takes as long as reading the weights."""
    preset, kv_dtype = rng.choice(uniform_presets()), rng.choice(("bf16", "fp8"))
    spec = load_spec(preset)
    text = T(f"{model_text(spec, params=True)}，權重 bf16、KV {kv_dtype}。整個批次快取多少 token 時，解碼一步讀的 KV 和權重一樣多？",
             f"{model_text(spec, params=True)}, weights in bf16, KV in {kv_dtype}. At how many cached tokens in the whole batch does "
             "a decode step read as much KV as weights?")  # fmt: skip
    answer = tokens_where_kv_equals_weights(spec, kv_dtype=kv_dtype)
    per_token = kv_bytes(spec, 1, kv_dtype=kv_dtype)
    working = (_price(spec, kv_dtype), f"{format_bytes(spec.weight_bytes(), 'GB')} ÷ {per_token:,} B = {answer:,.0f} tokens")
    mine = spec.weight_bytes() / kv_bytes(with_query_heads(preset), 1, kv_dtype=kv_dtype)
    slips = [(mine, heads_text(spec)), (2 * answer, _half()), (answer / 2, T("每個值的位元組數多算了一倍", "twice the bytes per value"))]
    return Question("crossover", text + _within(3), COUNT, answer, 0.03, working, alike(slips, answer, 0.03))


KINDS = (per_token, context, fp8, without_gqa, one_rank, sequences, longest_context, cards, tpot_floor, crossover)


def _draw(kind: Callable[[random.Random], Question | None], rng: random.Random, known: set[str]) -> Question:
    for _ in range(2000):
        question = kind(rng)
        if question and question.text not in known:
            return question
    raise SpecError(T("沒有那麼多不同的題目；請用小一點的 --questions", "there are not so many different questions; ask for fewer"))


def _bytes_question(kind: str, text: str, answer: int, working: tuple[str, ...], slips: list) -> Question:
    return Question(kind, text + _within(2), BYTES, answer, 0.02, working, alike(slips, answer, 0.02))


def _batch(n_tokens: int, batch: int) -> str:
    if batch == 1:
        return T(f"1 個 {n_tokens:,} token 的序列", f"1 sequence of {n_tokens:,} tokens")
    return T(f"批次 {batch}、每個序列 {n_tokens:,} 個 token", f"Batch {batch}, {n_tokens:,} tokens each")


def _within(percent: int) -> str:
    return T(f"（容許誤差 ±{percent}%）", f" (±{percent} %)")


def _half() -> str:
    return T("忘了 K 與 V 各存一份：差 2 倍", "you forgot that both K and V are kept: a factor of 2")


def _head_slips(preset: str, n_tokens: int, batch: int = 1, dtype: str = "bf16") -> list[tuple[float, str]]:
    spec = load_spec(preset)
    return [(kv_bytes(with_query_heads(preset), n_tokens, batch, dtype), heads_text(spec)),
            (kv_bytes(spec, n_tokens, batch, dtype) / 2, _half())]  # fmt: skip


def _batch_slip(answer: int, batch: int) -> list[tuple[float, str]]:
    return [(answer / batch, T(f"忘了批次 {batch}", f"you forgot the batch of {batch}"))] if batch > 1 else []


def _price(spec: ModelSpec, dtype: str) -> str:
    names = T("（K 與 V）× 層 × KV 頭 × head_dim × 每個值的位元組", "(K and V) × layers × KV heads × head_dim × bytes per value")
    return T("一個 token：", "One token: ") + f"{product_text(spec, dtype)} = {_both(kv_bytes(spec, 1, kv_dtype=dtype))}  {names}"


def _working(spec: ModelSpec, n_tokens: int, batch: int, dtype: str) -> tuple[str, ...]:
    total = kv_bytes(spec, n_tokens, batch, dtype)
    times = f" × {batch}" if batch > 1 else ""
    return _price(spec, dtype), f"× {n_tokens:,}{times} = {_both(total)} = {total / GB:.2f} GB"


def _both(nbytes: int) -> str:
    return f"{nbytes:,} B = {format_bytes(nbytes)}"

