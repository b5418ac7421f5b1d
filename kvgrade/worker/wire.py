"""Values between grader and answer: a JSON header and raw tensor bytes. No pickle, nothing executable.

Invariant: what `pack` makes, `unpack` reads back equal, with tensors of its own; nothing else is read. A value that is not data
(an object with state) stays where it is and travels as a `Ref`.
"""

import json
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

MAX_HEADER = 1 << 20  # bytes of JSON in one message
MAX_BLOBS = 256 << 20  # bytes of all tensors in one message
MAX_DEPTH = 20

DTYPES = {str(d).removeprefix("torch."): d for d in (
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
    torch.uint8, torch.bool)}  # fmt: skip
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class WireError(ValueError):
    """A value that cannot travel, or a message that breaks the rules; the text says which rule."""


@dataclass(frozen=True)
class Ref:
    """An object that stays with the answer; `type` is the name of its class, for messages."""

    id: int
    type: str = ""


def pack(value: Any, keep: Any = None) -> tuple[Any, list[bytes]]:
    """`value` as JSON data and tensor bytes. `keep(object) -> Ref` decides about objects that are no data.

    Raises WireError for those without `keep`, and for what is nested too deep or too large.
    """
    blobs: list[bytes] = []
    return _pack(value, blobs, keep, 0), blobs


def unpack(data: Any, blobs: list[bytes], resolve: Any = None) -> Any:
    """The value again. `resolve(Ref)` stands in for objects kept on this side. Raises WireError for anything malformed."""
    try:
        return _unpack(data, list(blobs), resolve, 0)
    except WireError:
        raise
    except Exception as error:  # whatever a hostile header provokes
        raise WireError(f"malformed value: {type(error).__name__}") from None


def dumps(header: Any) -> bytes:
    """A header as bytes. Raises WireError above MAX_HEADER."""
    try:
        text = json.dumps(header, separators=(",", ":")).encode()
    except ValueError as error:  # an int of more than 4,300 digits, a lone surrogate
        raise WireError(f"the value cannot be written as JSON: {error}") from None
    if len(text) > MAX_HEADER:
        raise WireError(f"a value of {len(text):,} bytes of JSON; the limit is {MAX_HEADER:,}")
    return text


def loads(text: bytes) -> Any:
    """The header again. Raises WireError for what is no JSON."""
    try:
        header = json.loads(text)
        if b"\\ud" in text.lower():  # half of a surrogate pair could be written nowhere
            json.dumps(header, ensure_ascii=False).encode()
        return header
    except (ValueError, RecursionError) as error:
        raise WireError(f"not JSON: {type(error).__name__}") from None


def _pack(value: Any, blobs: list[bytes], keep: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise WireError(f"a value nested deeper than {MAX_DEPTH}")
    if value is None or isinstance(value, bool):
        return value
    for plain in (int, float, str):  # a subclass that lies about itself arrives as what it holds
        if isinstance(value, plain):
            return plain.__index__(value) if plain is int else plain.__float__(value) if plain is float else str.__str__(value)
    if isinstance(value, Tensor):
        return _pack_tensor(value, blobs)
    if isinstance(value, torch.dtype) and value in _NAMES:
        return {"$": "dtype", "name": _NAMES[value]}
    if isinstance(value, Ref):
        return {"$": "ref", "id": value.id, "type": value.type}
    if isinstance(value, (list, tuple)):
        items = [_pack(item, blobs, keep, depth + 1) for item in value]
        return {"$": "tuple" if isinstance(value, tuple) else "list", "items": items}
    if type(value) is dict:
        pairs = [[_pack(k, blobs, keep, depth + 1), _pack(v, blobs, keep, depth + 1)] for k, v in value.items()]
        return {"$": "dict", "items": pairs}
    if hasattr(value, "dtype") and hasattr(value, "item") and getattr(value, "shape", None) == ():  # a numpy scalar
        return _pack(value.item(), blobs, keep, depth + 1)
    if keep is None:
        raise WireError(f"a {type(value).__name__} cannot travel")
    return _pack(keep(value), blobs, None, depth)


def _pack_tensor(value: Tensor, blobs: list[bytes]) -> Any:
    if value.dtype not in _NAMES or value.layout != torch.strided:
        raise WireError(f"a tensor of dtype {value.dtype} and layout {value.layout} cannot travel")
    size = value.numel() * value.element_size()
    if size + sum(map(len, blobs)) > MAX_BLOBS:
        raise WireError(f"tensors of more than {MAX_BLOBS:,} bytes")
    flat = value.detach().as_subclass(Tensor).resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
    blobs.append(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
    return {"$": "tensor", "dtype": _NAMES[value.dtype], "shape": list(value.shape), "blob": len(blobs) - 1}


def _unpack(data: Any, blobs: list[bytes], resolve: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise WireError(f"a value nested deeper than {MAX_DEPTH}")
    if data is None or isinstance(data, (bool, int, float, str)):
        return data
    kind = data["$"]
    if kind == "tensor":
        return _unpack_tensor(data, blobs)
    if kind == "dtype":
        return DTYPES[data["name"]]
    if kind == "ref":
        ref = Ref(int(data["id"]), "".join(filter(str.isprintable, str(data["type"])[:100])))
        return resolve(ref) if resolve else ref
    if kind in ("list", "tuple"):
        items = [_unpack(item, blobs, resolve, depth + 1) for item in data["items"]]
        return tuple(items) if kind == "tuple" else items
    if kind == "dict":
        return {_unpack(k, blobs, resolve, depth + 1): _unpack(v, blobs, resolve, depth + 1) for k, v in data["items"]}
    raise WireError(f"unknown kind {kind!r}")


def _unpack_tensor(data: Any, blobs: list[bytes]) -> Tensor:
    dtype, shape, blob = DTYPES[data["dtype"]], [int(n) for n in data["shape"]], blobs[data["blob"]]
    blobs[data["blob"]] = None  # each once: or a small message would fill the memory with copies
    expected = dtype.itemsize
    for n in shape:
        expected *= n
    if min(shape, default=0) < 0 or expected != len(blob):
        raise WireError(f"a tensor of shape {shape} and {len(blob)} bytes")
    if not blob:
        return torch.empty(shape, dtype=dtype)
    if dtype is torch.bool:  # any other byte than 0 and 1 is undefined behaviour in torch
        return torch.frombuffer(bytearray(blob), dtype=torch.uint8).ne(0).reshape(shape)
    return torch.frombuffer(bytearray(blob), dtype=dtype).reshape(shape)
