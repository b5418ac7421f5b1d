"""Every causal LM class of transformers with its default arguments: does kvlib's answer equal what its cache holds?

    python tests/kvlib/sweep.py [model_type …]

One line per class, then right / refused / wrong / not comparable. right: bytes at lengths below and above every window,
and all four numbers of the growth, equal the tensors in transformers' cache, counted by the rules of `sweep_probe`.
refused: a SpecError. A class is read and run twice, with its default arguments and scaled down to distinct numbers; each
class has a process of its own and a time limit.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait

import torch
from sweep_cases import MODEL_TYPES, NEEDED, scaled_changes
from sweep_probe import Held, build, make_config, run
from transformers import PreTrainedConfig

from kvlib import KVGrowth, ModelSpec, SpecError, kv_bytes, kv_growth, load_spec

SECONDS, PROCESSES = 900, 2
STATUSES = "right", "refused", "wrong", "not comparable"


@dataclass(frozen=True)
class Verdict:
    """What came out for one class: one of `STATUSES`, and why."""

    model_type: str
    status: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.model_type:24} {self.status:15} {self.detail}"


def judge(model_type: str) -> Verdict:
    """The default config of a class, and its scaled one.

    Wrong if either is wrong; the scaled one speaks for the class where transformers cannot run the default one.
    """
    needed = NEEDED.get(model_type, {})
    default, scaled = compare(model_type, needed), None
    try:
        config = make_config(model_type, **needed)
        if not hasattr(config, "text_config"):
            scaled = compare(model_type, scaled_changes(model_type, config))
    except Exception as error:  # noqa: BLE001  no default config
        scaled = Verdict(model_type, "not comparable", _short(error))
    status = default.status
    if scaled and (scaled.status == "wrong" or status == "not comparable"):
        status = scaled.status
    parts = [f"{x.status}: {x.detail}" if x.status != "right" else f"right {x.detail}" for x in (default, scaled) if x]
    needs = f"needs {', '.join(needed)}; " if needed else ""
    return Verdict(model_type, status, needs + " | scaled ".join(parts))


def compare(model_type: str, changes: dict) -> Verdict:
    """One config of a class: what kvlib reads in its to_dict() against what transformers keeps."""
    try:
        config = make_config(model_type, **changes)
        fields = json.loads(json.dumps(config.to_dict()))
    except Exception as error:  # noqa: BLE001  what a class raises is its own affair
        return Verdict(model_type, "not comparable", f"no config: {_short(error)}")
    text = fields.get("text_config") or fields
    encoder_tokens = 7 if text.get("is_encoder_decoder") or text.get("cross_attention_layers") else 0
    try:
        spec = load_spec(fields, **({"encoder_tokens": encoder_tokens} if encoder_tokens else {}))
    except SpecError as error:
        return Verdict(model_type, "refused", _short(error))
    try:
        held = observe(config, encoder_tokens, "cpu" if model_type == "jetmoe" else "meta")
    except Exception as error:  # noqa: BLE001
        return Verdict(model_type, "not comparable", f"transformers: {_short(error)}")
    if not any(held.values()):
        return Verdict(model_type, "not comparable", "transformers keeps no cache for this class")
    return _verdict(model_type, spec, held)


def observe(config: PreTrainedConfig, encoder_tokens: int = 0, device: str = "meta") -> dict[int, list[Held]]:
    """What the cache holds at 5 and 6 tokens, at the longest window, and at two lengths beyond it.

    None is beyond the longest context of the model: a window that no context fills is no window.
    """
    model = build(config, device)
    held = {n: run(model, n, encoder_tokens=encoder_tokens) for n in (5, 6)}
    window = max((x.window for x in held[5] if x.window), default=10)
    longest = getattr(config.get_text_config(), "max_position_embeddings", None) or window + 4
    last = min(window + 4, longest)
    return held | {n: run(model, n, encoder_tokens=encoder_tokens) for n in {min(window, last - 2), last - 1, last}}


def _verdict(model_type: str, spec: ModelSpec, held: dict[int, list[Held]]) -> Verdict:
    """Right if all differences vanish with recurrent states as held, or all in one declared dtype."""
    misses = {price: list(_differences(spec, held, price)) for price in (None, torch.bfloat16, torch.float32)}
    for price, missed in misses.items():
        if not missed:
            states = any(x.is_state for x in held[5])
            return Verdict(model_type, "right", f"states as {price or 'held'}".replace("torch.", "") if states else "")
    return Verdict(model_type, "wrong", "; ".join(min(misses.values(), key=len)))


def _differences(spec: ModelSpec, held: dict[int, list[Held]], state_dtype: torch.dtype | None) -> Iterator[str]:
    truth = {n: sum(x.ideal_bytes(n, state_dtype) for x in tensors) for n, tensors in held.items()}
    for n, right in truth.items():
        if (answer := kv_bytes(spec, n)) != right:
            yield f"{n} tokens: {answer:,}, transformers {right:,}"
    *_, almost, longest = sorted(truth)
    early, late = truth[6] - truth[5], truth[longest] - truth[almost]
    constant = truth[5] - 5 * early
    right = KVGrowth(early, late, truth[longest] - longest * late - constant, constant)
    answer = kv_growth(spec)
    if all(x.window is None or x.window <= almost for x in held[5]):
        if answer != right:
            yield f"{answer}, transformers {right}"
    elif (answer.per_token_early, answer.constant) != (early, constant):  # no context goes beyond the window
        yield f"{answer}, transformers early {early}, constant {constant}"


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())
    return (text if isinstance(error, SpecError) else f"{type(error).__name__}: {text}")[:240]


def sweep(model_types: Iterable[str]) -> Iterator[Verdict]:
    """`judge` for each, in processes of their own, `PROCESSES` at a time; one that dies or hangs is not comparable."""
    context, waiting = get_context("fork"), list(model_types)[::-1]
    running: dict[Connection, tuple] = {}
    while waiting or running:
        while waiting and len(running) < PROCESSES:
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_child, args=(waiting[-1], sender))
            process.start()
            sender.close()
            running[receiver] = waiting.pop(), process
        for receiver in wait(list(running), timeout=SECONDS) or list(running):
            model_type, process = running.pop(receiver)
            try:
                yield receiver.recv() if receiver.poll() else Verdict(model_type, "not comparable", f"over {SECONDS} s")
            except EOFError:
                yield Verdict(model_type, "not comparable", "its process died")
            process.kill()
            process.join()


def _child(model_type: str, sender: Connection) -> None:
    torch.set_num_threads(1)
    try:
        sender.send(judge(model_type))
    except Exception as error:  # noqa: BLE001  an error of kvlib other than SpecError
        sender.send(Verdict(model_type, "wrong", f"kvlib raised {_short(error)}"))


def main(model_types: list[str]) -> int:
    """Print one line per class and the counts; 1 if anything is wrong."""
    counts = Counter()
    for verdict in sweep(model_types or MODEL_TYPES):
        counts[verdict.status] += 1
        print(verdict, flush=True)
    print(" / ".join(f"{status} {counts[status]}" for status in STATUSES))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
