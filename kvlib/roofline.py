"""One decode step on the roofline: what it must read, what it must compute, and the time below which it cannot go.

    floor = max(bytes / bandwidth, operations / speed)

Counted: every weight once, K and V of every sequence once, two operations per multiply-add. Not counted: activations,
launches, communication between cards. So it is a lower bound, but for the embedding table, of which a step reads a few
rows and which is counted whole. Source: Williams et al. 2009, Roofline.
"""

from dataclasses import dataclass

from kvlib.errors import SpecError, whole
from kvlib.hardware import GPU, load_gpu
from kvlib.memory import kv_bytes
from kvlib.spec import Layer, ModelSpec


@dataclass(frozen=True, slots=True)
class StepCost:
    """What one decode step of a whole batch moves and computes. Bytes, and floating-point operations."""

    weight_bytes: int
    kv_bytes: int
    linear_flops: int
    attention_flops: int

    @property
    def nbytes(self) -> int:
        """Bytes read."""
        return self.weight_bytes + self.kv_bytes

    @property
    def flops(self) -> int:
        """Operations."""
        return self.linear_flops + self.attention_flops

    @property
    def intensity(self) -> float:
        """Operations per byte of the whole step."""
        return self.flops / self.nbytes

    @property
    def attention_intensity(self) -> float:
        """Operations per byte of attention alone; it does not depend on the batch."""
        return self.attention_flops / self.kv_bytes

    def seconds(self, gpu: str | GPU, n_gpus: int = 1) -> float:
        """The floor of the step's time (TPOT) when bytes and operations are shared evenly by n_gpus cards."""
        card = _timed(gpu)
        return max(self.nbytes / card.bandwidth, self.flops / card.flops) / whole("n_gpus", n_gpus)


def step_cost(spec: ModelSpec, n_tokens: int, batch: int = 1, weight_dtype: object = "bf16",
              kv_dtype: object = "bf16") -> StepCost:  # fmt: skip
    """The cost of decoding one token for each of `batch` sequences that hold `n_tokens` tokens.

    >>> from kvlib import load_spec
    >>> round(1e3 * step_cost(load_spec("llama-2-70b"), 4096).seconds("h100-80gb", n_gpus=2), 1)
    20.8

    Raises SpecError for a mixture of experts (a step reads only the experts it picks) and for latent attention (its
    operations depend on how it is computed), for recurrent states and cross-attention.
    """
    if spec.weights is None or any(w.part == "experts" for w in spec.weights):
        raise SpecError(f"{spec.name}: a step's reads are counted for dense models with known weights only")
    if any(layer.latent for layer in spec.layers):
        raise SpecError(f"{spec.name}: the operations of latent attention depend on how it is computed; not counted")
    if any(layer.state_bytes or layer.cross_tokens for layer in spec.layers):
        raise SpecError(f"{spec.name}: the operations on a recurrent state or an encoder's output are not counted")
    multiplied = sum(w.n_params for w in spec.weights if len(w.shape) == 2 and w.part != "embedding")
    if all(w.part != "head" for w in spec.weights):  # tied: the embedding is the head
        multiplied += sum(w.n_params for w in spec.weights if w.part == "embedding")
    return StepCost(
        weight_bytes=spec.weight_bytes(weight_dtype),
        kv_bytes=kv_bytes(spec, n_tokens, batch, kv_dtype),
        linear_flops=2 * batch * multiplied,
        attention_flops=batch * sum(_attention_flops(spec, layer, n_tokens) for layer in spec.layers),
    )


def tokens_where_kv_equals_weights(spec: ModelSpec, weight_dtype: object = "bf16", kv_dtype: object = "bf16") -> float:
    """Cached tokens in the whole batch at which reading KV takes as long as reading the weights.

    Raises SpecError where a window or a state makes KV something else than a price per token.
    """
    if any(layer.cap is not None or layer.state_bytes or layer.cross_tokens for layer in spec.layers):
        raise SpecError(f"{spec.name} has windows or states, so its KV has no single price per token")
    return spec.weight_bytes(weight_dtype) / kv_bytes(spec, 1, kv_dtype=kv_dtype)


def ridge(gpu: str | GPU) -> float:
    """Operations per byte above which a card is limited by its arithmetic and no longer by its memory."""
    card = _timed(gpu)
    return card.flops / card.bandwidth


def _timed(gpu: str | GPU) -> GPU:
    card = load_gpu(gpu)
    if not card.bandwidth:
        raise SpecError(f"gpu is {gpu!r}, which is only a size; a time takes bandwidth and speed: name a card")
    return card


def _attention_flops(spec: ModelSpec, layer: Layer, n_tokens: int) -> int:
    """q·K and the weighted sum of V, for every query head."""
    return 2 * spec.n_heads * (layer.k_dim + layer.v_dim) * layer.retained(n_tokens)
