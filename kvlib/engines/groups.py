"""vLLM: the layers in groups of equal length that share a table of blocks, and the page that all groups share."""

from dataclasses import dataclass, replace

from kvlib.engines.labels import kind
from kvlib.engines.plan import Ask
from kvlib.errors import SpecError
from kvlib.spec import Layer

KERNEL_BLOCK, KERNEL_BLOCK_LATENT = 16, 128
"""Tokens that a block must be a multiple of once it is enlarged to match a state: FlashAttention's smallest kernel block, and
the least that vLLM takes for MLA. vllm/platforms/interface.py: _align_hybrid_block_size, kernel_block_alignment_size."""


@dataclass(frozen=True, slots=True)
class Cache:
    """What one layer asks for. kind: full, latent, sliding, chunked, cross or state.

    span: the window, chunk or cross tokens; of a state, its blocks per request. token_bytes: on one rank, 0 for a
    state. page: bytes of one block of this layer alone.
    """

    kind: str
    span: int
    layer: Layer
    token_bytes: int
    block_size: int
    page: int


Member = tuple[int, Cache]  # a layer's index and one of its caches
Group = list[Member]


def cache_groups(ask: Ask) -> list[Group]:
    """The model's caches in groups that share a block table. Raises SpecError where vLLM cannot find a common page."""
    members = _aligned([(i, cache) for i, layer in enumerate(ask.spec.layers) for cache in _caches(layer, ask)], ask)
    types = {("full" if c.kind == "latent" else c.kind, c.span, c.page if c.kind == "state" else 0) for _, c in members}
    if len(types) <= 1 and len({c.block_size for _, c in members}) <= 1:
        return [members] if members else []
    buckets: dict[Cache, Group] = {}
    for i, cache in _one_page(members):
        buckets.setdefault(cache, []).append((i, cache))
    lengths = [len(bucket) for bucket in buckets.values()]
    length = max(lengths) if max(lengths) < 1.5 * min(lengths) else min(lengths)
    split = [(bucket, -(-len(bucket) // length)) for bucket in buckets.values()]
    return [bucket[i::n] for bucket, n in split for i in range(n)]


def _caches(layer: Layer, ask: Ask) -> list[Cache]:
    per_token, size = ask.token_bytes(layer), ask.block_size
    found = []
    if per_token and layer.cap != 0:
        found.append((kind(layer, ask.hybrid), layer.cap if ask.hybrid and layer.cap is not None else 0))
    if per_token and layer.cross_tokens:
        found.append(("cross", layer.cross_tokens))
    caches = [Cache(name, span, layer, per_token, size, size * per_token) for name, span in found]
    state = ask.state_bytes(layer)
    return [*caches, Cache("state", 1, layer, 0, 0, state)] if state else caches


def _aligned(members: Group, ask: Ask) -> Group:
    """Beside a state the block of attention grows until its page is as large, and the state's page is padded to it."""
    state = max((c.page for _, c in members if c.kind == "state"), default=0)
    attention = [c for _, c in members if c.kind != "state"]
    if not state or not attention:
        return members
    wide = max(c.token_bytes for c in attention)
    size = attention[0].block_size
    step = max(KERNEL_BLOCK_LATENT if any(c.kind == "latent" for c in attention) else KERNEL_BLOCK, size)
    size = max(size, step * -(-state // (step * wide)))
    blocks = 2 if ask.prefix_caching else 1
    return [(i, replace(c, span=blocks, page=size * wide) if c.kind == "state"
             else replace(c, block_size=size, page=size * c.token_bytes)) for i, c in members]  # fmt: skip


def _one_page(members: Group) -> Group:
    """All pages as large as the largest: more tokens per block where it is a multiple, padding where it is not."""
    page = max(c.page for _, c in members)

    def fit(cache: Cache) -> Cache:
        if cache.kind == "state" or cache.page == page:
            return replace(cache, page=page)
        if page % cache.page == 0:
            return replace(cache, block_size=cache.block_size * (page // cache.page), page=page)
        if cache.kind == "latent":
            raise SpecError(f"vLLM cannot give a latent page of {cache.page} B and one of {page} B the same size; "
                            "choose another kv_dtype, or hybrid=False (--no-hybrid)")  # fmt: skip
        return replace(cache, page=page)

    return [(i, fit(cache)) for i, cache in members]
