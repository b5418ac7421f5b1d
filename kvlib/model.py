"""A small Llama: RMSNorm, RoPE, grouped-query attention, SwiGLU. Small enough to read, equal to transformers.

Invariant: the model knows no cache but the contract. It appends per layer, attends over what append returns, and commits
the step once, after the last layer.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from kvlib import rope
from kvlib.attention import Mask, attention
from kvlib.cache import Cache, ContiguousCache
from kvlib.cache.contract import counts_of
from kvlib.config.fields import Fields
from kvlib.errors import SpecError
from kvlib.layouts import LAYOUTS
from kvlib.layouts.facts import on
from kvlib.readers import read_config

READABLE = ("llama", "mistral", "qwen2")


@dataclass(frozen=True, slots=True)
class LlamaConfig:
    """The sizes of a Llama, in the field's names. qkv_bias, o_bias: biases in attention; tied: the head is the embedding."""

    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    hidden_size: int
    intermediate_size: int
    vocab_size: int
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10_000.0
    rope_scaling: Mapping | None = None
    qkv_bias: bool = False
    o_bias: bool = False
    tied: bool = False

    @classmethod
    def from_hf(cls, config: Mapping) -> "LlamaConfig":
        """From the fields of a Hugging Face config of type llama, mistral (no window) or qwen2 (no window).

        Raises SpecError for another type, for windows, and for absent or contradictory fields.
        """
        spec, fields = read_config(config), Fields(config, "config")
        model_type = fields.text("model_type")
        if model_type not in READABLE or any(layer.cap for layer in spec.layers):
            raise SpecError(f"model_type is {model_type!r}, largest window {max((x.cap or 0) for x in spec.layers)}; kvlib.model "
                            f"runs {', '.join(READABLE)} without windows")  # fmt: skip
        if config.get("quantization_config"):
            raise SpecError("quantization_config is set; kvlib.model reads plain weights: dequantise the checkpoint first")
        if fields.flag("mlp_bias", default=False):
            raise SpecError("mlp_bias is true; kvlib.model has no biases in the feed-forward block")
        if config.get("hidden_act", "silu") != "silu":
            raise SpecError(f"hidden_act is {config['hidden_act']!r}; kvlib.model computes silu")
        layout = LAYOUTS[model_type]
        scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
        return cls(
            n_layers=spec.n_layers, n_heads=spec.n_heads, n_kv_heads=spec.n_kv_heads, head_dim=spec.head_dim,
            hidden_size=spec.hidden_size, intermediate_size=fields.integer("intermediate_size"),
            vocab_size=fields.integer("vocab_size"), max_position_embeddings=spec.max_position_embeddings or 4096,
            rms_norm_eps=float(config.get("rms_norm_eps", 1e-6)),
            rope_theta=float(scaling.get("rope_theta") or config.get("rope_theta") or 10_000.0), rope_scaling=scaling or None,
            qkv_bias=on(fields, layout.qkv_bias), o_bias=on(fields, layout.o_bias), tied=on(fields, layout.tied),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer's weights. q, k and v stand in one matrix, gate and up in another: one product instead of three, or two."""

    attn_norm: Tensor  # (hidden,)
    qkv: Tensor  # ((n_heads + 2 · n_kv_heads) · head_dim, hidden)
    qkv_bias: Tensor | None
    out: Tensor  # (hidden, n_heads · head_dim)
    out_bias: Tensor | None
    ffn_norm: Tensor  # (hidden,)
    gate_up: Tensor  # (2 · intermediate, hidden)
    down: Tensor  # (hidden, intermediate)


class Llama:
    """The model: a config, and weights under Hugging Face's names."""

    def __init__(self, config: LlamaConfig, weights: Mapping[str, Tensor]) -> None:
        """weights: name → tensor, as in a Hugging Face checkpoint. SpecError names a tensor that is absent or misshapen."""
        self.config = c = config
        take = _Taker(weights)
        self.embedding = take("model.embed_tokens.weight", c.vocab_size, c.hidden_size)
        self.layers = [_read_layer(c, take, f"model.layers.{i}.") for i in range(c.n_layers)]
        self.norm = take("model.norm.weight", c.hidden_size)
        self.head = self.embedding if c.tied else take("lm_head.weight", c.vocab_size, c.hidden_size)
        self.dtype, self.device = self.embedding.dtype, self.embedding.device
        freqs = rope.frequencies(c.head_dim, c.rope_theta, c.rope_scaling)
        self.cos, self.sin = (t.to(self.device) for t in rope.tables(c.max_position_embeddings, freqs, self.dtype))
        take.refuse_leftovers({*shapes(c), "lm_head.weight"})  # a tied checkpoint may carry a copy of the head

    @classmethod
    def random(cls, config: LlamaConfig, seed: int = 0, dtype: torch.dtype = torch.float32,
               device: torch.device | str = "cpu") -> "Llama":  # fmt: skip
        """Random weights, the same for the same seed on every device."""
        generator = torch.Generator().manual_seed(seed)
        return cls(config, {name: _random(shape, generator).to(device, dtype) for name, shape in shapes(config).items()})

    @classmethod
    def from_folder(cls, folder: str | Path, dtype: torch.dtype = torch.float32,
                    device: torch.device | str = "cpu") -> "Llama":  # fmt: skip
        """Load a Hugging Face folder: config.json, and the *.safetensors that its index names, or all of them."""
        from safetensors.torch import load_file

        folder = Path(folder)
        index = folder / "model.safetensors.index.json"
        if index.is_file():
            named = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
            files = [folder / name for name in sorted(set(named))]
        else:
            files = sorted(folder.glob("*.safetensors"))
        if not (folder / "config.json").is_file() or not files:
            raise SpecError(f"{folder} has no config.json or no *.safetensors; give a Hugging Face model folder")
        config = LlamaConfig.from_hf(json.loads((folder / "config.json").read_text(encoding="utf-8")))
        weights = {name: x.to(device, dtype) for file in files for name, x in load_file(file).items()}
        return cls(config, weights)

    def new_cache(self, batch: int, capacity: int) -> ContiguousCache:
        """A preallocated cache that fits this model."""
        c = self.config
        return ContiguousCache(c.n_layers, batch, c.n_kv_heads, c.head_dim, capacity, dtype=self.dtype, device=self.device)

    @torch.inference_mode()
    def forward(self, tokens: Tensor, cache: Cache, n_new: Sequence[int] | None = None, impl: str = "auto") -> Tensor:
        """Run tokens that continue what `cache` holds, and commit them.

        tokens: (batch, q_len), padded on the right where n_new says so. n_new: real tokens per row; None is q_len for all.
        Returns the hidden states before the head: (batch, q_len, hidden_size); `logits` turns them into scores.
        """
        batch, q_len = tokens.shape
        counts = [q_len] * batch if n_new is None else counts_of("n_new", list(n_new), batch)
        starts = cache.lengths
        self._check_rows(batch, starts, counts)
        if len(set(starts)) == 1 and set(counts) == {q_len}:
            starts, lengths = starts[:1], (starts[0] + q_len,)
        else:
            lengths = tuple(a + b for a, b in zip(starts, counts, strict=True))
        mask, turn = Mask(starts, lengths), self._turn(starts, q_len)
        x = F.embedding(tokens, self.embedding)  # (batch, q_len, hidden)
        for i, w in enumerate(self.layers):
            x = x + self._attend(i, w, x, cache, n_new, mask, turn, impl)
            x = x + self._feed_forward(w, x)
        cache.advance(counts)
        return x

    def logits(self, hidden: Tensor) -> Tensor:
        """(…, hidden_size) → (…, vocab_size)."""
        return linear(self._norm(hidden, self.norm), self.head)

    def _attend(self, i: int, w: _Layer, x: Tensor, cache: Cache, n_new: Sequence[int] | None, mask: Mask,
                turn: tuple[Tensor, Tensor], impl: str) -> Tensor:  # fmt: skip
        c, (batch, q_len, _) = self.config, x.shape
        qkv = linear(self._norm(x, w.attn_norm), w.qkv, w.qkv_bias)
        heads = qkv.view(batch, q_len, -1, c.head_dim).transpose(1, 2)  # (batch, n_heads + 2 n_kv_heads, q_len, head_dim)
        qk, v = heads.split((c.n_heads + c.n_kv_heads, c.n_kv_heads), dim=1)
        q, k = rope.rotate(qk, *turn).split((c.n_heads, c.n_kv_heads), dim=1)
        k_all, v_all = cache.append(i, k, v, n_new)
        out = attention(q, k_all, v_all, mask, impl)  # (batch, n_heads, q_len, head_dim)
        return linear(out.transpose(1, 2).reshape(batch, q_len, -1), w.out, w.out_bias)

    def _feed_forward(self, w: _Layer, x: Tensor) -> Tensor:
        gate, up = linear(self._norm(x, w.ffn_norm), w.gate_up).chunk(2, dim=-1)
        return linear(F.silu(gate) * up, w.down)

    def _turn(self, starts: Sequence[int], q_len: int) -> tuple[Tensor, Tensor]:
        """cos and sin of the new tokens' positions, broadcasting to (batch, heads, q_len, head_dim)."""
        if len(starts) == 1:
            span = slice(starts[0], starts[0] + q_len)
            return self.cos[span], self.sin[span]
        positions = torch.tensor(starts, device=self.device)[:, None] + torch.arange(q_len, device=self.device)
        positions.clamp_(max=len(self.cos) - 1)  # of padding only
        return self.cos[positions][:, None], self.sin[positions][:, None]

    def _check_rows(self, batch: int, starts: Sequence[int], counts: Sequence[int]) -> None:
        if not batch == len(starts) == len(counts):
            raise SpecError(f"{batch} rows of tokens and {len(counts)} n_new; the cache has {len(starts)} rows")
        n = max(a + b for a, b in zip(starts, counts, strict=True))
        if n > self.config.max_position_embeddings:
            raise SpecError(f"token {n} is beyond max_position_embeddings = {self.config.max_position_embeddings}")

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), weight, self.config.rms_norm_eps)


