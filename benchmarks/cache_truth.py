"""The answers that calculators are held against: what transformers itself builds and caches. Nothing here uses kvlib.

Models are built at full size on torch's meta device, shapes without storage. A forward of a few tokens shows what every
layer hands to its cache; transformers' own cache class is then fed N tokens of those shapes. No number is typed, but for
those of `TYPED`. It is the text decoder that is asked about: of a multi-modal config, its `text_config`.
"""

import warnings
from dataclasses import dataclass

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache, PreTrainedModel

FEW = 8  # tokens of the forward that shows the shapes
LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length")

# Models whose cache in transformers is not the answer: bytes per token and why. Layers · 2 · KV heads · head_dim · 2 B.
TYPED = {
    "falcon-40b": (60 * 2 * 8 * 64 * 2, "transformers caches the 8 KV heads broadcast to 128"),
    "nemotron-super-49b": (49 * 2 * 8 * 128 * 2, "transformers has no such class; 31 of the 80 blocks hold nothing"),
}


@dataclass(frozen=True)
class Cached:
    """Bytes of one sequence in bf16, and two more numbers that differ from them for some models.

    uncapped: were there no windows and no chunks. narrow: with recurrent state in bf16 too. transformers computes most of it
    in float32; an engine takes the model's dtype where the config names none, so both are right.
    """

    kv: int
    uncapped: int
    narrow: int


@dataclass(frozen=True)
class Truth:
    """What is right for one model; `params` is None where transformers has no class for it."""

    cached: Cached
    source: str
    params: int | None = None
    tensors: dict[str, list[int]] | None = None  # a checkpoint's tensors by name: their shapes, tied ones once
    architecture: str = ""


def text_only(config: dict) -> dict:
    """The config of the text decoder."""
    if "text_config" not in config:
        return config
    top = {name: config[name] for name in ("tie_word_embeddings",) if name in config}
    return config["text_config"] | top


def tokens(config: dict) -> int:
    """A length that the model was made for: the longest it allows, at most 131,072; 2,048 where its config names none."""
    longest = next((config[name] for name in LENGTHS if config.get(name)), 2048)
    return min(longest, 131_072)


def truth(name: str, config: dict, n_tokens: int) -> Truth:
    """The right answers for one model. Raises whatever transformers raises for a config that it cannot build, and ValueError for a
    model with an encoder: what it keeps depends on that one's input as well."""
    if config.get("is_encoder_decoder"):
        raise ValueError("an encoder and a decoder; the comparison is of decoders")
    typed = next((row for part, row in TYPED.items() if part in name), None)
    try:
        model = build(config)
    except ValueError:  # transformers has no such model_type
        if typed is None:
            raise
        model = None
    if typed:
        found, source = Cached(*[n_tokens * typed[0]] * 3), typed[1]
    else:
        found, source = cached(model, n_tokens), "transformers' cache"
    if model is None:
        return Truth(found, source)
    tensors = {key: list(value.shape) for key, value in model.named_parameters()}
    params = sum(value.numel() for value in model.parameters())
    return Truth(found, source, params, tensors, type(model).__name__)


def build(config: dict) -> PreTrainedModel:
    """The causal LM of a config.json, in bf16 on the meta device."""
    fields = {key: value for key, value in config.items() if key != "quantization_config"}
    model_type = fields.pop("model_type")
    named = getattr(transformers, (config.get("architectures") or [""])[0], None)
    with torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            known = AutoConfig.for_model(model_type, **fields)
        except ValueError:  # Kimi-K2: a model_type of its own for the class of another
            if named is None:
                raise
            known = named.config_class(**fields)
        # batched_mm: experts without data-dependent indexing, which has no meaning on the meta device
        return AutoModelForCausalLM.from_config(known, dtype=torch.bfloat16, experts_implementation="batched_mm").eval()


def cached(model: PreTrainedModel, n_tokens: int) -> Cached:
    """What a sequence of n_tokens keeps."""
    shown, fed = DynamicCache(config=model.config), DynamicCache(config=model.config)
    ids = torch.zeros(1, FEW, dtype=torch.long, device="meta")
    with torch.no_grad():
        model(input_ids=ids, cache=shown, use_cache=True)
    kv = uncapped = 0
    for i, layer in enumerate(shown.layers):
        if getattr(layer, "keys", None) is None:  # reads another layer's cache, or has no attention
            continue
        k, v = (_long(t, n_tokens) for t in (layer.keys, layer.values))
        uncapped += k.nbytes + v.nbytes
        fed.layers[i].update(k[:, :, 1:], v[:, :, 1:])
        # After a decode step nothing is a view into a longer prompt any more: the memory behind is min(N, window) tokens.
        fed.layers[i].update(k[:, :, :1].clone(), v[:, :, :1].clone())
        kv += sum(t.untyped_storage().nbytes() for t in (fed.layers[i].keys, fed.layers[i].values))
    state, narrow = _states(model, shown)
    rest = n_tokens * sum(_index_keys(layer) for layer in shown.layers)
    return Cached(kv + rest + state, uncapped + rest + state, kv + rest + narrow)


def _long(t: torch.Tensor, n_tokens: int) -> torch.Tensor:
    """A tensor of (batch, heads, n_tokens, dim) like t."""
    return torch.empty(*t.shape[:2], n_tokens, t.shape[3], dtype=t.dtype, device="meta")


def _states(model: PreTrainedModel, cache: DynamicCache) -> tuple[int, int]:
    """Bytes of recurrent and convolution state as transformers holds it, and with every value in bf16.

    Its caches keep the column of the token just seen, which the next one does not need: a convolution over K tokens needs
    K - 1 of the past. RecurrentGemma keeps both kinds in its modules instead, and K - 1 columns."""
    layers = [vars(layer) for layer in cache.layers]
    tensors = [t[..., 1:] for layer in layers for t in layer.get("conv_states", {}).values() if t is not None]
    tensors += [t for layer in layers for t in layer.get("recurrent_states", {}).values() if t is not None]
    for module in model.modules():
        tensors += [t for name in ("conv1d_state", "recurrent_states") if (t := getattr(module, name, None)) is not None]
    return sum(t.numel() * t.element_size() for t in tensors), sum(t.numel() * 2 for t in tensors)


def _index_keys(layer: object) -> int:
    """Bytes per token of a sparse indexer's keys. transformers keeps them in bf16; engines in 8 bits with a 32-bit scale for every
    128 values, which is counted here."""
    keys = getattr(layer, "indexer_keys", None)  # (batch, tokens, width)
    return 0 if keys is None else keys.shape[2] + 4 * -(-keys.shape[2] // 128)
