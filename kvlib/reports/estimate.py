"""The report of `kvlib estimate`: ideal retained bytes, and with an engine what it admits and what it allocates."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from rich.console import Console

from kvlib.engines.plan import Plan
from kvlib.i18n import T
from kvlib.kv_formats import kv_pair
from kvlib.memory import Term, kv_bytes, kv_growth, kv_terms
from kvlib.reports.screen import console, sequences, show_notes, size, table
from kvlib.spec import Layer, ModelSpec
from kvlib.units import format_bytes


@dataclass(frozen=True)
class Row:
    """One line of the sum. what: what is kept. one: what one token of it is, as people write it. tokens: None for a state."""

    n_layers: int
    what: str
    one: str
    tokens: int | None
    nbytes: int


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
        return [*self.spec.notes, *([beyond] if longest and self.n_tokens > longest else [])]

    def print(self) -> None:
        """The sum, line by line, what one token costs, and the engine's two numbers."""
        out = console()
        out.print(f"[bold]{self.spec.name}[/] · {self.n_tokens:,} {T('個 token', 'tokens')} × {self.batch} "
                  f"{sequences(self.batch)} · {self.kv_dtype}"
                  + (f" · TP {self.tp}" + T("（一張卡）", " (one rank)") if self.tp > 1 else ""))  # fmt: skip
        self._print_ideal(out)
        for plan, title in ((self.admission, T("收下請求時保留", "admits")), (self.allocation, T("池或靜態快取配置", "allocates"))):
            if plan:
                _print_plan(out, plan, title)
        plans = [plan for plan in (self.admission, self.allocation) if plan]
        show_notes(out, [*self.notes, *(note for plan in plans for note in plan.notes)])
        if plans and self.verbose:
            _print_rules(out, plans[0])
        elif not plans:
            out.print(T("理想值：模型之後還用得到的 K 與 V。引擎預留的更多：--engine vllm。",
                        "Ideal: the K and V that the model still needs. An engine reserves more: --engine vllm."), style="dim")  # fmt: skip

    def _print_ideal(self, out: Console) -> None:
        bits = {f.bits for f in kv_pair(self.kv_dtype)}
        per_value = bits.pop() / 8 if len(bits) == 1 else 0
        own = [t for t in self.terms if t.values]
        plain = all(t.token_bytes - t.layer.token_bytes == t.values * per_value for t in own)  # no scales, K and V alike
        rows = [row for t in self.terms for row in _rows(t, self.batch, plain)]
        shown = table(T("層", "layers"), T("留下", "keeps"), T("KV 頭 × (K + V)", "KV heads × (K + V)"), "token" if
                      T("zh", "") else "tokens", T("位元組", "bytes"), right=(0, 3, 4), fold=(2,))  # fmt: skip
        for row in rows:
            tokens = "" if row.tokens is None else f"{row.tokens:,}"
            shown.add_row(str(row.n_layers), row.what, row.one, tokens, f"{row.nbytes:,}")
        out.print(shown)
        out.print("= " + size(self.nbytes))
        formula = (T("層 × 值 × token", "layers × values × tokens") + f" × {per_value:g} B" if plain
                   else T("層 × 每個 token 的位元組 × token", "layers × bytes per token × tokens"))  # fmt: skip
        out.print(f"{formula} × {self.batch} {sequences(self.batch)}", style="dim")
        self._print_growth(out)

    def _print_growth(self, out: Console) -> None:
        growth = kv_growth(self.spec, self.kv_dtype, self.tp)
        text = T("每個 token ", "per token ") + format_bytes(growth.per_token_early)
        if growth.capped:
            text += T("；視窗都滿了之後 ", "; windows full: ") + format_bytes(growth.per_token_late)
            text += T("（視窗部分封頂於 ", " (their part stops at ") + format_bytes(growth.capped) + T("）", ")")
        if growth.constant:
            text += T("；每個序列固定 ", "; constant per sequence: ") + format_bytes(growth.constant)
        out.print(text)


def _rows(term: Term, batch: int, plain: bool) -> Iterator[Row]:
    """The parts of one term: K and V, index keys, K and V of an encoder's tokens, recurrent state, or nothing."""
    layer, n = term.layer, term.n_layers
    kv = term.token_bytes - layer.token_bytes
    if layer.shared_with is not None:
        reads = T(f"讀第 {layer.shared_with} 層", f"reads layer {layer.shared_with}")
        yield Row(n, reads, "", None, 0)
    elif kv and layer.cap != 0:
        yield Row(n, _span(layer), _values(term, plain), term.retained, n * batch * term.retained * kv)
    if layer.token_bytes and term.token_bytes and layer.cap != 0:
        yield Row(n, T("索引鍵", "index keys"), f"{layer.token_bytes} B", term.retained, n * batch * term.retained * layer.token_bytes)
    if layer.cross_tokens and term.token_bytes:
        cross = layer.cross_tokens
        yield Row(n, T("編碼器", "encoder"), _values(term, plain), cross, n * batch * cross * term.token_bytes)
    if layer.state_bytes:
        yield Row(n, T("循環狀態", "state"), f"{layer.state_bytes:,} B", None, n * batch * layer.state_bytes)
    if layer == Layer():
        yield Row(n, T("不留", "nothing"), "", None, 0)


def _span(layer: Layer) -> str:
    """Which tokens the layer keeps."""
    if layer.cap is None:
        return T("全部", "all")
    return T("視窗 ", "window ") + f"{layer.window:,}" if layer.cap == layer.window else T("分段 ", "chunk ") + f"{layer.cap:,}"


def _values(term: Term, plain: bool) -> str:
    """How the values per token come about, as people write it; their bytes where scales or other things are stored too."""
    layer = term.layer
    if layer.latent:
        rope = f" + RoPE {layer.latent_rope}" if layer.latent_rope else ""
        text = T("潛在向量 ", "latent ") + f"{layer.latent - layer.latent_rope}{rope}"
    else:
        text = f"{term.values // (layer.k_dim + layer.v_dim)} × ({layer.k_dim} + {layer.v_dim})"
    return text + (f" = {term.values:,}" if plain else f" → {term.token_bytes - layer.token_bytes:,} B")


def _print_plan(out: Console, plan: Plan, title: str) -> None:
    """One number of an engine, with its lines."""
    ask = plan.ask
    ranks = [f"TP {ask.tp}"] * (ask.tp > 1) + [f"PP {ask.pp} [{T('第', 'stage')} {plan.stage + 1}]"] * (ask.pp > 1)
    out.print(f"\n[bold]{plan.engine.name} {plan.engine.version}[/] {title}" + "".join(f" · {rank}" for rank in ranks))
    lines = table("", "", "", right=(2,), fold=(0, 1))
    for line in plan.lines:
        lines.add_row(line.label, line.formula, f"{line.nbytes:,}")
    out.print(lines)
    if plan.unit:
        out.print(T("一個區塊：", "one block: ") + plan.unit, style="dim", markup=False)
    out.print("= " + size(plan.nbytes))


def _print_rules(out: Console, plan: Plan) -> None:
    out.print("\n" + T(f"規則讀自 {plan.engine.name} {plan.engine.version}：", f"Rules, read in {plan.engine.name} {plan.engine.version}:"))
    for rule in plan.engine.rules:
        out.print(f"- {rule.text}", markup=False)
        out.print(f"  {rule.where}", style="dim", markup=False)
