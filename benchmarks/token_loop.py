"""How long one token takes: kvlib beside transformers and beside loops by hand. CPU, float32, one row.

    python benchmarks/token_loop.py [SECONDS]      # per shape and number of threads; 10 by default

All run the same random weights and continue the same prompt. "matmuls" is the step's matrix products alone, computed as
kvlib does (`model.linear`), and once more with F.linear; what kvlib takes beyond the former is its overhead.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import record
import torch
import torch.nn.functional as F
from clock import quantiles, take_turns, threads
from rich.console import Console
from rich.table import Table
from torch import Tensor
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, StaticCache

from kvlib import model as kv
from kvlib.decode import decode_step, prefill

VOCAB, PROMPT, CAPACITY, BURST = 16_000, 128, 256, 9
SHAPES = {
    "hidden 256 × 4": {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2,
                       "intermediate_size": 704},
    "hidden 1024 × 16": {"hidden_size": 1024, "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 4,
                         "intermediate_size": 2816},
}  # fmt: skip

Loop = tuple[Callable[[], object], Callable[[Tensor], Tensor]]  # back to the prompt; token (1,) → logits (1, vocab)


def kvlib_loop(model: kv.Llama, prompt: Tensor) -> Loop:
    cache = model.new_cache(1, CAPACITY)
    prefill(model, cache, prompt.tolist())
    return lambda: cache.truncate(PROMPT), lambda token: decode_step(model, cache, token)


def transformers_loop(model: LlamaForCausalLM, prompt: Tensor, *, static: bool, compiled: bool = False) -> Loop:
    cache = StaticCache(model.config, max_cache_len=CAPACITY) if static else DynamicCache(config=model.config)
    model(prompt, cache=cache)
    run = torch.compile(model.forward) if compiled else model

    def rewind() -> None:
        if (extra := int(cache.get_seq_length()) - PROMPT) > 0:
            cache.crop(-extra)

    return rewind, lambda token: run(token[:, None], cache=cache).logits[:, -1]


def by_hand(model: kv.Llama, weights: dict[str, Tensor], prompt: Tensor, *, joined: bool) -> Loop:
    """The shortest loop over a preallocated cache, nothing checked. joined: q, k, v in one matrix, gate and up in another."""
    c, n = model.config, PROMPT
    filled = model.new_cache(1, CAPACITY)
    prefill(model, filled, prompt.tolist())
    k_cache, v_cache, half = filled.k, filled.v, c.head_dim // 2
    names = ["self_attn.q", "self_attn.k", "self_attn.v", "mlp.gate", "mlp.up"]
    apart = [[weights[f"model.layers.{i}.{name}_proj.weight"] for name in names] for i in range(c.n_layers)]

    def norm(x: Tensor, w: Tensor) -> Tensor:
        return F.rms_norm(x, (c.hidden_size,), w, c.rms_norm_eps)

    def turn(x: Tensor) -> Tensor:
        return x * model.cos[n] + torch.cat([-x[..., half:], x[..., :half]], -1) * model.sin[n]

    def rewind() -> None:
        nonlocal n
        n = PROMPT

    def step(token: Tensor) -> Tensor:
        nonlocal n
        x = model.embedding[token]  # (1, hidden)
        for i, w in enumerate(model.layers):
            y = norm(x, w.attn_norm)
            if joined:
                qk, v = F.linear(y, w.qkv).view(-1, c.head_dim).split((c.n_heads + c.n_kv_heads, c.n_kv_heads))
                q, k = turn(qk).split((c.n_heads, c.n_kv_heads))
            else:
                q, k, v = (F.linear(y, m).view(-1, c.head_dim) for m in apart[i][:3])
                q, k = turn(q), turn(k)
            k_cache[i, 0, :, n], v_cache[i, 0, :, n] = k, v
            q = q.view(1, c.n_kv_heads, -1, c.head_dim)  # the heads of a group as queries of their KV head
            out = F.scaled_dot_product_attention(q, k_cache[i, :, :, : n + 1], v_cache[i, :, :, : n + 1])
            x = x + F.linear(out.view(1, -1), w.out)
            y = norm(x, w.ffn_norm)
            gate, up = F.linear(y, w.gate_up).chunk(2, -1) if joined else (F.linear(y, m) for m in apart[i][3:])
            x = x + F.linear(F.silu(gate) * up, w.down)
        n += 1
        return F.linear(norm(x, model.norm), model.head)

    return rewind, step


def matmuls(model: kv.Llama, linear: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The products of one step, each with a vector of the right length."""
    todo = [w for layer in model.layers for w in (layer.qkv, layer.out, layer.gate_up, layer.down)] + [model.head]
    inputs = [torch.randn(1, w.shape[1]) for w in todo]
    return lambda token: [linear(x, w) for x, w in zip(inputs, todo, strict=True)][-1]


