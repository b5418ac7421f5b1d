"""The answers that calculators are held against: what transformers itself builds and caches. Nothing here uses kvlib.

Models are built at full size on torch's meta device, shapes without storage. A forward of a few tokens shows what every
layer hands to its cache; transformers' own cache class is then fed N tokens of those shapes. No number is typed, but for
those of `TYPED`.
"""

import warnings
from dataclasses import dataclass

import torch
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache, PreTrainedModel

FEW = 8  # tokens of the forward that shows the shapes
LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")

# Models whose cache in transformers is not the answer: bytes per token, bytes per sequence, why. Layers · 2 · KV heads · head_dim
# · 2 B; Jamba's state: layers · channels · (taps - 1 + state size) · 2 B.
TYPED = {
    "falcon-40b": (60 * 2 * 8 * 64 * 2, 0, "transformers caches the 8 KV heads broadcast to 128"),
    "jamba": (4 * 2 * 8 * 128 * 2, 28 * 8192 * (3 + 16) * 2, "its config names no dtype for the state; transformers takes float32"),
    "nemotron-super-49b": (49 * 2 * 8 * 128 * 2, 0, "transformers has no such class; 31 of the 80 blocks hold nothing"),
}


@dataclass(frozen=True)
class Truth:
    """Bytes in bf16 for one sequence. `uncapped` ignores windows and chunks; `params` is None where no class is known."""

    kv: int
    uncapped: int
    source: str
    params: int | None = None
    tensors: dict[str, list[int]] | None = None  # a checkpoint's tensors by name: their shapes, tied ones once
    architecture: str = ""


def tokens(config: dict) -> int:
    """A length that the model was made for: the longest it allows, at most 131,072; 2,048 where its config names none."""
    longest = next((config[name] for name in LENGTHS if config.get(name)), 2048)
    return min(longest, 131_072)


def truth(name: str, config: dict, n_tokens: int) -> Truth:
    """The right answers for one model. Raises whatever transformers raises for a config that it cannot build."""
    typed = next((row for part, row in TYPED.items() if part in name), None)
    try:
        model = build(config)
    except ValueError:  # transformers has no such model_type
        if typed is None:
            raise
        model = None
    if typed:
        per_token, constant, source = typed
        kv = uncapped = n_tokens * per_token + constant
    else:
        kv, uncapped = cached(model, n_tokens)
        source = "transformers' cache"
    if model is None:
        return Truth(kv, uncapped, source)
    tensors = {key: list(value.shape) for key, value in model.named_parameters()}
    params = sum(value.numel() for value in model.parameters())
    return Truth(kv, uncapped, source, params, tensors, type(model).__name__)


def build(config: dict) -> PreTrainedModel:
    """The causal LM of a config.json, in bf16 on the meta device."""
    fields = {key: value for key, value in config.items() if key != "quantization_config"}
    model_type = fields.pop("model_type")
    with torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = AutoConfig.for_model(model_type, **fields)
        # batched_mm: experts without data-dependent indexing, which has no meaning on the meta device
        return AutoModelForCausalLM.from_config(known, dtype=torch.bfloat16, experts_implementation="batched_mm").eval()


def cached(model: PreTrainedModel, n_tokens: int) -> tuple[int, int]:
    """Bytes that a sequence of n_tokens keeps, and what it would keep were no layer capped."""
    shown, fed = DynamicCache(config=model.config), DynamicCache(config=model.config)
    ids = torch.zeros(1, FEW, dtype=torch.long, device="meta")
    with torch.no_grad():
        model(input_ids=ids, cache=shown, use_cache=True)
    kv = uncapped = rest = 0
    for i, layer in enumerate(shown.layers):
        rest += _state(layer) + n_tokens * _index_keys(layer)
        if getattr(layer, "keys", None) is None:  # reads another layer's cache, or has no attention
            continue
        k, v = (_long(t, n_tokens) for t in (layer.keys, layer.values))
        uncapped += k.nbytes + v.nbytes
        fed.layers[i].update(k[:, :, 1:], v[:, :, 1:])
        # After a decode step nothing is a view into a longer prompt any more: the memory behind is min(N, window) tokens.
        fed.layers[i].update(k[:, :, :1].clone(), v[:, :, :1].clone())
        kv += sum(t.untyped_storage().nbytes() for t in (fed.layers[i].keys, fed.layers[i].values))
    return kv + rest, uncapped + rest


def _long(t: torch.Tensor, n_tokens: int) -> torch.Tensor:
    """A tensor of (batch, heads, n_tokens, dim) like t."""
    return torch.empty(*t.shape[:2], n_tokens, t.shape[3], dtype=t.dtype, device="meta")


def _state(layer: object) -> int:
    """Bytes of recurrent and convolution state. transformers keeps the column of the token just seen, which the next one does
    not need: a convolution over K tokens needs K - 1 of the past."""
    conv = [t for t in getattr(layer, "conv_states", {}).values() if t is not None]
    recurrent = [t for t in getattr(layer, "recurrent_states", {}).values() if t is not None]
    return sum(t[..., 1:].numel() * t.element_size() for t in conv) + sum(t.nbytes for t in recurrent)


def _index_keys(layer: object) -> int:
    """Bytes per token of a sparse indexer's keys. transformers keeps them in bf16; engines in 8 bits with a 32-bit scale for every
    128 values, which is counted here."""
    keys = getattr(layer, "indexer_keys", None)  # (batch, tokens, width)
    return 0 if keys is None else keys.shape[2] + 4 * -(-keys.shape[2] // 128)
