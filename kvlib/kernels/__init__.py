"""Kernels for decode: the same attention, written for a GPU twice, in Triton (`split_k`) and in CUDA C++ (`cuda`).

Importing this package needs neither triton nor a GPU; `available` says whether the Triton kernel can run here.
"""

import os
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from kvlib.errors import SpecError

if TYPE_CHECKING:
    from kvlib.attention import Mask

HEAD_DIMS = (64, 80, 96, 128, 256)
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


class Availability(NamedTuple):
    """where: "cuda", "interpreter" (Triton on the CPU: correct and very slow) or None. True when there is a place."""

    where: str | None
    reason: str

    def __bool__(self) -> bool:
        return self.where is not None


def available() -> Availability:
    """Where the Triton kernel can run in this process, and why there or why not."""
    if find_spec("triton") is None:
        return Availability(None, "triton is not installed; on Linux: pip install triton")
    if os.environ.get("TRITON_INTERPRET") == "1":
        return Availability("interpreter", "TRITON_INTERPRET=1: kernels run on the CPU, one operation at a time")
    if torch.cuda.is_available():
        return Availability("cuda", f"on {torch.cuda.get_device_name()}")
    return Availability(None, "no CUDA device; to run it on the CPU, set TRITON_INTERPRET=1 before Python starts")


def suits(q: Tensor, mask: "Mask | Tensor | None") -> bool:
    """Whether "auto" takes the Triton kernel: one query per row, on a GPU, masked by length, in a size it knows."""
    by_length = not isinstance(mask, Tensor) or mask.dtype == torch.int32
    knows = q.shape[2] == 1 and q.shape[3] in HEAD_DIMS and q.dtype in DTYPES
    return q.is_cuda and by_length and knows and bool(available())


def attend(q: Tensor, k: Tensor, v: Tensor, mask: "Mask | Tensor | None") -> Tensor:
    """`split_k.decode_attention` behind the masks of `kvlib.attention`: a Mask, lengths as an int32 tensor, or None.

    Raises SpecError for several queries per row, for a mask that is no length, and when triton cannot run here.
    """
    if q.shape[2] != 1:
        raise SpecError(f"q has {q.shape[2]} queries per row; impl 'triton' decodes 1: use 'grouped' for prefill")
    if isinstance(mask, Tensor) and mask.dtype == torch.bool:
        raise SpecError("mask is a boolean tensor; impl 'triton' takes a Mask or int32 lengths: use 'grouped'")
    lengths = mask if isinstance(mask, Tensor) else _lengths(mask, q.shape[0], k.shape[2], q.device)
    return (torch.ops.kvlib.decode_attention if torch.compiler.is_compiling() else _decode)(q, k, v, lengths)


@lru_cache(maxsize=4)  # all layers of a step share one mask, and so one copy to the device
def _lengths(mask: "Mask | None", batch: int, kv_len: int, device: torch.device) -> Tensor:
    """How many keys the one query of each row sees: (batch,) int32."""
    if mask is None:
        return torch.full((batch,), kv_len, dtype=torch.int32, device=device)
    starts, lengths = (x * batch if len(x) == 1 else x for x in (mask.starts, mask.lengths))
    seen = [min(start + 1, n) for start, n in zip(starts, lengths, strict=True)]
    return torch.tensor(seen, dtype=torch.int32, device=device)


def _decode(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor) -> Tensor:
    if not (here := available()):
        raise SpecError(f"impl 'triton' cannot run: {here.reason}; or use impl 'grouped'")
    from kvlib.kernels.split_k import decode_attention

    return decode_attention(q, k, v, lengths)


# torch.compile leaves an operator whole
_operator = torch.library.custom_op("kvlib::decode_attention", _decode, mutates_args=())


@_operator.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor) -> Tensor:
    return torch.empty_like(q, memory_format=torch.contiguous_format)


def check_decode(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor) -> None:
    """Raise SpecError unless the arguments are what both kernels take; see `split_k.decode_attention`."""
    fits = q.dim() == k.dim() == 4 and k.shape == v.shape and (q.shape[0], q.shape[3]) == (k.shape[0], k.shape[3])
    if not fits or q.shape[2] != 1 or q.shape[1] % k.shape[1]:
        raise SpecError(f"q {tuple(q.shape)}, k {tuple(k.shape)} and v {tuple(v.shape)} do not fit: expected (batch, "
                        "n_heads, 1, head_dim) and twice (batch, n_kv_heads, kv_len, head_dim), n_kv_heads dividing "
                        "n_heads")  # fmt: skip
    if q.shape[3] not in HEAD_DIMS:
        raise SpecError(f"head_dim is {q.shape[3]}; the kernel takes {', '.join(map(str, HEAD_DIMS))}")
    if not q.dtype == k.dtype == v.dtype or q.dtype not in DTYPES:
        raise SpecError(f"q, k and v are {q.dtype}, {k.dtype}, {v.dtype}; expected one of float32, float16, bfloat16")
    if lengths.shape != q.shape[:1] or lengths.dtype != torch.int32:
        raise SpecError(f"lengths is {lengths.dtype} of shape {tuple(lengths.shape)}; expected int32, ({q.shape[0]},)")
    if len({x.device for x in (q, k, v, lengths)}) > 1:
        raise SpecError(f"q, k, v and lengths are on {q.device}, {k.device}, {v.device} and {lengths.device}; expected "
                        "one device")  # fmt: skip
    if any(x.stride(-1) != 1 for x in (q, k, v)) or lengths.stride(0) != 1:
        raise SpecError("head_dim of q, k and v, and lengths, must be contiguous; call .contiguous() on what is not")
