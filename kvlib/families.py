"""What a config.json leaves to the code that loads it, one row per `model_type`.

A published config does not say everything: that Qwen2 puts biases on q, k and v, or that every sixth Gemma-3 layer is
a full one, stands only in the model's class. This table holds those facts and nothing else; a new family of the same
kind is a new row. Read in transformers 5.24, `configuration_*.py` and `modeling_*.py` of each type.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    """Class defaults of one model type.

    tied: does the head reuse the embedding when `tie_word_embeddings` is absent?
    qkv_bias, o_bias: biases in attention; None means that the field `attention_bias` decides.
    attention_bias: what an absent field `attention_bias` means.
    mlp_bias: does a field `mlp_bias` put biases into the feed-forward block? Where not, the class ignores it.
    qk_norm: are q and k normalised per head?
    norms: norm vectors of the hidden size per layer.
    experts: layout of a mixture of experts: "fused" (one tensor for all, with biases) or "separate"; None is dense.
    sinks: a learned attention-sink value per query head?
    windows: does the class have sliding windows at all? If not, a `sliding_window` contradicts it.
    full_every: with a window, layer i is full when (i + 1) is a multiple of this; None: every layer slides.
    window_switch: does the window count only with `use_sliding_window: true`?
    mha_when_absent: does an absent or null `num_key_value_heads` mean one per query head? If not, it must be given.
    derive_head_dim: does an absent head_dim mean hidden_size / heads? If not, it must be given.
    """

    tied: bool = False
    qkv_bias: bool | None = None
    o_bias: bool | None = None
    attention_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    norms: int = 2
    experts: str | None = None
    sinks: bool = False
    windows: bool = False
    full_every: int | None = None
    window_switch: bool = False
    mha_when_absent: bool = False
    derive_head_dim: bool = True


GENERIC = Family(windows=True, mha_when_absent=True)
"""An unknown model type whose config has the ordinary fields and none of `UNMODELLED`."""

UNMODELLED = (
    "multi_query", "new_decoder_architecture", "attn_config", "block_configs", "v_head_dim", "num_kv_shared_layers",
    "num_global_key_value_heads", "global_head_dim", "use_cla", "cla_share_factor", "cross_attention_layers",
    "attention_chunk_size", "full_attn_layers", "full_attention_interval", "hybrid_layer_pattern",
    "hybrid_override_pattern", "layers_block_type", "attn_type_list", "attn_layer_period", "attn_layer_indices",
    "linear_attn_config", "linear_num_value_heads", "mamba_d_state", "ssm_state_size", "state_size", "index_topk",
    "is_encoder_decoder",
)  # fmt: skip
"""Fields that change what the cache holds in a way that kvlib does not read: their presence refuses a generic reading."""

FAMILIES = {
    "llama": Family(mlp_bias=True, mha_when_absent=True),
    "mistral": Family(windows=True, qkv_bias=False, o_bias=False),
    "qwen2": Family(windows=True, qkv_bias=True, o_bias=False, window_switch=True),
    "qwen3": Family(windows=True, qk_norm=True, window_switch=True, derive_head_dim=False),
    "gemma": Family(tied=True, derive_head_dim=False),
    "gemma2": Family(windows=True, tied=True, norms=4, full_every=2, derive_head_dim=False),
    "gemma3_text": Family(windows=True, tied=True, qk_norm=True, norms=4, full_every=6, derive_head_dim=False),
    "gpt_oss": Family(windows=True, attention_bias=True, experts="fused", sinks=True, full_every=2, derive_head_dim=False),
    "deepseek_v3": Family(experts="separate"),
}
