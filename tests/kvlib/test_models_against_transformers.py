"""kvlib's counts against the real transformers package: every shipped model at full size, and odd configs.

Models are built and run on torch's meta device, so a 1,026 B model costs no memory. What the ideal counts differently from
transformers' cache is written down in `sweep_probe`, tensor by tensor.
"""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from oracle import (
    held_bytes,
    layer_windows,
    one_token_of_full_windows,
    prefilled_cache,
    storage_bytes,
    storage_bytes_after_decoding,
    transformers_params,
)
from sweep_probe import MetaAnswersYes, build, run
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from kvlib import kv_bytes, load_spec, presets
from kvlib.sources import shipped

NO_CLASS = {"hunyuan-large", "minimax-m1-80k", "nemotron-super-49b-v1"}  # they come with code of their own
ENCODER_DECODERS = {"bart-large-cnn", "t5-small", "whisper-large-v3"}
OTHER_NAME = {"kimi_k2": "deepseek_v3"}  # its architectures name that class
SHORTER = {"recurrentgemma-2b": {"attention_window_size": 16}}  # its recurrence runs token by token
# their configs name no dtype of the state: it is counted in the model's, and transformers keeps it in float32
STATE_OF_MODEL_DTYPE = {"jamba-v0.1", "granite-4.0-h-tiny", "falcon-h1-7b", "qwen3-next-80b-a3b", "recurrentgemma-2b"}
BROADCAST = {"falcon-40b"}  # transformers keeps each KV head once per query head
WINDOWED = {"mistral-7b-v0.1": 4096, "gemma-2-9b": 4096, "gpt-oss-20b": 128}
BF16, FP32 = torch.bfloat16, torch.float32


def published(preset: str) -> dict:
    return shipped(preset)["config"] | SHORTER.get(preset, {})


def text_fields(preset: str) -> dict:
    config = published(preset)
    return {k: v for k, v in config.get("text_config", config).items() if k != "quantization_config"}


@pytest.fixture(scope="module", params=sorted(set(presets()) - NO_CLASS - ENCODER_DECODERS))
def built(request):
    """A preset and transformers' causal LM of it."""
    fields = text_fields(request.param)
    model_type = fields.pop("model_type")
    return request.param, build(AutoConfig.for_model(OTHER_NAME.get(model_type, model_type), **fields))


def test_parameter_count_equals_transformers(built):
    preset, model = built
    assert load_spec(preset).n_params == sum(p.numel() for p in model.parameters())


def test_every_layer_keeps_what_transformers_keeps(built):
    """Below all windows, and at twice each window."""
    preset, model = built
    spec = load_spec(published(preset))
    for n_tokens in {3, *(2 * layer.cap + 1 for layer in spec.layers if layer.cap)}:
        held = Counter()
        for tensor in run(model, n_tokens):
            held[tensor.layer] += tensor.ideal_bytes(n_tokens, BF16 if preset in STATE_OF_MODEL_DTYPE else None)
        ideal = {i: kv_bytes(replace(spec, layers=(layer,)), n_tokens) for i, layer in enumerate(spec.layers)
                 if layer.shared_with is None}  # fmt: skip
        copies = 16 if preset in BROADCAST else 1
        assert +held == {i: copies * n for i, n in ideal.items() if n}


@pytest.mark.parametrize("preset", sorted(ENCODER_DECODERS))
def test_a_decoder_with_an_encoder_keeps_its_own_tokens_and_the_encoder_s(preset):
    fields = text_fields(preset)
    config = AutoConfig.for_model(fields.pop("model_type"), **fields)
    heard = preset.startswith("whisper")
    with torch.device("meta"):
        model = (AutoModelForSpeechSeq2Seq if heard else AutoModelForSeq2SeqLM).from_config(config, dtype=BF16).eval()
        ids = torch.zeros(1, 7, dtype=torch.long)
        source = {"input_features": torch.zeros(1, 128, 3000, dtype=BF16)} if heard else {"input_ids": ids}
    with torch.no_grad(), MetaAnswersYes():
        cache = model(**source, decoder_input_ids=ids[:, :3], use_cache=True).past_key_values
    kept = sum(x.nbytes for half in (cache.self_attention_cache, cache.cross_attention_cache)
               for layer in half.layers for x in (layer.keys, layer.values))  # fmt: skip
    assert kept == kv_bytes(load_spec(preset, encoder_tokens=None if heard else 7), n_tokens=3)


def test_what_is_left_out_has_no_class_to_compare_with():
    assert {p for p in presets() if text_fields(p)["model_type"] not in {*CONFIG_MAPPING, *OTHER_NAME}} == NO_CLASS


def ideal(config: dict, n_tokens: int, batch: int, dtype: torch.dtype) -> int:
    return kv_bytes(load_spec(config), n_tokens=n_tokens, batch=batch, kv_dtype=str(dtype).removeprefix("torch."))


@pytest.mark.parametrize(("factor", "more", "batch", "dtype"), [(1, 0, 3, BF16), (1, 1, 1, FP32), (4, 0, 1, BF16)])
@pytest.mark.parametrize("preset", WINDOWED)
def test_from_the_window_on_kv_bytes_are_one_token_per_windowed_layer_and_row_more(preset, factor, more, batch, dtype):
    """The ideal keeps min(N, W) tokens of a windowed layer, transformers keeps min(N, W - 1)."""
    n_tokens = factor * WINDOWED[preset] + more
    cache = prefilled_cache(published(preset), n_tokens, batch, dtype)
    difference = ideal(published(preset), n_tokens, batch, dtype) - held_bytes(cache)
    assert difference == one_token_of_full_windows(cache, n_tokens) > 0


@pytest.mark.parametrize("preset", WINDOWED)
def test_kv_bytes_equal_the_memory_behind_the_cache_after_a_decode_step(preset):
    """No allowance here: after decoding the N-th token, windowed layers have min(N, W) tokens in memory."""
    n_tokens = 2 * WINDOWED[preset] + 1
    behind = storage_bytes_after_decoding(published(preset), n_tokens, 3, BF16)
    assert ideal(published(preset), n_tokens, 3, BF16) == behind


def test_after_a_prefill_the_windowed_layers_still_hold_the_whole_prompt_in_memory():
    """Why the numbers differ at all: the W - 1 kept tokens are a view. Mistral v0.1 at 8,192 tokens."""
    cache = prefilled_cache(published("mistral-7b-v0.1"), 8192, 1, BF16)
    assert held_bytes(cache) == 131_072 * 4095
    assert storage_bytes(cache) == 131_072 * 8192


def test_transformers_caches_the_latent_of_deepseek_v3_not_its_heads():
    layer = prefilled_cache(published("deepseek-v3"), 5, 3, BF16).layers[0]
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
