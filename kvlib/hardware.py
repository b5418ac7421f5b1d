"""GPUs: three ways to say how much memory a card has, its memory bandwidth and its 16-bit matrix speed.

"80 GB" is read as 80·10⁹ bytes or as 80·2³⁰; the chips hold nearly the latter, and the driver leaves 79.10 GiB of it to a
program. The readings differ by up to 7 %, which decides how many sequences fit, so a budget always says which one it took.
"""

from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction

from kvlib.errors import SpecError
from kvlib.units import GB, TB, GiB

CAPACITIES = ("decimal", "binary", "reported")


@dataclass(frozen=True, slots=True)
class GPU:
    """One card. marketed: the number on the box, in GB. reported: GiB that torch.cuda.mem_get_info gives as total.

    bandwidth: bytes/s from memory. flops: dense 16-bit matrix operations per second. Both from the vendor's data sheet.
    """

    name: str
    marketed: int
    reported: Fraction
    bandwidth: int
    flops: int

    def capacity(self, convention: str) -> int:
        """Bytes of memory under one of `CAPACITIES`. Raises SpecError for another convention."""
        if convention not in CAPACITIES:
            raise SpecError(f"capacity is {convention!r}; expected one of {', '.join(CAPACITIES)}")
        return {
            "decimal": self.marketed * GB,
            "binary": self.marketed * GiB,
            "reported": int(self.reported * GiB),
        }[convention]


def _gpu(name: str, marketed: int, reported: str, terabytes_per_s: str, teraflops: str) -> GPU:
    return GPU(name, marketed, Fraction(reported), int(Fraction(terabytes_per_s) * TB),
               int(Fraction(teraflops) * 10**12))  # fmt: skip


# marketed GB, reported GiB, TB/s, dense 16-bit TFLOP/s (SXM versions where there are several)
GPUS = {
    "a100-40gb": _gpu("A100-40GB", 40, "39.4", "1.555", "312"),
    "a100-80gb": _gpu("A100-80GB", 80, "79.15", "2.039", "312"),
    "h100-80gb": _gpu("H100-80GB", 80, "79.10", "3.35", "989.4"),
    "h200-141gb": _gpu("H200-141GB", 141, "139.8", "4.8", "989.4"),
    "l40-48gb": _gpu("L40-48GB", 48, "44.40", "0.864", "181.05"),
    "a30-24gb": _gpu("A30-24GB", 24, "23.53", "0.933", "165"),
    "rtx-3090-24gb": _gpu("RTX 3090", 24, "23.58", "0.936", "71"),
    "rtx-4090-24gb": _gpu("RTX 4090", 24, "23.65", "1.008", "165.2"),
    "rtx-5090-32gb": _gpu("RTX 5090", 32, "31.37", "1.792", "209.5"),
    "t4-16gb": _gpu("T4-16GB", 16, "14.75", "0.32", "65"),
}


def load_gpu(gpu: str | GPU) -> GPU:
    """A card by its key in `GPUS`; a GPU comes back as it is. Raises SpecError for an unknown name."""
    if isinstance(gpu, GPU):
        return gpu
    key = str(gpu).lower()
    if key not in GPUS:
        near = get_close_matches(key, GPUS, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise SpecError(f"gpu is {gpu!r}; expected one of {', '.join(GPUS)}{hint}")
    return GPUS[key]
