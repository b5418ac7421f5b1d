"""The lines of an estimate: what one group of equal layers keeps, part by part."""

from collections.abc import Iterator
from dataclasses import dataclass

from kvlib.i18n import T
from kvlib.memory import Term
from kvlib.spec import Layer


@dataclass(frozen=True)
class Row:
    """One line of the sum. what: what is kept. one: what one token of it is, as people write it. tokens: None for a state."""

    n_layers: int
    what: str
    one: str
    tokens: int | None
    nbytes: int


def rows_of(term: Term, batch: int, tp: int, plain: bool) -> Iterator[Row]:
    """The parts of one term: K and V, index keys, K and V of an encoder's tokens, recurrent state, or nothing."""
    layer, n = term.layer, term.n_layers
    kv = term.token_bytes - layer.token_bytes
    one = _values(term, plain) if term.values else ""
    if layer.shared_with is not None:
        reads = T(f"讀第 {layer.shared_with} 層（從零數）", f"reads layer {layer.shared_with}")
        yield Row(n, reads, "", None, 0)
    elif kv and layer.cap != 0:
        yield Row(n, _span(layer), one, term.retained, n * batch * term.retained * kv)
    if layer.token_bytes and term.token_bytes and layer.cap != 0:
        yield Row(n, T("索引鍵", "index keys"), f"{layer.token_bytes} B", term.retained, n * batch * term.retained * layer.token_bytes)
    if layer.cross_tokens and term.token_bytes:
        cross = layer.cross_tokens
        yield Row(n, T("編碼器", "encoder"), one, cross, n * batch * cross * term.token_bytes)
    if layer.state_bytes:
        state = layer.rank_state_bytes(tp)
        yield Row(n, T("遞迴狀態", "state"), f"{state:,} B", None, n * batch * state)
    if layer == Layer():
        yield Row(n, T("不留", "nothing"), "", None, 0)


def _span(layer: Layer) -> str:
    """Which tokens the layer keeps."""
    if layer.cap is None:
        return T("全部", "all")
    return T("視窗 ", "window ") + f"{layer.window:,}" if layer.cap == layer.window else T("分段 ", "chunk ") + f"{layer.cap:,}"


def _values(term: Term, plain: bool) -> str:
    """How the values per token come about, as people write it; their bytes where scales or other things are stored too."""
    layer = term.layer
    if layer.latent:
        rope = f" + RoPE {layer.latent_rope}" if layer.latent_rope else ""
        text = T("潛在向量 ", "latent ") + f"{layer.latent - layer.latent_rope}{rope}"
    else:
        text = f"{term.values // (layer.k_dim + layer.v_dim)} × ({layer.k_dim} + {layer.v_dim})"
    return text + (f" = {term.values:,}" if plain else f" → {term.token_bytes - layer.token_bytes:,} B")
