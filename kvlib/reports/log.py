"""The report of `kvlib explain-log`: each number of the log beside the one that follows from the model."""

from dataclasses import dataclass

from kvlib.engine_log import Explanation
from kvlib.i18n import T
from kvlib.kv_formats import kv_name
from kvlib.reports.screen import bold, console, say, show_notes, show_table, table


@dataclass(frozen=True)
class LogReport:
    """What `engine_log.explain_log` found."""

    found: Explanation

    def as_dict(self) -> dict:
        """Its numbers, and the verdict `follows`."""
        return {"schema": "kvlib.explain-log/1", **self.found.as_dict()}

    def print(self) -> None:
        """One line per number, then the verdict and what misleads."""
        x, ask, out = self.found, self.found.reading.ask, console()
        out.print(f"{bold(ask.spec.name)} · vLLM {x.lines.version or ''}".rstrip() + (f" · TP {ask.tp}" if ask.tp > 1 else "")
                  + (f" · PP {ask.pp}" if ask.pp > 1 else "") + f" · {kv_name(ask.kv_dtype)}")  # fmt: skip
        say(out, T("一個區塊：", "one block: ") + f"{x.reading.unit} = {x.reading.block:,} B")
        shown = table("", T("紀錄", "log"), T("算出來", "computed"), T("算式", "arithmetic"), "", right=(1, 2), dim=(3,), fold=(0, 3))
        for check in x.checks:
            colour = "yellow" if check.undecided else "green" if check.agree or check.explained else "red"
            verdict = f"[{colour}]{check.verdict}[/]"
            shown.add_row(check.label, check.logged, check.computed, check.formula, verdict)
        show_table(out, shown)
        say(out, x.conclusion, "bold")
        show_notes(out, x.notes)
