"""The models that kvlib ships, as rows to list and search.

A row's facts are read from its file in `models`; what it says about the cache is computed from its spec, never typed, and
only when asked for: to list names costs one json.loads per model. In `models` a config keeps the names and values that
were published, without the fields that size nothing: of tokens, training, generation, and of other towers than the text
decoder. `source` says where each was read.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from kvlib.errors import SpecError
from kvlib.i18n import T
from kvlib.memory import KVGrowth, kv_growth
from kvlib.readers import load_spec
from kvlib.sources import presets, shipped
from kvlib.spec import Layer, ModelSpec


@dataclass(frozen=True)
class Entry:
    """One shipped model. preset: what to call it in `load_spec`. source: where each field of config was read."""

    preset: str
    name: str
    hub_id: str
    source: str
    config: Mapping

    @cached_property
    def spec(self) -> ModelSpec:
        """The model's layers; without cross-attention where the length of its encoder's output is the reader's to give."""
        try:
            return load_spec(self.preset)
        except SpecError:
            return load_spec(self.preset, encoder_tokens=0)

    @property
    def growth(self) -> KVGrowth:
        """Bytes of one sequence in bf16: per token, capped and constant."""
        return kv_growth(self.spec)

    @property
    def attention(self) -> str:
        """What the layers keep, in the reader's language: "10 × 16 × (128 + 128); 52 × 16 × (128 + 128) window 1,024"."""
        kinds = [f"{n} × {kept}" for kept, n in Counter(map(_kept, self.spec.layers)).items()]
        if self.config.get("is_encoder_decoder") and not any(layer.cross_tokens for layer in self.spec.layers):
            kinds.append(T("另加編碼器的輸出", "and the encoder's output"))
        return T("；", "; ").join(kinds)


def catalogue(search: str = "") -> list[Entry]:
    """The shipped models whose preset or Hub id contains every word of `search`, sorted by preset; all without it."""
    entries = (Entry(preset, **shipped(preset)) for preset in presets())
    words = search.lower().split()
    return [e for e in entries if all(word in f"{e.preset} {e.hub_id.lower()}" for word in words)]


def _kept(layer: Layer) -> str:
    """What one layer keeps: KV heads × (K + V width), or the latent; then what limits its tokens or comes on top."""
    if layer.shared_with is not None:
        return T("共用", "shared")
    parts = []
    if layer.latent:
        parts.append(T(f"潛在向量 {layer.latent}", f"latent {layer.latent}"))
    if layer.n_kv_heads:
        parts.append(f"{layer.n_kv_heads} × ({layer.k_dim} + {layer.v_dim})")
    if layer.index_bytes:
        parts.append(T(f"索引 {layer.index_bytes} B", f"index {layer.index_bytes} B"))
    if layer.window:
        parts.append(T(f"視窗 {layer.window:,}", f"window {layer.window:,}"))
    if layer.chunk:
        parts.append(T(f"分段 {layer.chunk:,}", f"chunk {layer.chunk:,}"))
    if layer.cross_tokens:
        parts.append(T(f"編碼器 {layer.cross_tokens:,} 個 token", f"encoder {layer.cross_tokens:,} tokens"))
    if layer.state_bytes:
        parts.append(T(f"狀態 {layer.state_bytes:,} B", f"state {layer.state_bytes:,} B"))
    return " ".join(parts) or T("不留", "nothing")
