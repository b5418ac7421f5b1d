"""Which preset a log's model is: no file of the log's machine is here, and nothing is fetched.

A preset is taken when its name or Hub id is the log's but for the organisation, case, separators, and words that say how a
checkpoint was tuned or quantised, which change no K and no V.
"""

import re
from difflib import get_close_matches
from pathlib import Path

from kvlib.engines.log_lines import Lines
from kvlib.engines.options import named
from kvlib.errors import SpecError
from kvlib.i18n import T
from kvlib.readers import load_spec
from kvlib.sources import presets, shipped
from kvlib.spec import ModelSpec

VARIANT = re.compile(r"instruct|it|pt|chat|base|hf|meta|nvidia|awq|gptq|gguf|bnb|bf16|fp16|fp8|nvfp4|mxfp4|int[48]|[48]bit|"
                     r"dynamic|kv|quantized.*|w\d+a\d+")  # fmt: skip
"""Words of a checkpoint's name that say who tuned it, how, and how its weights are packed."""


def key(name: str) -> str:
    """A model's name without organisation, case, separators and variant: llama3.18b for meta-llama/Llama-3.1-8B-Instruct."""
    words = re.split(r"[-_ ]+", name.rstrip("/").rpartition("/")[2].lower())
    return "".join(word for word in words if not VARIANT.fullmatch(word))


def model_of(model: object, lines: Lines) -> tuple[ModelSpec, tuple[str, ...]]:
    """The model that was given, or the log's, and a note where its name is not the preset's.

    Raises SpecError when neither is known; names the nearest preset.
    """
    if model is not None:
        return load_spec(model), ()
    if lines.model is None:
        raise SpecError(f"the log does not name its model; give {named('model')}")
    if _is_here(lines.model):
        return load_spec(lines.model), ()
    keys = {key(name): preset for preset in presets() for name in (shipped(preset)["hub_id"], preset)}
    preset = keys.get(key(lines.model))
    if preset is None:
        near = get_close_matches(key(lines.model), keys, n=1)
        example = f" {keys[near[0]]}, the nearest preset, or" if near else ""
        raise SpecError(f"the log's model {lines.model!r} is no preset; give {named('model')}:{example} a preset's name, a "
                        "config.json or a Hub id")  # fmt: skip
    spec = load_spec(preset)
    if lines.model.lower() in (preset, shipped(preset)["hub_id"].lower()):
        return spec, ()
    return spec, (T(f"紀錄裡的 {lines.model} 取內建的 {preset}：微調與權重的量化不影響 KV。",
                    f"{lines.model} of the log is taken as the preset {preset}: tuning and quantised weights do not change "
                    "K and V."),)  # fmt: skip


def _is_here(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError:  # a name too long for a path, a folder that may not be read
        return False
