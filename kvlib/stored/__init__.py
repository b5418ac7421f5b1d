"""Bytes of a checkpoint as it is stored: packed values, their scales and zero points, and what stays at full width.

`quantization_config` says how. Only linear maps are packed; norms, biases, embeddings, routers and the modules that the
config names keep the checkpoint's dtype. Its tests hold it to the sizes of published checkpoints.
"""

from collections.abc import Mapping
from math import prod

from kvlib.dtypes import nbytes
from kvlib.errors import SpecError, short
from kvlib.spec import Weight
from kvlib.stored.names import Names
from kvlib.stored.options import WAY_OUT
from kvlib.stored.packing import Packing
from kvlib.stored.packings import METHODS

USUAL = {"fp8": "bf16", "mxfp4": "bf16"}
"""The dtype of what is not packed where a config leaves it out: gpt-oss and MiniMax-M2 do. GPTQ and AWQ have no usual one."""


def stored_bytes(weights: tuple[Weight, ...], n_layers: int, quantization: Mapping | None, dtype: object) -> int:
    """Bytes of `weights` stored as `quantization` says, everything else in `dtype`.

    Raises SpecError when the dtype is absent, and for a method, or an option of one, that kvlib does not know.
    """
    if not quantization:
        return _plain(weights, dtype)
    method = quantization.get("quant_method") or ("bitsandbytes" if {"load_in_4bit", "load_in_8bit"} & quantization.keys() else None)
    if method == "gguf":
        raise SpecError("quantization_config.quant_method is 'gguf', whose bytes are known only where one .gguf file holds all tensors "
                        f"(of a split model only the first file is read); {WAY_OUT}")  # fmt: skip
    if not isinstance(method, str) or method not in METHODS:
        raise SpecError(f"quantization_config.quant_method is {short(method)}; kvlib knows {', '.join(sorted(METHODS))}; "
                        f"{WAY_OUT}")  # fmt: skip
    packing, dtype = METHODS[method](quantization), dtype or USUAL.get(method)
    plain = _plain(weights, dtype)
    skipped = Names("modules that are not quantised", packing.skipped, n_layers)
    only = Names("modules that are quantised", packing.only, n_layers)
    for w in (w for w in weights if len(w.shape) == 2 and w.part != "embedding"):
        if _packed(w, packing):
            copies = _packed_copies(w, only.copies(w) if packing.only else w.count, skipped.copies(w))
            plain += copies * (packing.matrix(*w.shape) - nbytes(prod(w.shape), dtype))
        else:
            skipped.layers_named(w)  # a list may name it all the same
            only.layers_named(w)
    skipped.refuse_unknown()
    only.refuse_unknown()
    return plain


def _plain(weights: tuple[Weight, ...], dtype: object) -> int:
    if not dtype:
        raise SpecError("dtype (or torch_dtype) is absent, so how wide the checkpoint stores its values is not known; name a dtype")
    return nbytes(sum(w.n_params for w in weights), dtype)


def _packed_copies(weight: Weight, wanted: int, skipped: int) -> int:
    """Of the copies that one list wants packed, those that another does not leave alone."""
    if 0 < wanted < weight.count and 0 < skipped < weight.count:
        raise SpecError(f"of {weight.name} quantization_config packs some layers and leaves some alone; {WAY_OUT}")
    return max(0, wanted - skipped)


def _packed(weight: Weight, packing: Packing) -> bool:
    parts = {"experts"} if packing.only_experts else {"attention", "recurrent", "feed-forward", "experts"}
    parts |= {"head"} if packing.head_too else set()
    return weight.part in parts and weight.name not in ("router", "A_log")
