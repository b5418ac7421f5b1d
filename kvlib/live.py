"""How many bytes of tensors are alive at once while a function runs.

Works on any device. On torch's meta device shapes are real and memory is not, so the peak of a full-size layer is found
on a laptop.
"""

import weakref
from collections.abc import Callable

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class _Live(TorchDispatchMode):
    """Adds a storage when an operation returns it for the first time, and subtracts it when it is freed."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._seen = weakref.WeakKeyDictionary()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        known = {id(t.untyped_storage()) for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor) and id(tensor.untyped_storage()) not in known:
                self._add(tensor.untyped_storage())
        return out

    def _add(self, storage: torch.UntypedStorage) -> None:
        if storage in self._seen:
            return
        self._seen[storage] = None
        self.now += storage.nbytes()
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._free, storage.nbytes())

    def _free(self, nbytes: int) -> None:
        self.now -= nbytes


def peak_live_bytes(run: Callable[[], object]) -> int:
    """Bytes of the tensors that `run` makes, at the moment when most of them are alive; its inputs do not count."""
    with _Live() as live, torch.inference_mode():
        run()
    return live.peak
