"""GPUs: three ways to say how much memory a card has, its memory bandwidth and its 16-bit matrix speed.

"80 GB" is read as 80·10⁹ bytes or as 80·2³⁰; the chips hold nearly the latter, and the driver leaves 79.10 GiB of it to a
program. The readings differ by up to 7 %, which decides how many sequences fit, so a budget always says which one it took.
"""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction

from kvlib.errors import SpecError
from kvlib.units import GB, TB, GiB

CAPACITIES = ("decimal", "binary", "reported")


@dataclass(frozen=True, slots=True)
class GPU:
    """One card. marketed: the number on the box, in GB. reported: GiB that torch.cuda.mem_get_info gives as total; None
    where nobody's printed number is at hand.

    bandwidth: bytes/s from memory. flops: dense 16-bit matrix operations per second. Both from the vendor's data sheet, and
    0 for a card that is nothing but a size.
    """

    name: str
    marketed: int
    reported: Fraction | None
    bandwidth: int
    flops: int

    @property
    def capacities(self) -> tuple[str, ...]:
        """The conventions that this card has a number for."""
        return tuple(c for c in CAPACITIES if c != "reported" or self.reported is not None)

    def capacity(self, convention: str) -> int:
        """Bytes of memory under one of `CAPACITIES`. Raises SpecError for another one, and where it is not known."""
        if convention not in CAPACITIES:
            raise SpecError(f"capacity is {convention!r}; expected one of {', '.join(CAPACITIES)}")
        if convention not in self.capacities:
            raise SpecError(f"capacity is 'reported', and what a program sees of {self.name} is not known to kvlib; choose "
                            f"{' or '.join(self.capacities)}, or give bytes per card to memory_budget")  # fmt: skip
        return {
            "decimal": self.marketed * GB,
            "binary": self.marketed * GiB,
            "reported": int((self.reported or 0) * GiB),
        }[convention]


def _gpu(name: str, marketed: int, reported: str | None, terabytes_per_s: str, teraflops: str) -> GPU:
    return GPU(name, marketed, reported and Fraction(reported), int(Fraction(terabytes_per_s) * TB),
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
    # From here on reported is the total in torch's out-of-memory message: L4 in evo2 issue 190, L40S in Step-Video-T2V issue 8,
    # RTX 6000 Ada (ECC on) in MTVCrafter issue 21, V100 in ChatGLM-Finetuning issue 73. None: no such message was found.
    # Bandwidth and speed: the vendors' data sheets; a B200 is sold with 180 GB (HGX, DGX) and announced with 192 GB.
    "b200-180gb": _gpu("B200-180GB", 180, None, "8", "2250"),
    "b200-192gb": _gpu("B200-192GB", 192, None, "8", "2250"),
    "mi300x-192gb": _gpu("MI300X-192GB", 192, None, "5.3", "1307.4"),
    "rtx-pro-6000-96gb": _gpu("RTX PRO 6000", 96, None, "1.792", "503.8"),
    "l40s-48gb": _gpu("L40S-48GB", 48, "44.42", "0.864", "362.05"),
    "rtx-6000-ada-48gb": _gpu("RTX 6000 Ada", 48, "44.43", "0.96", "364.25"),
    "l4-24gb": _gpu("L4-24GB", 24, "22.03", "0.3", "121"),
    "a10-24gb": _gpu("A10-24GB", 24, None, "0.6", "125"),
    "v100-32gb": _gpu("V100-32GB", 32, "31.74", "0.9", "125"),
    "v100-16gb": _gpu("V100-16GB", 16, None, "0.9", "125"),
}


def load_gpu(gpu: str | GPU) -> GPU:
    """A card by its key in `GPUS`, or any card of a size, "96gb"; a GPU comes back as it is. Raises SpecError for another name."""
    if isinstance(gpu, GPU):
        return gpu
    key = str(gpu).lower()
    if size := re.fullmatch(r"([1-9]\d{0,5}) ?gb", key):
        return GPU(f"{size[1]} GB", int(size[1]), None, 0, 0)
    if key not in GPUS:
        near = get_close_matches(key, GPUS, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise SpecError(f"gpu is {gpu!r}; expected one of {', '.join(GPUS)}, or a size such as 96gb{hint}")
    return GPUS[key]
