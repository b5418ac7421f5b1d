"""A model on some cards, with the convention that decides how much fits: said in words, as a sum, and as people get it wrong.

Invariant: `ledger` is `kvlib.memory_budget` and nothing else; a slip is the same call with one argument changed.
"""

import functools
import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from kvlib.budget import Budget, memory_budget
from kvlib.dtypes import bits
from kvlib.errors import SpecError
from kvlib.hardware import CAPACITIES, GPUS
from kvlib.i18n import T
from kvlib.memory import kv_bytes
from kvlib.readers import load_spec
from kvlib.sources import presets, shipped
from kvlib.spec import Layer, ModelSpec
from kvlib.units import GB, format_bytes

RUNTIME_GB = 3
COUNTS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Serving:
    """What decides how much fits. `utilization`: the share of a card that may be used."""

    preset: str
    gpu: str
    n_gpus: int
    n_tokens: int
    capacity: str
    utilization: float
    weight_dtype: str
    kv_dtype: str

    @classmethod
    def draw(cls, rng: random.Random, cards: tuple[str, ...], contexts: tuple[int, ...],
             counts: tuple[int, ...] | None = COUNTS[:4]) -> "Serving | None":  # fmt: skip
        """A random one, or None where the model has no such context, or the cards cannot share or hold it.

        counts: numbers of cards to draw from; None leaves the number open.
        """
        serving = cls(rng.choice(uniform_presets()), rng.choice(cards), rng.choice(counts or (1,)), rng.choice(contexts),
                      rng.choice(CAPACITIES), rng.choice((1.0, 0.9)), rng.choice(("bf16", "bf16", "fp8")),
                      rng.choice(("bf16", "bf16", "fp8")))  # fmt: skip
        if serving.n_tokens > serving.spec.max_position_embeddings:
            return None
        if counts is None:
            return serving
        try:
            return serving if serving.ledger().fits else None
        except SpecError:
            return None

    @property
    def spec(self) -> ModelSpec:
        return load_spec(self.preset)

    def ledger(self, *, query_heads: bool = False, **change: Any) -> Budget:
        """The budget, with arguments of `memory_budget` changed. query_heads: a KV head per query head, the same weights."""
        plain = {"gpu": self.gpu, "n_gpus": self.n_gpus, "capacity": self.capacity, "utilization": self.utilization,
                 "kv_dtype": self.kv_dtype, "weight_bytes": self.spec.weight_bytes(self.weight_dtype),
                 "runtime_per_gpu": RUNTIME_GB * GB}  # fmt: skip
        return memory_budget(with_query_heads(self.preset) if query_heads else self.spec, **{**plain, **change})

    def changes(self) -> list[tuple[dict[str, Any], str]]:
        """What people do instead: a change of `ledger`, and its name."""
        weights = self.spec.weight_bytes(self.weight_dtype)
        other = "decimal" if self.capacity == "binary" else "binary"
        found = [({"query_heads": True}, heads_text(self.spec))] if self.spec.n_kv_heads != self.spec.n_heads else []
        found += [
            ({"capacity": other}, _gpu_memory(other)),
            ({"runtime_per_gpu": 0}, T(f"忘了每張卡要扣 {RUNTIME_GB} GB 的執行環境", f"you forgot {RUNTIME_GB} GB of runtime per card")),
            ({"weight_bytes": 0}, T("忘了扣掉權重", "you forgot the weights")),
        ]
        if self.utilization != 1:
            found.append(({"utilization": 1.0}, T(f"忘了乘使用比例 {self.utilization:g}", f"you forgot the utilization of {self.utilization:g}")))
        if self.weight_dtype != "bf16":
            found.append(({"weight_bytes": self.spec.weight_bytes()}, T("權重當成 bf16 了", "you took the weights as bf16")))
        if self.kv_dtype != "bf16":
            found.append(({"kv_dtype": "bf16"}, T("KV 當成 bf16 了", "you took the KV as bf16")))
        if self.n_gpus > 1:
            found.append(({"weight_bytes": self.n_gpus * weights}, T("權重每張卡都算了一份；張量平行是分開放",
                                                                     "you counted the weights on every card; tensor parallel splits them")))  # fmt: skip
        return found

    def slips(self) -> list[tuple[Budget, str]]:
        """The budgets of `changes`."""
        return [(self.ledger(**change), why) for change, why in self.changes()]

    def longest(self, ledger: Budget, batch: int) -> int:
        """Tokens that each of `batch` sequences can hold."""
        return max(0, ledger.left_for_kv) // (batch * ledger.kv_per_sequence(1))

    def cards_for(self, batch: int, **change: Any) -> int | None:
        """The least of COUNTS that holds `batch` sequences, or None."""
        for n in COUNTS:
            try:
                if self.ledger(**{**change, "n_gpus": n}).max_sequences(self.n_tokens) >= batch:
                    return n
            except SpecError:
                continue
        return None

    def text(self, count: bool = True) -> str:
        """The setting in words, with its convention."""
        card = GPUS[self.gpu]
        cards = f"{self.n_gpus} × {card.name}" if count else card.name
        share = T(f"，使用比例 {self.utilization:g}", f", utilization {self.utilization:g}") if self.utilization != 1 else ""
        return T(
            f"{model_text(self.spec, params=True)}，權重 {self.weight_dtype}、KV {self.kv_dtype}，{cards}。每張卡的容量算 "
            f"{self._size()}{share}；每張卡扣 {RUNTIME_GB} GB 給執行環境，啟動值不計。",
            f"{model_text(self.spec, params=True)}, weights in {self.weight_dtype}, KV in {self.kv_dtype}, {cards}. Count a card as "
            f"{self._size()}{share}; runtime {RUNTIME_GB} GB per card, no activations.")  # fmt: skip

    def working(self) -> list[str]:
        """What is left for KV, as a sum."""
        weights = f"{self.spec.n_params:,} × {bits(self.weight_dtype) / 8:g} B = {self.ledger().weights / GB:,.2f} GB"
        return [T("權重：", "Weights: ") + weights, T("留給 KV：", "Left for KV: ") + self.sum_text(self.ledger())]

    def sum_text(self, ledger: Budget) -> str:
        """capacity − weights − runtime = left, in GB."""
        parts = " − ".join(f"{n / GB:,.2f}" for n in (ledger.capacity, ledger.weights, ledger.runtime))
        return f"{parts} = {ledger.left_for_kv / GB:,.2f} GB".replace("= -", "= −")

    def sequence_text(self, ledger: Budget, n_tokens: int) -> str:
        """Bytes of one sequence over all cards, as a product: the model's own, times how often each head is stored."""
        copies = ledger.kv_per_sequence(n_tokens) // kv_bytes(self.spec, n_tokens, kv_dtype=self.kv_dtype)
        tokens = f" × {n_tokens:,}" if n_tokens > 1 else ""
        often = f" × {copies}" if copies > 1 else ""
        total = ledger.kv_per_sequence(n_tokens)
        return f"{product_text(self.spec, self.kv_dtype)}{tokens}{often} = {total:,} B = {format_bytes(total)}" + self._copied(ledger, copies)

    def _copied(self, ledger: Budget, copies: int) -> str:
        heads, cards = self.spec.n_kv_heads, ledger.n_gpus
        often = {2: "twice"}.get(copies, f"{copies} times")
        return "" if copies == 1 else T(f"（{cards} 張卡、{heads} 個 KV 頭：每個頭存 {copies} 份，所以 × {copies}）",
                                        f" ({cards} cards, {heads} KV heads: each head is stored {often}, hence × {copies})")  # fmt: skip

    def _size(self) -> str:
        card = GPUS[self.gpu]
        return {"decimal": f"{card.marketed}·10⁹ B", "binary": f"{card.marketed}·2³⁰ B",
                "reported": T(f"torch 回報的 {float(card.reported):g} GiB", f"the {float(card.reported):g} GiB that torch reports")}[self.capacity]  # fmt: skip


