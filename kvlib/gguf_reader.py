"""A GGUF file's metadata as a config: the fields of a config.json, under the names of transformers.

Invariant: nothing is guessed. What a GGUF leaves to llama.cpp's code is a row of `gguf_architectures`; what neither says
raises an error that names the key. Where llama.cpp keeps more than the model needs (no windows for Phi-3, no latent for
DeepSeek files of old) the config says what the model needs, as its config.json would. A window that the converter drops
(Mistral-7B-v0.1, StarCoder2) is not in the file and is not read.
"""

from collections.abc import Callable
from pathlib import Path

from kvlib.errors import SpecError, whole
from kvlib.gguf_architectures import ARCHITECTURES, PLAIN, Architecture
from kvlib.gguf_file import Head, read_head

RECURRENT_KEYS = ("ssm.", "wkv.", "kda.", "shortconv.")


def read_gguf(path: str | Path) -> dict:
    """The config of the model in the GGUF file `path`; of a split model, in its first file.

    Raises SpecError when the file is no whole GGUF file, holds no language model that keeps KV, or leaves a fact that decides
    the answer to code that kvlib does not know.
    """
    head = read_head(path)
    name = head.values.get("general.architecture")
    if not isinstance(name, str):
        raise SpecError(f"{path}: general.architecture is {name!r}; give the first file of a model")
    if f"{name}.block_count" not in head.values or head.values.get(f"{name}.attention.causal") is False:
        raise SpecError(f"{path}: general.architecture is {name!r} and has no layers that keep KV; give the first file of a "
                        "language model")  # fmt: skip
    keys, row = Keys(head, name, path), ARCHITECTURES.get(name, Architecture(name))
    if row.state is None and any(key.startswith(tuple(f"{name}.{k}" for k in RECURRENT_KEYS)) for key in head.values):
        raise SpecError(f"{path}: general.architecture is {name!r}, whose recurrent state kvlib does not know; give the "
                        "model's config.json")  # fmt: skip
    plain = {field: value for key, field in PLAIN.items() if (value := keys.get(key)) is not None}
    own = {"num_kv_shared_layers": keys.n_layers - row.own_kv} if row.own_kv else {}
    state = STATES[row.state](keys) if row.state else {}
    return own | plain | _identity(keys, row) | _heads(keys) | _kinds(keys, row) | _feed_forward(keys, row) | state


class Keys:
    """Reading values by key, without the architecture's name in front."""

    def __init__(self, head: Head, architecture: str, path: str | Path) -> None:
        self.head, self.architecture, self.path = head, architecture, path
        self.n_blocks = self.integer("block_count")
        self.n_layers = self.n_blocks - (self.optional("nextn_predict_layers") or 0)  # llama.cpp counts those, a config does not

    def where(self, key: str) -> str:
        return f"{self.path}: {self.architecture}.{key}"

    def get(self, key: str) -> object:
        return self.head.values.get(f"{self.architecture}.{key}")

    def integer(self, key: str, minimum: int = 1) -> int:
        if self.get(key) is None:
            raise SpecError(f"{self.where(key)} is absent and decides the answer; give the model's config.json")
        return whole(self.where(key), self.get(key), minimum)

    def optional(self, key: str) -> int | None:
        return None if self.get(key) is None else self.integer(key, 0)

    def divided(self, key: str, by: int) -> int:
        value = self.integer(key)
        if value % by:
            raise SpecError(f"{self.where(key)} is {value} and no multiple of {by}; give the model's config.json")
        return value // by

    def per_layer(self, key: str) -> list[int]:
        """A number for all layers, or an array with one for each; truth values count as 0 and 1."""
        value = self.get(key)
        if not isinstance(value, list):
            return [self.integer(key, 0)] * self.n_layers
        if len(value) != self.n_blocks:
            raise SpecError(f"{self.where(key)} has {len(value)} entries and block_count is {self.n_blocks}; give the model's "
                            "config.json")  # fmt: skip
        return [whole(self.where(key), int(n) if isinstance(n, bool) else n, 0) for n in value[: self.n_layers]]


def _identity(keys: Keys, row: Architecture) -> dict:
    values, experts = keys.head.values, keys.optional("expert_count") or 0
    name = (experts and row.with_experts) or row.model_type
    if keys.get("expert_gating_func") == 2:  # a sigmoid
        name = row.with_sigmoid or name
    vocab = keys.optional("vocab_size") or values.get("tokenizer.ggml.tokens")
    split = values.get("split.count", 1) != 1
    tied = {} if split or not keys.head.tensors else {"tie_word_embeddings": "output.weight" not in keys.head.tensors}
    return {"_name_or_path": values.get("general.name"), "model_type": name, "num_hidden_layers": keys.n_layers,
            "vocab_size": vocab} | tied  # fmt: skip


