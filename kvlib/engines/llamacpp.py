"""llama.cpp: everything is allocated when the context is made; a request then takes cells of it."""

from collections import Counter

from kvlib.engines.labels import kind, layers
from kvlib.engines.plan import Ask, Engine, Line, ceil_to
from kvlib.engines.rules import RULES, VERSIONS
from kvlib.errors import SpecError
from kvlib.i18n import T
from kvlib.spec import Layer

PAD = 256


def _rows(ask: Ask, cells: int, window_cells, streams: int) -> tuple[Line, ...]:
    """cells: per stream, of a layer without a window. window_cells: the same of a layer with one."""
    if any(layer.cross_tokens for layer in ask.spec.layers):
        raise SpecError(f"{ask.spec.name} has cross-attention, and kvlib has no rule for what llama.cpp keeps of it; "
                        "use another engine")  # fmt: skip
    if ask.tp > 1:
        raise SpecError(f"tp is {ask.tp}; llama.cpp places whole layers on cards, or splits as the user asks; use tp=1")
    lines = []
    for layer, n in Counter(ask.spec.layers).items():
        windowed = ask.hybrid and layer.cap is not None
        cell, here = ask.token_bytes(layer), window_cells(layer) if windowed else cells
        if cell:
            key, formula = "window" if windowed else "full", f"{streams} × {n} × {here:,} × {cell:,} B"
            lines.append(Line(key, layers(n, kind(layer, ask.hybrid)), formula, streams * n * here * cell))
        if layer.state_bytes:
            state = layer.rank_state_bytes(dtype="fp32")
            lines.append(Line("state", layers(n, "state"), f"{ask.batch} × {n} × {state:,} B", ask.batch * n * state))
    return tuple(lines)


def admit(ask: Ask) -> dict:
    """The cells that the batch's requests occupy; nothing is reserved for the tokens to come."""
    sequences = _sequences(ask)

    def window_cells(layer: Layer) -> int:
        return min(sequences * ask.n_tokens, _window_cells(ask, layer))

    return {"lines": _rows(ask, sequences * ask.n_tokens, window_cells, ask.batch // sequences), "notes": _notes(ask)}


def context(ask: Ask) -> tuple[int, int]:
    """Cells per stream, and streams: one for all sequences when they share a buffer, else one each."""
    n_ctx = ceil_to(ask.batch * ask.max_model_len, PAD)
    return (n_ctx, 1) if ask.unified else (ceil_to(n_ctx // ask.batch, PAD), ask.batch)


def _sequences(ask: Ask) -> int:
    """Sequences per stream."""
    return ask.batch if ask.unified else 1


def _window_cells(ask: Ask, layer: Layer) -> int:
    """Cells per stream that a layer with a window has at most: the windows, and the tokens of one step."""
    return layer.cap * _sequences(ask) + ask.max_num_batched_tokens


def allocate(ask: Ask) -> dict:
    """The cache of a context for `batch` sequences of max_model_len tokens."""
    cells, streams = context(ask)

    def window_cells(layer: Layer) -> int:
        return ceil_to(min(cells, _window_cells(ask, layer)), PAD)

    return {"lines": _rows(ask, cells, window_cells, streams), "facts": {"n_ctx": cells * streams, "cells": cells,
            "streams": streams}, "notes": _notes(ask)}  # fmt: skip


def _notes(ask: Ask) -> tuple[str, ...]:
    notes = []
    if any(layer.state_bytes and not layer.state_parts for layer in ask.spec.layers):
        notes.append(T("llama.cpp 的遞迴狀態一律是 float32；這個模型只給了位元組數（state_bytes），照給的算",
                       "llama.cpp keeps recurrent states in float32; this model gives their bytes alone (state_bytes), which "
                       "are taken as they are"))  # fmt: skip
    if any(layer.index_bytes for layer in ask.spec.layers):
        notes.append(T("索引鍵按 vLLM 的 fp8 計；llama.cpp 以 K 的型別存放",
                       "index keys are counted in vLLM's fp8; llama.cpp keeps them in the type of K"))  # fmt: skip
    if ask.hybrid and any(layer.cap for layer in ask.spec.layers):
        notes.append(T("llama.cpp 沒替這個架構做視窗，或用了 --swa-full 時，每層都留全部 token：--no-hybrid（hybrid=False）",
                       "where the architecture has no windows there, or with --swa-full, every layer keeps all tokens: "
                       "--no-hybrid (hybrid=False)"))  # fmt: skip
    return tuple(notes)


ENGINE = Engine(
    name="llama.cpp",
    version=VERSIONS["llama.cpp"],
    defaults={"max_num_batched_tokens": 512, "max_model_len": None, "hybrid": True, "unified": False},
    partition=None,
    admit=admit,
    allocate=allocate,
    rules=RULES["llama.cpp"],
    formats=("fp32", "bf16", "fp16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"),
    facts={
        "n_ctx": ("n_ctx：合計 {:,} 個 token 的位置", "n_ctx: {:,} tokens in all"),
        "cells": ("每個串流 {:,} 格，一格放一個 token", "cells per stream: {:,}, a token each"),
        "streams": ("{:,} 個串流", "streams: {:,}"),
    },
    one_format=False,
)
