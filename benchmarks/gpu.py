"""make gpu: everything that needs a GPU, in under 5 minutes on an H200, into results/gpu.json.

    python benchmarks/gpu.py                 all parts
    python benchmarks/gpu.py attention loop  some parts
    python benchmarks/gpu.py --dry           tiny shapes on the CPU: does the script work? Prints, writes nothing

A part runs in a process of its own, with a time limit: one that fails or hangs is recorded, and the others still run. A
part saves after every measurement, so that what was measured before a failure is kept. What could not run says "not
run" and why.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import record
import torch
import torch.nn.functional as F
from torch import Tensor

ROOT = Path(__file__).resolve().parents[1]
LIMITS = {"tests": 95, "attention": 90, "loop": 75, "budget": 30}  # seconds per part; together under 5 minutes
PACKAGES = ("kvlib", "torch", "triton", "flashinfer-python", "flash-attn", "nvidia-cuda-nvcc")


class Part:
    """Where a part puts what it finds: a dict, saved after every change. dry: tiny shapes on the CPU."""

    def __init__(self, path: Path, dry: bool) -> None:
        self.path, self.dry, self.device = path, dry, "cpu" if dry else "cuda"
        self.found: dict = {}

    def save(self, **found: object) -> None:
        self.found |= found
        self.path.write_text(json.dumps(self.found), encoding="utf-8")

    def attempt(self, measure: Callable[[], dict]) -> dict:
        """What measure returns, or why it returned nothing."""
        try:
            return measure()
        except Exception as error:  # noqa: BLE001  a peer that is missing or cannot do this shape is a finding
            torch.cuda.empty_cache()
            return {"not run": f"{type(error).__name__}: {str(error).strip()[:300]}"}

    def seconds(self, call: Callable[[], object], rounds: int = 20) -> dict:
        """Median and least seconds of call. On CUDA it is replayed from a graph where it can be recorded, so that
        launches from Python do not count, and the L2 cache is overwritten before each round."""
        if self.dry:
            times = [_clock(call) for _ in range(2)]
            return {"s": statistics.median(times), "min_s": min(times), "graph": False}
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        replay = _graph(call)
        flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
        times = []
        for _ in range(rounds):
            flush.zero_()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            (replay or call)()
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end) / 1e3)
        return {"s": statistics.median(times), "min_s": min(times), "graph": replay is not None}

    def ceiling(self) -> float:
        """Bytes per second, read and written together, of copying a buffer far larger than the L2 cache."""
        source = torch.empty(1 << (20 if self.dry else 32), dtype=torch.uint8, device=self.device).random_(0, 255)
        target = torch.empty_like(source)
        return 2 * source.nbytes / self.seconds(lambda: target.copy_(source))["min_s"]


def _clock(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _graph(call: Callable[[], object]) -> Callable[[], None] | None:
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
        return graph.replay
    except Exception:  # noqa: BLE001  what cannot be recorded is timed as it is
        torch.cuda.synchronize()
        return None


# ---- tests -----------------------------------------------------------------------------------------------------------


def tests(part: Part) -> None:
    """The GPU-marked tests. `outcome` is pytest's own last line."""
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "--tb=short", "-p", "no:cacheprovider", "tests/gpu"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = run.stdout.strip().splitlines()
    outcome = lines[-1] if lines else run.stderr[-300:]
    passed = run.returncode == 0 and " passed" in outcome  # not when everything was skipped
    part.save(passed=passed, outcome=outcome, details=[] if passed else lines[-60:])


# ---- decode attention ------------------------------------------------------------------------------------------------


