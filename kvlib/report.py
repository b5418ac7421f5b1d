"""What the commands print: the formula with the numbers in it, as a table for people or as a dict for programs.

The keys of `as_dict` are a promise to scripts; tests hold them.
"""

from dataclasses import asdict, dataclass
from typing import Protocol

from kvlib.budget import Budget
from kvlib.dtypes import bits
from kvlib.i18n import T
from kvlib.kv_formats import kv_pair
from kvlib.memory import Term, kv_bytes, kv_growth, kv_terms
from kvlib.spec import Layer, ModelSpec
from kvlib.units import GB, GiB, format_bytes


class Report(Protocol):
    """Something to show."""

    def as_dict(self) -> dict: ...
    def print(self) -> None: ...


@dataclass(frozen=True)
class Estimate:
    """The report of `kvlib estimate`."""

    spec: ModelSpec
    n_tokens: int
    batch: int
    kv_dtype: str
    tp: int

    def as_dict(self) -> dict:
        """All sizes in bytes. `meaning` says which of the possible numbers this is."""
        terms = kv_terms(self.spec, self.n_tokens, self.batch, self.kv_dtype, self.tp)
        return {
            "model": self.spec.name,
            "meaning": "ideal retained bytes" + (f" of one of {self.tp} tensor-parallel ranks" if self.tp > 1 else ""),
            "n_tokens": self.n_tokens,
            "batch": self.batch,
            "kv_dtype": self.kv_dtype,
            "tp": self.tp,
            "kv_bytes": kv_bytes(self.spec, self.n_tokens, self.batch, self.kv_dtype, self.tp),
            "growth": asdict(kv_growth(self.spec, self.kv_dtype, self.tp)),
            "terms": [
                {"n_layers": t.n_layers, "retained": t.retained, "values_per_token": t.values, "bytes": t.nbytes}
                for t in terms
            ],
            "notes": self.notes,
        }

    @property
    def notes(self) -> list[str]:
        """What a person should know about this answer."""
        longest = self.spec.max_position_embeddings
        beyond = T(f"{self.n_tokens:,} 個 token 超過這個模型的上限 {longest:,}",
                   f"{self.n_tokens:,} tokens are beyond this model's maximum of {longest:,}") if longest else ""  # fmt: skip
        return [*self.spec.notes, *([beyond] if longest and self.n_tokens > longest else [])]

    def print(self) -> None:
        """The sum, line by line, then what one token costs."""
        from rich.table import Table

        console, total = _console(), kv_bytes(self.spec, self.n_tokens, self.batch, self.kv_dtype, self.tp)
        console.print(f"[bold]{self.spec.name}[/] · {self.n_tokens:,} {T('個 token', 'tokens')} × {self.batch} "
                      f"{_sequences(self.batch)} · {self.kv_dtype}"
                      + (f" · TP {self.tp}" + T("（一張卡）", " (one rank)") if self.tp > 1 else ""))  # fmt: skip
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column(T("層", "layers"), justify="right")
        table.add_column(T("每個 token 的值", "values per token"))
        table.add_column(T("留下的 token", "tokens kept"), justify="right")
        table.add_column(T("位元組", "bytes"), justify="right")
        terms = kv_terms(self.spec, self.n_tokens, self.batch, self.kv_dtype, self.tp)
        per_value = kv_pair(self.kv_dtype)[0].bits / 8
        plain = all(term.token_bytes == term.values * per_value for term in terms)  # no scales, K and V alike
        for term in terms:
            table.add_row(str(term.n_layers), _values(term, plain), _retained(term.layer, self.n_tokens), f"{term.nbytes:,}")
        console.print(table)
        console.print(f"= [bold]{total:,} B[/] = [bold]{format_bytes(total)}[/] = {format_bytes(total, 'GB')}")
        formula = (T("層 × 值 × token", "layers × values × tokens") + f" × {per_value:g} B" if plain
                   else T("層 × 每個 token 的位元組 × token", "layers × bytes per token × tokens"))  # fmt: skip
        console.print(f"[dim]{formula} × {self.batch} {_sequences(self.batch)}[/]")
        self._print_growth(console)
        for note in self.notes:
            console.print(f"[yellow]{note}[/]")
        console.print("[dim]" + T("理想值：模型之後還用得到的 K 與 V。引擎會另外預留區塊與工作空間。",
                                  "Ideal: the K and V that the model still needs. An engine reserves more.") + "[/]")  # fmt: skip

    def _print_growth(self, console) -> None:
        growth = kv_growth(self.spec, self.kv_dtype, self.tp)
        text = T("每個 token ", "per token ") + format_bytes(growth.per_token_early)
        if growth.capped:
            text += T("；視窗都滿了之後 ", "; windows full: ") + format_bytes(growth.per_token_late)
            text += T("（視窗部分封頂於 ", " (their part stops at ") + format_bytes(growth.capped) + T("）", ")")
        console.print(text)


