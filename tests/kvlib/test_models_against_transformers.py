"""kvlib's counts against the real transformers package, byte for byte, for every preset and for odd configs."""

import json
from importlib.resources import files

import pytest
import torch
from oracle import (
    held_bytes,
    layer_windows,
    one_token_of_full_windows,
    prefilled_cache,
    storage_bytes,
    storage_bytes_after_decoding,
    transformers_cache_bytes,
    transformers_params,
)

from kvlib import kv_bytes, load_spec

CONFIGS = {
    path.name.removesuffix(".json"): json.loads(path.read_text(encoding="utf-8"))["config"]
    for path in sorted(files("kvlib").joinpath("models").iterdir(), key=lambda p: p.name)
    if path.name.endswith(".json")
}
WINDOWED = {"mistral-7b-v0.1": 4096, "gemma-2-9b": 4096, "gemma-3-27b": 1024, "gpt-oss-20b": 128, "gpt-oss-120b": 128}
BF16, FP32 = torch.bfloat16, torch.float32


def ideal(config: dict, n_tokens: int, batch: int, dtype: torch.dtype) -> int:
    return kv_bytes(load_spec(config), n_tokens=n_tokens, batch=batch, kv_dtype=str(dtype).removeprefix("torch."))


def longest(preset: str) -> int:
    """The longest length at which transformers and the ideal keep the same tokens: W - 1, or all positions."""
    return WINDOWED.get(preset, CONFIGS[preset]["max_position_embeddings"] + 1) - 1


@pytest.mark.parametrize("preset", CONFIGS)
def test_parameter_count_equals_transformers(preset):
    assert load_spec(preset).n_params == transformers_params(CONFIGS[preset])


@pytest.mark.parametrize("preset", CONFIGS)
def test_the_same_layers_slide_as_in_transformers(preset):
    assert [layer.window for layer in load_spec(preset).layers] == layer_windows(CONFIGS[preset])


@pytest.mark.parametrize(("batch", "dtype"), [(1, BF16), (3, FP32)])
@pytest.mark.parametrize("preset", CONFIGS)
def test_below_all_windows_kv_bytes_equal_the_prefilled_cache(preset, batch, dtype):
    n_tokens = longest(preset)
    assert ideal(CONFIGS[preset], n_tokens, batch, dtype) == transformers_cache_bytes(CONFIGS[preset], n_tokens, batch,
                                                                                      dtype)  # fmt: skip


@pytest.mark.parametrize(("factor", "more", "batch", "dtype"), [(1, 0, 3, BF16), (1, 1, 1, FP32), (4, 0, 1, BF16)])
@pytest.mark.parametrize("preset", WINDOWED)
def test_from_the_window_on_kv_bytes_are_one_token_per_windowed_layer_and_row_more(preset, factor, more, batch, dtype):
    """The ideal keeps min(N, W) tokens of a windowed layer, transformers keeps min(N, W - 1)."""
    n_tokens = factor * WINDOWED[preset] + more
    cache = prefilled_cache(CONFIGS[preset], n_tokens, batch, dtype)
    difference = ideal(CONFIGS[preset], n_tokens, batch, dtype) - held_bytes(cache)
    assert difference == one_token_of_full_windows(cache, n_tokens) > 0


@pytest.mark.parametrize("preset", WINDOWED)
def test_kv_bytes_equal_the_memory_behind_the_cache_after_a_decode_step(preset):
    """No allowance here: after decoding the N-th token, windowed layers have min(N, W) tokens in memory."""
    n_tokens = 2 * WINDOWED[preset] + 1
    behind = storage_bytes_after_decoding(CONFIGS[preset], n_tokens, 3, BF16)
    assert ideal(CONFIGS[preset], n_tokens, 3, BF16) == behind


def test_after_a_prefill_the_windowed_layers_still_hold_the_whole_prompt_in_memory():
    """Why the numbers differ at all: the W - 1 kept tokens are a view. Mistral v0.1 at 8,192 tokens."""
    cache = prefilled_cache(CONFIGS["mistral-7b-v0.1"], 8192, 1, BF16)
    assert held_bytes(cache) == 131_072 * 4095
    assert storage_bytes(cache) == 131_072 * 8192


def test_transformers_caches_the_latent_of_deepseek_v3_not_its_heads():
    layer = prefilled_cache(CONFIGS["deepseek-v3"], 5, 3, BF16).layers[0]
    assert layer.keys.shape == (3, 1, 5, 512)
    assert layer.values.shape == (3, 1, 5, 64)


