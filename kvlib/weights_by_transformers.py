"""Weights of a model type that `layouts` has no row for, counted in the model that transformers builds on the meta device.

Nothing here is imported with kvlib: it needs torch and transformers and takes seconds. Shapes cost no memory there.
"""

import re
import warnings
from collections.abc import Mapping
from dataclasses import replace

from kvlib.config.fields import Fields
from kvlib.errors import SpecError
from kvlib.i18n import T
from kvlib.layouts.blocks import N_EXPERTS, TOP_K
from kvlib.layouts.facts import number
from kvlib.spec import ModelSpec, Weight

PARTS = (("expert", "experts"), ("norm", "norm"), ("lm_head", "head"), ("embed", "embedding"), ("wte", "embedding"),
         ("wpe", "embedding"), ("attn", "attention"), ("attention", "attention"))  # fmt: skip
"""Which part a parameter belongs to: the first text that its name holds; a feed-forward block otherwise."""


def with_counted_weights(spec: ModelSpec, config: Mapping) -> ModelSpec:
    """`spec` with the weights of the causal LM that transformers builds for `config`, and a note that says so.

    Raises SpecError when transformers is not installed or cannot build the model.
    """
    note = T("權重是在 transformers 建出的模型裡數的", "the weights were counted in the model that transformers builds")
    weights, active_known = weights_by_transformers(config)
    return replace(spec, weights=weights, active_known=active_known, unknown_weights="", notes=(*spec.notes, note))


def weights_by_transformers(config: Mapping) -> tuple[tuple[Weight, ...], bool]:
    """Every parameter of the causal LM of `config`, equal ones of different layers as one Weight; is it known which are active?

    It is where all tensors of experts hold one slice per expert, and the config says how many a token uses.

    Raises SpecError when transformers is not installed or cannot build the model.
    """
    try:
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM
    except ImportError as error:
        raise SpecError(f"counting the weights of model_type {config.get('model_type')!r} needs transformers and torch: "
                        "pip install transformers torch") from error  # fmt: skip
    fields = {k: v for k, v in config.items() if k not in ("model_type", "quantization_config")}
    try:
        with torch.device("meta"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            built = AutoModelForCausalLM.from_config(AutoConfig.for_model(config.get("model_type"), **fields))
    except Exception as error:  # whatever transformers raises for a config that it cannot build
        raise SpecError(f"transformers cannot build model_type {config.get('model_type')!r} "
                        f"({type(error).__name__}: {str(error)[:200]}); give the bytes of the weights: weight_bytes=") from error  # fmt: skip
    n_experts, top_k = _number(config, N_EXPERTS), _number(config, TOP_K)
    counts: dict[tuple, list[int]] = {}
    sliced, whole = False, False  # are there tensors with a slice per expert, and others that experts may lie in?
    for name, parameter in built.named_parameters():
        shape, copies, active = tuple(parameter.shape), 1, 1
        if n_experts and ".experts." in name and len(shape) in (2, 3) and shape[0] == n_experts:
            copies, shape, sliced = n_experts, shape[1:], True
            active = min(top_k or copies, copies)
        elif ("expert" in name and "shared_expert" not in name) or (len(shape) == 3 and shape[0] == n_experts):
            whole = True
        key = re.sub(r"\.\d+(?=\.|$)", "", name), shape
        total = counts.setdefault(key, [0, 0])
        total[0], total[1] = total[0] + copies, total[1] + active
    known = not whole and (top_k is not None if sliced else not _has_experts(config))
    return tuple(Weight(name, _part(name), shape, count, None if active == count else active)
                 for (name, shape), (count, active) in counts.items()), known  # fmt: skip


def _number(config: Mapping, names: tuple[str, ...]) -> int | None:
    """One number of the config; None where it says none, or not one for all layers."""
    try:
        return number(Fields(config, "config"), *names)
    except SpecError:
        return None


def _has_experts(config: Mapping) -> bool:
    return any("expert" in field and value for field, value in config.items())


def _part(name: str) -> str:
    return next((part for text, part in PARTS if text in name), "feed-forward")
