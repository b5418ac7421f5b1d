"""What every cache keeps: the bookkeeping, checked, so that a cache cannot be misused silently.

    k_all, v_all = cache.append(layer, k, v)   # once per layer, in order: layer 0, 1, …, n_layers − 1
    cache.advance(q_len)                       # once per step, after the last layer

Invariant: `lengths` counts committed tokens, one number per row. append writes behind them and does not move them, so
every layer of a step sees the same positions; advance moves them. A wrong call raises CacheError and changes nothing.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from kvlib.errors import SpecError, whole


class CacheError(SpecError):
    """A call that breaks the cache's contract. The message says what was given, what was expected and what to do."""


def counts_of(name: str, n: "int | Sequence[int]", batch: int) -> list[int]:
    """One whole number ≥ 0 for every row, or one per row. CacheError for anything else."""
    rows = list(n) if isinstance(n, Sequence | torch.Tensor) and getattr(n, "ndim", 1) else [n] * batch
    if len(rows) != batch:
        raise CacheError(f"{name} has {len(rows)} numbers; expected one, or one for each of {batch} rows")
    try:
        return [whole(name, m, 0) for m in rows]
    except SpecError as wrong:
        raise CacheError(str(wrong)) from None



class Cache(ABC):
    """Bookkeeping common to all caches; a subclass says how K and V are stored.

    n_layers, batch, n_kv_heads, head_dim: what append expects. capacity: most tokens per row; None is no limit.
    """

    def __init__(self, n_layers: int, batch: int, n_kv_heads: int, head_dim: int, *, capacity: int | None,
                 dtype: torch.dtype, device: torch.device | str) -> None:  # fmt: skip
        sizes = {"n_layers": n_layers, "batch": batch, "n_kv_heads": n_kv_heads, "head_dim": head_dim}
        for name, size in (sizes | ({} if capacity is None else {"capacity": capacity})).items():
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise CacheError(f"{name} is {size!r}; expected a whole number ≥ 1")
        self.n_layers, self.batch, self.n_kv_heads, self.head_dim = n_layers, batch, n_kv_heads, head_dim
        self.capacity, self.dtype, self.device = capacity, dtype, torch.empty(0, device=device).device
        self._lengths = [0] * batch
        self._next_layer = 0
        self._pending: list[int] | None = None  # tokens per row that this step has appended

    # ---- what is there -------------------------------------------------------------------------------------------

    @property
    def lengths(self) -> tuple[int, ...]:
        """Committed tokens of each row."""
        return tuple(self._lengths)

    @property
    def length(self) -> int:
        """Committed tokens, when all rows have the same number; CacheError when they differ."""
        if len(set(self._lengths)) > 1:
            raise CacheError(f"rows have different lengths {self.lengths}; read cache.lengths")
        return self._lengths[0]

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes that the cache's tensors hold."""

    # ---- one step ------------------------------------------------------------------------------------------------

    def append(self, layer: int, k: Tensor, v: Tensor, n_new: Sequence[int] | None = None) -> tuple[Tensor, Tensor]:
        """Write this step's K and V of one layer behind the committed tokens, and return all of that layer's.

        k, v: (batch, n_kv_heads, q_len, head_dim). n_new: how many of the q_len tokens each row really has, the rest
        being padding on the right that is written nowhere; None means all of them.
        Returns k_all, v_all: (batch, n_kv_heads, kv_len, head_dim), kv_len = the longest row with its new tokens. What
        lies beyond a row's own length is not defined: pass the lengths to attention.

        Raises CacheError for a layer out of turn, a wrong shape, dtype or device, more tokens than fit, or an n_new that
        differs from that of this step's first layer.
        """
        n_new = self._check(layer, k, v, n_new)
        self._write(layer, k, v, n_new)
        self._next_layer, self._pending = layer + 1, n_new
        return self._read(layer, max(a + b for a, b in zip(self._lengths, n_new, strict=True)))

    def advance(self, n_new: int | Sequence[int]) -> None:
        """Commit the step: n_new tokens in every row, or one number per row. CacheError if a layer is missing."""
        counts = counts_of("n_new", n_new, self.batch)
        if self._next_layer != self.n_layers:
            raise CacheError(f"advance after {self._next_layer} of {self.n_layers} layers; append the other ones first")
        if counts != self._pending:
            raise CacheError(f"advance by {counts}, but this step appended {self._pending} tokens per row")
        self._lengths = [a + b for a, b in zip(self._lengths, counts, strict=True)]
        self._next_layer, self._pending = 0, None

    def check_room(self, n_new: Sequence[int]) -> None:
        """Raise CacheError unless n_new[b] more tokens fit into every row b."""
        if self.capacity is not None and max(a + b for a, b in zip(self._lengths, n_new, strict=True)) > self.capacity:
            raise CacheError(f"{list(self._lengths)} + {list(n_new)} tokens exceed the capacity of {self.capacity}; stop, "
                             "truncate, or build a larger cache")  # fmt: skip

    # ---- going back ----------------------------------------------------------------------------------------------

    def truncate(self, n: int | Sequence[int]) -> None:
        """Keep the first n committed tokens of every row, or one number per row; an unfinished step is dropped.

        This is what speculative decoding does on a rejection. Raises CacheError for more tokens than a row has committed,
        or fewer than none.
        """
        counts = counts_of("n", n, self.batch)
        if any(m > have for m, have in zip(counts, self._lengths, strict=True)):
            raise CacheError(f"truncate to {counts} of {list(self._lengths)} tokens; expected 0 up to what each row has")
        self._lengths, self._next_layer, self._pending = counts, 0, None
        self._shrink()

    def reset(self) -> None:
        """Forget everything, an unfinished step too. The memory stays allocated where it was preallocated."""
        self.truncate(0)

    # ---- what a subclass does ------------------------------------------------------------------------------------

    @abstractmethod
    def _write(self, layer: int, k: Tensor, v: Tensor, n_new: list[int]) -> None:
        """Store the first n_new[b] tokens of row b behind self._lengths[b]; nothing else changes."""

    @abstractmethod
    def _read(self, layer: int, kv_len: int) -> tuple[Tensor, Tensor]:
        """The first kv_len slots of every row."""

    def _shrink(self) -> None:
        """After truncate and reset: give back what is stored behind the lengths, if anything is."""

    def _check(self, layer: int, k: Tensor, v: Tensor, n_new: Sequence[int] | None) -> list[int]:
        if layer != self._next_layer or layer == self.n_layers:
            due = f"layer {self._next_layer}" if self._next_layer < self.n_layers else "advance()"
            raise CacheError(f"append to layer {layer!r}, but {due} is due; each layer once per step, in order "
                             "(truncate(cache.lengths) drops an unfinished step)")
        for name, x in (("k", k), ("v", v)):
            if x.dim() != 4 or (x.shape[0], x.shape[1], x.shape[3]) != (self.batch, self.n_kv_heads, self.head_dim):
                raise CacheError(f"{name} has shape {tuple(x.shape)}; expected (batch, n_kv_heads, q_len, head_dim) = "
                                 f"({self.batch}, {self.n_kv_heads}, q_len, {self.head_dim})")  # fmt: skip
            if x.dtype != self.dtype or x.device != self.device:
                raise CacheError(f"{name} is {x.dtype} on {x.device}; the cache holds {self.dtype} on {self.device}")
        q_len = k.shape[2]
        if v.shape[2] != q_len or not q_len:
            raise CacheError(f"k has {q_len} tokens and v has {v.shape[2]}; expected the same number, at least 1")
        counts = [q_len] * self.batch if n_new is None else counts_of("n_new", list(n_new), self.batch)
        if max(counts) > q_len:
            raise CacheError(f"n_new is {counts}; expected numbers from 0 to q_len = {q_len}")
        if self._pending is not None and counts != self._pending:
            raise CacheError(f"layer {layer} appends {counts} tokens per row, layer 0 appended {self._pending}")
        self.check_room(counts)
        return counts
