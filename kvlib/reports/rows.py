"""The lines of an estimate: what one group of equal layers keeps, part by part."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kvlib.i18n import T
from kvlib.memory import Term
from kvlib.spec import Layer


@dataclass(frozen=True)
class Row:
    """One line of the sum. what: what is kept. one: what one token of it is, as people write it. tokens: None for a state.

    of: whose bytes these are, empty where there are none.
    """

    n_layers: int
    what: str
    one: str
    tokens: int | None
    nbytes: int
    of: str = ""


def rows_of(term: Term, batch: int, tp: int, plain: bool) -> Iterator[Row]:
    """The parts of one term: K and V, index keys, K and V of an encoder's tokens, recurrent state, or nothing."""
    layer, n = term.layer, term.n_layers
    kv = term.token_bytes - layer.index_bytes
    one = _values(term, plain) if term.values else ""
    of = T("潛在向量", "latent") if layer.latent else T("K 與 V", "K and V")
    if layer.shared_with is not None:
        reads = T(f"讀第 {layer.shared_with} 層（從零數）", f"reads layer {layer.shared_with}")
        yield Row(n, reads, "", None, 0)
    elif kv and layer.cap != 0:
        yield Row(n, _span(layer), one, term.retained, n * batch * term.retained * kv, of)
    if layer.index_bytes and term.token_bytes and layer.cap != 0:
        index = T("索引鍵", "index keys")
        yield Row(n, index, f"{layer.index_bytes} B", term.retained, n * batch * term.retained * layer.index_bytes, index)
    if layer.cross_tokens and term.token_bytes:
        cross = layer.cross_tokens
        yield Row(n, T("編碼器", "encoder"), one, cross, n * batch * cross * term.token_bytes, of)
    if layer.state_bytes:
        state, name = layer.rank_state_bytes(tp), T("遞迴狀態", "state")
        yield Row(n, name, f"{state:,} B", None, n * batch * state, name)
    if layer == Layer():
        yield Row(n, T("不留", "nothing"), "", None, 0)


def legend(rows: Iterable[Row], values: str, times: str) -> str:
    """How the rows' bytes come about: values for K and V or a latent, times the sequences; empty where there are no bytes."""
    how = {T("索引鍵", "index keys"): T("層 × 位元組 × token", "layers × bytes × tokens"),
           T("遞迴狀態", "state"): T("層 × 位元組", "layers × bytes")}  # fmt: skip
    found = {row.of: how.get(row.of, values) for row in rows if row.of}
    if len(found) < 2:
        return "".join(f"{text} × {times}" for text in found.values())
    return T("；", "; ").join([*(of + T("：", ": ") + text for of, text in found.items()), T("都 × ", "all × ") + times])


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
    return text + (f" = {term.values:,}" if plain else f" → {term.token_bytes - layer.index_bytes:,} B")
