"""Does what vLLM prints when it starts follow from the model? Line by line, with the arithmetic.

A printed GiB is an interval: 3.81 is anything from 3.805 to 3.815. The log follows when one number of blocks in that
interval gives all the numbers that it prints. Nothing is fetched: a model that the log names is a preset, or a file here.
"""

from dataclasses import dataclass

from kvlib.engines.log_checks import Check, budget_check, pool_blocks, pool_checks, verdict
from kvlib.engines.log_counting import Reading, readings
from kvlib.engines.log_lines import Lines, read_lines
from kvlib.engines.log_model import model_of
from kvlib.engines.log_notes import misleading
from kvlib.engines.options import named
from kvlib.engines.plan import Ask
from kvlib.errors import SpecError
from kvlib.i18n import T
from kvlib.kv_formats import kv_name
from kvlib.spec import ModelSpec

GIVEN = ("kv_dtype", "tp", "pp", "block_size", "max_num_batched_tokens", "max_model_len")


@dataclass(frozen=True)
class Explanation:
    """The answer of `explain_log`.

    reading: how vLLM came to the numbers. blocks: of the pool, None where the log does not tell. notes: what was assumed,
    and what is easily misread.
    """

    reading: Reading
    blocks: int | None
    checks: tuple[Check, ...]
    notes: tuple[str, ...]
    lines: Lines

    @property
    def verdict(self) -> str:
        """follows, explained (where numbers differ, the notes say why), untested, undecided or differs."""
        return verdict(self.checks)

    @property
    def follows(self) -> bool | None:
        """Do the numbers of the log follow from the model? None: the log cannot tell."""
        return {"untested": None, "undecided": None, "differs": False}.get(self.verdict, True)

    @property
    def conclusion(self) -> str:
        """The verdict as a sentence in the current language."""
        return {
            "follows": T("紀錄與模型相符。", "The log follows from the model."),
            "explained": T("紀錄與模型相符；不同的數字有解釋，見說明。",
                           "The log follows from the model; the notes explain the number that differs."),
            "untested": T("紀錄自身相符，但沒驗到模型：", "The log agrees with itself; the model was not tested: ") + (
                T("少了「Available KV cache memory」那一行。", "the log lacks “Available KV cache memory”.") if self.lines.memory is None
                else T("區塊數是手動指定的。", "the number of blocks was set by hand.")),
            "undecided": T("無法判斷：不是每張卡都印出記憶體；少的那一點，可能是別張卡剩得少，也可能是模型不對。",
                           "Cannot tell: not every rank printed its memory; the difference may be a rank that had less left, or "
                           "another model."),
            "differs": T("紀錄與模型不符。", "The log does not follow from the model."),
        }[self.verdict]  # fmt: skip

    def as_dict(self) -> dict:
        """For JSON. label, formula, block, conclusion and notes are in the current language."""
        x, keys = self.reading, ("key", "label", "unit", "logged", "logged_value", "formula", "computed", "computed_value",
                                 "agree", "explained", "undecided", "tests_model")  # fmt: skip
        return {
            "model": x.ask.spec.name, "version": self.lines.version, "follows": self.follows,
            "verdict": self.verdict, "conclusion": self.conclusion,
            "tp": x.ask.tp, "pp": x.ask.pp, "kv_dtype": kv_name(x.ask.kv_dtype), "block_size": x.size,
            "max_num_batched_tokens": x.ask.max_num_batched_tokens, "max_model_len": x.ask.max_model_len,
            "prefix_caching": x.ask.prefix_caching, "hybrid": x.ask.hybrid, "counting": x.counting.name,
            "block": x.unit, "block_bytes": x.block, "blocks": self.blocks,
            "pool_bytes": None if self.blocks is None else self.blocks * x.block, "blocks_per_request": x.per_request,
            "checks": [{key: getattr(check, key) for key in keys} for check in self.checks],
            "notes": list(self.notes), "lines": dict(self.lines.values),
        }  # fmt: skip


