"""The tensors of a GGUF file as weights: what they are, and the bytes that they take in the file."""

import re

from kvlib.gguf.file import Head
from kvlib.spec import FileTensors, Weight

PARTS = (("norm", "norm"), ("token_embd", "embedding"), ("position_embd", "embedding"), ("exps", "experts"), ("ssm", "recurrent"),
         ("attn", "attention"), ("ffn", "feed-forward"))  # fmt: skip
"""Which part a tensor belongs to: the first text that its name holds."""


def stored(head: Head, architecture: str) -> dict:
    """What the config says of the file's tensors: how they are stored, and, as "file_tensors", the FileTensors themselves.

    A split model has no file_tensors, since the other files are not read. Nothing where the file holds no tensors.
    """
    quantization = {"quantization_config": {"quant_method": "gguf"}}
    if head.n_files > 1:
        return quantization
    if not head.tensors:
        return {}
    top_k = head.values.get(f"{architecture}.expert_used_count")
    weights = _weights(head, top_k if isinstance(top_k, int) else None)
    return quantization | {"file_tensors": FileTensors(weights, sum(t.nbytes for t in head.tensors.values()))}


def _weights(head: Head, top_k: int | None) -> tuple[Weight, ...]:
    """Every tensor, equal ones of different layers as one entry; the router picks top_k of the experts, which lie in one tensor."""
    counts: dict[tuple, int] = {}
    for name, tensor in head.tensors.items():
        key = re.sub(r"^blk\.\d+\.", "", name), tensor.shape
        counts[key] = counts.get(key, 0) + 1
    weights = []
    for (name, shape), count in counts.items():
        part, active = _part(name), None
        if part == "experts" and len(shape) == 3:
            n, shape = shape[0], shape[1:]
            count, active = count * n, count * min(top_k or n, n)
        weights.append(Weight(name, part, shape, count, active))
    return tuple(weights)


def _part(name: str) -> str:
    if name.startswith("output."):
        return "head"
    return next((part for text, part in PARTS if text in name), "feed-forward")
