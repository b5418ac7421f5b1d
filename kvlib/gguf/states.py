"""What recurrent layers keep: the keys of a GGUF file in the field names of transformers, one function per kind of state.

Read in llama.cpp, convert_hf_to_gguf.py: which field of a config each key is written from.
"""

from collections.abc import Callable

from kvlib.gguf.keys import Keys


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
