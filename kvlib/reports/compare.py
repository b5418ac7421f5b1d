"""The report of `kvlib compare`: models side by side, one per line."""

from collections.abc import Callable
from dataclasses import asdict, dataclass

from kvlib.budget import Budget, memory_budget, splits
from kvlib.errors import SpecError
from kvlib.hardware import GPU
from kvlib.i18n import T
from kvlib.memory import KVGrowth, kv_bytes, kv_growth
from kvlib.reports.budget import params
from kvlib.reports.screen import console, literal, show_notes, table
from kvlib.spec import ModelSpec
from kvlib.units import GB, GiB, KiB, MiB


@dataclass(frozen=True)
class Side:
    """One model. weights: bytes, or None where they cannot be counted. budget: on the cards, or None."""

    spec: ModelSpec
    kv_dtype: str
    n_tokens: int
    weights: int | None
    budget: Budget | None
    note: str = ""

    @property
    def growth(self) -> KVGrowth:
        """Bytes per token, capped and constant, of one sequence."""
        return kv_growth(self.spec, self.kv_dtype)

    def as_dict(self) -> dict:
        """All sizes in bytes; null where a number cannot be given."""
        total, active = params(self.spec)
        return {
            "model": self.spec.name,
            "source": self.spec.source,
            "n_layers": self.spec.n_layers,
            "growth": asdict(self.growth),
            "kv_bytes": kv_bytes(self.spec, self.n_tokens, kv_dtype=self.kv_dtype),
            "n_params": total,
            "n_active_params": active,
            "weights": self.weights,
            "sequences": self.budget and self.budget.sequences(self.n_tokens),
            "max_sequences": self.budget and self.budget.max_sequences(self.n_tokens),
            "notes": [*self.spec.notes, *([self.note] if self.note else [])],
        }


@dataclass(frozen=True)
class Comparison:
    """Models side by side. cards: as people write them, "2 × H100-80GB", or empty without any."""

    sides: list[Side]
    n_tokens: int
    kv_dtype: str
    weight_dtype: str
    gpu: str | None
    n_gpus: int

    def as_dict(self) -> dict:
        """One entry per model, in the order given."""
        return {
            "schema": "kvlib.compare/1",
            "n_tokens": self.n_tokens,
            "kv_dtype": self.kv_dtype,
            "weight_dtype": self.weight_dtype,
            "gpu": self.gpu,
            "n_gpus": self.n_gpus,
            "models": [side.as_dict() for side in self.sides],
        }

    def print(self) -> None:
        """A column only where some model has something in it."""
        out = console()
        cards = f" · {self.n_gpus} × {self.gpu}" if self.gpu else ""
        out.print(f"{self.n_tokens:,} {T('個 token', 'tokens')} · KV {self.kv_dtype} · {T('權重', 'weights')} {self.weight_dtype}{cards}")
        columns = self._columns()
        shown = table(T("模型", "model"), *(heading for heading, _ in columns), right=range(1, 9), fold=(0,))
        for side in self.sides:
            shown.add_row(literal(_folded(side.spec.name)), *(read(side) for _, read in columns))
        out.print(shown)
        for side in self.sides:
            show_notes(out, [side.spec.name + T("：", ": ") + note for note in side.as_dict()["notes"]])

    def _columns(self) -> list[tuple[str, Callable[[Side], str]]]:
        growths = [side.growth for side in self.sides]
        columns = [(T("每 token\nKiB", "per token\nKiB"), lambda s: _in(s.growth.per_token_early, KiB))]
        if any(g.capped for g in growths):
            columns += [
                (T("視窗滿後\nKiB", "windows\nfull, KiB"), lambda s: _in(s.growth.per_token_late, KiB)),
                (T("封頂\nMiB", "capped\nMiB"), lambda s: _in(s.growth.capped, MiB)),
            ]
        if any(g.constant for g in growths):
            columns.append((T("固定\nMiB", "constant\nMiB"), lambda s: _in(s.growth.constant, MiB)))
        columns += [
            (T("KV\nGiB", "KV\nGiB"), lambda s: _in(kv_bytes(s.spec, s.n_tokens, kv_dtype=s.kv_dtype), GiB, 2)),
            (T("權重\nGB", "weights\nGB"), lambda s: "–" if s.weights is None else _in(s.weights, GB)),
        ]
        if self.gpu:
            columns.append((T("序列", "seqs"), lambda s: f"{s.budget.max_sequences(s.n_tokens):,}" if s.budget else "–"))
        return columns


def _folded(name: str, width: int = 18) -> str:
    """A long name in two lines, broken after a hyphen where it has one."""
    if len(name) <= width:
        return name
    at = name.rfind("-", 0, width) + 1 or width
    return f"{name[:at]}\n{name[at:]}"


def _in(n: int, unit: int, digits: int = 1) -> str:
    return f"{n / unit:,.{digits}f}" if n else "0"


def side(spec: ModelSpec, kv_dtype: str, n_tokens: int, weight_dtype: str, gpu: GPU | None, n_gpus: int) -> Side:
    """One model of a comparison; a number that this model cannot give is None, and its note says why."""
    try:
        weights = spec.weight_bytes(weight_dtype)
    except SpecError as error:
        return Side(spec, kv_dtype, n_tokens, None, None, spec.unknown_weights or str(error))
    if gpu and not splits(spec, n_gpus):
        note = T(f"{spec.n_heads} 個查詢頭沒辦法平分到 {n_gpus} 張卡", f"{spec.n_heads} query heads cannot be split over {n_gpus} cards")
        return Side(spec, kv_dtype, n_tokens, weights, None, note)
    budget = memory_budget(spec, gpu, n_gpus, weight_bytes=weights, kv_dtype=kv_dtype) if gpu else None
    return Side(spec, kv_dtype, n_tokens, weights, budget)