def attention(part: Part) -> None:
    """64 query heads, 8 KV heads, d 128, bf16: bytes of K and V per second, and as a fraction of a device copy."""
    n_heads, n_kv_heads, head_dim = (4, 2, 64) if part.dry else (64, 8, 128)
    lengths, batches = ((100,), (1, 2)) if part.dry else ((1024, 8192, 32_768, 131_072), (1, 8, 64))
    ceiling = part.ceiling()
    cases: list[dict] = []
    part.save(ceiling_bytes_per_s=ceiling, cases=cases, n_heads=n_heads, n_kv_heads=n_kv_heads, head_dim=head_dim)
    for kv_len in lengths:
        for batch in batches:
            q = torch.randn(batch, n_heads, 1, head_dim, device=part.device).bfloat16()
            size = (batch, n_kv_heads, kv_len, head_dim)
            k, v = (torch.empty(size, device=part.device, dtype=torch.bfloat16).normal_() for _ in range(2))
            row = {"n_tokens": kv_len, "batch": batch, "kv_bytes": k.nbytes + v.nbytes, "ways": {}}
            cases.append(row)
            expected = _grouped(q, k, v)
            for name, prepare in WAYS.items():
                if name == "flex" and batch != batches[1]:
                    continue  # it compiles for every shape: once per length
                row["ways"][name] = part.attempt(partial(_measure, part, prepare, q, k, v, expected, ceiling))
                part.save()
            del q, k, v, expected
            torch.cuda.empty_cache()


def _measure(part: Part, prepare: Callable, q: Tensor, k: Tensor, v: Tensor, expected: Tensor, ceiling: float) -> dict:
    call = prepare(q, k, v)
    error = (call().view_as(expected).float() - expected.float()).abs().max().item()
    timed = part.seconds(call)
    achieved = (k.nbytes + v.nbytes) / timed["s"]
    return timed | {"bytes_per_s": achieved, "of_ceiling": achieved / ceiling, "max_difference_from_grouped": error}


def _grouped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    from kvlib.attention import attention

    return attention(q, k, v, impl="grouped")


def _triton(q: Tensor, k: Tensor, v: Tensor) -> Callable[[], Tensor]:
    from kvlib.kernels.split_k import decode_attention

    return partial(decode_attention, q, k, v, _full(k))


def _cuda(q: Tensor, k: Tensor, v: Tensor) -> Callable[[], Tensor]:
    from kvlib.kernels.cuda import decode_attention

    return partial(decode_attention, q, k, v, _full(k))


def _flex(q: Tensor, k: Tensor, v: Tensor) -> Callable[[], Tensor]:
    from torch.nn.attention.flex_attention import flex_attention

    compute = torch.compile(flex_attention, dynamic=False) if q.is_cuda else flex_attention
    return partial(compute, q, k, v, enable_gqa=True)


def _flash_attn(q: Tensor, k: Tensor, v: Tensor) -> Callable[[], Tensor]:
    from flash_attn import flash_attn_with_kvcache

    return partial(flash_attn_with_kvcache, q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
                   cache_seqlens=_full(k))  # fmt: skip


