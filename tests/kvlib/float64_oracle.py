"""What attention and a Llama mean, in float64, one query after the other and without a cache. Nothing here uses kvlib.

One concession: the rotary embedding is rounded as transformers rounds it, t · frequency and its cos and sin in float32,
because that is what a checkpoint was trained with. All else is exact to float64.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import torch
from torch import Tensor

torch.set_num_threads(1)  # tiny tensors: with several test processes on few cores, threads only wait for each other


def attend(q: Tensor, k: Tensor, v: Tensor, starts: Sequence[int], lengths: Sequence[int]) -> Tensor:
    """Attention of q (batch, n_heads, q_len, head_dim) over k, v (batch, n_kv_heads, slots, head_dim).

    Query i of row b is token starts[b] + i. It sees the tokens up to itself, and none from lengths[b] on.
    """
    out = torch.zeros(q.shape, dtype=torch.float64)
    group = q.shape[1] // k.shape[1]
    for b, h, i in product(*map(range, q.shape[:3])):
        n = min(starts[b] + i + 1, lengths[b])
        if n:
            keys, values = (x[b, h // group, :n].double() for x in (k, v))  # (n, head_dim)
            weights = torch.exp(keys @ q[b, h, i].double() / q.shape[3] ** 0.5)
            out[b, h, i] = weights / weights.sum() @ values
    return out


def frequencies(head_dim: int, theta: float) -> Tensor:
    """Radians per token without scaling, (head_dim / 2,)."""
    return 1 / theta ** (torch.arange(0, head_dim, 2).float() / head_dim)


def full_forward(weights: Mapping[str, Tensor], tokens: Sequence[int], n_heads: int, n_kv_heads: int, freqs: Tensor,
                 eps: float) -> Tensor:  # fmt: skip
    """The logits at every token of one sequence, (n, vocab_size), from weights under Hugging Face's names."""
    w = {name: x.double() for name, x in weights.items()}
    x = w["model.embed_tokens.weight"][list(tokens)]  # (n, hidden)
    n = len(tokens)
    for i in range(sum(name.endswith("q_proj.weight") for name in w)):
        p = f"model.layers.{i}."
        inner = _norm(x, w[p + "input_layernorm.weight"], eps)
        q, k, v = (
            _linear(inner, w, p + f"self_attn.{name}_proj").view(n, heads, -1).transpose(0, 1)[None]
            for name, heads in (("q", n_heads), ("k", n_kv_heads), ("v", n_kv_heads))
        )
        out = attend(_rotate(q, freqs), _rotate(k, freqs), v, [0], [n])
        x = x + _linear(out[0].transpose(0, 1).reshape(n, -1), w, p + "self_attn.o_proj")
        inner = _norm(x, w[p + "post_attention_layernorm.weight"], eps)
        gate, up = _linear(inner, w, p + "mlp.gate_proj"), _linear(inner, w, p + "mlp.up_proj")
        x = x + _linear(gate * torch.sigmoid(gate) * up, w, p + "mlp.down_proj")
    return _norm(x, w["model.norm.weight"], eps) @ w.get("lm_head.weight", w["model.embed_tokens.weight"]).T


def _rotate(x: Tensor, freqs: Tensor) -> Tensor:
    """(1, heads, n, head_dim): numbers i and i + head_dim / 2 of token t are a point, turned by t · freqs[i]."""
    turned = torch.empty_like(x)
    for t in range(x.shape[2]):
        cos, sin = torch.cos(t * freqs).double(), torch.sin(t * freqs).double()
        a, b = x[:, :, t].chunk(2, dim=-1)
        turned[:, :, t] = torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)
    return turned


def _norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * weight


def _linear(x: Tensor, w: Mapping[str, Tensor], name: str) -> Tensor:
    return x @ w[name + ".weight"].T + w.get(name + ".bias", 0)