def loops(shape: dict) -> tuple[dict[str, Loop], int]:
    """All competitors on the same weights, checked to give the same logits, and the bytes of weights a step reads."""
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=VOCAB, max_position_embeddings=CAPACITY, tie_word_embeddings=True, **shape)
    reference = LlamaForCausalLM(config).eval()
    weights = reference.state_dict()
    model = kv.Llama(kv.LlamaConfig.from_hf(config.to_dict()), weights)
    prompt, token = torch.randint(VOCAB, (1, PROMPT)), torch.tensor([7])
    found = {
        "kvlib": kvlib_loop(model, prompt),
        "by hand": by_hand(model, weights, prompt, joined=False),
        "by hand, joined": by_hand(model, weights, prompt, joined=True),
        "DynamicCache": transformers_loop(reference, prompt, static=False),
        "StaticCache": transformers_loop(reference, prompt, static=True),
        "StaticCache + compile": transformers_loop(reference, prompt, static=True, compiled=True),
    }
    for name, (rewind, step) in found.items():
        outputs = []
        for _ in range(2):  # the second time after going back
            rewind()
            outputs += [step(token), step(token)]
        worst = max((a - b).abs().max().item() for a, b in zip(outputs, kvlib_logits(found, token), strict=True))
        assert worst < 1e-4, f"{name} gives other logits than kvlib: {worst}"
    found["matmuls"] = (lambda: None, matmuls(model, kv.linear))
    found["matmuls, F.linear"] = (lambda: None, matmuls(model, F.linear))
    return found, sum(w.nbytes for name, w in weights.items() if name != "lm_head.weight")


def kvlib_logits(found: dict[str, Loop], token: Tensor) -> list[Tensor]:
    rewind, step = found["kvlib"]
    rewind()
    return [step(token), step(token)] * 2


@torch.inference_mode()
def measure(name: str, seconds: float) -> dict:
    found, nbytes = loops(SHAPES[name])
    token, result = torch.tensor([7]), {"weights_bytes": nbytes, "threads": {}}
    for n, clock in threads():
        for rewind, step in found.values():  # also compiles for this number of threads
            rewind()
            step(token)
        runs = {key: (lambda step=step: step(token)) for key, (_, step) in found.items()}
        taken = take_turns(runs, clock, seconds, burst=BURST, before={key: rewind for key, (rewind, _) in found.items()})
        rows = {key: quantiles(times) for key, times in taken.items()}
        result["threads"][n] = {"steps": len(taken["kvlib"]), "load": record.machine()["load"], "loops": rows}
    return result


def main(seconds: float) -> None:
    results = {name: measure(name, seconds) for name in SHAPES}
    settings = {"vocab_size": VOCAB, "prompt": PROMPT, "capacity": CAPACITY, "dtype": "float32", "batch": 1, "tied": True}
    path = record.write("token_loop", {"settings": settings, "configs": SHAPES, "results": results},
                        "kvlib", "torch", "transformers")  # fmt: skip
    show(results, path)


def show(results: dict, path: Path) -> None:
    for name, result in results.items():
        for n, run in result["threads"].items():
            title = f"{name}, threads {n}: ms per token, {run['steps']} steps, load {run['load']} ({path.parent.name}/{path.name})"
            table = Table("loop", "min", "p25", "p50", "p25 ÷ kvlib", "over matmuls, µs (p25)", title=title)
            base, floor = run["loops"]["kvlib"]["p25"], run["loops"]["matmuls"]["p25"]
            for key, row in run["loops"].items():
                numbers = (f"{row[q]:.3f}" for q in ("min", "p25", "p50"))
                table.add_row(key, *numbers, f"{row['p25'] / base:.2f}", f"{1e3 * (row['p25'] - floor):.0f}")
            Console(width=120).print(table)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10)
