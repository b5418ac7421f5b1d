"""One attention, and several ways to compute it.

    out[b, h, i] = Σ_j softmax_j(q[b, h, i] · k[b, g, j] / √head_dim) v[b, g, j],   g = h // (n_heads // n_kv_heads)

over the keys j that query i may see. Every implementation has this meaning; the tests hold all of them to `reference`.

Invariant: a key that no query of its row may see does not reach the result, whatever its slot holds, NaN included.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import torch
import torch.nn.functional as F
from torch import Tensor

from kvlib import kernels
from kvlib.errors import SpecError


@dataclass(frozen=True, slots=True)
class Mask:
    """Which keys each query sees, when queries continue a history: query i is token start + i and sees tokens up to itself.

    starts: tokens before the first query, per row. lengths: tokens that are stored, the new ones included, per row.
    One number for all rows, or one per row. The three cases of decoding are all of this form: one query on an exact-length
    cache (nothing to hide), several queries on a history (bottom-right triangle), rows of different lengths.
    """

    starts: tuple[int, ...]
    lengths: tuple[int, ...]

    @classmethod
    def of(cls, starts: "int | tuple[int, ...]", lengths: "int | tuple[int, ...]") -> "Mask":
        """A mask from one number for all rows, or one per row."""
        return cls(*((n,) if isinstance(n, int) else tuple(n) for n in (starts, lengths)))

    def hides_nothing(self, kv_len: int) -> bool:
        """True when every query sees every one of kv_len keys, so that no mask is needed."""
        return min(self.lengths) >= kv_len and min(self.starts) >= kv_len - 1

    def visible(self, q_len: int, kv_len: int, device: torch.device | str = "cpu") -> Tensor:
        """(rows, 1, q_len, kv_len), true where query i of a row sees key j. rows is 1 when all rows are alike."""
        starts, lengths = (torch.tensor(x, device=device).view(-1, 1, 1, 1) for x in (self.starts, self.lengths))
        i = torch.arange(q_len, device=device).view(-1, 1)
        j = torch.arange(kv_len, device=device)
        return (j <= starts + i) & (j < lengths)


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Mask | Tensor | None = None, impl: str = "auto") -> Tensor:
    """Attention of q over k and v; see the module's first lines for its meaning.

    q: (batch, n_heads, q_len, head_dim); k, v: (batch, n_kv_heads, kv_len, head_dim), n_kv_heads dividing n_heads.
    mask: a `Mask`, or a boolean tensor that broadcasts to (batch, n_heads, q_len, kv_len) and is true where a query sees a
    key, or None when every query sees every key, or, where lengths live on the device and q_len is 1, an int32 tensor
    (batch,): row b sees its first mask[b] keys. impl: a key of `IMPLEMENTATIONS`, "triton" (see `kernels`), or "auto".
    Returns (batch, n_heads, q_len, head_dim) in q's dtype. A query that sees no key gives 0.

    Raises SpecError for shapes or dtypes that do not fit together and for an unknown impl.
    """
    _check(q, k, v, mask)
    if impl not in ("auto", "triton", *IMPLEMENTATIONS):
        raise SpecError(f"impl is {impl!r}; expected auto, triton or one of {', '.join(IMPLEMENTATIONS)}")
    if impl == "triton" or (impl == "auto" and kernels.suits(q, mask)):
        return kernels.attend(q, k, v, mask)
    compute = IMPLEMENTATIONS["grouped" if impl == "auto" else impl]
    if isinstance(mask, Mask):
        return _over_history(compute, q, k, v, mask)
    if mask is not None and mask.dtype == torch.int32:
        mask = torch.arange(k.shape[2], device=q.device) < mask.view(-1, 1, 1, 1)
    if mask is not None:
        mask = mask.expand(*q.shape[:3], k.shape[2])
        unseen = ~mask.any(-2, keepdim=True).any(1, keepdim=True).mT  # (batch, 1, kv_len, 1): may hold anything
        k, v = k.masked_fill(unseen, 0), v.masked_fill(unseen, 0)
    return compute(q, k, v, mask)


def reference(q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None) -> Tensor:
    """The definition, spelled out. Exact enough in float64 to judge the others."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)  # query head h reads KV head h // group
    scores = q @ k.mT / sqrt(q.shape[-1])  # (batch, n_heads, q_len, kv_len)
    if visible is None:
        return scores.softmax(-1) @ v
    weights = scores.masked_fill(~visible, -torch.inf).softmax(-1)
    return weights.masked_fill(~visible, 0) @ v


def sdpa(q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None) -> Tensor:
    """torch's scaled_dot_product_attention with its own grouping."""
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=visible, enable_gqa=q.shape[1] != k.shape[1])
    return out if visible is None else out.masked_fill(~visible.any(-1, keepdim=True), 0)


