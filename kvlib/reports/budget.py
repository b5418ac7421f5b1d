"""The report of `kvlib budget`: the ledger from capacity to what is left, then the sequences it holds."""

from dataclasses import dataclass

from kvlib.budget import Budget
from kvlib.dtypes import BITS, bits
from kvlib.i18n import T
from kvlib.reports.screen import bold, console, gb, gib, say, sequences, show_notes, show_table, table
from kvlib.reports.words import engine_note, one_sequence, params, stored_words
from kvlib.units import GB, format_bytes


@dataclass(frozen=True)
class BudgetReport:
    """A ledger, and how its capacity and weights were read."""

    ledger: Budget
    n_tokens: int
    block_size: int
    capacity: str
    utilization: float
    weight_dtype: str | None  # None: the weights were given in bytes

    def as_dict(self) -> dict:
        """All sizes in bytes over all cards."""
        b = self.ledger
        return {
            "schema": "kvlib.budget/1",
            "model": b.spec.name,
            "gpu": b.gpu.name,
            "n_gpus": b.n_gpus,
            "capacity_convention": self.capacity,
            "utilization": self.utilization,
            "capacity": b.capacity,
            "weight_dtype": self.weight_dtype,
            "n_params": params(b.spec)[0],
            "n_active_params": params(b.spec)[1],
            "weights": b.weights,
            "runtime": b.runtime,
            "activations": b.activations,
            "left_for_kv": b.left_for_kv,
            "kv_dtype": b.kv_dtype,
            "n_tokens": self.n_tokens,
            "block_size": self.block_size,
            "kv_per_sequence": b.kv_per_sequence(self.n_tokens),
            "sequences": b.sequences(self.n_tokens),
            "max_sequences": b.max_sequences(self.n_tokens, self.block_size),
            "source": b.spec.source,
            "notes": self.notes,
        }

    @property
    def notes(self) -> list[str]:
        """What a person should know about this answer."""
        return [*self.ledger.spec.notes, *filter(None, [engine_note(self.ledger.spec, self.ledger.kv_dtype)])]

    def print(self) -> None:
        """One line per entry, in GB and GiB."""
        b, out = self.ledger, console()
        out.print(f"{bold(b.spec.name)} · {b.n_gpus} × {b.gpu.name} · {self.n_tokens:,} {T('個 token', 'tokens')} · {b.kv_dtype}")
        entries = table("", "", "", "", right=(2, 3), dim=(1,), fold=(1,))
        rows = [
            (T("  容量", "  capacity"), self._capacity(), b.capacity),
            (T("− 權重", "− weights"), self._weights(), b.weights),
            (T("− 執行環境", "− runtime"), f"{b.n_gpus} × {b.runtime / b.n_gpus / GB:g} GB", b.runtime),
            (T("− 啟動值", "− activations"), "", b.activations),
            (T("= 留給 KV", "= left for KV"), "", b.left_for_kv),
        ]
        for label, formula, n in rows:
            entries.add_row(label, formula, f"{gb(n)} GB", f"{gib(n)} GiB", style="bold" if label.startswith("=") else None)
        show_table(out, entries)
        total, active = params(b.spec)
        if total != active:
            out.print(T(f"每個 token 只用到 {active:,} 個參數（共 {total:,}）", f"one token uses {active:,} of {total:,} parameters"))
        one = b.kv_per_sequence(self.n_tokens)
        out.print(T("÷ 一個序列 ", "÷ one sequence ") + f"{one:,} B = {format_bytes(one)}")
        if by_card := one_sequence(b, self.n_tokens):
            say(out, f"  = {by_card}")
        if b.fits:
            blocks = T(f"（每個區塊 {self.block_size} 個 token）", f" (blocks of {self.block_size})") if self.block_size > 1 else ""
            whole = b.max_sequences(self.n_tokens, self.block_size)
            out.print(f"= [bold]{b.sequences(self.n_tokens):,.2f}[/] → [bold]{whole:,}[/] {sequences(whole)}{blocks}")
        else:
            out.print(T("放不下：沒有空間留給 KV 快取。", "Does not fit: nothing is left for the KV cache."), style="bold red")
        show_notes(out, self.notes)

    def _capacity(self) -> str:
        gpu, n = self.ledger.gpu, self.ledger.n_gpus
        size = {
            "decimal": f"{gpu.marketed} GB",
            "binary": f"{gpu.marketed} GiB",
            "reported": f"{float(gpu.reported or 0):g} GiB",
        }[self.capacity]
        share = f" × {self.utilization:g}" if self.utilization != 1 else ""
        return f"{n} × {size}{share} ({self.capacity})"

    def _weights(self) -> str:
        if self.weight_dtype in BITS:
            return f"{self.ledger.spec.n_params:,} × {bits(self.weight_dtype) / 8:g} B"
        return stored_words(self.ledger.spec, self.weight_dtype)
