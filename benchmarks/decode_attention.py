"""How fast attention of one new token reads the cache, CPU: kvlib beside what else torch and transformers offer.

    python benchmarks/decode_attention.py [SECONDS]      # per point; 0.5 by default

GB/s are bytes of K and V per second. "read" sums the same bytes with one call, which is the ceiling; where K and V fit the
last-level cache it is the cache's, elsewhere the memory's. All competitors get the views a `ContiguousCache` returns.
Small points run several times per turn, the first uncounted, so that each finds its K and V where its size lets them be.
"""

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import record
import torch
import torch.nn.functional as F
from clock import quantiles, take_turns, threads
from rich.console import Console
from rich.table import Table
from torch import Tensor
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from kvlib.attention import Mask, attention
from kvlib.cache import ContiguousCache

HEAD_DIM, MAX_BYTES = 128, 6 * 2**30
POINTS = list(itertools.product((torch.float32, torch.bfloat16), ((64, 8), (16, 8)), (1, 8), (1024, 4096, 32768)))
REPEATED_MAX = 2**29  # bytes of K and V as repeat_interleave repeats them; it takes seconds beyond
PLAIN = ("matmul", "SDPA, folded")  # the plain torch formulations that read K and V once


def competitors(q: Tensor, k: Tensor, v: Tensor) -> dict[str, Callable[[], Tensor]]:
    """q: (batch, n_heads, 1, head_dim); k, v: (batch, n_kv_heads, kv_len, head_dim). All return q's numbers in some shape."""
    group, n = q.shape[1] // k.shape[1], k.shape[2]
    folded, mask = q.view(q.shape[0], k.shape[1], group, HEAD_DIM), Mask.of(n - 1, n)
    layer = SimpleNamespace(num_key_value_groups=group, is_causal=True, training=False)
    scale = HEAD_DIM**-0.5

    def repeated() -> Tensor:
        return F.scaled_dot_product_attention(q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1))

    found = {
        "kvlib": lambda: attention(q, k, v, mask),
        "matmul": lambda: (folded * scale @ k.mT).softmax(-1) @ v,
        "SDPA, folded": lambda: F.scaled_dot_product_attention(folded, k, v),
        "SDPA, enable_gqa": lambda: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        "transformers": lambda: sdpa_attention_forward(layer, q, k, v, None, scaling=scale)[0],
    }
    return found | ({"repeat_interleave": repeated} if 2 * k.nbytes * group <= REPEATED_MAX else {})


@torch.inference_mode()
def measure(dtype: torch.dtype, heads: tuple[int, int], batch: int, n: int, seconds: float, clock: Callable) -> dict:
    n_heads, n_kv_heads = heads
    cache = ContiguousCache(1, batch, n_kv_heads, HEAD_DIM, capacity=n + 1, dtype=dtype)
    cache.append(0, *(torch.randn(batch, n_kv_heads, n, HEAD_DIM, dtype=dtype) for _ in "kv"))
    cache.advance(n)
    cache.k[:, :, :, n:] = cache.v[:, :, :, n:] = 0  # the free slot is read by "read"
    k, v = cache.k[0, :, :, :n], cache.v[0, :, :, :n]
    q = torch.randn(batch, n_heads, 1, HEAD_DIM, dtype=dtype)
    runs = competitors(q, k, v)
    expected, accuracy = runs["SDPA, folded"]().float().flatten(), 1e-5 if dtype == torch.float32 else 2e-2
    for name, run in runs.items():
        off = (run().float().flatten() - expected).abs().max().item()
        assert off < accuracy, f"{name} differs by {off}"
    words = [x.flatten().view(torch.float32) for x in (cache.k, cache.v)]
    runs["read"] = lambda: [x.sum() for x in words]
    nbytes = k.nbytes + v.nbytes
    taken = take_turns(runs, clock, seconds, burst=5 if nbytes <= 2 * last_level_cache() else 1)
    return {"dtype": str(dtype).removeprefix("torch."), "heads": f"{n_heads}/{n_kv_heads}", "batch": batch, "kv_len": n,
            "kv_bytes": nbytes, "in_cache": nbytes <= last_level_cache(), "calls": len(taken["read"]),
            "load": record.machine()["load"], "ms": {name: quantiles(times) for name, times in taken.items()}}  # fmt: skip


def last_level_cache() -> int:
    """Bytes, as the operating system tells; 32 MiB where it does not."""
    sizes = [p.read_text().strip() for p in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    return max((int(s[:-1]) * 2**10 for s in sizes if s.endswith("K")), default=32 * 2**20)


def main(seconds: float) -> None:
    points = []
    for n_threads, clock in threads():
        for dtype, heads, batch, n in POINTS:
            if 2 * batch * heads[1] * n * HEAD_DIM * dtype.itemsize <= MAX_BYTES:
                points.append({"threads": n_threads, **measure(dtype, heads, batch, n, seconds, clock)})
                print(".", end="", flush=True)
    results = {"head_dim": HEAD_DIM, "last_level_cache": last_level_cache(), "points": points}
    show(points, record.write("decode_attention", results, "kvlib", "torch", "transformers"))


def show(points: list[dict], path: Path) -> None:
    """GB/s at the minimum, and how many times faster kvlib is than the others (p25 of the one over p25 of the other)."""
    for n_threads in sorted({p["threads"] for p in points}):
        table = Table("dtype", "heads", "B", "N", "MiB", "read", "kvlib", "% of read", "÷ best plain", "÷ gqa", "÷ transf.",
                      "÷ repeat", title=f"\n{path.name}: GB/s, threads {n_threads}; kvlib's speed ÷ that of others")  # fmt: skip
        for p in (p for p in points if p["threads"] == n_threads):
            ms = p["ms"]
            speed = {name: p["kv_bytes"] / (1e6 * row["min"]) for name, row in ms.items()}
            faster = {name: f"{row['p25'] / ms['kvlib']['p25']:.2f}" for name, row in ms.items()}
            table.add_row(
                p["dtype"], p["heads"], str(p["batch"]), str(p["kv_len"]), f"{p['kv_bytes'] / 2**20:.0f}",
                f"{speed['read']:.1f}{' cache' if p['in_cache'] else ''}", f"{speed['kvlib']:.1f}",
                f"{100 * speed['kvlib'] / speed['read']:.0f}", min((faster[name] for name in PLAIN), key=float), faster["SDPA, enable_gqa"],
                faster["transformers"], faster.get("repeat_interleave", "–"))  # fmt: skip
        Console(width=120).print(table)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 0.5)
