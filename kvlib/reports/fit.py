"""The report of `kvlib fit`: how long, how many, on how few cards, under every reading of "80 GB"."""

from dataclasses import dataclass

from kvlib.budget import Budget
from kvlib.fit import Reading, longest_sequence
from kvlib.i18n import T
from kvlib.reports.screen import bold, console, gb, say, sequences, show_notes, show_table, table
from kvlib.reports.words import engine_note, one_sequence, stored_words
from kvlib.units import GB, format_bytes


def held_back(budget: Budget) -> str:
    """What is taken from the cards besides the weights: "also taken from the cards: runtime 2 × 3 GB"."""
    text = T("卡上另外扣掉：執行環境 ", "also taken from the cards: runtime ") + f"{budget.n_gpus} × {budget.runtime / budget.n_gpus / GB:g} GB"
    return text + (T("，啟動值 ", ", activations ") + f"{gb(budget.activations)} GB" if budget.activations else "")


@dataclass(frozen=True)
class FitReport:
    """cards: per reading the fewest cards for one sequence, and for as many as were asked for; None: none are enough."""

    readings: list[Reading]
    cards: list[tuple[int | None, int | None]]
    n_tokens: int
    sequences: int
    block_size: int
    weight_dtype: str | None

    @property
    def fits(self) -> bool:
        """Does one sequence fit under any of the readings?"""
        return any(r.budget.max_sequences(self.n_tokens, self.block_size) for r in self.readings)

    def as_dict(self) -> dict:
        """All sizes in bytes over all cards. longest_sequence is null where every length fits."""
        b = self.readings[0].budget
        return {
            "schema": "kvlib.fit/1",
            "model": b.spec.name,
            "gpu": b.gpu.name,
            "n_gpus": b.n_gpus,
            "kv_dtype": b.kv_dtype,
            "weight_dtype": self.weight_dtype,
            "weights": b.weights,
            "runtime": b.runtime,
            "activations": b.activations,
            "n_tokens": self.n_tokens,
            "n_sequences": self.sequences,
            "block_size": self.block_size,
            "kv_per_sequence": b.kv_per_sequence(self.n_tokens),
            "max_position_embeddings": b.spec.max_position_embeddings,
            "readings": [
                {
                    "capacity_convention": r.capacity,
                    "utilization": r.utilization,
                    "capacity": r.budget.capacity,
                    "left_for_kv": r.budget.left_for_kv,
                    "longest_sequence": longest_sequence(r.budget, 1, self.block_size),
                    "sequences": r.budget.sequences(self.n_tokens),
                    "max_sequences": r.budget.max_sequences(self.n_tokens, self.block_size),
                    "fewest_cards_for_one": one,
                    "fewest_cards": many,
                }
                for r, (one, many) in zip(self.readings, self.cards, strict=True)
            ],
            "source": b.spec.source,
            "notes": self.notes,
        }

    @property
    def notes(self) -> list[str]:
        """What a person should know about this answer."""
        b = self.readings[0].budget
        return [*b.spec.notes, *filter(None, [engine_note(b.spec, b.kv_dtype)])]

    def print(self) -> None:
        """One line per reading of the cards' size."""
        b, out, n = self.readings[0].budget, console(), self.n_tokens
        out.print(f"{bold(b.spec.name)} · {b.n_gpus} × {b.gpu.name} · {b.kv_dtype}")
        stored, by_card = stored_words(b.spec, self.weight_dtype), one_sequence(b, n)
        out.print(T("權重 ", "weights ") + format_bytes(b.weights, "GB") + (T(f"（{stored}）", f" ({stored})") if stored else "")
                  + T("；一個序列 ", "; one sequence of ") + f"{n:,} {T('個 token', 'tokens')} " + format_bytes(b.kv_per_sequence(n))
                  + (f" = {by_card}" if by_card else ""))  # fmt: skip
        say(out, held_back(b), "")
        many = self.sequences > 1
        shown = table(T("容量", "capacity"), T("利用率", "use"), T("留給 KV\nGB", "left for KV\nGB"), T("一個序列\n最長 token", "longest\nsequence"),
                      T("放得下的\n序列", "sequences\nthat fit"), T("最少幾張卡\n放 1 個", "fewest cards\nfor 1"),
                      *([T(f"\n放 {self.sequences:,} 個", f"\nfor {self.sequences:,}")] if many else []), right=range(1, 7))  # fmt: skip
        for r, (one, all_of_them) in zip(self.readings, self.cards, strict=True):
            longest = longest_sequence(r.budget, 1, self.block_size)
            shown.add_row(r.capacity, f"{r.utilization:.0%}", gb(r.budget.left_for_kv), T("不限", "any") if longest is None else
                          f"{longest:,}", f"{r.budget.max_sequences(n, self.block_size):,}", *(f"{c or '–'}" for c in
                          ((one, all_of_them) if many else (one,))))  # fmt: skip
        show_table(out, shown)
        size, known = b.gpu.marketed, b.gpu.reported is not None
        reported = T("程式看到的", "what a program sees") if known else T("這張卡不知道", "not known of this card")
        notes = [T(f"decimal：{size}·10⁹ B；reported：{reported}；binary：{size}·2³⁰ B",
                   f"decimal: {size}·10⁹ B; reported: {reported}; binary: {size}·2³⁰ B")]  # fmt: skip
        if any(None in pair for pair in self.cards):
            notes.append(T("–：查詢頭分得平的卡數，沒有一種夠", "–: no number of cards that the query heads can be split over is enough"))
        longest = b.spec.max_position_embeddings
        if longest:
            notes.append(T(f"這個模型的上限是 {longest:,} 個 token", f"the model itself goes up to {longest:,} tokens"))
        for note in notes:
            say(out, note)
        if not self.fits:
            out.print(T("放不下：", "Does not fit: ") + f"{n:,} {T('個 token ×', 'tokens,')} 1 {sequences(1)}", style="bold red")
        show_notes(out, self.notes)
