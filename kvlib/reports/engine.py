"""An engine's two numbers on the screen: what it admits and what it allocates, each with its arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kvlib.i18n import T
from kvlib.reports.screen import say, show_table, size, table

if TYPE_CHECKING:
    from rich.console import Console

    from kvlib.engines.plan import Plan


def show_engine(out: Console, plan: Plan) -> None:
    """Whose rules follow, the options that they are applied with, and what a block is."""
    ask = plan.ask
    ranks = [f"TP {ask.tp}"] * (ask.tp > 1)
    ranks += [f"PP {ask.pp}" + T(f"，第 {plan.stage + 1} 段", f", stage {plan.stage + 1}")] * (ask.pp > 1)
    out.print(f"\n[bold]{plan.engine.name}[/] {plan.engine.version}" + "".join(f" · {rank}" for rank in ranks))
    options = {name: getattr(ask, name) for name in plan.engine.defaults}
    say(out, _named({name: n for name, n in options.items() if n is not None and not isinstance(n, bool)}))
    if plan.unit:
        say(out, T("一個區塊：", "one block: ") + plan.unit)


def show_plan(out: Console, plan: Plan, name: str) -> None:
    """One number of an engine, with its lines."""
    lines = table("", "", "", right=(2,), fold=(0, 1))
    for line in plan.lines:
        lines.add_row(line.label, line.formula, f"{line.nbytes:,}")
    show_table(out, lines)
    out.print(f"{name} = {size(plan.nbytes)}")
    if plan.fact_texts:
        say(out, " · ".join(plan.fact_texts))


def _named(numbers: Mapping[str, float]) -> str:
    """Numbers by their names in JSON, as "block_size 16 · tokens 31,232"."""
    return " · ".join(f"{name} {n:,}" for name, n in numbers.items())


def show_rules(out: Console, plan: Plan) -> None:
    """All rules of the engine, and where each was read."""
    out.print("\n" + T(f"規則讀自 {plan.engine.name} {plan.engine.version}：", f"Rules, read in {plan.engine.name} {plan.engine.version}:"))
    for rule in plan.engine.rules:
        say(out, f"- {rule.text}", "")
        say(out, rule.where, indent="  ")
