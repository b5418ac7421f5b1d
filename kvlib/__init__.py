"""kvlib: what a KV cache costs and how to build one. This top level imports no torch."""

from kvlib.budget import Budget, memory_budget
from kvlib.errors import SpecError
from kvlib.hardware import GPU, GPUS, load_gpu
from kvlib.memory import KVGrowth, kv_bytes, kv_growth, kv_terms
from kvlib.readers import load_spec
from kvlib.sources import presets
from kvlib.spec import Layer, ModelSpec, Weight
from kvlib.units import GB, KB, MB, TB, GiB, KiB, MiB, TiB, format_bytes

__all__ = [
    "GB", "GPU", "GPUS", "KB", "MB", "TB", "Budget", "GiB", "KVGrowth", "KiB", "Layer", "MiB", "ModelSpec",
    "SpecError", "TiB", "Weight", "format_bytes", "kv_bytes", "kv_growth", "kv_terms", "load_gpu", "load_spec",
    "memory_budget", "presets",
]  # fmt: skip
