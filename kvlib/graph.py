"""The decode step with everything that changes held on the device, so that a CUDA graph can replay it.

    decoder = GraphDecoder(model, batch=8, capacity=4096)
    logits = decoder.prefill(prompts)                  # the ordinary path
    logits = decoder.step(tokens)                      # captured once, then one launch per step instead of hundreds

A graph repeats the same kernels on the same addresses. So shapes never change, and what a step depends on (tokens, who
takes part, lengths) is read from tensors that are overwritten between steps.

Invariant: the lengths on the device equal the host's `cache.lengths` before and after every step, and a row that does
not take part changes neither its slots nor its length.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from kvlib import decode, kernels
from kvlib.cache import CacheError, ContiguousCache
from kvlib.errors import SpecError, whole
from kvlib.model import Llama


class StaticCache(ContiguousCache):
    """A contiguous cache that can also be written at lengths only the device knows.

    Each row has one slot more than `capacity`. Nothing reads it: in a step, rows that do not take part write there.
    """

    def __init__(self, n_layers: int, batch: int, n_kv_heads: int, head_dim: int, capacity: int, *,
                 dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> None:  # fmt: skip
        super().__init__(n_layers, batch, n_kv_heads, head_dim, whole("capacity", capacity) + 1, dtype=dtype, device=device)
        self.capacity = capacity
        self.device_lengths = torch.zeros(batch, dtype=torch.int32, device=device)
        self.rows = torch.arange(batch, device=device)

    def advance(self, n_new: int | Sequence[int]) -> None:
        super().advance(n_new)
        self._sync()

    def truncate(self, n: int | Sequence[int]) -> None:
        super().truncate(n)
        self._sync()

    def _sync(self) -> None:
        self.device_lengths.copy_(torch.tensor(self._lengths, dtype=torch.int32))

    def write(self, layer: int, slots: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write one token per row at slots (batch,); returns the layer, (batch, n_kv_heads, capacity, head_dim)."""
        self.k[layer, self.rows, :, slots] = k[:, :, 0]
        self.v[layer, self.rows, :, slots] = v[:, :, 0]
        return self.k[layer, :, :, : self.capacity], self.v[layer, :, :, : self.capacity]

    def check_step(self, active: Sequence[bool]) -> None:
        """Raise CacheError unless every row that takes part has a free slot, and no ordinary step is under way."""
        if self._next_layer:
            raise CacheError(f"a step appended {self._next_layer} of {self.n_layers} layers; advance or truncate first")
        full = [row for row, on in enumerate(active) if on and self._lengths[row] >= self.capacity]
        if full:
            raise CacheError(f"rows {full} hold {self.capacity} tokens, the capacity; leave them out, truncate, or "
                             "build a decoder with a larger one")  # fmt: skip

    def count_step(self, active: Sequence[bool]) -> None:
        """The host's half of a step; the device has counted its own lengths."""
        self._lengths = [n + bool(on) for n, on in zip(self._lengths, active, strict=True)]


class _View:
    """What the model's attention block sees of the cache during a static step."""

    def __init__(self, cache: StaticCache, slots: Tensor) -> None:
        self.cache, self.slots = cache, slots

    def append(self, layer: int, k: Tensor, v: Tensor, n_new: None) -> tuple[Tensor, Tensor]:
        return self.cache.write(layer, self.slots, k, v)


