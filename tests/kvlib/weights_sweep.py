"""Every causal LM class of transformers: does kvlib's parameter count equal the model that transformers builds?

    python tests/kvlib/weights_sweep.py [model_type …]

One line per class that is not right, then right / refused / wrong over all configs. A class is counted with its default
arguments, scaled down to distinct numbers, and with every single flag flipped and every single number changed. refused: a
SpecError, or weights that are None with a reason. Configs that transformers itself cannot build are left out, and so are
those whose heads do not fit into the hidden size that their class hard-wires, which it builds and cannot run.
"""

import sys
import warnings
from collections import Counter
from collections.abc import Iterator

import torch
from sweep_cases import MODEL_TYPES, NEEDED, scaled_changes
from sweep_probe import build, make_config
from transformers import AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES as SPEECH

from kvlib import SpecError, load_spec

LEFT = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")  # the patterns of other fields depend on it
CANNOT_RUN = {"helium": ("hidden_size", "num_attention_heads", "head_dim")}
NO_WEIGHTS = ("use_cache", "return_dict", "output_hidden_states", "output_attentions", "is_decoder",
              "norm_topk_prob", "output_router_logits", "use_mamba_kernels", "use_mambapy", "use_associative_scan")  # fmt: skip


def judge(config: PreTrainedConfig) -> tuple[str, str]:
    """("right" | "refused" | "wrong", why). Raises what transformers raises where it cannot build the model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        params = sum(p.numel() for p in _model(config).parameters())
    try:
        spec = load_spec(config.to_dict(), encoder_tokens=0)
    except SpecError as error:
        return "refused", str(error)
    if spec.weights is None:
        return "refused", spec.unknown_weights
    return ("right", "") if spec.n_params == params else ("wrong", f"{spec.n_params:,} instead of {params:,}")


def _model(config: PreTrainedConfig) -> PreTrainedModel:
    """The causal LM of `config`, or the whole model where it has an encoder; of a multi-modal one the text decoder."""
    tied, config = config.tie_word_embeddings, config.get_text_config()
    config.tie_word_embeddings = tied  # a whole model has one head, which its outer config ties
    if not config.is_encoder_decoder:
        return build(config)
    auto = AutoModelForSpeechSeq2Seq if config.model_type in SPEECH else AutoModelForSeq2SeqLM
    with torch.device("meta"):
        return auto.from_config(config)


def scaled(model_type: str) -> dict:
    """Arguments of the scaled-down config, with as many KV heads as the class itself gives where it fixes their number."""
    changes = scaled_changes(model_type, make_config(model_type, **NEEDED.get(model_type, {})))
    return {k: v for k, v in changes.items() if (model_type, k) != ("gpt_bigcode", "num_key_value_heads")}


def flags(model_type: str) -> Iterator[dict]:
    """Arguments that flip one flag of the class each, the model scaled down."""
    base = scaled(model_type)
    for name, value in _fields(model_type, base):
        if isinstance(value, bool):
            yield base | {name: not value}


def numbers(model_type: str) -> Iterator[dict]:
    """Arguments that change one number of the class each, at its default size."""
    base = NEEDED.get(model_type, {})
    for name, value in _fields(model_type, base):
        if isinstance(value, int) and not isinstance(value, bool):
            yield from (base | {name: n} for n in {value * 2, value // 2, value + 1} - {value})
        elif value is None:
            yield from (base | {name: n} for n in (2, 64))


def _fields(model_type: str, changes: dict) -> list[tuple[str, object]]:
    ignored = (*LEFT, *NO_WEIGHTS, *CANNOT_RUN.get(model_type, ()))
    fields = make_config(model_type, **changes).to_dict().items()
    return [(k, v) for k, v in fields if k not in ignored and not k.startswith("_") and not k.endswith("token_id")]


def verdicts(model_type: str, changes: Iterator[dict]) -> Iterator[tuple[dict, str, str]]:
    """(arguments, verdict, why) for each of `changes` that transformers can build."""
    for arguments in changes:
        try:
            verdict = judge(make_config(model_type, **arguments))
        except Exception as error:  # whatever transformers raises for a config that it refuses
            if type(error).__module__.startswith("kvlib"):
                raise
            continue
        yield arguments, *verdict


def main(model_types: list[str]) -> int:
    """Print what is not right and the counts; 1 if anything is wrong."""
    total = Counter()
    for model_type in model_types or MODEL_TYPES:
        counts = Counter()
        try:
            base = NEEDED.get(model_type, {})
            cases = [base, scaled(model_type), *flags(model_type), *numbers(model_type)]
        except Exception as error:  # noqa: BLE001  no default config
            print(f"{model_type:24} not comparable  {str(error)[:80]}")
            continue
        for arguments, verdict, why in verdicts(model_type, iter(cases)):
            counts[verdict] += 1
            if verdict == "wrong" or (arguments == base and verdict == "refused"):
                changed = {k: v for k, v in arguments.items() if base.get(k) != v}
                print(f"{model_type:24} {verdict:8} {str(changed)[:60]} {why[:120]}", flush=True)
        total += counts
    print(" / ".join(f"{verdict} {total[verdict]}" for verdict in ("right", "refused", "wrong")))
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