BLOCKS = 16  # enough for as many cores
WORTH_BLOCKS = 2**18  # numbers in a matrix: 1 MiB, about what one core's own cache holds


def linear(x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ wᵀ + bias: (…, n_in) → (…, n_out).

    A decode step of one row is little else than reading each w once, and torch's product with a single float32 row reads
    more slowly than a batch of smaller products over blocks of rows (benchmarks/token_loop.py times both). The result
    differs by rounding only.
    """
    one_row = x.numel() == x.shape[-1]
    if one_row and x.device.type == "cpu" and x.dtype == torch.float32 and w.numel() >= WORTH_BLOCKS and not len(w) % BLOCKS:
        blocks = w.unflatten(0, (BLOCKS, -1))  # (BLOCKS, n_out / BLOCKS, n_in)
        # a column as a row turned: of two layouts with the same numbers torch reads this one several times faster
        y = torch.bmm(blocks, x.reshape(1, -1).mT.expand(BLOCKS, -1, -1)).view(*x.shape[:-1], -1)
        return y if bias is None else y + bias
    return F.linear(x, w, bias)


def shapes(c: LlamaConfig) -> dict[str, tuple[int, ...]]:
    """Hugging Face's names of all weights, with their shapes."""
    q, kv, inner, hidden = c.n_heads * c.head_dim, c.n_kv_heads * c.head_dim, c.intermediate_size, c.hidden_size
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (c.vocab_size, hidden), "model.norm.weight": (hidden,)}
    for i in range(c.n_layers):
        p = f"model.layers.{i}."
        found |= {p + f"self_attn.{n}_proj.weight": (size, hidden) for n, size in (("q", q), ("k", kv), ("v", kv))}
        found |= {p + "self_attn.o_proj.weight": (hidden, q)}
        found |= {p + f"mlp.{n}_proj.weight": (inner, hidden) for n in ("gate", "up")}
        found |= {p + "mlp.down_proj.weight": (hidden, inner)}
        found |= {p + f"{n}_layernorm.weight": (hidden,) for n in ("input", "post_attention")}
        if c.qkv_bias:
            found |= {p + f"self_attn.{n}_proj.bias": (size,) for n, size in (("q", q), ("k", kv), ("v", kv))}
        if c.o_bias:
            found |= {p + "self_attn.o_proj.bias": (hidden,)}
    return found if c.tied else found | {"lm_head.weight": (c.vocab_size, hidden)}


