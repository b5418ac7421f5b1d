"""A GGUF file's metadata as a config: the fields of a config.json, under the names of transformers.

Invariant: nothing is guessed. What a GGUF leaves to llama.cpp's code is a row of `architectures`; what neither says
raises an error that names the key. Where llama.cpp keeps more than the model needs (no windows for Phi-3, no latent for
DeepSeek files of old) the config says what the model needs, as its config.json would. A window that the converter drops
(Mistral-7B-v0.1, StarCoder2) is not in the file and is not read; a note says so.
"""

from pathlib import Path

from kvlib.errors import SpecError
from kvlib.gguf.architectures import ARCHITECTURES, NOT_CAUSAL, PLAIN, Architecture
from kvlib.gguf.file import read_head
from kvlib.gguf.keys import Keys
from kvlib.gguf.states import STATES
from kvlib.gguf.tensors import stored

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
    causal = head.values.get(f"{name}.attention.causal") is not False and name not in NOT_CAUSAL
    if not causal or f"{name}.block_count" not in head.values:
        raise SpecError(f"{path}: general.architecture is {name!r} and has no layers that keep KV; give the first file of a "
                        "language model")  # fmt: skip
    keys, row = Keys(head, name, path), ARCHITECTURES.get(name, Architecture(name))
    if row.state is None and any(key.startswith(tuple(f"{name}.{k}" for k in RECURRENT_KEYS)) for key in head.values):
        raise SpecError(f"{path}: general.architecture is {name!r}, whose recurrent state kvlib does not know; give the "
                        "model's config.json")  # fmt: skip
    plain = {field: value for key, field in PLAIN.items() if (value := keys.get(key)) is not None}
    own = {"num_kv_shared_layers": max(0, keys.n_layers - row.own_kv)} if row.own_kv else {}
    state = STATES[row.state](keys) if row.state else {}
    return {**row.constants, **own, **plain, **_identity(keys, row), **_heads(keys, row), **_kinds(keys, row),
            **_feed_forward(keys, row), **state, **stored(head, name)}  # fmt: skip


def _identity(keys: Keys, row: Architecture) -> dict:
    values, experts = keys.head.values, keys.optional("expert_count") or 0
    name = (experts and row.with_experts) or row.model_type
    if keys.get("expert_gating_func") == 2:  # a sigmoid
        name = row.with_sigmoid or name
    vocab = keys.optional("vocab_size") or values.get("tokenizer.ggml.tokens")
    if vocab is None and "token_embd.weight" in keys.head.tensors:
        vocab = keys.head.tensors["token_embd.weight"].shape[0]
    return {"_name_or_path": values.get("general.name"), "model_type": name, "num_hidden_layers": keys.n_layers,
            "vocab_size": vocab} | _tensors(keys)  # fmt: skip


def _tensors(keys: Keys) -> dict:
    """What only the names of the tensors say; nothing where some of them are in other files."""
    names = keys.head.tensors
    if not names or keys.head.n_files > 1:
        return {}
    biased = {field: any(name.endswith(f".{part}.bias") for name in names)
              for field, part in (("attention_bias", "attn_q"), ("mlp_bias", "ffn_up"))}  # fmt: skip
    return {"tie_word_embeddings": "output.weight" not in names} | biased


def _heads(keys: Keys, row: Architecture) -> dict:
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
    config |= {row.head_dim: k_dim} | ({"v_head_dim": v_dim} if v_dim != k_dim else {})
    if (width := keys.optional("attention.key_length_swa")) is not None:
        config |= {"global_head_dim": k_dim, "swa_head_dim": width,
                   "swa_v_head_dim": keys.integer("attention.value_length_swa")}  # fmt: skip
    return config


def _kinds(keys: Keys, row: Architecture) -> dict:
    """The kind of every layer, and the size of its windows or chunks."""
    n, usual = keys.n_layers, row.kind if keys.get("attention.indexer.key_length") is None else "indexed_attention"
    kinds, sizes = [usual] * n, {"sliding_window": None}
    given = keys.integer("attention.sliding_window", 0) if row.always else keys.optional("attention.sliding_window")
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
