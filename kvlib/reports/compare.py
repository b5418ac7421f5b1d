"""The report of `kvlib compare`: models side by side, one per line."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import NamedTuple

from kvlib.budget import Budget, memory_budget, splits
from kvlib.errors import SpecError
from kvlib.hardware import GPU
from kvlib.i18n import T
from kvlib.memory import KVGrowth, kv_bytes, kv_growth
from kvlib.reports.fit import held_back
from kvlib.reports.screen import console, literal, say, show_notes, show_table, table
from kvlib.reports.words import engine_note, params, repeated, stored_as
from kvlib.spec import ModelSpec
from kvlib.units import GB, GiB, KiB, MiB


class Cards(NamedTuple):
    """The cards of a comparison, and how much of them may be used."""

    gpu: GPU
    n: int
    capacity: str
    utilization: float


@dataclass(frozen=True)
class Side:
    """One model. weights: bytes, or None where they cannot be counted. budget: on the cards, or None."""

    spec: ModelSpec
    kv_dtype: str
    lengths: tuple[int, ...]
    weight_dtype: str
    weights: int | None
    budget: Budget | None
    note: str = ""

    @property
    def growth(self) -> KVGrowth:
        """Bytes per token, capped and constant, of one sequence."""
        return kv_growth(self.spec, self.kv_dtype)

    @property
    def notes(self) -> list[str]:
        """What a person should know about this model's numbers."""
        why = repeated(self.budget) if self.budget else ""
        return [note for note in (*self.spec.notes, self.note, why, engine_note(self.spec, self.kv_dtype)) if note]

    def kv(self, n_tokens: int) -> int:
        """Bytes of one sequence, on all cards together where there are any."""
        return self.budget.kv_per_sequence(n_tokens) if self.budget else kv_bytes(self.spec, n_tokens, kv_dtype=self.kv_dtype)

    def as_dict(self) -> dict:
        """All sizes in bytes; null where a number cannot be given."""
        total, active = params(self.spec)
        lengths = [
            {
                "n_tokens": n,
                "kv_bytes": kv_bytes(self.spec, n, kv_dtype=self.kv_dtype),
                "kv_on_cards": self.budget and self.kv(n),
                "sequences": self.budget and self.budget.sequences(n),
                "max_sequences": self.budget and self.budget.max_sequences(n),
            }
            for n in self.lengths
        ]
        return {
            "model": self.spec.name,
            "source": self.spec.source,
            "n_layers": self.spec.n_layers,
            "growth": asdict(self.growth),
            "kv_bytes": lengths[0]["kv_bytes"],
            "n_params": total,
            "n_active_params": active,
            "weight_dtype": self.weight_dtype,
            "weights": self.weights,
            "runtime": self.budget and self.budget.runtime,
            "activations": self.budget and self.budget.activations,
            "sequences": lengths[0]["sequences"],
            "max_sequences": lengths[0]["max_sequences"],
            "lengths": lengths,
            "notes": self.notes,
        }