@dataclass(frozen=True)
class BudgetReport:
    """The report of `kvlib budget`."""

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
            "model": b.spec.name,
            "gpu": b.gpu.name,
            "n_gpus": b.n_gpus,
            "capacity_convention": self.capacity,
            "utilization": self.utilization,
            "capacity": b.capacity,
            "weight_dtype": self.weight_dtype,
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
            "notes": list(b.spec.notes),
        }

    def print(self) -> None:
        """The ledger from capacity to what is left, then the sequences it holds."""
        from rich.table import Table

        b, console = self.ledger, _console()
        console.print(f"[bold]{b.spec.name}[/] · {b.n_gpus} × {b.gpu.name} · {self.n_tokens:,} {T('個 token', 'tokens')}")
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column()
        table.add_column(style="dim")
        table.add_column(justify="right")
        table.add_column(justify="right")
        weights = f"{b.spec.n_params:,} × {bits(self.weight_dtype) / 8:g} B" if self.weight_dtype else ""
        rows = [
            (T("  容量", "  capacity"), self._capacity_formula(), b.capacity),
            (T("− 權重", "− weights"), weights, b.weights),
            (T("− 執行環境", "− runtime"), f"{b.n_gpus} × {b.runtime / b.n_gpus / GB:g} GB", b.runtime),
            (T("− 啟動值", "− activations"), "", b.activations),
            (T("= 留給 KV", "= left for KV"), "", b.left_for_kv),
        ]
        for label, formula, n in rows:
            style = "bold" if label.startswith("=") else None
            sizes = (f"{n / GB:,.2f} GB".replace("-", "−"), f"{n / GiB:,.2f} GiB".replace("-", "−"))
            table.add_row(label, formula, *sizes, style=style)
        console.print(table)
        one = b.kv_per_sequence(self.n_tokens)
        console.print(T("÷ 一個序列 ", "÷ one sequence ") + f"{one:,} B = {format_bytes(one)}")
        if not b.fits:
            console.print("[bold red]" + T("放不下：沒有空間留給 KV 快取。", "Does not fit: nothing is left for the KV cache.") + "[/]")  # fmt: skip
            return
        blocks = T(f"（每個區塊 {self.block_size} 個 token）", f" (blocks of {self.block_size})") if self.block_size > 1 else ""
        console.print(f"= [bold]{b.sequences(self.n_tokens):.2f}[/] → [bold]{b.max_sequences(self.n_tokens, self.block_size)}[/] "
                      + T("個序列", "sequences") + blocks)  # fmt: skip

    def _capacity_formula(self) -> str:
        gpu, n = self.ledger.gpu, self.ledger.n_gpus
        size = {
            "decimal": f"{gpu.marketed} GB",
            "binary": f"{gpu.marketed} GiB",
            "reported": f"{float(gpu.reported):g} GiB",
        }[self.capacity]
        share = f" × {self.utilization:g}" if self.utilization != 1 else ""
        return f"{n} × {size}{share} ({self.capacity})"


def _console():
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


def _sequences(n: int) -> str:
    return T("個序列", "sequence" if n == 1 else "sequences")


def _values(term: Term, plain: bool) -> str:
    """How the values per token come about, as people write it; their bytes where scales or other things are stored too."""
    layer = term.layer
    if layer.shared_with is not None:
        return T(f"讀第 {layer.shared_with} 層的快取", f"reads layer {layer.shared_with}'s cache")
    stored = "" if plain else f" → {term.token_bytes:,} B"
    if layer.latent:
        return T(f"潛在向量與 RoPE 共 {layer.latent}", f"latent and RoPE: {layer.latent}") + stored
    dims = layer.k_dim + layer.v_dim
    heads = term.values // dims if dims else 0
    return f"{heads} {T('個 KV 頭', 'KV head' if heads == 1 else 'KV heads')} × ({layer.k_dim} + {layer.v_dim})" + (
        stored or f" = {term.values:,}")  # fmt: skip


def _retained(layer: Layer, n_tokens: int) -> str:
    return f"{n_tokens:,}" if layer.cap is None else f"min({n_tokens:,}, {layer.cap:,})"
