"""The report of `kvlib estimate`: ideal retained bytes, and with an engine what it admits and what it allocates."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from kvlib.i18n import T
from kvlib.kv_formats import kv_pair
from kvlib.memory import Term, kv_bytes, kv_growth, kv_terms
from kvlib.reports.engine import show_engine, show_plan, show_rules
from kvlib.reports.rows import legend, rows_of
from kvlib.reports.screen import bold, console, say, sequences, show_notes, show_table, size, table
from kvlib.spec import ModelSpec
from kvlib.units import format_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from kvlib.engines.plan import Plan


@dataclass(frozen=True)
class Estimate:
    """An estimate for `batch` sequences; admission and allocation are an engine's plans, or None."""

    spec: ModelSpec
    n_tokens: int
    batch: int
    kv_dtype: str
    tp: int
    admission: Plan | None = None
    allocation: Plan | None = None
    verbose: bool = False

    def as_dict(self) -> dict:
        """All sizes in bytes. `meaning` says which of the possible numbers `kv_bytes` is."""
        return {
            "schema": "kvlib.estimate/1",
            "model": self.spec.name,
            "meaning": "ideal retained bytes" + (f" of one of {self.tp} tensor-parallel ranks" if self.tp > 1 else ""),
            "n_tokens": self.n_tokens,
            "batch": self.batch,
            "kv_dtype": self.kv_dtype,
            "tp": self.tp,
            "kv_bytes": self.nbytes,
            "growth": asdict(kv_growth(self.spec, self.kv_dtype, self.tp)),
            "terms": [
                {"n_layers": t.n_layers, "retained": t.retained, "values_per_token": t.values, "bytes": t.nbytes,
                 "bytes_per_token": t.token_bytes, "layer": asdict(t.layer)}
                for t in self.terms
            ],
            "admission": self.admission and self.admission.as_dict(),
            "allocation": self.allocation and self.allocation.as_dict(),
            "source": self.spec.source,
            "notes": self.notes,
        }  # fmt: skip

    @property
    def nbytes(self) -> int:
        """Ideal retained bytes."""
        return kv_bytes(self.spec, self.n_tokens, self.batch, self.kv_dtype, self.tp)

    @property
    def terms(self) -> list[Term]:
        """The sum, equal layers together."""
        return kv_terms(self.spec, self.n_tokens, self.batch, self.kv_dtype, self.tp)

    @property
    def notes(self) -> list[str]:
        """What a person should know about this answer."""
        longest = self.spec.max_position_embeddings
        beyond = T(f"{self.n_tokens:,} 個 token 超過這個模型的上限 {longest:,}",
                   f"{self.n_tokens:,} tokens are beyond this model's maximum of {longest:,}") if longest else ""  # fmt: skip
        notes = [*self.spec.notes, *([beyond] if longest and self.n_tokens > longest else [])]
        if self.admission and self.admission.ask.pp > 1:
            notes.append(T("理想值是所有管線段的合計", "the ideal number is that of all pipeline stages together"))
        return notes

    def print(self) -> None:
        """The sum, line by line, what one token costs, and the engine's two numbers."""
        out = console()
        out.print(f"{bold(self.spec.name)} · {self.n_tokens:,} {T('個 token', 'tokens')} × {self.batch:,} "
                  f"{sequences(self.batch)} · {self.kv_dtype}"
                  + (f" · TP {self.tp}" + T("（一張卡）", " (one rank)") if self.tp > 1 else ""))  # fmt: skip
        self._print_ideal(out)
        plans = [plan for plan in (self.admission, self.allocation) if plan]
        if plans:
            show_engine(out, plans[0])
        for plan, name in zip(plans, (T("收下請求時預留", "admitted"), T("配置", "allocated")), strict=False):
            show_plan(out, plan, name)
        show_notes(out, [*self.notes, *(note for plan in plans for note in plan.notes)])
        if self.verbose:
            say(out, T("設定的出處：", "Config: ") + self.spec.source)
            if plans:
                show_rules(out, plans[0])
        elif not plans:
            say(out, T("理想值只算模型之後還用得到的；引擎通常占得更多，見 --engine vllm。",
                       "Ideal: the K and V that are still needed. An engine takes more: --engine vllm."))  # fmt: skip

    def _print_ideal(self, out: Console) -> None:
        bits = {f.bits for f in kv_pair(self.kv_dtype)}
        per_value = bits.pop() / 8 if len(bits) == 1 else 0
        own = [t for t in self.terms if t.values]
        plain = all(t.token_bytes - t.layer.index_bytes == t.values * per_value for t in own)  # no scales, K and V alike
        rows = [row for t in self.terms for row in rows_of(t, self.batch, self.tp, plain)]
        shown = table(T("層", "layers"), T("留下", "keeps"), T("KV 頭 × (K + V)", "KV heads × (K + V)"), T("token", "tokens"),
                      T("位元組", "bytes"), right=(0, 3, 4), fold=(2,))  # fmt: skip
        for row in rows:
            tokens = "" if row.tokens is None else f"{row.tokens:,}"
            shown.add_row(str(row.n_layers), row.what, row.one, tokens, f"{row.nbytes:,}")
        show_table(out, shown)
        out.print(T("理想值", "ideal") + " = " + size(self.nbytes))
        values = (T("層 × 值 × token", "layers × values × tokens") + f" × {per_value:g} B" if plain
                  else T("層 × 每個 token 的位元組 × token", "layers × bytes per token × tokens"))  # fmt: skip
        say(out, legend(rows, values, f"{self.batch:,} {sequences(self.batch)}"))
        self._print_growth(out)

    def _print_growth(self, out: Console) -> None:
        growth = kv_growth(self.spec, self.kv_dtype, self.tp)
        text = T("每個 token ", "per token ") + format_bytes(growth.per_token_early)
        if growth.capped:
            text += T("；視窗或分段滿了之後 ", "; windows full: ") + format_bytes(growth.per_token_late)
            text += T("（那些層封頂於 ", " (their part stops at ") + format_bytes(growth.capped) + T("）", ")")
        if growth.constant:
            text += T("；每個序列固定 ", "; constant per sequence: ") + format_bytes(growth.constant)
        say(out, text, "")
