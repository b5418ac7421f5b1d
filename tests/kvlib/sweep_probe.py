"""What transformers itself keeps for one config: every tensor that its cache holds after a run. Nothing here uses kvlib.

A model is built and run on torch's meta device, where shapes exist without storage, so full size costs nothing. What
asks for values (data-dependent indexing) cannot run there and runs on the CPU instead, scaled down.

What the ideal counts differently, tensor by tensor (`Held.ideal_bytes`), and nothing else:
- a layer with a window or chunk of W holds min(N, W - 1) tokens after a forward, and all N where its class masks old
  tokens without letting go of them (GPT-Neo): the ideal is min(N, W);
- a convolution of k taps holds its last k inputs: the next token needs k - 1 of them;
- a sparse indexer's keys are of the model's dtype: the ideal counts fp8 with a 32-bit scale per 128 values.
"""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import signature

import torch
import transformers
from torch.fx.experimental import _config as meta_config
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM, DynamicCache, EncoderDecoderCache, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

NOT_CACHE = ("logits", "logits_ngram", "loss", "last_hidden_state", "encoder_last_hidden_state", "hidden_states",
             "attentions")  # fmt: skip
TOKENS = "keys", "values"


@dataclass(frozen=True)
class Held:
    """One tensor of the cache: its layer, what it is ("keys", "conv_states"), and the layer's window."""

    layer: int
    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    window: int | None = None

    @property
    def is_state(self) -> bool:
        """Is it a state, whose size does not depend on the number of tokens?"""
        return self.name not in (*TOKENS, "indexer_keys")

    def ideal_bytes(self, n_tokens: int, state_dtype: torch.dtype | None = None) -> int:
        """Bytes of it in the ideal count; a recurrent state is priced in `state_dtype` where that is given."""
        shape = list(self.shape)
        if self.name == "indexer_keys":
            *rest, width = shape
            return torch.Size(rest).numel() * (width + 4 * -(-width // 128))
        if self.name in TOKENS and self.window is not None and n_tokens >= self.window:
            assert shape[2] in (self.window - 1, n_tokens), f"a full window of {self.window} holds {shape[2]} tokens"
            shape[2] = self.window
        if self.name == "conv_states":
            shape[-1] -= 1
        recurrent = self.is_state and self.name != "conv_states"
        return torch.Size(shape).numel() * (state_dtype if state_dtype and recurrent else self.dtype).itemsize


class MetaAnswersYes(TorchDispatchMode):
    """A forward that asks a meta tensor for a scalar gets 1: yes, the mask is all ones; yes, nothing is packed."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._local_scalar_dense.default and args[0].is_meta:
            return 1
        return func(*args, **(kwargs or {}))


def make_config(model_type: str, **changes: object) -> PreTrainedConfig:
    """The class's config with default arguments but `changes`; a decoder where the class can also be an encoder."""
    cls = CONFIG_MAPPING[model_type]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = cls(**changes)
        return cls(**changes, is_decoder=True) if getattr(config, "is_decoder", None) is False else config


def build(config: PreTrainedConfig, device: str = "meta", dtype: torch.dtype = torch.bfloat16) -> PreTrainedModel:
    """The causal LM of `config`, on `device`, without trained weights."""
    transformers.logging.set_verbosity_error()
    if config.model_type == "gemma3n":  # its vision tower needs timm
        config = config.text_config
    with torch.device(device), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # batched_mm: experts without data-dependent indexing
        model = AutoModelForCausalLM.from_config(config, dtype=dtype, experts_implementation="batched_mm")
    if hasattr(model, "set_default_language"):
        model.set_default_language("en_XX")
    return model.eval()


def run(model: PreTrainedModel, n_tokens: int, batch: int = 1, encoder_tokens: int = 0) -> list[Held]:
    """What the cache holds after one forward over (batch, n_tokens), and over an encoder's output if there is one."""
    device = next(model.parameters()).device
    inputs = {"input_ids": torch.zeros(batch, n_tokens, dtype=torch.long, device=device), "use_cache": True}
    if encoder_tokens:
        shape = batch, encoder_tokens, model.config.get_text_config().hidden_size
        encoded = torch.zeros(shape, dtype=model.dtype, device=device)
        takes = signature(model.forward).parameters
        name = next(x for x in ("encoder_outputs", "cross_attention_states", "encoder_hidden_states") if x in takes)
        inputs[name] = (encoded,) if name == "encoder_outputs" else encoded
    answers = meta_config.patch(meta_nonzero_assume_all_nonzero=True)
    with torch.no_grad(), MetaAnswersYes(), answers, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = _found(model, model(**inputs, return_dict=True))
        if not [x for x in found if not x.is_state]:  # it fills a cache that it is given, and returns none
            cache = EncoderDecoderCache(DynamicCache(config=model.config), DynamicCache())
            cache = cache if model.config.model_type == "xlm" else cache.self_attention_cache
            found = _found(model, {"cache": cache, **model(**inputs, cache=cache, return_dict=True)})
    return found


def _found(model: PreTrainedModel, output: Mapping) -> list[Held]:
    kept = {name: value for name, value in output.items() if name not in NOT_CACHE}
    inside = {i: _attributes(layer) for i, layer in enumerate(_layers(model))}  # RecurrentGemma keeps its states there
    found = [*_walk(kept, -1, "", None, set()), *_walk(inside, -1, "", None, set())]
    local = [i for i, kind in enumerate(getattr(model.config, "attention_layers", ())) if kind == "local"]  # GPT-Neo
    return [replace(x, window=model.config.window_size) if x.layer in local else x for x in found]


def _layers(model: PreTrainedModel) -> torch.nn.ModuleList | tuple:
    return getattr(getattr(model, "model", None), "layers", ())


def _attributes(layer: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Plain tensors that a forward left on the modules of one layer: neither parameters nor buffers."""
    return {f"{name}.{key}": value for name, module in layer.named_modules() for key, value in vars(module).items()
            if isinstance(value, torch.Tensor)}  # fmt: skip


def _walk(thing: object, layer: int, name: str, window: int | None, seen: set[int]) -> Iterator[Held]:
    """Every tensor in nested containers and cache objects, once; layer: the last number on the way to it."""
    if id(thing) in seen or isinstance(thing, torch.nn.Module | PreTrainedConfig | type | torch.dtype | torch.device):
        return
    seen.add(id(thing))
    if isinstance(thing, torch.Tensor):
        if thing.ndim and thing.numel() and thing.is_floating_point():  # integers are bookkeeping: positions, lengths
            yield Held(layer, name, tuple(thing.shape), thing.dtype, window)
    elif isinstance(thing, Mapping | list | tuple):
        for key, value in thing.items() if isinstance(thing, Mapping) else enumerate(thing):
            yield from _walk(value, key if isinstance(key, int) and layer < 0 else layer,
                             str(key) if isinstance(key, str) else name, window, seen)
    elif hasattr(thing, "__dict__"):
        if layer >= 0:
            window = getattr(thing, "sliding_window", window)
        for key, value in vars(thing).items():
            yield from _walk(value, layer, key, window, seen)
