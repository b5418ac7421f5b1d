"""transformers: no pool, no blocks. A DynamicCache holds what a request has, a StaticCache what it may come to have."""

from collections import Counter
from dataclasses import replace

from kvlib.engines.labels import kind, layers
from kvlib.engines.options import named
from kvlib.engines.plan import Ask, Engine, Line
from kvlib.engines.rules import RULES, VERSIONS
from kvlib.errors import SpecError
from kvlib.i18n import T
from kvlib.kv_formats import kv_pair
from kvlib.spec import Layer


def _cached(ask: Ask) -> list[Layer]:
    """The layers as the cache has them: some classes copy K and V to every query head before they store them."""
    heads = ask.spec.n_heads
    return [replace(layer, n_kv_heads=heads) if ask.spec.expanded and layer.n_kv_heads else layer for layer in ask.spec.layers]


def _kept(layer: Layer, n_tokens: int) -> int:
    """Tokens in a DynamicCache: one fewer than the window, because the next query brings its own.

    With a window of 1 the slice that drops the others is empty, and all tokens stay.
    """
    return n_tokens if layer.cap is None or layer.cap == 1 else min(n_tokens, max(layer.cap - 1, 0))


def _state(layer: Layer, tp: int) -> int:
    """Bytes of a layer's recurrent state: one input more than the convolution needs, and the matrix in float32.

    A recurrence of one value per channel is RecurrentGemma's (RG-LRU), whose layers hold it without a cache and keep no more
    inputs than they need.
    """
    parts = [(replace(part, matrix_dtype="fp32"), part.matrix != part.channels) for part in layer.state_parts]
    return sum(part.nbytes(tp, more_taps=more) for part, more in parts) or layer.state_bytes


def _lines(ask: Ask, kept) -> tuple[Line, ...]:
    """One line for equal layers, and one for what does not depend on tokens."""
    _check(ask)
    lines = []
    for layer, n in Counter(_cached(ask)).items():
        cell, tokens = ask.token_bytes(layer), kept(layer)
        if cell and layer.cap != 0:
            key, formula = "window" if layer.cap else "full", f"{ask.batch} × {n} × {tokens:,} × {cell:,} B"
            lines.append(Line(key, layers(n, kind(layer)), formula, ask.batch * n * tokens * cell))  # fmt: skip
        if cell and layer.cross_tokens:
            lines.append(Line("cross", layers(n, "cross"), f"{ask.batch} × {n} × {layer.cross_tokens:,} × {cell:,} B",
                              ask.batch * n * layer.cross_tokens * cell))  # fmt: skip
        if layer.state_bytes:
            state = _state(layer, ask.tp)
            lines.append(Line("state", layers(n, "state"), f"{ask.batch} × {n} × {state:,} B", ask.batch * n * state))
    return tuple(lines)


def _check(ask: Ask) -> None:
    kv = kv_pair(ask.kv_dtype)[0]
    for layer in _cached(ask):
        if kv.bits < 16 and (layer.cap or layer.state_bytes):
            raise SpecError(f"{named('kv_dtype')} is {kv.name!r}; a QuantizedCache is for models whose layers all keep all "
                            f"tokens, and {ask.spec.name} has others; choose one of fp32, bf16, fp16")  # fmt: skip
        if layer.n_kv_heads % ask.tp:
            raise SpecError(f"tp is {ask.tp} and does not divide the layer's {layer.n_kv_heads} KV heads; transformers "
                            "splits whole heads and copies none")  # fmt: skip


def admit(ask: Ask) -> dict:
    """What a DynamicCache holds after n_tokens; it grows with every step, nothing is reserved ahead."""
    lines = _lines(ask, lambda layer: _kept(layer, ask.n_tokens))
    peak = sum(line.nbytes for line in _lines(ask, lambda layer: ask.n_tokens))
    held = sum(line.nbytes for line in lines)
    note = T(f"整段預填之後，視窗層的張量仍是整段提示的視圖（view），占住 {peak:,} B，到第一個解碼步才釋放",
             f"right after one long prefill the windowed tensors are views of the whole prompt: {peak:,} B stay in use "
             "until the first decode step")  # fmt: skip
    notes = ((note,) if peak > held else ()) + _notes(ask)
    return {"lines": lines, "facts": {"bytes_after_prefill": peak}, "notes": notes}


def allocate(ask: Ask) -> dict:
    """What a StaticCache holds from its first step on: max_model_len tokens in every layer without a window."""
    longest = ask.max_model_len
    lines = _lines(ask, lambda layer: longest if layer.cap is None else min(longest, layer.cap))
    return {"lines": lines, "facts": {"tokens": longest}, "notes": _notes(ask)}


def _notes(ask: Ask) -> tuple[str, ...]:
    notes = []
    if any(layer != cached for layer, cached in zip(ask.spec.layers, _cached(ask), strict=True)):
        notes.append(T(f"這個類別先把 K 與 V 複製給 {ask.spec.n_heads} 個查詢頭才存",
                       f"this class copies K and V to all {ask.spec.n_heads} query heads before it stores them"))  # fmt: skip
    if any(layer.index_bytes for layer in ask.spec.layers):
        notes.append(T("索引鍵按引擎的 fp8 計；transformers 以模型的型別存放",
                       "index keys are counted in the fp8 of serving engines; transformers keeps them in the model's dtype"))
    if (stored := kv_pair(ask.kv_dtype)[0]).bits < 16:
        notes.append(T("量化的是 QuantizedCache；StaticCache 不能量化", "it is a QuantizedCache that quantises; a StaticCache cannot"))
        if stored.name != "fp8":
            notes.append(T("QuantizedCache 的最近 128 個 token 仍用模型的型別，這裡沒算",
                           "the last 128 tokens of a QuantizedCache stay in the model's dtype, which is not counted here"))
    return tuple(notes)


ENGINE = Engine(
    name="transformers",
    version=VERSIONS["transformers"],
    defaults={"max_model_len": None},
    partition=None,
    admit=admit,
    allocate=allocate,
    rules=RULES["transformers"],
    formats=("fp32", "bf16", "fp16", "fp8", "int8_g64", "int4_g64"),
    facts={"tokens": ("每個序列 {:,} 個 token 的位置", "tokens per sequence: {:,}")},
)
