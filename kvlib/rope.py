"""Rotary position embedding: a token at absolute position t has each pair of its q and k numbers turned by t · frequency.

Positions are absolute, so a key is rotated once, when it is stored. Source: Su et al. 2021; the Llama-3.1 scaling as in
its published config (`rope_type: llama3`).
"""

from collections.abc import Mapping
from math import pi

import torch
from torch import Tensor

from kvlib.errors import SpecError


def frequencies(head_dim: int, theta: float, scaling: Mapping | None = None) -> Tensor:
    """Radians per token of each of the head_dim / 2 pairs, float32.

    scaling: None, or the config's rope_scaling of type default, linear or llama3. SpecError for another type.
    """
    base = 1 / theta ** (torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)  # to the bit as in transformers
    kind = (scaling or {}).get("rope_type") or (scaling or {}).get("type") or "default"
    needs = {"linear": ("factor",),
             "llama3": ("factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor")}  # fmt: skip
    if absent := [name for name in needs.get(kind, ()) if name not in scaling]:
        raise SpecError(f"rope scaling of type {kind} lacks {', '.join(absent)}; add it")
    if kind == "default":
        return base
    if kind == "linear":
        return base / scaling["factor"]
    if kind == "llama3":
        return _llama3(base, scaling)
    raise SpecError(f"rope_type is {kind!r}; kvlib.model reads default, linear and llama3")


def _llama3(base: Tensor, scaling: Mapping) -> Tensor:
    """Slow pairs are slowed down by `factor`, fast ones are kept, those between are blended by how often they turn."""
    turns = scaling["original_max_position_embeddings"] / (2 * pi / base)  # within the original context
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    keep = ((turns - low) / (high - low)).clamp(0, 1)
    return keep * base + (1 - keep) * base / scaling["factor"]


def tables(n_positions: int, freqs: Tensor, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """cos and sin for positions 0 … n_positions − 1, each (n_positions, head_dim)."""
    angles = torch.arange(n_positions, dtype=torch.float32, device=freqs.device)[:, None] * freqs
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x: (…, head_dim), paired as (i, i + head_dim / 2); cos and sin broadcast against it."""
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
    return x * cos + turned * sin
