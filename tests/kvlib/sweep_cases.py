"""The configs that the sweep reads and runs: each class's default arguments, and the same class scaled down."""

from transformers import PreTrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

MODEL_TYPES = tuple(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)

ROPE = {"rope_type": "default", "rope_theta": 10000.0}
QSA = {"indexer_n_heads": 4, "indexer_kv_heads": 1, "indexer_head_dim": 256, "indexer_budget": 64,
       "indexer_compress_ratio": 1}  # fmt: skip

NEEDED: dict[str, dict] = {
    "bamba": {"attn_layer_indices": [1, 5]},
    "cohere_compass_text": {"rope_parameters": {"full_attention": ROPE, "sliding_attention": ROPE}},
    "dbrx": {"attn_config": {"kv_n_heads": 8, "rope_theta": 10000.0, "clip_qkv": 8.0}},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "dots1": {"n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1},
    "gemma4_assistant": {"text_config": {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0}},
    "granitemoehybrid": {"layer_types": ["linear_attention", "full_attention", "linear_attention"] * 4, "num_hidden_layers": 12},
    "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128},
    "lfm2_moe": {"layer_types": ["conv", "conv", "full_attention"] * 4, "num_hidden_layers": 12},
    "ministral": {"head_dim": 128},
    "nemotron": {"num_key_value_heads": 8},
    "qwen4_exp": {"text_config": QSA},
    "qwen4_exp_text": QSA,
    "reformer": {"is_decoder": True},
}  # fmt: skip
"""Arguments without which transformers itself cannot build or run the class."""

SCALED: dict[str, object] = {
    "num_hidden_layers": 13, "num_attention_heads": 6, "num_key_value_heads": 3, "hidden_size": 144, "head_dim": 32,
    "sliding_window": 8, "attention_chunk_size": 8,
    "kv_lora_rank": 36, "qk_rope_head_dim": 16, "qk_nope_head_dim": 20, "v_head_dim": 40, "q_lora_rank": 52,
    "mamba_n_heads": 12, "mamba_d_head": 24, "mamba_n_groups": 2, "mamba_d_state": 10, "mamba_d_conv": 5,
    "state_size": 10, "ssm_state_size": 10, "conv_kernel": 5, "intermediate_size": 88,
    "linear_num_key_heads": 3, "linear_num_value_heads": 6, "linear_key_head_dim": 16, "linear_value_head_dim": 24,
    "linear_conv_kernel_dim": 5, "lru_width": 132, "conv1d_width": 5, "conv_L_cache": 5,
    "encoder_layers": 5, "decoder_layers": 5, "encoder_attention_heads": 6, "decoder_attention_heads": 6,
}  # fmt: skip
"""Distinct numbers, so that no two factors of the formula can stand in for each other; only fields that a class has."""

MLA = {"num_key_value_heads": 6, "head_dim": None}
SCALED_TOO: dict[str, dict] = {
    "bailing_hybrid": {"short_conv_kernel_size": 5},
    "bamba": {"attn_layer_indices": [1, 5]},
    "cohere_compass_text": {"layer_types": ["sliding_attention"] * 8 + ["full_attention"] * 5},
    "codegen": {"rotary_dim": 16},
    "diffllama": {"num_key_value_heads": 2},
    "dbrx": {"attn_config": {"kv_n_heads": 3, "rope_theta": 10000.0, "clip_qkv": 8.0},
             "d_model": 144, "hidden_size": None},
    "dory": {"num_hidden_layers": 20},
    "falcon": {"head_dim": None},
    "falcon_h1": {"mamba_d_ssm": 288},
    "gemma3n_text": {"num_hidden_layers": 12, "num_kv_shared_layers": 4},
    "gpt_neo": {"num_hidden_layers": 12, "attention_types": [[["global", "local"], 6]], "window_size": 8},
    "gptj": {"rotary_dim": 16},
    "granitemoehybrid": {"num_hidden_layers": 12, "mamba_n_groups": 1},
    "helium": {"head_dim": 24},
    "hunyuan_v1_dense": {"head_dim": 32},
    "hunyuan_v1_moe": {"head_dim": 32},
    "inkling2_loop_text": {"num_hidden_layers": None},
    "jetmoe": {"vocab_size": 100, "intermediate_size": 40, "num_hidden_layers": 3},
    "lfm2_moe": {"num_hidden_layers": 12},
    "longcat_flash": {"head_dim": 16},
    "ministral": {"head_dim": 32},
    "nemotron": {"num_key_value_heads": 3},
    "nemotron_h": {"layers_block_type": ["linear_attention", "mlp", "full_attention", "moe"] * 3, "n_groups": 2,
                   "mamba_num_heads": 12, "mamba_head_dim": 26, "num_hidden_layers": None},
    "mamba2": {"num_heads": 12, "head_dim": 24, "n_groups": 2},
    "prophetnet": {"num_hidden_layers": None, "num_decoder_layers": 5, "num_encoder_layers": 5,
                   "num_decoder_attention_heads": 6, "num_encoder_attention_heads": 6},
    "qwen4_exp_text": {"indexer_head_dim": 48},
    "smollm3": {"sliding_window": 8, "use_sliding_window": True},
    "qwen2": {"sliding_window": 8, "use_sliding_window": True, "max_window_layers": 5},
    "qwen2_moe": {"sliding_window": 8, "use_sliding_window": True, "max_window_layers": 5},
    "qwen3": {"sliding_window": 8, "use_sliding_window": True, "max_window_layers": 5},
    "qwen3_moe": {"sliding_window": 8, "use_sliding_window": True, "max_window_layers": 5},
    "phi3": {"sliding_window": 8}, "phimoe": {"sliding_window": 8}, "mixtral": {"sliding_window": 8},
    "starcoder2": {"sliding_window": 8},
    "xlnet": {"d_head": 24},
    "xlstm": {"v_head_dim": None},
    "zamba2": {"num_hidden_layers": None, "head_dim": None},
}  # fmt: skip
"""On top of `SCALED`, where a class asks for more; None leaves a field of `SCALED` alone."""


def scaled_changes(model_type: str, default: PreTrainedConfig) -> dict[str, object]:
    """The arguments of the scaled-down config of a class, given its default one."""
    changes = {name: value for name, value in SCALED.items() if _value(default, name) is not None}
    if "kv_lora_rank" in changes:
        changes |= MLA
    changes = NEEDED.get(model_type, {}) | changes | SCALED_TOO.get(model_type, {})
    return {name: value for name, value in changes.items() if value is not None}


def _value(config: PreTrainedConfig, name: str) -> object:
    try:
        return getattr(config, name, None)
    except RuntimeError:  # it differs from layer to layer
        return config.to_dict().get(name)
