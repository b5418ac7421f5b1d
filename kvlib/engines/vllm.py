"""vLLM: blocks of equal size for groups of layers, handed out from one pool.

    bytes of a request = Σ over groups of its blocks · bytes of one block of the pool

Layers that keep the same thing form groups of equal length, and every group draws its blocks from the same pool. A
block is therefore as wide as the widest group, whoever holds it.
"""

from dataclasses import replace

from kvlib.engines.groups import Cache, Group, cache_groups
from kvlib.engines.labels import LABELS
from kvlib.engines.plan import Ask, Engine, Line, middle_first, short_of
from kvlib.engines.rules import RULES, VERSIONS
from kvlib.i18n import T
from kvlib.kv_formats import KV_FORMATS, kv_pair

PACKED = "fp8_ds_mla"


def stored(ask: Ask) -> Ask:
    """The format that is kept: fp8 of a sparse latent (one with index keys) becomes FlashMLA's own, if it is of that shape."""
    kept = [layer for layer in ask.spec.layers if layer.values_per_token]
    sparse = any(layer.latent and layer.index_bytes for layer in kept)
    fits = {(layer.latent - layer.latent_rope, layer.latent_rope) for layer in kept} == {KV_FORMATS[PACKED].latent}
    return replace(ask, kv_dtype=PACKED) if sparse and fits and kv_pair(ask.kv_dtype)[0].name == "fp8" else ask


