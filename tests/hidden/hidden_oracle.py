"""The references of the hidden tests: float64, brute force, one token, head and key at a time, never a cache.

Shapes as in the book: q (batch, n_heads, q_len, head_dim), k and v (batch, n_kv_heads, kv_len, head_dim). Nothing here is
shared with kvlib, so that no bug is.
"""

from cmath import rect
from math import exp, sqrt

import torch
from torch import Tensor


def attend_row(q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """One query over the keys it sees: q (d,), keys and values (n, d) → (d,)."""
    weights = ((keys * q).sum(-1) / sqrt(len(q))).tolist()
    top = max(weights)
    weights = torch.tensor([exp(w - top) for w in weights], dtype=torch.float64)
    return (weights[:, None] * values).sum(0) / weights.sum()


def attention(q: Tensor, k: Tensor, v: Tensor, sees: "list | Tensor | None" = None) -> Tensor:
    """sees[b][i][j]: does query i of row b see key j? None: every key. Slots that a query does not see are not read."""
    q, k, v = q.double(), k.double(), v.double()
    out = torch.empty_like(q)
    group = q.shape[1] // k.shape[1]
    for b in range(q.shape[0]):
        for i in range(q.shape[2]):
            seen = [j for j in range(k.shape[2]) if sees is None or sees[b][i][j]]
            for h in range(q.shape[1]):
                out[b, h, i] = attend_row(q[b, h, i], k[b, h // group, seen], v[b, h // group, seen])
    return out


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x (d,) of one token."""
    x = x.double()
    return x / ((x * x).sum() / len(x) + eps).sqrt() * weight.double()


def rope(x: Tensor, position: int, theta: float) -> Tensor:
    """x (d,) of one head, number i paired with i + d/2 and turned, as a complex number, by its angle."""
    half = len(x) // 2
    pairs = list(zip(x[:half].tolist(), x[half:].tolist(), strict=True))
    turned = [complex(a, b) * rect(1, position * theta ** (-i / half)) for i, (a, b) in enumerate(pairs)]
    return torch.tensor([z.real for z in turned] + [z.imag for z in turned], dtype=torch.float64)


def mask(starts: list[int], lengths: list[int], q_len: int, kv_len: int) -> Tensor:
    """(batch, 1, q_len, kv_len): query i of row b sees key j."""
    return torch.tensor([[[[j <= start + i and j < length for j in range(kv_len)] for i in range(q_len)]]
                         for start, length in zip(starts, lengths, strict=True)])  # fmt: skip


def random_weights(t, config: dict, hidden: int, inner: int, vocab: int, dtype: torch.dtype = torch.float32) -> dict:
    """Weights of the small Llama of the `decode-step` exercise, of a size that keeps its activations near 1."""
    n, q, kv = config["n_layers"], config["n_heads"] * config["head_dim"], config["n_kv_heads"] * config["head_dim"]
    shapes = {
        "embed": (vocab, hidden), "unembed": (vocab, hidden),
        "wq": (n, q, hidden), "wk": (n, kv, hidden), "wv": (n, kv, hidden), "wo": (n, hidden, q),
        "w_gate": (n, inner, hidden), "w_up": (n, inner, hidden), "w_down": (n, hidden, inner),
    }  # fmt: skip
    weights = {name: t.normal(*shape, dtype=dtype, scale=shape[-1] ** -0.5) for name, shape in shapes.items()}
    weights["embed"] = t.normal(vocab, hidden, dtype=dtype)
    for name in ("wq", "wk"):
        weights[name] = weights[name] * 2  # scores far enough apart for the softmax to matter
    norms = {"attn_norm": (n, hidden), "ffn_norm": (n, hidden), "final_norm": (hidden,)}
    return weights | {name: 1 + t.normal(*shape, dtype=dtype, scale=0.2) for name, shape in norms.items()}


class Llama:
    """The same small Llama, one row and one token at a time.

    `step(token, past)`: past[layer] is the list of (k, v), each (n_kv_heads, head_dim), of the tokens before; the new
    token's are joined to it. Returns its logits. `full(tokens)`: the logits of a whole text, from nothing.
    """

    def __init__(self, weights: dict, config: dict) -> None:
        self.w = {name: w.double() for name, w in weights.items()}
        self.c = config

    def step(self, token: int, past: list[list[tuple[Tensor, Tensor]]], store: torch.dtype | None = None,
             attended: list[tuple[Tensor, Tensor]] | None = None) -> Tensor:  # fmt: skip
        """store: the dtype that k and v are rounded to when they are stored; None keeps float64. attended: per layer, the
        (k, v) of the new token that attention sees in place of these."""
        w, c = self.w, self.c
        x = w["embed"][token]
        for layer in range(c["n_layers"]):
            y = rms_norm(x, w["attn_norm"][layer], c["eps"])
            q, k, v = ((w[name][layer] @ y).view(-1, c["head_dim"]) for name in ("wq", "wk", "wv"))
            position = len(past[layer])
            q, k = (torch.stack([rope(head, position, c["theta"]) for head in heads]) for heads in (q, k))
            if store is not None:
                k, v = k.to(store).double(), v.to(store).double()
            past[layer].append((k, v))
            seen = past[layer] if attended is None else [*past[layer][:-1], attended[layer]]
            keys, values = (torch.stack(kind) for kind in zip(*seen, strict=True))  # (tokens, n_kv_heads, head_dim)
            group = len(q) // len(k)
            heads = [attend_row(q[h], keys[:, h // group], values[:, h // group]) for h in range(len(q))]
            x = x + w["wo"][layer] @ torch.cat(heads)
            y = rms_norm(x, w["ffn_norm"][layer], c["eps"])
            gate = w["w_gate"][layer] @ y
            x = x + w["w_down"][layer] @ (gate * torch.sigmoid(gate) * (w["w_up"][layer] @ y))
        return w["unembed"] @ rms_norm(x, w["final_norm"], c["eps"])

    def full(self, tokens: list[int]) -> Tensor:
        """(len(tokens), vocab): the whole text at once, layer by layer, nothing kept."""
        w, c = self.w, self.c
        xs = [w["embed"][token] for token in tokens]
        for layer in range(c["n_layers"]):
            qs, ks, vs = [], [], []
            for position, x in enumerate(xs):
                y = rms_norm(x, w["attn_norm"][layer], c["eps"])
                q, k, v = ((w[name][layer] @ y).view(-1, c["head_dim"]) for name in ("wq", "wk", "wv"))
                qs.append(torch.stack([rope(head, position, c["theta"]) for head in q]))
                ks.append(torch.stack([rope(head, position, c["theta"]) for head in k]))
                vs.append(v)
            q, k, v = (torch.stack(kind, dim=1)[None] for kind in (qs, ks, vs))  # (1, heads, tokens, head_dim)
            causal = [[[j <= i for j in range(len(xs))] for i in range(len(xs))]]
            for i, heads in enumerate(attention(q, k, v, causal)[0].unbind(1)):
                x = xs[i] + w["wo"][layer] @ heads.flatten()
                y = rms_norm(x, w["ffn_norm"][layer], c["eps"])
                gate = w["w_gate"][layer] @ y
                xs[i] = x + w["w_down"][layer] @ (gate * torch.sigmoid(gate) * (w["w_up"][layer] @ y))
        return torch.stack([w["unembed"] @ rms_norm(x, w["final_norm"], c["eps"]) for x in xs])
