"""Configs that were damaged at random: each is refused with a SpecError, or read into numbers that hang together.

A fixed sample runs here; FUZZ_CASES=10000 draws that many new cases over the four tests (`make sweep`).
"""

import json
import os
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from copy import deepcopy
from importlib.resources import files
from io import StringIO

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sweep_cases import MODEL_TYPES, NEEDED
from sweep_probe import make_config

from kvlib import ModelSpec, SpecError, kv_bytes, kv_growth, load_spec
from kvlib.cli import main
from kvlib.config.fields import ALIASES
from kvlib.kv_formats import KV_FORMATS

CASES = int(os.environ.get("FUZZ_CASES", "0"))
fuzz = settings(max_examples=CASES // 4 or 100, derandomize=not CASES, deadline=None, database=None,
                suppress_health_check=list(HealthCheck))  # fmt: skip
SAMPLE = MODEL_TYPES if CASES else MODEL_TYPES[::12]


def _defaults(model_types) -> Iterator[dict]:
    for model_type in model_types:
        try:
            yield json.loads(json.dumps(make_config(model_type, **NEEDED.get(model_type, {})).to_dict()))
        except Exception:  # noqa: BLE001, S112  a class that has no default config
            continue


PUBLISHED = [json.loads(path.read_text(encoding="utf-8"))["config"]
             for path in sorted(files("kvlib").joinpath("models").iterdir()) if path.name.endswith(".json")]  # fmt: skip
CONFIGS = [*PUBLISHED, *_defaults(SAMPLE)]
WORDS = ["", "mamba", "full_attention", "sliding_attention", "LLGL", "M*-E", "128", "float32", "none", "auto", "\x00", "模型"]
NUMBERS = st.sampled_from([-1, 0, 1, 2, 3, 7, 64, 10**4, 10**12, 10**40]) | st.integers(-3, 4096)
SCALARS = st.none() | st.booleans() | NUMBERS | st.floats() | st.sampled_from(WORDS) | st.text(max_size=6)
KEYS = st.sampled_from(["head_dim", "0", "05", "num_heads", "full_attn_layers", "kv_n_heads", "attention", "text_config"])
JUNK = st.recursive(SCALARS, lambda x: st.lists(x, max_size=4) | st.dictionaries(KEYS, x, max_size=3))
DTYPES = st.sampled_from([*KV_FORMATS, "q8_0/q4_0", "bf16/fp8", "fp5"])
NAMES = sorted({name for pair in ALIASES.items() for name in (pair[0], *pair[1])}
               | {name for config in CONFIGS for name in config})  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> dict:
    """A real config with one to four changes: a field dropped, renamed, added, replaced by junk or by a neighbour's value."""
    config = deepcopy(draw(st.sampled_from(CONFIGS)))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.sampled_from(list(_places(config))))
        key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        match draw(st.sampled_from(["drop", "rename", "junk", "nudge", "add", "neighbour"])):
            case "drop":
                del place[key]
            case "rename" if isinstance(place, dict):
                place[draw(st.sampled_from(NAMES) | st.just(f"{key}_"))] = place.pop(key)
            case "nudge" if isinstance(place[key], int) and not isinstance(place[key], bool):
                place[key] += draw(st.sampled_from([-1, 1, 2]))
            case "add" if isinstance(place, dict):
                place[draw(st.sampled_from(NAMES))] = draw(JUNK)
            case "neighbour":
                place[key] = deepcopy(draw(st.sampled_from(list(place.values() if isinstance(place, dict) else place))))
            case _:
                place[key] = draw(JUNK)
        if not config:
            break
    return config


def _places(config: dict) -> Iterator[dict | list]:
    """The config and every non-empty object or list in it."""
    for value in (config, *config.values()):
        if isinstance(value, dict | list) and value:
            yield value
            if value is not config:
                inner = value.values() if isinstance(value, dict) else value
                yield from (x for x in inner if isinstance(x, dict | list) and x)


def load(config: dict, **options: object) -> ModelSpec | None:
    """The spec, or None when the config is refused in a message that a person can read."""
    try:
        return load_spec(config, **options)
    except SpecError as error:
        assert 10 < len(str(error)) < 1200, str(error)
        return None


def hangs_together(spec: ModelSpec, kv_dtype: object, tp: int, batch: int) -> None:
    """The numbers are whole and not negative, never fall, and the growth says the same as the sum."""
    growth = kv_growth(spec, kv_dtype, tp)
    caps = [layer.cap for layer in spec.layers if layer.cap is not None]
    full = max(caps, default=0)
    lengths = sorted({0, 1, 2, 5, 129, full, full + 1, 2 * full + 3, 131_072})
    total = {n: kv_bytes(spec, n, batch, kv_dtype, tp) for n in lengths}
    numbers = [*total.values(), growth.per_token_early, growth.per_token_late, growth.capped, growth.constant]
    assert all(type(x) is int and x >= 0 for x in numbers)
    assert list(total.values()) == sorted(total.values())
    assert total[0] == batch * growth.constant
    assert total[1] == batch * (growth.constant + growth.per_token_early)
    for n in lengths:
        if n >= full:
            assert total[n] == batch * (growth.constant + growth.capped + n * growth.per_token_late)
    assert spec.weights is None or (type(spec.n_params) is int and spec.n_params >= 0)
    with suppress(SpecError):
        assert type(spec.weight_bytes("stored")) is int and spec.weight_bytes("stored") >= 0


@fuzz
@given(damaged(), st.booleans(), st.none() | st.integers(0, 3000))
def test_a_damaged_config_is_refused_or_its_numbers_hang_together(config, mtp, encoder_tokens):
    spec = load(config, mtp=mtp, encoder_tokens=encoder_tokens)
    if spec:
        hangs_together(spec, "bf16", 1, 1)


@fuzz
@given(st.dictionaries(st.sampled_from(NAMES), JUNK, max_size=12))
def test_a_config_of_random_fields_is_refused_or_its_numbers_hang_together(config):
    spec = load(config)
    if spec:
        hangs_together(spec, "bf16", 1, 1)


@fuzz
@given(st.sampled_from(CONFIGS), DTYPES | JUNK, NUMBERS | JUNK, NUMBERS | JUNK)
def test_every_kv_dtype_tp_and_batch_is_refused_or_its_numbers_hang_together(config, kv_dtype, tp, batch):
    spec = load(config, encoder_tokens=0)
    if spec:
        try:
            hangs_together(spec, kv_dtype, tp, batch)
        except SpecError as error:
            assert 10 < len(str(error)) < 1200


@fuzz
@given(damaged(), st.integers(-1, 10**6), st.integers(0, 9), DTYPES, st.integers(0, 9))
def test_the_command_answers_in_json_or_refuses_in_one_message(tmp_path_factory, config, tokens, batch, kv_dtype, tp):
    path = tmp_path_factory.getbasetemp() / "fuzzed.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    options = [f"--tokens={tokens}", f"--batch={batch}", f"--kv-dtype={kv_dtype}", f"--tp={tp}"]
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = main(["estimate", str(path), "--json", *options])
    if code == 0:
        report = json.loads(out.getvalue())
        assert report["kv_bytes"] == kv_bytes(load_spec(path), tokens, batch, kv_dtype, tp)
    else:
        assert code == 2
        assert err.getvalue().strip()
        assert "Traceback" not in err.getvalue()
