"""Where the memory of a set of cards goes, and how many sequences the rest holds.

    capacity · utilization = weights + runtime + activations + left for KV

The model is split over all cards by tensor parallelism, so KV heads are replicated once there are more cards than heads.
All sizes are bytes over all cards together.
"""

from dataclasses import dataclass
from fractions import Fraction

from kvlib.errors import SpecError, whole
from kvlib.hardware import GPU, load_gpu
from kvlib.kv_formats import kv_name
from kvlib.memory import kv_bytes
from kvlib.spec import ModelSpec
from kvlib.units import GB


@dataclass(frozen=True, slots=True)
class Budget:
    """The ledger of `memory_budget`, in bytes over all cards. left_for_kv is negative when the rest does not fit."""

    spec: ModelSpec
    gpu: GPU
    n_gpus: int
    kv_dtype: str
    capacity: int
    weights: int
    runtime: int
    activations: int

    @property
    def left_for_kv(self) -> int:
        """Bytes that remain for the KV cache; negative when weights, runtime and activations do not fit."""
        return self.capacity - self.weights - self.runtime - self.activations

    @property
    def fits(self) -> bool:
        """Is anything left for the KV cache?"""
        return self.left_for_kv > 0

    def kv_per_sequence(self, n_tokens: int) -> int:
        """Bytes of one sequence over all cards, replicated heads counted as often as they are stored."""
        return self.n_gpus * kv_bytes(self.spec, n_tokens, kv_dtype=self.kv_dtype, tp=self.n_gpus)

    def sequences(self, n_tokens: int) -> float:
        """Sequences of `n_tokens` that fit, with the fraction; 0.0 when nothing is left."""
        return max(0, self.left_for_kv) / self._price(n_tokens)

    def max_sequences(self, n_tokens: int, block_size: int = 1) -> int:
        """Whole sequences of `n_tokens` that fit when memory is handed out in blocks of `block_size` tokens."""
        whole("n_tokens", n_tokens)
        rounded_up = -(-n_tokens // whole("block_size", block_size)) * block_size
        return max(0, self.left_for_kv) // self._price(rounded_up)

    def _price(self, n_tokens: int) -> int:
        price = self.kv_per_sequence(whole("n_tokens", n_tokens))
        if not price:
            raise SpecError(f"{self.spec.name} keeps no cache, so memory does not limit its sequences")
        return price


def memory_budget(
    spec: ModelSpec,
    gpu: str | GPU = "h100-80gb",
    n_gpus: int = 1,
    *,
    capacity: str | int = "decimal",
    utilization: float = 1.0,
    weight_dtype: object = "bf16",
    kv_dtype: object = "bf16",
    weight_bytes: int | None = None,
    runtime_per_gpu: int = 3 * GB,
    activation_bytes: int = 0,
) -> Budget:
    """The memory ledger of `spec` on `n_gpus` cards.

    capacity: "decimal" (80·10⁹ B for an 80 GB card), "binary" (80·2³⁰ B), "reported" (what torch sees), or bytes per
    card. utilization: the fraction of it that may be used. weight_bytes: overrides parameters × weight_dtype, in bytes
    over all cards. runtime_per_gpu: CUDA context, libraries, graphs, in bytes per card. activation_bytes: peak of the
    working memory, over all cards.

    >>> from kvlib import load_spec
    >>> round(memory_budget(load_spec("llama-2-70b"), "h100-80gb", 2).sequences(4096), 2)
    11.96

    Raises SpecError for an unknown card, convention or dtype, a utilization outside (0, 1], negative bytes, and a number of
    cards that the heads cannot be split over.
    """
    if not isinstance(spec, ModelSpec):
        raise SpecError(f"spec is {spec!r}; expected a ModelSpec: load_spec({spec!r})")
    card = load_gpu(gpu)
    check_split(spec, whole("n_gpus", n_gpus))
    per_card = card.capacity(capacity) if isinstance(capacity, str) else whole("capacity", capacity)
    if isinstance(utilization, bool) or not isinstance(utilization, int | float) or not 0 < utilization <= 1:
        raise SpecError(f"utilization is {utilization!r}; expected a fraction above 0 and up to 1, such as 0.9")
    weights = spec.weight_bytes(weight_dtype) if weight_bytes is None else whole("weight_bytes", weight_bytes, 0)
    return Budget(
        spec=spec,
        gpu=card,
        n_gpus=n_gpus,
        kv_dtype=kv_name(kv_dtype),
        capacity=int(n_gpus * per_card * Fraction(str(utilization))),
        weights=weights,
        runtime=n_gpus * whole("runtime_per_gpu", runtime_per_gpu, 0),
        activations=whole("activation_bytes", activation_bytes, 0),
    )


def splits(spec: ModelSpec, n_gpus: int) -> bool:
    """Does tensor parallelism give every one of `n_gpus` cards whole query heads, and whole KV heads or copies of one?"""
    kv_heads = {layer.n_kv_heads for layer in spec.layers if layer.n_kv_heads}
    return not (spec.n_heads % n_gpus or any(max(n, n_gpus) % min(n, n_gpus) for n in kv_heads))


def check_split(spec: ModelSpec, n_gpus: int, name: str = "n_gpus") -> None:
    """Raises SpecError, with the number by its `name`, where `splits` says no."""
    if not splits(spec, n_gpus):
        kv_heads = sorted({layer.n_kv_heads for layer in spec.layers if layer.n_kv_heads})
        with_kv = f" with {kv_heads} KV heads" if kv_heads else ""
        fitting = ", ".join(str(n) for n in range(1, max(spec.n_heads, *kv_heads, 1) + 1) if splits(spec, n))
        raise SpecError(f"{name} is {n_gpus}, and {spec.n_heads} query heads{with_kv} cannot be split "
                        f"over so many cards; choose one of {fitting}")  # fmt: skip
