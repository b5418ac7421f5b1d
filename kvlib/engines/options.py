"""The options of an engine: what the command line calls them, what they may be, and their defaults."""

from dataclasses import replace

from kvlib.engines.plan import Ask, Engine
from kvlib.errors import SpecError, whole
from kvlib.kv_formats import kv_name, kv_pair
from kvlib.spec import ModelSpec

FLAGS = {
    "model": "--model", "n_tokens": "--tokens", "kv_dtype": "--kv-dtype", "block_size": "--block-size", "pool_bytes": "--pool-gb",
    "max_num_batched_tokens": "--max-batched-tokens", "max_model_len": "--max-model-len",
    "prefix_caching": "--no-prefix-caching", "hybrid": "--no-hybrid", "unified": "--unified",
}  # fmt: skip
"""What the command line calls an option, where that is another name."""


def named(option: str) -> str:
    """An option for those who call the library and for those at the command line: "max_model_len (--max-model-len)"."""
    return f"{option} ({FLAGS[option]})" if option in FLAGS else option


OPTIONS = {
    "block_size": None, "max_num_batched_tokens": None, "max_model_len": None, "pool_bytes": None,
    "prefix_caching": True, "hybrid": True, "unified": False,
}  # fmt: skip
"""Options that not every engine reads, with the value that means "not given"."""


def checked(ask: Ask, engine: Engine) -> Ask:
    """`ask` with the engine's defaults filled in. Raises SpecError for a value out of range or an option it has not."""
    if not isinstance(ask.spec, ModelSpec):
        raise SpecError(f"spec is {ask.spec!r}; expected a ModelSpec: load_spec({ask.spec!r})")
    _check_format(ask, engine)
    found = {name: whole(name, getattr(ask, name)) for name in ("tp", "pp", "batch")}
    found["n_tokens"] = whole(named("n_tokens"), ask.n_tokens, 0)
    for name, absent in OPTIONS.items():
        value = getattr(ask, name)
        if name not in engine.defaults and value != absent:
            raise SpecError(f"{named(name)} is {value!r}, and {engine.name} has no such option; leave it out")
        if isinstance(absent, bool):
            if not isinstance(value, bool):
                raise SpecError(f"{named(name)} is {value!r}; expected true or false")
        else:
            found[name] = engine.defaults.get(name) if value is None else whole(named(name), value)
    if "max_model_len" in engine.defaults and found["max_model_len"] is None:
        found["max_model_len"] = max(1, ask.n_tokens)
    if (longest := found["max_model_len"]) is not None and ask.n_tokens > longest:
        raise SpecError(f"{named('n_tokens')} is {ask.n_tokens} and more than {named('max_model_len')} = {longest}; raise the "
                        "latter")  # fmt: skip
    ask = replace(ask, **found)
    engine.stages(ask)
    return ask


def _check_format(ask: Ask, engine: Engine) -> None:
    k, v = kv_pair(ask.kv_dtype)
    latent = engine.latent_formats is not None and any(layer.latent for layer in ask.spec.layers)
    formats, what = (engine.latent_formats, "in which {} does not store a latent (MLA)") if latent else (
        engine.formats, "which {} does not store")  # fmt: skip
    if wrong := next((f for f in (k, v) if f.name not in formats), None):
        raise SpecError(f"{named('kv_dtype')} is {wrong.name!r}, {what.format(engine.name)}; choose one of "
                        f"{', '.join(formats)}")  # fmt: skip
    if engine.one_format and k != v:
        raise SpecError(f"{named('kv_dtype')} is {kv_name(ask.kv_dtype)!r}, and {engine.name} stores K and V alike; choose one of "
                        f"{', '.join(formats)}")  # fmt: skip