def allowance(cache: Cache, n_tokens: int, ask: Ask, steps: int | None = None) -> tuple[int, str]:
    """Blocks of one group that a request of `n_tokens` may come to hold, and the arithmetic.

    steps: how many steps may be scheduled and not yet settled, whose blocks a window still keeps; by default one per
    batch under way, and one more because vLLM schedules ahead.
    """
    size, step = cache.block_size, ask.max_num_batched_tokens
    steps = ask.pp + 1 if steps is None else steps
    if cache.kind == "state":
        return cache.span, str(cache.span)
    tokens, text = cache.span if cache.kind == "cross" else n_tokens, ""
    less = {"sliding": 1, "chunked": 0}.get(cache.kind)
    if less is not None and (kept := cache.span - less + steps * step) < n_tokens:
        tokens, text = kept, f"({cache.span:,}{' − 1' * less} + {steps} × {step:,})"
    more = cache.kind == "sliding"  # the window need not start at the beginning of a block
    return -(-tokens // size) + more, f"⌈{text or f'{tokens:,}'}/{size:,}⌉" + " + 1" * more


def reserved(cache: Cache, ask: Ask) -> tuple[int, str]:
    """The same of a request of `ask.n_tokens`: a window takes no more than its allowance at max_model_len."""
    if cache.kind not in ("sliding", "chunked"):
        return allowance(cache, ask.n_tokens, ask)
    whole = -(-ask.n_tokens // cache.block_size), f"⌈{ask.n_tokens:,}/{cache.block_size:,}⌉"
    return min(whole, allowance(cache, ask.max_model_len, ask), key=lambda pair: pair[0])


def pool_block(ask: Ask, groups: list[Group]) -> tuple[int, int, str]:
    """The stage whose pool block is widest, the bytes of that block, and how they come about."""
    def widest(stage: range) -> Group:
        here = ([m for m in group if m[0] in stage] for group in groups)
        return max(here, key=lambda group: sum(c.page for _, c in group), default=[])

    blocks = [widest(stage) for stage in ENGINE.stages(ask)]
    sizes = [sum(c.page for _, c in group) for group in blocks]
    stage = sizes.index(max(sizes))
    pages: dict[tuple[int, int], int] = {}
    for _, c in blocks[stage]:
        padded = c.kind == "state" or c.page != c.block_size * c.token_bytes
        key = (0, c.page) if padded else (c.block_size, c.token_bytes)
        pages[key] = pages.get(key, 0) + 1
    parts = [f"{n} × {each:,} B" if not tokens else f"{n} {T('層', 'layers' if n > 1 else 'layer')} × {tokens:,} "
             f"{T('個 token', 'tokens')} × {each:,} B" for (tokens, each), n in pages.items()]  # fmt: skip
    return stage, sizes[stage], " + ".join(parts)


def admit(ask: Ask) -> dict:
    """The blocks that the scheduler sets aside for the batch's requests."""
    groups = cache_groups(stored(ask))
    stage, block, unit = pool_block(ask, groups)
    found: dict[tuple[str, int, str], int] = {}
    for group in groups:
        cache = group[0][1]
        key = (cache.kind, *reserved(cache, ask))
        found[key] = found.get(key, 0) + 1
    lines = []
    for (kind, blocks, text), n in found.items():
        times = "".join(f"{x} × " for x in (n, ask.batch) if x > 1)
        label = T(*LABELS[kind]) + (T(f"，{n} 組", f", {n} groups") if n > 1 else "")
        text = f"({text})" if times and "+" in text else text
        all_blocks = n * ask.batch * blocks
        lines.append(Line(kind, label, f"{times}{text} = {all_blocks:,} × {block:,} B", all_blocks * block))
    total = ask.batch * sum(n * blocks for (_, blocks, _), n in found.items())
    return {"lines": tuple(lines), "stage": stage, "blocks": total, "unit": unit, "facts": {"block_bytes": block},
            "notes": _notes(ask, groups)}  # fmt: skip


def allocate(ask: Ask) -> dict:
    """The pool: as many blocks as fit into pool_bytes, or those of the batch; one of them is never handed out."""
    groups = cache_groups(stored(ask))
    stage, block, unit = pool_block(ask, groups)
    if not block:
        return {"lines": (), "notes": _notes(ask, groups)}
    per_request = sum(allowance(group[0][1], ask.max_model_len, ask)[0] for group in groups)
    n_blocks = ask.batch * per_request + 1 if ask.pool_bytes is None else ask.pool_bytes // block
    text = (f"{ask.batch} × {per_request:,} + 1 = {n_blocks:,}" if ask.pool_bytes is None
            else f"⌊{ask.pool_bytes:,} / {block:,}⌋ = {n_blocks:,}")  # fmt: skip
    requests = n_blocks / per_request
    line = Line("pool", T("區塊池", "block pool"), f"{text} × {block:,} B", n_blocks * block)
    facts = {"block_bytes": block, "blocks_per_request": per_request, "requests": round(requests, 2),
             "tokens": int(requests * ask.max_model_len)}  # fmt: skip
    return {"lines": (line,), "stage": stage, "blocks": n_blocks, "unit": unit, "facts": facts,
            "notes": (*_shortage(ask, groups, n_blocks, per_request), *_notes(ask, groups))}  # fmt: skip


def _shortage(ask: Ask, groups: list[Group], n_blocks: int, longest: int) -> tuple[str, ...]:
    """What does not fit into a pool of `n_blocks`. longest: blocks of a request of max_model_len."""
    if n_blocks < longest:
        return (T(f"連一個 {ask.max_model_len:,} 個 token 的請求也放不下：vLLM 不會啟動",
                  f"not even one request of {ask.max_model_len:,} tokens fits: vLLM would not start"),)  # fmt: skip
    return short_of(ask, (n_blocks - 1) // max(1, sum(reserved(group[0][1], ask)[0] for group in groups)))


def _notes(ask: Ask, groups: list[Group]) -> tuple[str, ...]:
    notes = []
    if stored(ask) != ask:
        notes.append(T(f"vLLM 以 FlashMLA 存這個模型的 fp8 是 {PACKED}；用 FlashInfer 的卡（Blackwell）每層少 80 B",
                       f"with FlashMLA vLLM stores this model's fp8 as {PACKED}; with FlashInfer (on Blackwell) a token takes "
                       "80 B less per layer"))  # fmt: skip
    sizes = {c.block_size for group in groups for _, c in group if c.kind != "state"}
    if sizes - {ask.block_size}:
        notes.append(T(f"vLLM 把區塊加大到 {max(sizes):,} 個 token，讓各層的頁一樣大",
                       f"vLLM enlarges the block to {max(sizes):,} tokens so that all pages are of one size"))
    lengths = {len(group) for group in groups}
    if padding := sum(max(lengths) - len(group) for group in groups) if groups else 0:
        notes.append(T(f"各組都補到 {max(lengths)} 層，補上的 {padding} 層頁是空的",
                       f"groups are padded to {max(lengths)} layers: {padding} pages of a set of blocks hold nothing"))
    if ask.tp > 1 and any(layer.state_bytes for layer in ask.spec.layers):
        notes.append(T("狀態按頭分到各卡；組數除不盡時 vLLM 會多存幾份",
                       "the state is split over the ranks by heads; where its groups do not divide, vLLM keeps copies"))
    return tuple(notes)


ENGINE = Engine(
    name="vllm",
    version=VERSIONS["vllm"],
    defaults={"block_size": 16, "max_num_batched_tokens": 8192, "max_model_len": None, "pool_bytes": None,
              "prefix_caching": True, "hybrid": True},
    partition=middle_first,
    admit=admit,
    allocate=allocate,
    rules=RULES["vllm"],
    formats=("fp32", "bf16", "fp16", "fp8", "fp8_per_token_head", "int8_per_token_head", "int4_per_token_head", "nvfp4",
             PACKED),
    latent_formats=("fp32", "bf16", "fp16", "fp8", PACKED),
    facts={
        "blocks_per_request": ("一個 {ask.max_model_len:,} 個 token 的請求要 {:,} 個區塊",
                               "blocks of a request of {ask.max_model_len:,} tokens: {:,}"),
        "requests": ("放得下 {:,.2f} 個這樣的請求", "such requests that fit: {:,.2f}"),
        "tokens": ("乘起來是 {:,} 個 token（照 vLLM 紀錄的算法：整個池，含保留不用的那個區塊）",
                   "multiplied: {:,} tokens (as vLLM's log counts: the whole pool, with the block that is never handed out)"),
    },
)
