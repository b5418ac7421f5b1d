"""The common slips, each as a change of our own solution, with the message that a learner must get for it."""

from dataclasses import dataclass

from kvgrade.answers import solutions
from kvgrade.exercises import exercise


@dataclass(frozen=True)
class Slip:
    """`change`: (old, new) in the solution, or `source`: all of it. `says`: the message's id, or None for "not attempted"."""

    name: str
    exercise: str
    says: str | None
    change: tuple[tuple[str, str], ...] = ()
    source: str | None = None
    slow: bool = False  # ends by the clock, or ends the process: not for this process

    @property
    def code(self) -> str:
        """The wrong answer."""
        if self.source is not None:
            return self.source
        asked = exercise(self.exercise)
        code = solutions(asked.sheet)[asked.id] if self.change else asked.starter
        for old, new in self.change:
            assert code.count(old) == 1, f"{self.name}: {old!r} occurs {code.count(old)} times"
            code = code.replace(old, new)
        return code


SLIPS = (
    Slip("forgot 1/√d", "attend-one-row", "value", ((" / math.sqrt(q.shape[-1])", ""),)),
    Slip("repeat for repeat_interleave", "gqa-attention", "value", (
        ("    q = q.reshape(B, Hkv, -1, D)  # a group's G·Q queries, of one KV head\n    scores = q @ k.mT / D**0.5  # (B, Hkv, G·Q, T)\n",
         "    k, v = k.repeat(1, Hq // Hkv, 1, 1), v.repeat(1, Hq // Hkv, 1, 1)\n    scores = q @ k.mT / D**0.5\n"),
        ("scores.view(B, Hkv, -1, Q, T)", "scores.view(B, Hq, 1, Q, T)"))),
    Slip("wrong shape", "attend-one-row", "shape", (('torch.einsum("ht,htd->hd", weights, v)', "weights[:, None] @ v"),)),
    Slip("float instead of int", "kv-bytes", "type", (("values * BITS[dtype] // 8", "values * BITS[dtype] / 8"),)),
    Slip("returns nothing", "kv-bytes", "type", (("    return values * BITS[dtype] // 8", "    values * BITS[dtype] // 8"),)),
    Slip("wrong dtype", "attend-one-row", "dtype", (('torch.einsum("ht,htd->hd", weights, v)',
                                                     'torch.einsum("ht,htd->hd", weights, v).float()'),)),
    Slip("changes its input in place", "attend-one-row", "changed-input", (
        ('    scores = torch.einsum("hd,htd->ht", q, k)', '    q /= math.sqrt(q.shape[-1])\n    scores = torch.einsum("hd,htd->ht", q, k)'),
        ("torch.softmax(scores / math.sqrt(q.shape[-1]), dim=-1)", "torch.softmax(scores, dim=-1)"))),
    Slip("reads the unwritten tail", "ragged-decode", "value", (("k_cache[b, :, : n + 1], v_cache[b, :, : n + 1]", "k_cache[b], v_cache[b]"),)),
    Slip("length never advanced", "decode-step", "text", (('    cache["length"] = pos + 1  # once, after the last layer\n', ""),)),
    Slip("length advanced once per layer", "decode-step", "text", (
        ('    cache["length"] = pos + 1  # once, after the last layer\n', ""),
        ('        gate, up = y', '        cache["length"] += 1\n        gate, up = y'))),
    Slip("endless loop", "token-forwards", "timeout", source="def token_forwards(n_prompt, n_outputs):\n    total = 0\n    while n_outputs:\n"
         "        total += n_prompt\n    return total, n_prompt + n_outputs - 1\n", slow=True),
    Slip("an exception inside the answer", "decode-step", "raised", (('(p @ values).reshape(B, -1)', "(p @ values).reshape(B, D)"),)),
    Slip("a syntax error", "kv-bytes", "raised", (("    return values * BITS[dtype] // 8", "    return (values * BITS[dtype] // 8"),)),
    Slip("imports kvlib", "kv-bytes", "raised", source="from kvlib import kv_bytes as ours\n\n\ndef kv_bytes(n_layers, n_tokens, n_kv_heads, "
         "head_dim, dtype='bf16', batch=1):\n    return ours(n_layers, n_tokens)\n", slow=True),
    Slip("a loop over every step", "token-forwards", "too-much-work", (
        ("    without = n * P + n * (n - 1) // 2  # step i sends P + i tokens",
         "    without = 0\n    for i in range(n):\n        without += P + i"),)),
    Slip("calls exit", "token-forwards", "died", source="import os\n\n\ndef token_forwards(n_prompt, n_outputs):\n    os._exit(0)\n", slow=True),
    Slip("not attempted", "kv-cache", None),
)  # fmt: skip