LLAMA = {"model_type": "llama", "hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 6,
         "num_key_value_heads": 2, "intermediate_size": 80, "vocab_size": 101, "max_position_embeddings": 64,
         "tie_word_embeddings": False}  # fmt: skip
QWEN2 = LLAMA | {"model_type": "qwen2"}
QWEN3 = LLAMA | {"model_type": "qwen3", "head_dim": 24}
GEMMA2 = LLAMA | {"model_type": "gemma2", "head_dim": 24, "sliding_window": 8, "num_hidden_layers": 5}
GEMMA3 = GEMMA2 | {"model_type": "gemma3_text", "num_hidden_layers": 11}
GPT_OSS = QWEN3 | {"model_type": "gpt_oss", "sliding_window": 8, "num_local_experts": 5, "num_experts_per_tok": 2,
                   "num_hidden_layers": 4, "attention_bias": True}  # fmt: skip
MLA = LLAMA | {"model_type": "deepseek_v3", "num_key_value_heads": 6, "q_lora_rank": 20, "kv_lora_rank": 12,
               "qk_nope_head_dim": 10, "qk_rope_head_dim": 6, "v_head_dim": 14, "n_routed_experts": 8,
               "n_shared_experts": 2, "num_experts_per_tok": 2, "moe_intermediate_size": 18, "n_group": 2,
               "topk_group": 1, "first_k_dense_replace": 1}  # fmt: skip

VARIANTS = {
    "llama, head_dim explicit": LLAMA | {"head_dim": 10},
    "llama, head_dim null": LLAMA | {"head_dim": None},
    "llama, KV heads absent": {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"},
    "llama, biases everywhere": LLAMA | {"attention_bias": True, "mlp_bias": True},
    "llama, tied": LLAMA | {"tie_word_embeddings": True},
    "llama, tying absent": {k: v for k, v in LLAMA.items() if k != "tie_word_embeddings"},
    "mistral, head_dim explicit": LLAMA | {"model_type": "mistral", "head_dim": 10, "sliding_window": None},
    "mistral, every layer slides": LLAMA | {"model_type": "mistral", "sliding_window": 8},
    "qwen2, window switched off": QWEN2 | {"sliding_window": 8, "use_sliding_window": False, "max_window_layers": 1},
    "qwen2, window in the upper layers": QWEN2 | {"sliding_window": 8, "use_sliding_window": True,
                                                  "max_window_layers": 1},
    "qwen2, window above no layer": QWEN2 | {"sliding_window": 8, "use_sliding_window": True, "max_window_layers": 3},
    "qwen3, attention bias": QWEN3 | {"attention_bias": True},
    "qwen3, mlp_bias that its class ignores": QWEN3 | {"mlp_bias": True},
    "mistral, biases that its class ignores": LLAMA | {"model_type": "mistral", "sliding_window": None, "mlp_bias": True,
                                                       "attention_bias": True},
    "qwen3, layer_types": QWEN3 | {"sliding_window": 8, "use_sliding_window": True, "max_window_layers": 0,
                                   "layer_types": ["full_attention", "sliding_attention", "full_attention"]},
    "gemma2, odd layer count": GEMMA2,
    "gemma2, tying absent": {k: v for k, v in GEMMA2.items() if k != "tie_word_embeddings"},
    "gemma3, pattern absent": GEMMA3,
    "gemma3, every third layer full": GEMMA3 | {"sliding_window_pattern": 3},
    "gpt-oss, pattern absent": GPT_OSS,
    "gpt-oss, no attention bias": GPT_OSS | {"attention_bias": False},
    "deepseek, query not compressed": MLA | {"q_lora_rank": None},
    "deepseek, biases": MLA | {"attention_bias": True},
    "deepseek, all layers dense": MLA | {"first_k_dense_replace": 3},
}  # fmt: skip


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
def test_odd_configs_agree_with_transformers_too(config):
    spec = load_spec(config)
    assert spec.n_params == transformers_params(config)
    assert [layer.window for layer in spec.layers] == layer_windows(config)
    for n_tokens in (7, 8, 30):
        cache = prefilled_cache(config, n_tokens, 2, FP32)
        assert ideal(config, n_tokens, 2, FP32) == held_bytes(cache) + one_token_of_full_windows(cache, n_tokens)
