"""What the lines of a plan are called: the same for every engine."""

from kvlib.i18n import T
from kvlib.spec import Layer

LABELS = {
    "full": ("全注意力", "full attention"), "latent": ("潛在向量（MLA）", "latent (MLA)"),
    "sliding": ("滑動視窗", "sliding window"), "chunked": ("分段注意力", "chunked attention"),
    "cross": ("交叉注意力", "cross-attention"), "state": ("遞迴狀態", "recurrent state"),
}  # fmt: skip
"""What caches keep, in both languages."""


def kind(layer: Layer, hybrid: bool = True) -> str:
    """Which of LABELS a layer's tokens are; without `hybrid` a window limits nothing."""
    if hybrid and layer.cap is not None:
        return "chunked" if layer.cap == layer.chunk else "sliding"
    return "latent" if layer.latent else "full"


def layers(n: int, kept: str) -> str:
    """The label of `n` layers that keep one of LABELS."""
    return T(f"{n} 層，", f"{n} layer{'s' * (n > 1)}, ") + T(*LABELS[kept])