def _flashinfer(q: Tensor, k: Tensor, v: Tensor) -> Callable[[], Tensor]:
    """One page per 16 tokens, in order; tensor cores on, as its documentation advises for groups of 8."""
    import flashinfer

    batch, n_kv_heads, kv_len, head_dim = k.shape
    pages = batch * kv_len // 16
    paged = [x.transpose(1, 2).reshape(pages, 16, n_kv_heads, head_dim).contiguous() for x in (k, v)]
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
        torch.empty(256 << 20, dtype=torch.uint8, device=k.device), "NHD", use_tensor_cores=True
    )
    starts = torch.arange(batch + 1, dtype=torch.int32, device=k.device) * (kv_len // 16)
    ids, last = torch.arange(pages, dtype=torch.int32, device=k.device), _full(k[:, :, :16])
    wrapper.plan(starts, ids, last, q.shape[1], n_kv_heads, head_dim, 16, q_data_type=q.dtype, kv_data_type=k.dtype)
    return partial(wrapper.run, q[:, :, 0].contiguous(), tuple(paged))


def _full(k: Tensor) -> Tensor:
    return torch.full((k.shape[0],), k.shape[2], dtype=torch.int32, device=k.device)


WAYS: dict[str, Callable] = {
    "triton": _triton,
    "cuda": _cuda,
    "grouped": lambda q, k, v: partial(_grouped, q, k, v),
    "sdpa enable_gqa": lambda q, k, v: partial(F.scaled_dot_product_attention, q, k, v, enable_gqa=True),
    "flex": _flex,
    "flash-attn": _flash_attn,
    "flashinfer": _flashinfer,
}


# ---- token loop ------------------------------------------------------------------------------------------------------


def loop(part: Part) -> None:
    """Milliseconds per token of a model of Llama-3.2-1B's shape, random bf16 weights: eager, graph, compiled graph."""
    from kvlib.decode import decode_step
    from kvlib.graph import GraphDecoder
    from kvlib.model import Llama, LlamaConfig, shapes

    names = ("n_layers", "n_heads", "n_kv_heads", "head_dim", "hidden_size", "intermediate_size", "vocab_size")
    numbers = (2, 4, 2, 64, 64, 96, 99) if part.dry else (16, 32, 8, 64, 2048, 8192, 128_256)
    sizes = dict(zip(names, numbers, strict=True))
    config = LlamaConfig(**sizes, rope_theta=500_000.0, tied=True)
    new = partial(torch.empty, device=part.device, dtype=torch.bfloat16)
    weights = {name: new(size).normal_(0, size[-1] ** -0.5) for name, size in shapes(config).items()}
    model, (context, steps) = Llama(config, weights), (8, 3) if part.dry else (1024, 64)
    ceiling, read = part.ceiling(), sum(w.nbytes for w in weights.values())
    part.save(config=sizes, context=context, steps=steps, ceiling_bytes_per_s=ceiling, weight_bytes=read, ways={})

    def measure(batch: int, way: str) -> dict:
        if way == "eager":
            cache = model.new_cache(batch, context + steps + 8)
            step = partial(decode_step, model, cache)
        else:
            decoder = GraphDecoder(model, batch, context + steps + 8, compiled=way == "compiled graph")
            cache, step = decoder.cache, decoder.step
        for layer in range(config.n_layers):  # a context out of thin air
            k = new(batch, config.n_kv_heads, context, config.head_dim).normal_()
            cache.append(layer, k, k.flip(2))
        cache.advance(context)
        tokens, sync, times = torch.zeros(batch, dtype=torch.long, device=part.device), torch.cuda.synchronize, []
        prepared = _clock(lambda: [step(tokens) for _ in range(3)])
        for _ in range(steps):
            if not part.dry:
                sync()
            start = time.perf_counter()
            tokens = step(tokens).argmax(-1)
            if not part.dry:
                sync()
            times.append(1e3 * (time.perf_counter() - start))
        kv = 2 * config.n_layers * batch * config.n_kv_heads * context * config.head_dim * 2
        ms, floor = statistics.median(times), 1e3 * (read + kv) / ceiling
        return {"ms_per_step": ms, "min_ms": min(times), "floor_ms": floor, "floor_over_ms": floor / ms,
                "prepare_s": prepared}  # fmt: skip

    for batch in (1, 2) if part.dry else (1, 16):
        for way in ("eager", "graph", "compiled graph"):
            part.found["ways"][f"{way}, batch {batch}"] = part.attempt(partial(measure, batch, way))
            part.save()
            torch.cuda.empty_cache()


# ---- the budget, physically ------------------------------------------------------------------------------------------


def budget(part: Part) -> None:
    """Allocate Llama-2-70B's weights in fp8, then KV in bf16 until nothing fits: tokens predicted against tokens held.

    Predicted from the memory that is free once CUDA has started, with nothing for runtime: what the formula leaves out
    is then the allocator's rounding alone. Dry: the same on the CPU, in a thousandth of the size, under 200 MB.
    """
    from kvlib import load_spec, memory_budget

    spec, scale, step = load_spec("llama-2-70b"), 1000 if part.dry else 1, 256
    per_token = memory_budget(spec, kv_dtype="bf16").kv_per_sequence(1) // scale
    total, limit = 0, 200_000_000
    held: list[Tensor] = []
    if not part.dry:
        torch.cuda.init()
        limit, total = torch.cuda.mem_get_info()
    ledger = memory_budget(spec, capacity=limit * scale, weight_dtype="fp8", kv_dtype="bf16", runtime_per_gpu=0)
    predicted = int(ledger.sequences(1))
    part.save(free_bytes=limit, total_bytes=total, weight_bytes=ledger.weights // scale, bytes_per_token=per_token,
              predicted_tokens=predicted, step_tokens=step)  # fmt: skip

    def hold(nbytes: int) -> None:
        if part.dry and sum(x.nbytes for x in held) + nbytes > limit:
            raise torch.OutOfMemoryError("the limit of the dry run")
        held.append(torch.empty(nbytes, dtype=torch.uint8, device=part.device))

    try:
        for weight in spec.weights:
            for _ in range(weight.count):
                hold(weight.n_params // weight.count // scale)
    except torch.OutOfMemoryError:
        part.save(**{"not run": f"the weights do not fit: {sum(x.nbytes for x in held)} bytes held"})
        return
    tokens = 0
    while step:  # in ever smaller pieces, down to one token
        try:
            hold(step * per_token)
            tokens += step
        except torch.OutOfMemoryError:
            step //= 4
    part.save(actual_tokens=tokens, difference=tokens / max(1, predicted) - 1)


# ---- all of it -------------------------------------------------------------------------------------------------------

PARTS = {"tests": tests, "attention": attention, "loop": loop, "budget": budget}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; none is all")
    parser.add_argument("--dry", action="store_true", help="tiny shapes on the CPU; prints, writes nothing")
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)  # the process of one part
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; expected {', '.join(PARTS)}")
    if options.into:
        PARTS[options.parts[0]](Part(options.into, options.dry))
        return
    if not (options.dry or torch.cuda.is_available()):
        sys.exit("make gpu: no CUDA device here. To see that the script works: python benchmarks/gpu.py --dry")
    results: dict = {"gpu": {"not run": "dry"} if options.dry else _gpu(), "parts": {}}
    for name in options.parts or PARTS:
        results["parts"][name] = _run(name, options.dry)
        print(f"{name}: {results['parts'][name]['status']}, {results['parts'][name]['took_s']} s", flush=True)
        if not options.dry:
            record.write("gpu", results, *PACKAGES)
    print(json.dumps(results, indent=1) if options.dry else f"wrote {record.RESULTS / 'gpu.json'}")


def _run(name: str, dry: bool) -> dict:
    """One part in a process of its own: status, seconds, and what it saved."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part.json"
        command = [sys.executable, __file__, name, "--into", str(path), *(["--dry"] if dry else [])]
        env = os.environ | ({"TRITON_INTERPRET": "1"} if dry else {})
        try:
            limit = LIMITS[name] * (5 if dry else 1)
            run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=limit, check=False)
            status = "ok" if run.returncode == 0 else f"failed: {run.stderr.strip()[-2000:]}"
        except subprocess.TimeoutExpired:
            status = f"stopped after {limit} s"
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {"status": status, "took_s": round(time.perf_counter() - start, 1)} | found


def _gpu() -> dict:
    x = torch.cuda.get_device_properties(0)
    return {"name": x.name, "capability": f"{x.major}.{x.minor}", "n_sms": x.multi_processor_count,
            "total_bytes": x.total_memory, "l2_bytes": x.L2_cache_size, "cuda": torch.version.cuda}  # fmt: skip


if __name__ == "__main__":
    main()
