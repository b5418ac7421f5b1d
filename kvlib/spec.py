"""What a model is, as far as memory is concerned: a tuple of layers, and a list of weight tensors.

Invariant: every special kind of model is data in these two tuples. Nothing that computes with a spec asks for a
model's name. Sizes are counts of values; bytes appear only once a dtype is chosen.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod

from kvlib import dtypes
from kvlib.errors import SpecError, whole


@dataclass(frozen=True, slots=True)
class StatePart:
    """`heads` equal parts of a recurrent state, which tensor parallelism splits.

    Each keeps the last taps − 1 inputs of a convolution over `channels`, in `dtype`, and `matrix` more values in
    `matrix_dtype`.
    """

    heads: int
    channels: int = 0
    taps: int = 1
    matrix: int = 0
    dtype: str = "bf16"
    matrix_dtype: str = "bf16"

    def nbytes(self, tp: int = 1, *, more_taps: int = 0, dtype: str | None = None) -> int:
        """Bytes per sequence on one of `tp` ranks; heads fewer than ranks are replicated.

        more_taps: inputs of the convolution that an engine keeps beyond those it needs. dtype: the engine's own, for all.
        """
        inputs = dtypes.nbytes(self.channels * (self.taps - 1 + more_taps if self.channels else 0), dtype or self.dtype)
        return max(1, -(-self.heads // tp)) * (inputs + dtypes.nbytes(self.matrix, dtype or self.matrix_dtype))


@dataclass(frozen=True, slots=True)
class Layer:
    """What one layer keeps in the cache.

    n_kv_heads, k_dim, v_dim: values per token are n_kv_heads · (k_dim + v_dim).
    latent: values per token that all heads share, instead of heads (MLA: latent rank + rotary part).
    latent_rope: how many of `latent` are the rotary part, which some formats store at full width.
    index_bytes: bytes per retained token that the KV dtype does not change (a sparse indexer's keys with their scales).
    window: the layer retains at most the last `window` tokens; None retains all; 0 keeps no token of its own sequence.
    chunk: the layer attends within chunks of this many tokens and retains at most one chunk; None has no chunks.
    cross_tokens: tokens of another sequence (encoder frames, image patches) whose K and V it keeps as well, of the same
    heads and widths and once per sequence.
    shared_with: index of the layer whose cache this one reads; it then keeps nothing itself.
    state_bytes: bytes per sequence that do not depend on tokens or on the KV dtype (recurrent state).
    state_parts: what state_bytes is made of; tensor parallelism splits it. Empty: every rank keeps the whole state.
    """

    n_kv_heads: int = 0
    k_dim: int = 0
    v_dim: int = 0
    latent: int = 0
    latent_rope: int = 0
    index_bytes: int = 0
    window: int | None = None
    chunk: int | None = None
    cross_tokens: int = 0
    shared_with: int | None = None
    state_bytes: int = 0
    state_parts: tuple[StatePart, ...] = ()

    def __post_init__(self) -> None:
        for name in ("n_kv_heads", "k_dim", "v_dim", "latent", "latent_rope", "index_bytes", "cross_tokens", "state_bytes"):
            whole(f"Layer.{name}", getattr(self, name), minimum=0)
        for name, least in (("window", 0), ("chunk", 1)):
            if getattr(self, name) is not None:
                whole(f"Layer.{name}", getattr(self, name), least)
        if self.state_parts and sum(part.nbytes() for part in self.state_parts) != self.state_bytes:
            raise SpecError(f"Layer.state_parts do not add up to Layer.state_bytes = {self.state_bytes}")
        if self.latent_rope > self.latent:
            raise SpecError(f"Layer.latent_rope is {self.latent_rope} and more than Layer.latent = {self.latent}")

    @property
    def values_per_token(self) -> int:
        """Values (not bytes) kept per retained token."""
        if self.shared_with is not None:
            return 0
        return self.n_kv_heads * (self.k_dim + self.v_dim) + self.latent

    def rank_state_bytes(self, tp: int = 1, *, more_taps: int = 0, dtype: str | None = None) -> int:
        """Bytes of state per sequence on one of `tp` ranks; the rest as in `StatePart.nbytes`."""
        parts = (part.nbytes(tp, more_taps=more_taps, dtype=dtype) for part in self.state_parts)
        return sum(parts) if self.state_parts else self.state_bytes

    @property
    def cap(self) -> int | None:
        """Most tokens this layer ever retains, or None when it grows without end."""
        return min((n for n in (self.window, self.chunk) if n is not None), default=None)

    def retained(self, n_tokens: int) -> int:
        """Tokens whose K and V the layer still needs after `n_tokens`: min(N, W) with a window of W."""
        return n_tokens if self.cap is None else min(n_tokens, self.cap)


@dataclass(frozen=True, slots=True)
class Weight:
    """One weight tensor, or `count` equal ones.

    part: embedding, attention, recurrent, feed-forward, experts, norm or head. active: how many of the copies one token
    uses (the experts that the router picks); None means all of them.
    """

    name: str
    part: str
    shape: tuple[int, ...]
    count: int = 1
    active: int | None = None

    @property
    def n_params(self) -> int:
        """Parameters in all `count` copies."""
        return prod(self.shape) * self.count

    @property
    def n_active_params(self) -> int:
        """Parameters in the copies that one token uses."""
        return prod(self.shape) * (self.count if self.active is None else self.active)


@dataclass(frozen=True, slots=True)
class FileTensors:
    """What a .gguf file holds: its tensors as weights, and the bytes that they take in it."""

    weights: tuple[Weight, ...]
    nbytes: int


@dataclass(frozen=True)
class ModelSpec:
    """A model's layers and weights, and the sizes that people ask for.

    n_heads counts query heads. weights is None where they cannot be counted; unknown_weights then says why.
    active_known: is it known which weights one token uses?
    dtype and quantization say how the checkpoint stores its values: the config's dtype and quantization_config.
    stored_nbytes: the bytes of all tensors of the .gguf file that the model was read from; None where it was no such file.
    expanded: transformers' cache keeps a copy of K and V per query head. notes says what a person should know about how the
    config was read.
    """

    name: str
    layers: tuple[Layer, ...]
    n_heads: int
    hidden_size: int
    max_position_embeddings: int | None = None
    weights: tuple[Weight, ...] | None = None
    unknown_weights: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()
    dtype: str = ""
    quantization: Mapping | None = field(default=None, hash=False)
    expanded: bool = False
    stored_nbytes: int | None = None
    active_known: bool = True

    def __post_init__(self) -> None:
        for i, layer in enumerate(self.layers):
            j = layer.shared_with
            if j is not None and not (0 <= j < len(self.layers) and self.layers[j].shared_with is None):
                raise SpecError(f"{self.name}: layer {i} is shared_with {j}, which is not a layer that keeps its own cache")

    @property
    def n_layers(self) -> int:
        """Number of layers, those that keep no cache included."""
        return len(self.layers)

    @property
    def n_kv_heads(self) -> int:
        """KV heads per layer; SpecError when the layers differ or keep a latent."""
        return self._same("n_kv_heads", lambda layer: layer.n_kv_heads)

    @property
    def head_dim(self) -> int:
        """Width of one head; SpecError when K and V, or the layers, differ."""
        return self._same("head_dim", lambda layer: layer.k_dim if layer.k_dim == layer.v_dim else 0)

    @property
    def n_params(self) -> int:
        """Parameters, tied tensors counted once, all experts included."""
        return sum(w.n_params for w in self.known_weights())

    @property
    def n_active_params(self) -> int | None:
        """Parameters that one token goes through: of the experts only those that the router picks, all other tensors whole.

        The embedding counts whole too, although a token reads one row of it; some model cards leave it out. None where it is
        not known which of the weights are experts.
        """
        if not self.active_known:
            return None
        return sum(w.n_active_params for w in self.known_weights())

    def known_weights(self) -> tuple[Weight, ...]:
        """The weights; SpecError when they could not be counted."""
        if self.weights is None:
            raise SpecError(f"{self.name}: the parameters cannot be counted ({self.unknown_weights or 'weights are not given'})"
                            "; give their bytes: weight_bytes=, or --weight-gb")  # fmt: skip
        return self.weights

    def weight_bytes(self, dtype: object = "bf16") -> int:
        """Bytes of all weights stored plainly in `dtype` (no scales), or as the checkpoint stores them: "stored".

        Raises SpecError when the checkpoint's dtype or the way it is quantised is not known.
        """
        if dtype != "stored":
            return dtypes.nbytes(self.n_params, dtype)
        from kvlib.stored import stored_bytes  # which builds on Weight

        if self.stored_nbytes is not None:
            return self.stored_nbytes
        return stored_bytes(self.known_weights(), self.n_layers, self.quantization, self.dtype)

    def _same(self, what: str, read: Callable[[Layer], int]) -> int:
        values = {read(layer) for layer in self.layers}
        if len(values) != 1 or 0 in values:
            raise SpecError(f"{self.name} has no single {what}: its layers keep different things; read spec.layers")
        return values.pop()