@functools.cache
def uniform_presets() -> tuple[str, ...]:
    """The presets whose layers are all alike and keep K and V of one width and nothing else: those a person can do in their
    head. They are dense, and their longest context is known."""
    decoders = (name for name in presets() if not shipped(name)["config"].get("is_encoder_decoder"))
    specs = ((name, load_spec(name)) for name in decoders)
    return tuple(name for name, spec in specs if _uniform(spec) and _dense(spec) and spec.max_position_embeddings)


def _uniform(spec: ModelSpec) -> bool:
    first = spec.layers[0]
    return bool(first.n_kv_heads) and set(spec.layers) == {Layer(first.n_kv_heads, first.k_dim, first.k_dim)}


def _dense(spec: ModelSpec) -> bool:
    return bool(spec.weights) and all(weight.part != "experts" for weight in spec.weights)


@functools.cache
def with_query_heads(preset: str) -> ModelSpec:
    """The same model with a KV head per query head."""
    spec = load_spec(preset)
    return replace(spec, layers=tuple(replace(layer, n_kv_heads=spec.n_heads) for layer in spec.layers))


def model_text(spec: ModelSpec, params: bool = False) -> str:
    """The model and the facts of it that a question needs."""
    size = T(f"{spec.n_params / 1e9:.2f}·10⁹ 個參數、", f"{spec.n_params / 1e9:.2f}·10⁹ parameters, ") if params else ""
    return T(f"{spec.name}（{size}{spec.n_layers} 層、{spec.n_heads} 個查詢頭、{spec.n_kv_heads} 個 KV 頭、head_dim {spec.head_dim}）",
             f"{spec.name} ({size}{spec.n_layers} layers, {spec.n_heads} query heads, {spec.n_kv_heads} KV heads, "
             f"head_dim {spec.head_dim})")  # fmt: skip


def product_text(spec: ModelSpec, dtype: str) -> str:
    """Bytes of one token, as a product."""
    return f"2 × {spec.n_layers} × {spec.n_kv_heads} × {spec.head_dim} × {bits(dtype) / 8:g} B"


def heads_text(spec: ModelSpec) -> str:
    """The commonest slip of all."""
    group = spec.n_heads // spec.n_kv_heads
    return T(f"你用了 {spec.n_heads} 個查詢頭，該用 {spec.n_kv_heads} 個 KV 頭：差 {group} 倍",
             f"you used the {spec.n_heads} query heads; it keeps {spec.n_kv_heads} KV heads: a factor of {group}")  # fmt: skip


def alike(slips: Iterable[tuple[float, str]], answer: float, tolerance: float) -> tuple[tuple[float, str], ...]:
    """The slips that are told apart from the answer."""
    return tuple((value, why) for value, why in slips if abs(value - answer) > tolerance * abs(answer) and value > 0)


def _gpu_memory(convention: str) -> str:
    size = {"decimal": "10⁹", "binary": "2³⁰"}[convention]
    return T(f"每 GB 的容量算成 {size} B；題目是另一種算法", f"you counted a GB of capacity as {size} B; the question says otherwise")