def explain_log(text: str, model: object = None, **given: object) -> Explanation:
    """Compare the start-up log of a vLLM engine with what follows from the model.

    text: the log, or a part of it. model: as for `load_spec`; None takes the preset, or the file here, that the log names.
    given: what the log does not say, or says wrongly: kv_dtype, tp, pp, block_size, max_num_batched_tokens, max_model_len.

    Raises SpecError when the text has too few lines about the cache to compare, or the model is not known.
    """
    if not isinstance(text, str):
        raise SpecError(f"text is {type(text).__name__}; expected the log as text")
    if unknown := sorted(set(given) - set(GIVEN)):
        raise SpecError(f"there is no option {unknown[0]!r}; expected one of {', '.join(GIVEN)}")
    given = {name: value for name, value in given.items() if value is not None}
    lines = read_lines(text, 2 if given.get("tp", 1) != 1 or given.get("pp", 1) != 1 else None)
    _check_enough(lines)
    spec, taken = model_of(model, lines)
    ask, assumed = _ask(spec, lines, given)
    ways = readings(ask, lines)
    best = min(ways, key=lambda x: sum(not check.agree for check in pool_checks(x, lines, pool_blocks(x, lines))))
    n = pool_blocks(best, lines)
    checks = (*budget_check(lines), *pool_checks(best, lines, n))
    notes = (*taken, *assumed, *_assumed(ask, best, lines), *misleading(lines, best, n))
    return Explanation(best, n, checks, notes, lines)


def _check_enough(lines: Lines) -> None:
    """One number alone agrees with anything."""
    sizes = [name for name in ("blocks", "tokens", "concurrency", "memory") if name in lines.values]
    if len(sizes) < 2 and not {"needed", "attention_block", "refused_for"} & set(lines.values):
        has = f"only {sizes[0]} is in this text, and nothing to compare it with" if sizes else (
            "this text has no line of a vLLM start-up log about its cache")  # fmt: skip
        raise SpecError(f"{has}; two of these are needed: “Available KV cache memory” or the memory profiling results, "
                        "“# GPU blocks”, “GPU KV cache size”, “Maximum concurrency”")  # fmt: skip


def _ask(spec: ModelSpec, lines: Lines, given: dict) -> tuple[Ask, tuple[str, ...]]:
    """The engine as the log describes it, and what had to be assumed."""
    dtypes = (lines.ds_mla, lines.kv_dtype, lines.dtype)
    usual = {
        "kv_dtype": next((name for name in dtypes if name not in (None, "auto")), "bf16"),
        "tp": lines.tp or 1,
        "pp": lines.pp or 1,
        "block_size": lines.block_size,
        "max_num_batched_tokens": lines.max_num_batched_tokens,
        "max_model_len": lines.length or lines.needed_for or lines.refused_for or lines.max_seq_len,
    } | given
    assumed = ()
    if usual["max_model_len"] is None:
        usual["max_model_len"] = longest = spec.max_position_embeddings
        if longest is None:
            raise SpecError(f"neither the log nor the model says how long a request may be; give {named('max_model_len')}")
        assumed = (T(f"紀錄裡沒有 max_model_len；這裡取模型的上限 {longest:,}。",
                     f"The log has no max_model_len; it is taken as the model's maximum, {longest:,}."),)  # fmt: skip
    return Ask(spec, 0, **usual), assumed


def _assumed(ask: Ask, x: Reading, lines: Lines) -> tuple[str, ...]:
    """What the log leaves open, and the value that explains most of it."""
    layers, step, kept = ask.spec.layers, x.ask.max_num_batched_tokens, x.ask.prefix_caching
    windows, notes = any(layer.cap for layer in layers), []
    if windows and not x.ask.hybrid and not lines.hybrid_off:
        notes.append(T("這些數字相當於有視窗的層也留全部 token。",
                       "The numbers are those of windowed layers that keep all tokens."))  # fmt: skip
    if windows and x.ask.hybrid and not ask.max_num_batched_tokens:
        notes.append(T(f"紀錄裡沒有 max_num_batched_tokens；這裡以 {step:,} 計。",
                       f"The log has no max_num_batched_tokens; it is taken as {step:,}."))  # fmt: skip
    if x.counting.v1 and lines.prefix_caching is None and any(layer.state_bytes for layer in layers):
        notes.append(T(f"紀錄裡沒有 enable_prefix_caching；這裡以 {kept} 計。",
                       f"The log has no enable_prefix_caching; it is taken as {kept}."))  # fmt: skip
    return tuple(notes)
