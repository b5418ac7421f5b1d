"""The numbers in vLLM's start-up log, whatever version wrote it.

Invariant: nothing is computed here. A number is what the log prints; of lines that every rank prints, the smallest
counts, because all ranks take as many blocks as the one with least memory.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

_NUMBER, _GIB = r"(\d[\d,]{0,14})", r"(\d{1,9}(?:\.\d{1,9})?)"


def _int(text: str) -> int:
    return int(text.replace(",", ""))


def _truth(text: str) -> bool:
    return text == "True"


def _option(name: str, value: str) -> str:
    """An engine option as the config line (name=value) or the line of non-default arguments ('name': value) has it."""
    return rf"\b{name}'?(?:=|: ){value}"


PATTERNS: dict[str, tuple[str, Callable]] = {
    # how the engine was started
    "version": (r"(?:engine \(v|API server version:? v?|vLLM [Vv]ersion\s*: v?|█ +version )(\d+\.\d+[\w.]*)", str),
    "model": (_option("model", r"[\"']([^\"']+)[\"']"), str),
    "dtype": (_option("dtype", r"'?(?:torch\.)?(\w+)"), str),
    "ds_mla": (r"(fp8_ds_mla) KV cache format", str),
    "kv_dtype": (_option("kv_cache_dtype", r"'?(?:torch\.)?(\w+)"), str),
    "tp": (_option("tensor_parallel_size", _NUMBER), _int),
    "pp": (_option("pipeline_parallel_size", _NUMBER), _int),
    "block_size": (_option("block_size", _NUMBER), _int),
    "max_num_batched_tokens": (_option("max_num_batched_tokens", _NUMBER), _int),
    "prefix_caching": (_option("enable_prefix_caching", r"(True|False)"), _truth),
    "max_seq_len": (rf"(?:\bmax_seq_len=|'max_model_len': |Using max model len ){_NUMBER}", _int),
    "attention_block": (rf"Setting attention block size to {_NUMBER} tokens", _int),
    # what the profiling run found, in GiB
    "total": (rf"total_gpu_memory(?:=| \(){_GIB}GiB", str),
    "utilization": (rf"gpu_memory_utilization(?:=| \(){_GIB}", str),
    "weights": (rf"model weights take {_GIB}GiB", str),
    "non_torch": (rf"non_torch_memory(?:=| takes ){_GIB}GiB", str),
    "peak": (rf"peak_torch_memory={_GIB}GiB", str),
    "activations": (rf"PyTorch activation peak memory takes {_GIB}GiB", str),
    "memory": (rf"(?i)(?:kv_cache_size=|reserved for KV Cache is |available KV cache memory:? \(?){_GIB} ?GiB", str),
    "needed": (rf"\({_GIB} GiB KV cache is needed", str),
    "refused_for": (rf"max seq len \({_NUMBER}\) is larger than the maximum number of tokens", _int),
    "needed_for": (rf"at least one request with the models?'?s? max seq len \({_NUMBER}\)", _int),
    # what it came to
    "blocks": (rf"(?i)(?:gpu|cuda|rocm|xpu|hpu|tpu) blocks: {_NUMBER}", _int),
    "tokens": (rf"KV cache size: {_NUMBER} tokens|tokens that can be stored in KV cache \({_NUMBER}\)", _int),
    "length": (rf"Maximum concurrency for {_NUMBER} tokens", _int),
    "concurrency": (rf"Maximum concurrency for {_NUMBER} tokens per request: {_GIB}x", str),
    # what makes the numbers mean something else
    "override": (rf"num_gpu_blocks_override={_NUMBER}", _int),
    "context_parallel": (rf"KV cache size by the \w*cp_world_size {_NUMBER}", _int),
    "gb": (rf"weights took {_GIB} GB\b", str),
    "hybrid_off": (r"(Hybrid KV cache manager is disabled)", str),
    "draft": (r"(speculative_config(?:=Spec|': \{))", str),
    "one_line": (r"(KV cache size: [\d,]+ tokens, Maximum concurrency)", str),
}  # fmt: skip

RESULTS = ("blocks", "tokens", "length", "concurrency", "memory", "total", "utilization", "weights", "non_torch",
           "peak", "activations", "needed", "needed_for", "refused_for", "gb", "attention_block")  # fmt: skip
"""Lines that every start, and every rank, writes anew."""

PER_RANK = ("memory", "blocks", "tokens", "concurrency")


@dataclass(frozen=True)
class Lines:
    """The numbers by their name in `PATTERNS`; a name is absent when no line has it.

    starts: how often the engine was started in this text; the last one counts. ranks: the different values that the
    ranks printed, of the names that have more than one. memories: how many lines say how much memory there is.
    """

    values: dict = field(default_factory=dict)
    starts: int = 1
    ranks: dict = field(default_factory=dict)
    memories: int = 0

    def __getattr__(self, name: str) -> object:
        """The value, or None when the log has no such line."""
        if name in PATTERNS:
            return self.values.get(name)
        raise AttributeError(name)


def read_lines(text: str, ranks: int | None = None) -> Lines:
    """All numbers of the last start in `text`. ranks: how many print lines of their own; None takes it from the log."""
    found = {name: _all(name, text) for name in PATTERNS}
    starts = 1
    if (ranks or (found["tp"] or [1])[-1] * (found["pp"] or [1])[-1]) == 1 and (ends := _ends_of_starts(text)):
        starts = len(ends) + 1
        found |= {name: _all(name, text[ends[-1]:]) for name in RESULTS}
    values, differing = {}, {}
    for name, hits in found.items():
        if not hits:
            continue
        if name in PER_RANK:
            values[name] = min(hits, key=float)
            if len(set(hits)) > 1:
                differing[name] = sorted(set(hits), key=float)
        else:
            values[name] = hits[-1]
    return Lines(values, starts, differing, len(found["memory"]))


def _all(name: str, text: str) -> list:
    pattern, convert = PATTERNS[name]
    return [convert([g for g in m.groups() if g is not None][-1]) for m in re.finditer(pattern, text)]


def _ends_of_starts(text: str) -> list[int]:
    """Where the log of each start but the last one ends: after its line about concurrency, when the next differs."""
    hits = list(re.finditer(PATTERNS["concurrency"][0] + ".*", text))
    return [a.end() for a, b in pairwise(hits) if a.groups() != b.groups()]
