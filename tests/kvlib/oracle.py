"""What the real transformers package counts and caches, to hold kvlib's arithmetic against. Nothing here uses kvlib.

Everything runs at full size on torch's meta device: shapes without storage, so a 671 B model costs no memory and a
131,072-token prefill takes under a second.

Three facts about transformers' DynamicCache (read in 5.24, asserted in test_models_against_transformers.py):
- a windowed layer with window W keeps min(N, W - 1) tokens, one fewer than the ideal min(N, W): the query that comes
  next brings its own;
- right after a long prefill what it keeps is a view into the whole prompt, so the memory behind it is that of N
  tokens; from the first decode step on, the memory behind it is min(N, W) tokens, which is the ideal;
- DeepSeek-V3 caches the latent (kv_lora_rank in the key slot, the rotary key in the value slot), not expanded heads.
"""

import functools
import json
import warnings

import torch
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache, PreTrainedModel


def transformers_params(config: dict) -> int:
    """Parameters of the causal LM that transformers builds for `config`; tied tensors count once, buffers do not."""
    return sum(p.numel() for p in _model(config, torch.bfloat16).parameters())


def transformers_cache_bytes(config: dict, n_tokens: int, batch: int, dtype: torch.dtype) -> int:
    """Bytes of the tensors that transformers' cache holds after a prefill of `batch` rows of `n_tokens`."""
    return held_bytes(prefilled_cache(config, n_tokens, batch, dtype))


def prefilled_cache(config: dict, n_tokens: int, batch: int, dtype: torch.dtype) -> DynamicCache:
    """The cache after the model's own forward over (batch, n_tokens); sliding layers come from the config."""
    model = _model(config, dtype)
    return _feed(model, DynamicCache(config=model.config), batch, n_tokens)


def layer_windows(config: dict) -> list[int | None]:
    """The window that transformers' cache gives to each layer; None where it keeps all tokens."""
    cache = DynamicCache(config=_model(config, torch.bfloat16).config)
    return [layer.sliding_window if layer.is_sliding else None for layer in cache.layers]


def held_bytes(cache: DynamicCache) -> int:
    """Bytes of the tensors the cache gives to attention."""
    return sum(t.nbytes for t in _tensors(cache))


def one_token_of_full_windows(cache: DynamicCache, n_tokens: int) -> int:
    """Bytes of one token per row in every windowed layer whose window is full (N >= W); 0 where none is."""
    full = (layer for layer in cache.layers if layer.is_sliding and n_tokens >= layer.sliding_window)
    return sum(t[:, :, :1].nbytes for layer in full for t in (layer.keys, layer.values))


def storage_bytes_after_decoding(config: dict, n_tokens: int, batch: int, dtype: torch.dtype) -> int:
    """Bytes of memory behind the cache once `n_tokens` were seen, the last of them in a decode step of its own."""
    cache = prefilled_cache(config, n_tokens - 1, batch, dtype)
    return storage_bytes(_feed(_model(config, dtype), cache, batch, 1))


def storage_bytes(cache: DynamicCache) -> int:
    """Bytes of memory behind the cache's tensors, which may be views into larger ones."""
    return sum(t.untyped_storage().nbytes() for t in _tensors(cache))


def _tensors(cache: DynamicCache) -> list[torch.Tensor]:
    return [t for layer in cache.layers for t in (layer.keys, layer.values)]  # each (B, heads, retained, dim)


def _feed(model: PreTrainedModel, cache: DynamicCache, batch: int, q_len: int) -> DynamicCache:
    ids = torch.zeros(batch, q_len, dtype=torch.long, device="meta")
    with torch.no_grad():
        model.model(input_ids=ids, cache=cache, use_cache=True)  # the decoder without its head: no logits
    return cache


def _model(config: dict, dtype: torch.dtype) -> PreTrainedModel:
    return _build(json.dumps(config, sort_keys=True), dtype)


@functools.cache  # a model on the meta device is a few megabytes of Python objects
def _build(config_json: str, dtype: torch.dtype) -> PreTrainedModel:
    fields = json.loads(config_json)
    fields.pop("quantization_config", None)  # how a checkpoint is stored; the parameters are the same
    config = AutoConfig.for_model(fields.pop("model_type"), **fields)
    with torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # batched_mm: experts without data-dependent indexing, which has no meaning on the meta device
        model = AutoModelForCausalLM.from_config(config, dtype=dtype, experts_implementation="batched_mm")
    return model.eval()
