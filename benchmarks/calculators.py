"""Which calculators are right: kvlib, hf-mem and accelerate on every config that ships with kvlib, KV cache and weights.

    make .venv/.peers                        # the other two, in an environment of their own
    python benchmarks/calculators.py

The truth is what transformers builds and caches (cache_truth.py). bf16, one sequence, a length that the model was made for.
A KV answer is right when every byte is; weights may be off by 0.1 %, because a tool may count buffers too.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import record
import torch
import transformers
from cache_truth import Truth, text_only, tokens, truth
from rich.console import Console
from rich.table import Table

from kvlib import SpecError, kv_bytes, load_spec

MODELS = Path(__file__).resolve().parents[1] / "kvlib" / "models"
PEERS = Path(sys.executable).parent.parent / "peers" / Path(sys.executable).parent.name / "python"
KV_TOOLS, WEIGHT_TOOLS = ("kvlib", "hf-mem"), ("kvlib", "accelerate", "accelerate, LM")
HOW = 'kv_bytes(load_spec(config), N) and load_spec(config).weight_bytes("bf16")'
MEANS = {
    "kvlib": "what the model still needs after N tokens: a layer with a window of W keeps min(N, W)",
    "hf-mem": "by its own words what an engine reserves: where full and sliding layers mix, the sliding ones are not capped. Its "
    "weights are the sizes in the checkpoint's header; ours is made from the truth, so they are not judged",
    "accelerate": "parameters and buffers of AutoModel, which has no output head; no KV cache",
    "accelerate, LM": "parameters and buffers of the causal LM",
}
VERDICTS = ("right", "uncapped", "wrong", "no answer", "error")


def with_kvlib(config: dict, n_tokens: int) -> dict:
    """kvlib's answer; a refusal is no answer, whatever else it raises is an error."""
    answer = {"kv": None, "weights": None}
    try:
        spec = load_spec(config)
        answer["kv"] = kv_bytes(spec, n_tokens)
        answer["weights"] = spec.weight_bytes("bf16")
    except SpecError as refusal:
        answer["said"] = str(refusal)[:300]
    except Exception as error:  # noqa: BLE001
        answer["error"] = f"{type(error).__name__}: {error}"[:300]
    return answer


def with_peers(jobs: list[dict]) -> dict:
    """What the tools in the other environment answer. Raises SystemExit when that environment is missing or dies."""
    if not PEERS.exists():
        raise SystemExit("the other calculators are not installed: make .venv/.peers")
    command = [PEERS, Path(__file__).with_name("peer_calculators.py")]
    done = subprocess.run(command, input=json.dumps(jobs), check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"the other calculators failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def judged(answer: dict, what: str, right: tuple[int, ...], uncapped: int, tolerance: float) -> dict:
    """One tool's bytes beside the right ones, the first of which counts for the factor. "uncapped": exactly what it would be if
    windows and chunks did not cap."""
    if "error" in answer:
        return {"verdict": "error", "error": answer["error"]}
    if answer[what] is None:
        return {"verdict": "no answer", "said": answer.get("said", "")}
    near = any(abs(answer[what] - bytes_) <= tolerance * bytes_ for bytes_ in right)
    verdict = "right" if near else "uncapped" if answer[what] == uncapped else "wrong"
    return {"verdict": verdict, "bytes": answer[what], "factor": round(answer[what] / right[0], 6)}


def row(answers: dict, t: Truth, n_tokens: int) -> dict:
    """Everything about one model, as it is written."""
    right = (t.cached.kv, t.cached.narrow)
    kv = {tool: judged(answers[tool], "kv", right, t.cached.uncapped, 0) for tool in KV_TOOLS}
    result = {"tokens": n_tokens, "truth": t.source, "kv_bytes": right[0], "kv_bytes_uncapped": t.cached.uncapped,
              "kv_bytes_with_state_in_bf16": right[1], "kv": kv | {"accelerate": {"verdict": "no answer"}}}  # fmt: skip
    if t.params is not None:
        result["weight_bytes"] = 2 * t.params
        result["weights"] = {tool: judged(answers[tool], "weights", (2 * t.params,), 0, 1e-3) for tool in WEIGHT_TOOLS}
    return result


def main() -> None:
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    jobs, truths, unknown = [], {}, {}
    for path in sorted(MODELS.glob("*.json")):
        config = text_only(json.loads(path.read_text(encoding="utf-8"))["config"])
        n_tokens = tokens(config)
        try:
            t = truths[path.stem] = truth(path.stem, config, n_tokens)
        except Exception as error:  # noqa: BLE001  (whatever transformers raises: then nobody is judged by it)
            unknown[path.stem] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            continue
        if not config.get("architectures"):  # published files have it, and hf-mem asks for it
            config["architectures"] = [t.architecture]
        jobs.append({"name": path.stem, "config": config, "n_tokens": n_tokens, "tensors": t.tensors or {}})
    peers = with_peers(jobs)
    models = {}
    for job in jobs:
        answers = {"kvlib": with_kvlib(job["config"], job["n_tokens"]), **peers["answers"][job["name"]]}
        models[job["name"]] = row(answers, truths[job["name"]], job["n_tokens"])
    totals = {what: {tool: _count(models, what, tool) for tool in tools} for what, tools in
              {"kv": (*KV_TOOLS, "accelerate"), "weights": WEIGHT_TOOLS}.items()}  # fmt: skip
    results = {"totals": totals, "how": {"kvlib": HOW, **peers["how"]}, "means": MEANS, "peers": peers["versions"],
               "without_truth": unknown, "models": models}  # fmt: skip
    _show(results, record.write("calculators", results, "kvlib", "torch", "transformers"))


def _count(models: dict, what: str, tool: str) -> dict[str, int]:
    found = Counter(m[what][tool]["verdict"] for m in models.values() if what in m)
    return {verdict: found[verdict] for verdict in VERDICTS}


def _show(results: dict, path: Path) -> None:
    """Three tables of at most 100 columns: KV bytes, weight bytes, totals."""
    console = Console(width=100)
    for what, columns in (("kv", ("tokens", "kv_bytes")), ("weights", ("weight_bytes",))):
        tools = KV_TOOLS if what == "kv" else WEIGHT_TOOLS
        table = _table("model", *columns, *tools, title=f"{path.parent.name}/{path.name}: {what}")
        for name, m in results["models"].items():
            if what in m:
                table.add_row(name, *(f"{m[column]:,}" for column in columns), *(_cell(m[what][tool]) for tool in tools))
        console.print(table)
    table = _table("", "", *VERDICTS, title="models")
    for what, tools in results["totals"].items():
        for tool, found in tools.items():
            table.add_row(what, tool, *(f"{found[verdict]}" for verdict in VERDICTS))
    console.print(table)
    console.print("* exactly the bytes without windows and chunks", highlight=False)
    for name, why in results["without_truth"].items():
        console.print(f"{name}: nobody is judged ({why[:70]})", highlight=False)


def _table(*columns: str, title: str) -> Table:
    table = Table(title=title, box=None, padding=(0, 1, 0, 0))
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", no_wrap=True)
    return table


def _cell(judgement: dict) -> str:
    """ "right", or the bytes and how many times too many they are; a star for "uncapped"."""
    if judgement["verdict"] == "right" or "bytes" not in judgement:
        return judgement["verdict"]
    factor = judgement["factor"]
    digits = 3 if abs(factor - 1) > 1e-3 else 7
    return f"{judgement['bytes']:,} ×{factor:.{digits}g}{'*' if judgement['verdict'] == 'uncapped' else ''}"


if __name__ == "__main__":
    main()
