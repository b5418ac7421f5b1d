"""Two caches that store each row in one piece: one allocated up front, one that grows by concatenation."""

from collections.abc import Sequence

import torch
from torch import Tensor

from kvlib.cache.contract import Cache, CacheError, counts_of


class ContiguousCache(Cache):
    """Preallocated: one buffer of `capacity` slots per row and layer; a step writes its slots and copies nothing.

    Invariant: append returns views of the buffer, and slots at and behind a row's length are never read for that row.
    """

    def __init__(self, n_layers: int, batch: int, n_kv_heads: int, head_dim: int, capacity: int, *,
                 dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> None:  # fmt: skip
        super().__init__(n_layers, batch, n_kv_heads, head_dim, capacity=capacity, dtype=dtype, device=device)
        shape = (n_layers, batch, n_kv_heads, capacity, head_dim)
        self.k = torch.empty(shape, dtype=dtype, device=device)
        self.v = torch.empty(shape, dtype=dtype, device=device)

    @property
    def nbytes(self) -> int:
        return self.k.nbytes + self.v.nbytes

    def _write(self, layer: int, k: Tensor, v: Tensor, n_new: list[int]) -> None:
        start, n = self._lengths[0], n_new[0]
        if all(m == start for m in self._lengths) and all(m == n for m in n_new):
            self.k[layer, :, :, start : start + n] = k[:, :, :n]
            self.v[layer, :, :, start : start + n] = v[:, :, :n]
            return
        for row, (start, n) in enumerate(zip(self._lengths, n_new, strict=True)):
            self.k[layer, row, :, start : start + n] = k[row, :, :n]
            self.v[layer, row, :, start : start + n] = v[row, :, :n]

    def _read(self, layer: int, kv_len: int) -> tuple[Tensor, Tensor]:
        return self.k[layer, :, :, :kv_len], self.v[layer, :, :, :kv_len]


class GrowingCache(Cache):
    """Concatenates: each step copies the whole cache into a new tensor. Simple, and O(N²) bytes over a generation.

    `bytes_copied` counts them, to show the cost. All rows must have the same length.
    """

    def __init__(self, n_layers: int, batch: int, n_kv_heads: int, head_dim: int, *,
                 dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> None:  # fmt: skip
        super().__init__(n_layers, batch, n_kv_heads, head_dim, capacity=None, dtype=dtype, device=device)
        empty = torch.empty(batch, n_kv_heads, 0, head_dim, dtype=dtype, device=device)
        self.k, self.v = [empty] * n_layers, [empty] * n_layers
        self.bytes_copied = 0

    @property
    def nbytes(self) -> int:
        return sum(x.nbytes for x in (*self.k, *self.v))

    def _write(self, layer: int, k: Tensor, v: Tensor, n_new: list[int]) -> None:
        have = self.length
        for store, x in ((self.k, k), (self.v, v)):
            store[layer] = torch.cat([store[layer][:, :, :have], x], dim=2)
            self.bytes_copied += store[layer].nbytes

    def _read(self, layer: int, kv_len: int) -> tuple[Tensor, Tensor]:
        return self.k[layer], self.v[layer]

    def _check(self, layer: int, k: Tensor, v: Tensor, n_new: Sequence[int] | None) -> list[int]:
        counts = super()._check(layer, k, v, n_new)
        if set(counts) != {k.shape[2]}:
            raise CacheError(f"n_new is {counts}; a GrowingCache takes all {k.shape[2]} tokens of every row: use a "
                             "ContiguousCache")  # fmt: skip
        return counts

    def truncate(self, n: int | Sequence[int]) -> None:
        counts = counts_of("n", n, self.batch)
        if len(set(counts)) > 1:
            raise CacheError(f"truncate to {counts}; a GrowingCache keeps all rows alike: use a ContiguousCache")
        super().truncate(counts)

    def _shrink(self) -> None:
        have = self.length
        self.k, self.v = ([x[:, :, :have] for x in store] for store in (self.k, self.v))
