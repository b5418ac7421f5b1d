"""KV-cache bytes: the ideal number, what the model still needs after N tokens.

    ideal(N) = batch · Σ over layers of  retained(N) · values per token · bytes per value  +  batch · state bytes

It is neither what an engine reserves for a request nor what a pool allocates; those come on top.
"""

from collections import Counter
from dataclasses import dataclass

from kvlib import dtypes
from kvlib.errors import SpecError, whole
from kvlib.spec import Layer, ModelSpec


@dataclass(frozen=True, slots=True)
class Term:
    """One line of the sum: n_layers equal layers that each keep `retained` tokens of `values` values per sequence."""

    n_layers: int
    layer: Layer
    retained: int
    values: int
    nbytes: int  # of all n_layers, all sequences of the batch


@dataclass(frozen=True, slots=True)
class KVGrowth:
    """How the cache of one sequence grows, in bytes.

    per_token_early: per token while every layer still grows. per_token_late: per token once all windows are full.
    capped: what the windowed layers hold when full. constant: state per sequence, whatever its length.
    """

    per_token_early: int
    per_token_late: int
    capped: int
    constant: int


def kv_terms(spec: ModelSpec, n_tokens: int, batch: int = 1, kv_dtype: object = "bf16", tp: int = 1) -> list[Term]:
    """The sum of `kv_bytes`, equal layers together, in the order in which they first appear.

    With tp > 1 the terms are those of one tensor-parallel rank: its KV heads, never fewer than one, and a whole
    latent and state, which every rank needs.
    """
    if not isinstance(spec, ModelSpec):
        raise SpecError(f"spec is {spec!r}; expected a ModelSpec: load_spec({spec!r})")
    whole("n_tokens", n_tokens, minimum=0)
    whole("batch", batch)
    terms = []
    for layer, n_layers in Counter(spec.layers).items():
        values, retained = _values_per_rank(layer, tp), layer.retained(n_tokens)
        nbytes = dtypes.nbytes(n_layers * batch * retained * values, kv_dtype) + n_layers * batch * layer.state_bytes
        terms.append(Term(n_layers, layer, retained, values, nbytes))
    return terms


def kv_bytes(spec: ModelSpec, n_tokens: int, batch: int = 1, kv_dtype: object = "bf16", tp: int = 1) -> int:
    """Ideal bytes of K and V for `batch` sequences of `n_tokens` tokens each; with tp > 1, of one rank.

    >>> from kvlib import load_spec
    >>> kv_bytes(load_spec("llama-2-70b"), n_tokens=4096)
    1342177280

    Raises SpecError for a negative token count, a batch below 1, an unknown dtype, or KV heads that tp cannot share out.
    """
    return sum(term.nbytes for term in kv_terms(spec, n_tokens, batch, kv_dtype, tp))


def kv_growth(spec: ModelSpec, kv_dtype: object = "bf16", tp: int = 1) -> KVGrowth:
    """Bytes per token before and after the windows fill, what they cap at, and the constant part, for one sequence.

    With tp > 1, of one rank. Raises SpecError as `kv_bytes` does.
    """
    values = [(_values_per_rank(layer, tp), layer.cap) for layer in spec.layers]
    return KVGrowth(
        per_token_early=dtypes.nbytes(sum(n for n, _ in values), kv_dtype),
        per_token_late=dtypes.nbytes(sum(n for n, cap in values if cap is None), kv_dtype),
        capped=dtypes.nbytes(sum(n * cap for n, cap in values if cap is not None), kv_dtype),
        constant=sum(layer.state_bytes for layer in spec.layers),
    )


def _values_per_rank(layer: Layer, tp: int) -> int:
    """Values per token on one of `tp` ranks. Above the number of KV heads the heads are replicated, not split."""
    whole("tp", tp)
    heads = layer.n_kv_heads
    if tp == 1 or not heads or layer.shared_with is not None:
        return layer.values_per_token
    if max(heads, tp) % min(heads, tp):
        raise SpecError(f"tp is {tp} and the layer has {heads} KV heads; one must divide the other")
    return max(1, heads // tp) * (layer.k_dim + layer.v_dim) + layer.latent
