"""Generation: prefill once, then one token per step.

    logits = prefill(model, cache, prompts)            # fills the cache, scores of each row's next token
    logits = decode_step(model, cache, tokens)         # one token per row in, scores of the next one out

Invariant: after every call cache.lengths is the number of tokens the model has seen, and the logits are those of a full
forward over the same tokens.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kvlib.cache import Cache
from kvlib.errors import SpecError, whole
from kvlib.model import Llama

Tokens = Sequence[int]


@torch.inference_mode()
def prefill(model: Llama, cache: Cache, prompts: Sequence[Tokens], chunk: int | None = None) -> Tensor:
    """Run the prompts, one per row of the cache, and return the logits of each row's last token: (batch, vocab_size).

    Prompts may differ in length, and continue what the cache already holds. chunk: at most this many tokens at a time,
    which bounds the activations; the result is the same.

    Raises SpecError for an empty prompt, a wrong number of them, or a chunk below 1; CacheError when they do not fit.
    """
    _check_tokens(model, prompts)
    if len(prompts) != cache.batch or not all(len(p) for p in prompts):
        raise SpecError(f"{len(prompts)} prompts of lengths {[len(p) for p in prompts]}; expected {cache.batch}, none empty")
    cache.check_room([len(p) for p in prompts])  # all of them or none: no chunk is left behind
    longest = max(map(len, prompts))
    chunk = longest if chunk is None else whole("chunk", chunk)
    last = torch.empty(cache.batch, model.config.hidden_size, dtype=model.dtype, device=model.device)
    for start in range(0, longest, chunk):
        parts = [list(p[start : start + chunk]) for p in prompts]
        counts = [len(part) for part in parts]
        width = max(counts)
        padded = torch.tensor([part + [0] * (width - len(part)) for part in parts], device=model.device)
        hidden = model.forward(padded, cache, None if min(counts) == width else counts)
        for row, n in enumerate(counts):
            if n:
                last[row] = hidden[row, n - 1]
    return model.logits(last)


@torch.inference_mode()
def decode_step(model: Llama, cache: Cache, tokens: Tensor, n_new: Sequence[int] | None = None) -> Tensor:
    """Append one token per row and return the logits of the next: tokens (batch,) → (batch, vocab_size).

    n_new: 0 for a row that has ended and must not change, 1 for the others; None is 1 for all.
    Raises SpecError for tokens of another shape, CacheError when the cache is full.
    """
    if tokens.dim() != 1:
        raise SpecError(f"tokens has shape {tuple(tokens.shape)}; expected (batch,), one token per row")
    return model.logits(model.forward(tokens[:, None], cache, n_new)[:, -1])


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen. temperature 0 is greedy; top_k and top_p cut the tail before drawing."""

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        top_k, top_p = 1 if self.top_k is None else self.top_k, 1 if self.top_p is None else self.top_p
        if not self.temperature >= 0 or top_k < 1 or not 0 < top_p <= 1:
            raise SpecError(f"{self}: expected temperature ≥ 0, top_k ≥ 1, 0 < top_p ≤ 1")

    def chooser(self, device: torch.device) -> Callable[[Tensor], Tensor]:
        """logits (batch, vocab_size) → tokens (batch,)."""
        if self.temperature == 0:
            return lambda logits: logits.argmax(-1)
        generator = torch.Generator(device)
        generator.seed() if self.seed is None else generator.manual_seed(self.seed)
        return lambda logits: torch.multinomial(self.probabilities(logits), 1, generator=generator)[:, 0]

    def probabilities(self, logits: Tensor) -> Tensor:
        """(batch, vocab_size), float32, what is cut is 0: first top_k, then the smallest set that holds top_p."""
        logits = logits.float() / self.temperature
        if self.top_k is not None and self.top_k < logits.shape[-1]:
            logits = logits.masked_fill(logits < logits.topk(self.top_k).values[:, -1:], -torch.inf)
        p = logits.softmax(-1)
        if self.top_p is not None and self.top_p < 1:  # a rounded sum may reach 1 before the last token
            ranked, order = p.sort(descending=True)
            outside = ranked.cumsum(-1) - ranked >= self.top_p  # the mass before a token already suffices
            p = p.masked_fill(torch.zeros_like(outside).scatter(-1, order, outside), 0)
        return p / p.sum(-1, keepdim=True)


@torch.inference_mode()
def stream(model: Llama, prompts: Sequence[Tokens], max_new_tokens: int, *, eos: int | None = None,
           sampling: Sampling | None = None, cache: Cache | None = None, chunk: int | None = None) -> Iterator[list[int | None]]:  # fmt: skip
    """Generate, one step at a time: yields a token per row, None for rows that have ended.

    A row ends with `eos` (yielded too) or after max_new_tokens. The last token is not run through the model again.
    """
    whole("max_new_tokens", max_new_tokens)
    _check_tokens(model, prompts)
    if cache is None:
        cache = model.new_cache(len(prompts), max(map(len, prompts), default=0) + max_new_tokens)
    choose = (sampling or Sampling()).chooser(model.device)
    logits = prefill(model, cache, prompts, chunk)
    alive = [1] * len(prompts)
    for step in range(max_new_tokens):
        tokens = choose(logits)
        found = tokens.tolist()
        yield [t if on else None for t, on in zip(found, alive, strict=True)]
        alive = [int(on and t != eos) for t, on in zip(found, alive, strict=True)]
        if not any(alive) or step == max_new_tokens - 1:
            return
        logits = decode_step(model, cache, tokens, None if all(alive) else alive)


def _check_tokens(model: Llama, prompts: Sequence[Tokens]) -> None:
    if any(isinstance(p, int) for p in prompts):
        raise SpecError("prompts is one list of tokens; expected one list per row: [[1, 2, 3]]")
    vocab = model.config.vocab_size
    if wrong := [t for p in prompts for t in p if not 0 <= t < vocab]:
        raise SpecError(f"prompts hold token {wrong[0]}; the model's tokens are 0 … {vocab - 1}")


def generate(model: Llama, prompts: Sequence[Tokens], max_new_tokens: int, *, progress: Callable[[int], None] | None = None,
             **options: object) -> list[list[int]]:  # fmt: skip
    """Generate to the end: the new tokens of each row, up to and including `eos`. Options are those of `stream`.

    progress: called after each step with the number of steps done.
    """
    rows: list[list[int]] = [[] for _ in prompts]
    for step, tokens in enumerate(stream(model, prompts, max_new_tokens, **options), start=1):
        for row, token in zip(rows, tokens, strict=True):
            if token is not None:
                row.append(token)
        if progress:
            progress(step)
    return rows