def static_step(model: Llama, cache: StaticCache, tokens: Tensor, active: Tensor, impl: str = "auto") -> Tensor:
    """One decode step, the same code and shapes for all lengths: tokens (batch,) → logits (batch, vocab_size).

    active: (batch,) int32, 1 for rows that take part, 0 for the others, whose logits mean nothing. Adds `active` to
    cache.device_lengths. Does not look at lengths on the host: `GraphDecoder.step` refuses what does not fit.
    """
    lengths, on = cache.device_lengths, active.bool()
    slots = torch.where(on, lengths, cache.capacity).long()  # the spare slot for rows that do not take part
    positions = torch.where(on, lengths, 0)
    turn = model.cos[positions][:, None, None], model.sin[positions][:, None, None]  # (batch, 1, 1, head_dim)
    seen, view = lengths + active, _View(cache, slots)
    x = F.embedding(tokens[:, None], model.embedding)  # (batch, 1, hidden)
    for i, w in enumerate(model.layers):
        x = x + model._attend(i, w, x, view, None, seen, turn, impl)
        x = x + model._feed_forward(w, x)
    lengths.add_(active)
    return model.logits(x[:, -1])


class GraphDecoder:
    """Decodes a batch of a fixed size. On CUDA each step replays a graph; on the CPU it runs the same step eagerly.

    capacity: most tokens per row. compiled: run the step through torch.compile first (a minute, once). impl: as in
    `attention`. Raises SpecError when capacity exceeds the model's positions.
    """

    def __init__(self, model: Llama, batch: int, capacity: int, *, compiled: bool = False, impl: str = "auto") -> None:
        c = model.config
        if capacity > c.max_position_embeddings:
            raise SpecError(f"capacity is {capacity}; expected at most max_position_embeddings = "
                            f"{c.max_position_embeddings}")  # fmt: skip
        self.model = model
        self.cache = StaticCache(c.n_layers, batch, c.n_kv_heads, c.head_dim, capacity, dtype=model.dtype,
                                 device=model.device)  # fmt: skip
        self.tokens = torch.zeros(batch, dtype=torch.long, device=model.device)
        self.active = torch.zeros(batch, dtype=torch.int32, device=model.device)
        self._active = [False] * batch  # what `active` holds, to copy it only when it changes
        if impl == "auto":  # settled here, so that torch.compile need not trace the question
            here, fits = kernels.available(), c.head_dim in kernels.HEAD_DIMS and model.dtype in kernels.DTYPES
            impl = "triton" if here.where == "cuda" and model.device.type == "cuda" and fits else "grouped"
        step = torch.compile(static_step, dynamic=False, fullgraph=True) if compiled else static_step
        self._run: Callable[[], Tensor] = lambda: step(model, self.cache, self.tokens, self.active, impl)
        self._graph: torch.cuda.CUDAGraph | None = None

    def prefill(self, prompts: Sequence[Sequence[int]], chunk: int | None = None) -> Tensor:
        """`decode.prefill` into this decoder's cache: the logits of each row's last token, (batch, vocab_size)."""
        return decode.prefill(self.model, self.cache, prompts, chunk)

    @torch.inference_mode()
    def step(self, tokens: Tensor, active: Sequence[bool] | None = None) -> Tensor:
        """Append one token per row and return the logits of the next: tokens (batch,) → (batch, vocab_size).

        active: which rows take part; None is all. The others keep slots and length; their logits mean nothing.
        Raises CacheError, and changes nothing, when a row that takes part is full.
        """
        batch = self.cache.batch
        active = [True] * batch if active is None else [bool(on) for on in active]
        if tokens.shape != (batch,) or len(active) != batch:
            raise SpecError(f"tokens has shape {tuple(tokens.shape)}, active {len(active)} entries; expected "
                            f"({batch},) and {batch}")  # fmt: skip
        self.cache.check_step(active)
        if self.model.device.type == "cuda" and self._graph is None:
            self._capture()
        self.tokens.copy_(tokens)
        if active != self._active:
            self.active.copy_(torch.tensor(active, dtype=torch.int32))
            self._active = active
        if self._graph is None:
            logits = self._run()
        else:
            self._graph.replay()
            logits = self._logits.clone()  # the graph overwrites its own at the next step
        self.cache.count_step(active)
        return logits

    def _capture(self) -> None:
        """Warm up on a side stream, as graphs require, then record. With no row active neither changes the cache."""
        self.active.zero_()
        self._active = [False] * self.cache.batch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._run()
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._logits = self._run()
