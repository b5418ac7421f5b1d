"""KV-cache bytes: the ideal number, what the model still needs after N tokens.

    ideal(N) = batch · Σ over layers of  (retained(N) + cross tokens) · bytes per token  +  state bytes

It is neither what an engine reserves for a request nor what a pool allocates; those come on top.
"""

from collections import Counter
from dataclasses import dataclass

from kvlib.errors import SpecError, whole
from kvlib.kv_formats import rank_heads, token_bytes
from kvlib.spec import Layer, ModelSpec


@dataclass(frozen=True, slots=True)
class Term:
    """One line of the sum: n_layers equal layers that each keep `retained` tokens per sequence.

    values, token_bytes: what one token is, in values of K, V and latent, and in bytes as stored. nbytes: of all n_layers and
    all sequences of the batch, cross-attention and state included.
    """

    n_layers: int
    layer: Layer
    retained: int
    values: int
    token_bytes: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class KVGrowth:
    """How the cache of one sequence grows, in bytes.

    per_token_early: per token while every layer still grows. per_token_late: per token once all windows are full.
    capped: what the windowed layers hold when full. constant: cross-attention and state per sequence, whatever its length.
    """

    per_token_early: int
    per_token_late: int
    capped: int
    constant: int


def kv_terms(spec: ModelSpec, n_tokens: int, batch: int = 1, kv_dtype: object = "bf16", tp: int = 1) -> list[Term]:
    """The sum of `kv_bytes`, equal layers together, in the order in which they first appear.

    With tp > 1 the terms are those of one tensor-parallel rank: its KV heads and heads of state, never fewer than one, and
    the whole latent.
    """
    _check(spec)
    whole("n_tokens", n_tokens, minimum=0)
    whole("batch", batch)
    terms = []
    for layer, n_layers in Counter(spec.layers).items():
        retained, one_token = layer.retained(n_tokens), token_bytes(layer, kv_dtype, tp)
        per_sequence = retained * one_token + _constant(layer, one_token, tp)
        terms.append(Term(n_layers, layer, retained, _values(layer, tp), one_token, n_layers * batch * per_sequence))
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
    _check(spec)
    layers = [(layer, token_bytes(layer, kv_dtype, tp)) for layer in spec.layers]
    return KVGrowth(
        per_token_early=sum(one * layer.retained(1) for layer, one in layers),
        per_token_late=sum(one for layer, one in layers if layer.cap is None),
        capped=sum(one * layer.cap for layer, one in layers if layer.cap is not None),
        constant=sum(_constant(layer, one, tp) for layer, one in layers),
    )


def _check(spec: object) -> None:
    if not isinstance(spec, ModelSpec):
        raise SpecError(f"spec is {spec!r}; expected a ModelSpec: load_spec({spec!r})")


def _constant(layer: Layer, one_token: int, tp: int) -> int:
    """Bytes per sequence, on one rank, that do not depend on its length."""
    return layer.cross_tokens * one_token + layer.rank_state_bytes(tp)


def _values(layer: Layer, tp: int) -> int:
    """Values per token on one rank; 0 when another layer keeps them."""
    if layer.shared_with is not None:
        return 0
    return rank_heads(layer, tp) * (layer.k_dim + layer.v_dim) + layer.latent
