"""The report of `kvlib models`: the catalogue, with what each model keeps computed from its spec."""

from dataclasses import asdict, dataclass

from kvlib.catalogue import Entry
from kvlib.i18n import T
from kvlib.reports.screen import bold, console, literal, say, show_table, table


@dataclass(frozen=True)
class Catalogue:
    """Shipped models. verbose: with the source of each."""

    entries: list[Entry]
    verbose: bool = False

    def as_dict(self) -> dict:
        """bf16, bytes of one sequence. attention is in the current language."""
        return {
            "schema": "kvlib.models/1",
            "models": [
                {"preset": e.preset, "model": e.name, "hub_id": e.hub_id, "attention": e.attention, "growth": asdict(e.growth),
                 "n_layers": e.spec.n_layers, "max_position_embeddings": e.spec.max_position_embeddings, "source": e.source}
                for e in self.entries
            ],
        }  # fmt: skip

    def print(self) -> None:
        """One line per model; the number is what a token costs while every layer still grows."""
        out = console()
        shown = table(T("模型", "model"), T("層 × KV 頭 × (K + V)", "layers × KV heads × (K + V)"),
                      T("每 token 位元組", "bytes per token"), right=(2,), fold=(1,))  # fmt: skip
        for e in self.entries:
            shown.add_row(e.preset, e.attention.replace(T("；", "; "), "\n"), f"{e.growth.per_token_early:,}")
        show_table(out, shown)
        for e in self.entries if self.verbose else ():
            out.print(f"\n{bold(e.preset)} {literal(e.hub_id)}")
            say(out, e.source, indent="  ")
        n = len(self.entries)
        out.print(T(f"{n} 個模型，bf16", f"{n} model{'s' * (n > 1)}, bf16"), style="dim")