def _random(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    x = torch.randn(shape, generator=generator)
    return 1 + 0.1 * x if len(shape) == 1 else x / shape[-1] ** 0.5


class _Taker:
    """Looks weights up by name and shape."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        self.weights = weights

    def __call__(self, name: str, *shape: int) -> Tensor:
        found = self.weights.get(name)
        if found is None or tuple(found.shape) != shape:
            state = "absent" if found is None else f"of shape {tuple(found.shape)}"
            raise SpecError(f"weight {name} is {state}; expected shape {shape}")
        return found

    def refuse_leftovers(self, known: set[str]) -> None:
        """SpecError when a weight would be ignored; rotary tables of old checkpoints are computed, so they may be there."""
        if unused := sorted(n for n in self.weights if n not in known and not n.endswith("rotary_emb.inv_freq")):
            raise SpecError(f"{len(unused)} weights would be ignored, {', '.join(unused[:3])} among them; this is another "
                            "kind of model, or the config does not belong to it")  # fmt: skip


def _read_layer(c: LlamaConfig, take: _Taker, prefix: str) -> _Layer:
    def join(names: Sequence[str], kind: str, sizes: Sequence[int], *rest: int) -> Tensor:
        return torch.cat([take(f"{prefix}{n}_proj.{kind}", size, *rest) for n, size in zip(names, sizes, strict=True)])

    q, kv, inner, hidden = c.n_heads * c.head_dim, c.n_kv_heads * c.head_dim, c.intermediate_size, c.hidden_size
    qkv = [f"self_attn.{n}" for n in "qkv"]
    return _Layer(
        attn_norm=take(prefix + "input_layernorm.weight", hidden),
        qkv=join(qkv, "weight", (q, kv, kv), hidden),
        qkv_bias=join(qkv, "bias", (q, kv, kv)) if c.qkv_bias else None,
        out=take(prefix + "self_attn.o_proj.weight", hidden, q),
        out_bias=take(prefix + "self_attn.o_proj.bias", hidden) if c.o_bias else None,
        ffn_norm=take(prefix + "post_attention_layernorm.weight", hidden),
        gate_up=join(["mlp.gate", "mlp.up"], "weight", (inner, inner), hidden),
        down=take(prefix + "mlp.down_proj.weight", hidden, inner),
    )