def grouped(q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None) -> Tensor:
    """The query heads of a group are stacked as queries of their one KV head, so that K and V are read once, not copied."""
    batch, n_heads, q_len, head_dim = q.shape
    n_kv_heads, group = k.shape[1], n_heads // k.shape[1]
    folded = q.reshape(batch, n_kv_heads, group * q_len, head_dim)
    if visible is None and _streams(folded, k):
        return _streamed(folded, k, v).view(batch, n_heads, q_len, head_dim)
    if visible is not None:
        per_head = visible.expand(-1, n_heads, -1, -1)  # the rows of a KV head are its group's heads, then queries
        visible = per_head.reshape(per_head.shape[0], n_kv_heads, group * q_len, -1)
    return sdpa(folded, k, v, visible).view(batch, n_heads, q_len, head_dim)


FEW = 4  # queries per KV head, up to which reading K and V takes longer than computing with them
MUCH = 2**22  # numbers in K: with V 32 MiB of float32, more than a CPU's caches usually hold
SPAN = 4096  # keys per product with V: few enough that torch's product reads them well


def _streams(q: Tensor, k: Tensor) -> bool:
    """Is `_streamed` faster than torch's fused kernel? Only where K and V come from memory; from a cache the latter is."""
    return k.device.type == "cpu" and k.dtype == torch.float32 and q.shape[2] <= FEW and k.numel() >= MUCH


def _streamed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention as plain products that read K and V from front to back: k qᵀ rather than q kᵀ, and V span by span."""
    scores = (k @ (q / sqrt(q.shape[-1])).mT).mT  # (batch, n_kv_heads, queries, kv_len)
    weights = scores.softmax(-1).split(SPAN, dim=-1)
    return torch.stack([w @ part for w, part in zip(weights, v.split(SPAN, dim=2), strict=True)]).sum(0)


IMPLEMENTATIONS: dict[str, Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]] = {
    "reference": reference,
    "grouped": grouped,
    "sdpa": sdpa,
}


def _over_history(compute: Callable, q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
    """Cut k and v to what is stored, so that a slot behind a row's length is not even read."""
    if len(mask.starts) == len(mask.lengths) == 1:
        n = mask.lengths[0]
        if n < k.shape[2]:
            k, v = k[:, :, :n], v[:, :, :n]
        hidden = not mask.hides_nothing(n)
        return compute(q, k, v, mask.visible(q.shape[2], n, q.device) if hidden else None)
    rows = [slice(b, b + 1) for b in range(q.shape[0])]
    starts, lengths = (x * len(rows) if len(x) == 1 else x for x in (mask.starts, mask.lengths))
    return torch.cat([_over_history(compute, q[row], k[row], v[row], Mask.of(start, n))
                      for row, start, n in zip(rows, starts, lengths, strict=True)])  # fmt: skip


def _check(q: Tensor, k: Tensor, v: Tensor, mask: Mask | Tensor | None) -> None:
    fits = q.dim() == k.dim() == 4 and k.shape == v.shape and q.shape[0] == k.shape[0] and q.shape[3] == k.shape[3]
    if not fits or q.shape[1] % k.shape[1]:
        raise SpecError(f"q {tuple(q.shape)}, k {tuple(k.shape)} and v {tuple(v.shape)} do not fit: expected (batch, n_heads, "
                        "q_len, head_dim) and twice (batch, n_kv_heads, kv_len, head_dim), n_kv_heads dividing n_heads")  # fmt: skip
    if not q.dtype == k.dtype == v.dtype:
        raise SpecError(f"q, k and v are {q.dtype}, {k.dtype} and {v.dtype}; expected one dtype")
    if isinstance(mask, Tensor) and mask.dtype == torch.int32:
        if mask.shape != q.shape[:1] or q.shape[2] != 1:
            raise SpecError(f"mask holds lengths of shape {tuple(mask.shape)} for {q.shape[2]} queries per row; "
                            f"expected ({q.shape[0]},) and 1 query; give a Mask for more")  # fmt: skip
    elif isinstance(mask, Tensor):
        full = (*q.shape[:3], k.shape[2])
        if mask.dtype != torch.bool:
            raise SpecError(f"mask is {mask.dtype}; expected torch.bool, true where a query sees a key, or int32")
        if mask.dim() > 4 or any(m not in (1, n) for m, n in zip(mask.shape[::-1], full[::-1], strict=False)):
            raise SpecError(f"mask has shape {tuple(mask.shape)}; expected one that broadcasts to {full}")
    if isinstance(mask, Mask):
        for name, values in (("starts", mask.starts), ("lengths", mask.lengths)):
            if len(values) not in (1, q.shape[0]):
                raise SpecError(f"mask has {len(values)} {name}; expected 1 or one for each of {q.shape[0]} rows")
        if max(mask.lengths) > k.shape[2]:
            raise SpecError(f"mask has lengths up to {max(mask.lengths)}, but k and v have {k.shape[2]} slots")
