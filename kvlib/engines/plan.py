"""What is asked of an engine, and its answer: bytes of one rank, line by line.

Invariant: a plan's bytes are the sum of its lines, and they are those of one tensor-parallel rank of the pipeline stage
that holds most.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kvlib.errors import SpecError
from kvlib.i18n import T
from kvlib.kv_formats import kv_name, token_bytes
from kvlib.spec import Layer, ModelSpec


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of an engine in both languages, and the file and symbol in which it was read."""

    zh_tw: str
    en: str
    where: str

    @property
    def text(self) -> str:
        """The rule in the current language."""
        return T(self.zh_tw, self.en)


@dataclass(frozen=True)
class Ask:
    """A question to an engine. Sizes are counts of tokens unless they say bytes; None is the engine's default.

    block_size: tokens per block or page. max_num_batched_tokens: tokens of one step (chunked prefill, micro-batch).
    max_model_len: the longest request the engine is started for. pool_bytes: memory of one rank for the cache; None
    asks for the smallest that serves `batch` requests. prefix_caching: are finished prefixes kept for reuse? hybrid:
    may layers with a window keep less than the others? unified: do all sequences share one buffer (llama.cpp)?
    """

    spec: ModelSpec
    n_tokens: int
    kv_dtype: object = "bf16"
    tp: int = 1
    pp: int = 1
    batch: int = 1
    block_size: int | None = None
    max_num_batched_tokens: int | None = None
    max_model_len: int | None = None
    pool_bytes: int | None = None
    prefix_caching: bool = True
    hybrid: bool = True
    unified: bool = False

    def token_bytes(self, layer: Layer) -> int:
        """Bytes per token of one layer on one rank."""
        return token_bytes(layer, self.kv_dtype, self.tp)

    def state_bytes(self, layer: Layer) -> int:
        """Bytes of one layer's recurrent state on one rank: split over the ranks by its heads."""
        return layer.rank_state_bytes(self.tp)


@dataclass(frozen=True, slots=True)
class Line:
    """One summand. key: the same in both languages. formula: with its numbers. nbytes: of the whole batch."""

    key: str
    label: str
    formula: str
    nbytes: int


@dataclass(frozen=True)
class Plan:
    """An engine's answer. blocks: blocks, pages or slots handed out, None where the engine has none.

    unit: how the bytes of one block come about. facts: further numbers, such as the tokens that a pool holds.
    """

    ask: Ask
    engine: "Engine"
    meaning: str
    lines: tuple[Line, ...]
    stage: int = 0
    blocks: int | None = None
    unit: str = ""
    facts: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes on one rank of the largest stage, all sequences of the batch together."""
        return sum(line.nbytes for line in self.lines)

    @property
    def fact_texts(self) -> tuple[str, ...]:
        """The facts in words, as "blocks per request: 257", in the current language; those that a line shows are left out."""
        known = self.engine.facts
        return tuple(T(*known[key]).format(n, ask=self.ask) for key, n in self.facts.items() if key in known)

    def as_dict(self) -> dict:
        """For JSON. The texts in label, formula, unit, notes and rules are in the current language."""
        ask = self.ask
        return {
            "model": ask.spec.name, "meaning": self.meaning, "engine": self.engine.name, "version": self.engine.version,
            "n_tokens": ask.n_tokens, "batch": ask.batch, "kv_dtype": kv_name(ask.kv_dtype), "tp": ask.tp, "pp": ask.pp,
            "block_size": ask.block_size, "max_num_batched_tokens": ask.max_num_batched_tokens,
            "max_model_len": ask.max_model_len, "pool_bytes": ask.pool_bytes, "prefix_caching": ask.prefix_caching,
            "hybrid": ask.hybrid, "unified": ask.unified, "stage": self.stage, "blocks": self.blocks, "unit": self.unit,
            "bytes": self.nbytes,
            "lines": [{"key": x.key, "label": x.label, "formula": x.formula, "bytes": x.nbytes} for x in self.lines],
            "facts": dict(self.facts), "notes": list(self.notes),
            "rules": [{"rule": rule.text, "where": rule.where} for rule in self.engine.rules],
        }  # fmt: skip


@dataclass(frozen=True)
class Engine:
    """An engine in one version.

    defaults: the options it reads, with the value it uses when none is given. formats: the KV formats it stores.
    latent_formats: those in which it stores a latent, None: all of them. one_format: must K and V have the same? facts: how to say each of a plan's facts, in both languages; {} is the number.
    """

    name: str
    version: str
    defaults: Mapping[str, object]
    rules: tuple[Rule, ...]
    partition: Callable[[int, int], list[int]] | None
    admit: Callable[[Ask], dict]
    allocate: Callable[[Ask], dict]
    formats: tuple[str, ...]
    facts: Mapping[str, tuple[str, str]]
    latent_formats: tuple[str, ...] | None = None
    one_format: bool = True

    def stages(self, ask: Ask) -> list[range]:
        """The layers of each pipeline stage. Raises SpecError where the engine has no rule of its own for it."""
        n_layers = ask.spec.n_layers
        if ask.pp > 1 and self.partition is None:
            raise SpecError(f"pp is {ask.pp}, and {self.name} places layers by the memory that each card has left; "
                            "use pp=1")  # fmt: skip
        if ask.pp > n_layers:
            raise SpecError(f"pp is {ask.pp} and {ask.spec.name} has {n_layers} layers; choose at most as many stages")
        sizes = self.partition(n_layers, ask.pp) if ask.pp > 1 else [n_layers]
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        return [range(start, start + size) for start, size in zip(starts, sizes, strict=True)]


def middle_first(n_layers: int, pp: int) -> list[int]:
    """vLLM: what is left after an even split goes to the stages before the last, from the back."""
    base, left = divmod(n_layers, pp)
    return [base + (pp - 1 - left <= stage < pp - 1) for stage in range(pp)]


def last_first(n_layers: int, pp: int) -> list[int]:
    """SGLang: what is left after an even split goes to the last stages."""
    base, left = divmod(n_layers, pp)
    return [base + (stage >= pp - left) for stage in range(pp)]


def short_of(ask: Ask, fit: int) -> tuple[str, ...]:
    """A note where a pool holds only `fit` requests of n_tokens at a time, fewer than the batch."""
    if fit >= ask.batch:
        return ()
    one = T(f"連一個 {ask.n_tokens:,} 個 token 的請求也放不下", f"not even one request of {ask.n_tokens:,} tokens fits")
    some = T(f"{ask.batch:,} 個請求同時只放得下 {fit:,} 個，其餘要等",
             f"{fit:,} of {ask.batch:,} requests fit at a time; the others wait")  # fmt: skip
    return (some if fit else one,)


def ceil_to(n: int, multiple: int) -> int:
    """`n` rounded up to a multiple."""
    return -(-n // multiple) * multiple