@dataclass(frozen=True)
class Comparison:
    """Models side by side. weight_dtype: the same for all; None: for each its own."""

    sides: list[Side]
    lengths: tuple[int, ...]
    kv_dtype: str
    weight_dtype: str | None
    cards: Cards | None

    def as_dict(self) -> dict:
        """One entry per model, in the order given."""
        cards = self.cards
        return {
            "schema": "kvlib.compare/1",
            "n_tokens": self.lengths[0],
            "kv_dtype": self.kv_dtype,
            "weight_dtype": self.weight_dtype,
            "gpu": cards and cards.gpu.name,
            "n_gpus": cards.n if cards else 1,
            "capacity_convention": cards and cards.capacity,
            "utilization": cards and cards.utilization,
            "models": [side.as_dict() for side in self.sides],
        }

    def print(self) -> None:
        """A column only where some model has something in it."""
        out, cards = console(), self.cards
        tokens = " / ".join(f"{n:,}" for n in self.lengths)
        share = f" × {cards.utilization:g}" if cards and cards.utilization != 1 else ""
        shown_cards = f" · {cards.n} × {cards.gpu.name}{share} ({cards.capacity})" if cards else ""
        say(out, f"{tokens} {T('個 token', 'tokens')} · KV {self.kv_dtype}{shown_cards}", "")
        columns = self._columns()
        right = [i for i, (heading, _) in enumerate(columns, 1) if heading != STORED_AS]
        shown = table(T("模型", "model"), *(T(*heading) for heading, _ in columns), right=right, fold=(0,))
        for side in self.sides:
            shown.add_row(literal(_folded(side.spec.name)), *(read(side) for _, read in columns))
        show_table(out, shown)
        if cards and cards.n > 1:
            say(out, T(f"KV：一個序列在 {cards.n} 張卡上合計的位元組；序列：這些卡一共放得下幾個",
                       f"KV: bytes of one sequence on all {cards.n} cards together; seqs: how many these cards hold"))  # fmt: skip
        if ledger := next((side.budget for side in self.sides if side.budget), None):
            say(out, held_back(ledger))
        whose: dict[str, list[str]] = {}
        for side in self.sides:
            for note in side.notes:
                whose.setdefault(note, []).append(side.spec.name)
        show_notes(out, [T("、", ", ").join(names) + T("：", ": ") + note for note, names in whose.items()])

    def _columns(self) -> list[tuple[tuple[str, str], Callable[[Side], str]]]:
        growths = [side.growth for side in self.sides]
        columns = [(("每 token\nKiB", "per token\nKiB"), lambda s: _in(s.growth.per_token_early, KiB))]
        if any(g.capped for g in growths):
            columns += [
                (("視窗滿後\nKiB", "windows\nfull, KiB"), lambda s: _in(s.growth.per_token_late, KiB)),
                (("封頂\nMiB", "capped\nMiB"), lambda s: _in(s.growth.capped, MiB)),
            ]
        if any(g.constant for g in growths):
            columns.append((("固定\nMiB", "constant\nMiB"), lambda s: _in(s.growth.constant, MiB)))
        several = len(self.lengths) > 1
        for n in self.lengths:
            at = (f"KV GiB\n{n:,}",) * 2 if several else ("KV\nGiB",) * 2
            columns.append((at, lambda s, n=n: _in(s.kv(n), GiB, 2)))
        columns += [
            (("權重\nGB", "weights\nGB"), lambda s: "–" if s.weights is None else _in(s.weights, GB)),
            (STORED_AS, lambda s: stored_as(s.spec, s.weight_dtype)),
        ]
        for n in self.lengths if self.cards else ():
            at = (f"序列\n{n:,}", f"seqs\n{n:,}") if several else ("序列", "seqs")
            columns.append((at, lambda s, n=n: f"{s.budget.max_sequences(n):,}" if s.budget else "–"))
        return columns


STORED_AS = ("\n型別", "\nas")
"""The heading of the column after the weights."""


def _folded(name: str, width: int = 18) -> str:
    """A long name in two lines, broken after a hyphen where it has one."""
    if len(name) <= width:
        return name
    at = name.rfind("-", 0, width) + 1 or width
    return f"{name[:at]}\n{name[at:]}"


def _in(n: int, unit: int, digits: int = 1) -> str:
    return f"{n / unit:,.{digits}f}" if n else "0"


def side(spec: ModelSpec, kv_dtype: str, lengths: tuple[int, ...], weight_dtype: str, cards: Cards | None) -> Side:
    """One model of a comparison; a number that this model cannot give is None, and its note says why."""
    try:
        weights = spec.weight_bytes(weight_dtype)
    except SpecError as error:
        return Side(spec, kv_dtype, lengths, weight_dtype, None, None, spec.unknown_weights or str(error))
    if cards and not splits(spec, cards.n):
        note = T(f"{spec.n_heads} 個查詢頭沒辦法平分到 {cards.n} 張卡", f"{spec.n_heads} query heads cannot be split over {cards.n} cards")
        return Side(spec, kv_dtype, lengths, weight_dtype, weights, None, note)
    budget = cards and memory_budget(spec, cards.gpu, cards.n, capacity=cards.capacity, utilization=cards.utilization,
                                     weight_bytes=weights, kv_dtype=kv_dtype)  # fmt: skip
    return Side(spec, kv_dtype, lengths, weight_dtype, weights, budget)