def _heads(keys: Keys) -> dict:
    """Heads and widths; where the key for a width is absent, the width is embedding_length / heads, as in llama.cpp."""
    heads = keys.per_layer("attention.head_count")
    if not any(heads):
        return {}
    config = _one_or_list("num_attention_heads", heads)
    k_dim = keys.optional("attention.key_length") or keys.divided("embedding_length", max(heads))
    if keys.get("attention.kv_lora_rank"):
        rope = keys.integer("rope.dimension_count")
        nope = (keys.optional("attention.key_length_mla") or k_dim) - rope
        v_dim = keys.optional("attention.value_length_mla") or keys.integer("attention.value_length")
        return config | {"qk_rope_head_dim": rope, "qk_nope_head_dim": nope, "v_head_dim": v_dim}
    if keys.get("attention.head_count_kv") is not None:
        config |= _one_or_list("num_key_value_heads", keys.per_layer("attention.head_count_kv"))
    else:
        config["num_key_value_heads"] = config["num_attention_heads"]
    v_dim = keys.optional("attention.value_length") or keys.divided("embedding_length", max(heads))
    config |= {"head_dim": k_dim} | ({"v_head_dim": v_dim} if v_dim != k_dim else {})
    if (width := keys.optional("attention.key_length_swa")) is not None:
        config |= {"global_head_dim": k_dim, "swa_head_dim": width, "swa_v_head_dim": keys.integer("attention.value_length_swa")}
    return config


def _kinds(keys: Keys, row: Architecture) -> dict:
    """The kind of every layer, and the size of its windows or chunks."""
    n, usual = keys.n_layers, row.kind if keys.get("attention.indexer.key_length") is None else "indexed_attention"
    kinds, sizes = [usual] * n, {"sliding_window": None}
    given = keys.optional("attention.sliding_window")
    window = row.window if given is None else given
    if row.chunk and given != 0:  # llama.cpp reads the key for nothing but its zero
        kinds, sizes = _limited(keys, row, "chunked_attention"), {"attention_chunk_size": row.chunk}
    elif window:
        kinds, sizes = _limited(keys, row, "sliding_attention"), {"sliding_window": window}
    if every := keys.optional("full_attention_interval") or row.interval:
        kinds = ["full_attention" if (i + 1) % every == 0 else "linear_attention" for i in range(n)]
    if keys.get("attention.head_count_kv") is not None:
        widths = keys.per_layer("feed_forward_length") if row.mlp_layers else [0] * n
        for i, n_kv_heads in enumerate(keys.per_layer("attention.head_count_kv")):
            if n_kv_heads == 0:
                kinds[i] = "mlp" if widths[i] else row.without_kv
    return {"layer_types": kinds} | sizes


def _limited(keys: Keys, row: Architecture, kind: str) -> list[str]:
    """Which layers have the window or chunk: an array of truth values, a period, or the period of the architecture."""
    key = "attention.sliding_window_pattern"
    if isinstance(keys.get(key), list):
        return [kind if limited else "full_attention" for limited in keys.per_layer(key)]
    if keys.get(key) is None and row.full_every is not None:
        every = row.full_every
    else:
        every = keys.integer(key, 0)
    return ["full_attention" if every and (i + 1) % every == 0 else kind for i in range(keys.n_layers)]


def _feed_forward(keys: Keys, row: Architecture) -> dict:
    dense, expert = row.widths
    config = {}
    if keys.get("feed_forward_length") is not None:
        widths = keys.per_layer("feed_forward_length")
        distinct = set(widths) - {0}
        config[dense] = distinct.pop() if len(distinct) == 1 else widths
    if n_experts := keys.optional("expert_count"):
        config[row.experts] = n_experts
    if (width := keys.optional("expert_feed_forward_length")) is not None:
        config[expert] = width
    return config


def _one_or_list(field: str, values: list[int]) -> dict:
    """A single number where all layers that have any have the same, else also one for each layer."""
    return {field: max(values)} | ({f"{field}_per_layer": values} if len(set(values) - {0}) > 1 else {})


def _mamba(keys: Keys) -> dict:
    inner, hidden = keys.integer("ssm.inner_size"), keys.integer("embedding_length")
    width = {"mamba_d_inner": inner} if inner % hidden else {"mamba_expand": inner // hidden}
    return {**width, "mamba_d_conv": keys.integer("ssm.conv_kernel"), "mamba_d_state": keys.integer("ssm.state_size"),
            "mamba_dt_rank": keys.integer("ssm.time_step_rank")}  # fmt: skip


def _mamba_2(keys: Keys) -> dict:
    heads = keys.integer("ssm.time_step_rank")
    return {"mamba_n_heads": heads, "mamba_d_head": keys.divided("ssm.inner_size", heads),
            "mamba_d_conv": keys.integer("ssm.conv_kernel"), "mamba_d_state": keys.integer("ssm.state_size"),
            "mamba_n_groups": keys.integer("ssm.group_count")}  # fmt: skip


def _gated_delta_net(keys: Keys) -> dict:
    heads = keys.integer("ssm.time_step_rank")
    return {"linear_num_value_heads": heads, "linear_value_head_dim": keys.divided("ssm.inner_size", heads),
            "linear_num_key_heads": keys.integer("ssm.group_count"), "linear_key_head_dim": keys.integer("ssm.state_size"),
            "linear_conv_kernel_dim": keys.integer("ssm.conv_kernel")}  # fmt: skip


def _kimi_delta(keys: Keys) -> dict:
    return {"linear_num_heads": max(keys.per_layer("attention.head_count")), "linear_head_dim": keys.integer("kda.head_dim"),
            "linear_conv_kernel_dim": keys.integer("ssm.conv_kernel")}  # fmt: skip


def _short_convolution(keys: Keys) -> dict:
    return {"conv_L_cache": keys.integer("shortconv.l_cache")}


STATES: dict[str, Callable[[Keys], dict]] = {
    "mamba": _mamba, "mamba2": _mamba_2, "delta": _gated_delta_net, "kda": _kimi_delta, "conv": _short_convolution,
}  # fmt: skip
