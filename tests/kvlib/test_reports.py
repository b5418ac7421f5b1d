"""What the reports print and what they give to programs: schemas, 80 columns, and sums that add up."""

import json
import re
from io import StringIO
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from kvlib import Layer, ModelSpec, i18n, kv_bytes, kv_terms, load_spec, memory_budget, presets
from kvlib.budget import splits
from kvlib.cli import main
from kvlib.commands.estimate import EngineName
from kvlib.engines import ENGINES, admission, allocation
from kvlib.kv_formats import KV_FORMATS
from kvlib.reports.estimate import Estimate
from kvlib.reports.rows import rows_of
from kvlib.reports.words import repeated
from kvlib.spec import StatePart

SCHEMAS = Path(main.__code__.co_filename).parent / "schemas"
LOG = """\
INFO 11-21 10:00:00 Initializing an LLM engine (v0.6.4.post1) with config: model='meta-llama/Llama-3.1-8B', max_seq_len=20000
INFO 11-21 10:00:09 Memory profiling results: total_gpu_memory=23.58GiB peak_torch_memory=17.06GiB non_torch_memory=0.35GiB \
kv_cache_size=3.81GiB gpu_memory_utilization=0.90
INFO 11-21 10:00:09 # GPU blocks: 1952, # CPU blocks: 2048
INFO 11-21 10:00:09 Maximum concurrency for 20000 tokens per request: 1.56x
"""
COMMANDS = {
    "estimate": ["estimate llama-2-70b -n 4097 --engine vllm", "estimate gemma-3n-e4b --tp 2", "estimate whisper-large-v3",
                 "estimate jamba-v0.1 --engine sglang --pool-gb 4", "estimate deepseek-v3.2 --kv-dtype fp8_ds_mla --mtp",
                 "estimate llama-4-scout -n 131072 --engine llama.cpp --kv-dtype q8_0/q4_0", "estimate gemma-3-27b --engine transformers"],
    "budget": ["budget llama-2-70b --gpus 2", "budget llama-2-70b --weight-gb 140", "budget nemotron-super-49b-v1 --weight-gb 100"],
    "fit": ["fit llama-2-70b --gpus 2 --sequences 32", "fit mistral-7b-v0.1 --block-size 16 --kv-dtype fp8", "fit llama-2-70b"],
    "compare": ["compare llama-3-8b gemma-3-12b jamba-v0.1 --gpu h100-80gb", "compare nemotron-super-49b-v1 qwen2.5-7b --gpu t4-16gb --gpus 8"],
    "models": ["models", "models --search gemma"],
    "explain-log": ["explain-log LOG", "explain-log LOG --model llama-2-7b --tp 2"],
}  # fmt: skip
EVERY = [(name, line) for name, lines in COMMANDS.items() for line in lines]


@pytest.fixture(autouse=True)
def _plain(english, monkeypatch, tmp_path):
    """Each test runs where a log lies, in English unless it says otherwise, on a screen of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "LOG").write_text(LOG)
    monkeypatch.chdir(tmp_path)


def printed(line: str, capsys, lang: str = "en") -> str:
    assert main([*line.split(), "--lang", lang]) in (0, 1)
    return capsys.readouterr().out


def test_the_command_offers_every_engine():
    assert [str(name) for name in EngineName] == list(ENGINES)


def test_there_is_a_schema_for_every_command_and_no_other():
    assert sorted(COMMANDS) == sorted(path.stem for path in SCHEMAS.glob("*.json"))


def strict(schema):
    """The same, with no key that it does not name: readers may meet new keys, we do not add one by accident."""
    if isinstance(schema, list):
        return [strict(x) for x in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {"additionalProperties": False} if isinstance(schema.get("properties"), dict) and "type" in schema else {}
    return {**{k: strict(v) for k, v in schema.items()}, **closed}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_new_key_does_not_break_who_holds_an_answer_to_its_schema(name):
    text = (SCHEMAS / f"{name}.json").read_text(encoding="utf-8")
    assert '"additionalProperties": false' not in text
    assert '"additionalProperties": false' in json.dumps(strict(json.loads(text)))


@pytest.mark.parametrize(("name", "line"), EVERY)
def test_json_is_what_its_schema_says(name, line, capsys):
    schema = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    answer = json.loads(printed(f"{line} --json", capsys))
    jsonschema.validate(answer, schema)
    jsonschema.validate(answer, strict(schema))
    assert answer["schema"] == schema["$id"]


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
@pytest.mark.parametrize("line", [line for _, line in EVERY] + ["estimate llama-2-70b --engine vllm -v", "models --search nemotron -v"])
def test_reports_fit_80_columns(line, lang, capsys):
    text = printed(line, capsys, lang)
    assert [row for row in text.splitlines() if cell_len(row) > 80] == []
    assert "…" not in text.replace("……", ""), "nothing is cut off"


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_every_preset_fits_80_columns(lang, capsys):
    for preset in presets():
        options = "--tokens 1048576 --batch 512 --kv-dtype fp8 --encoder-tokens 1500 --engine vllm"
        assert main(["estimate", preset, *options.split(), "--lang", lang]) == 0
    too_wide = [line for line in capsys.readouterr().out.splitlines() if cell_len(line) > 80]
    assert too_wide == []


@pytest.mark.parametrize("line", [line for _, line in EVERY])
def test_the_two_languages_have_the_same_numbers(line, capsys):
    english, chinese = (json.loads(printed(f"{line} --json", capsys, lang)) for lang in ("en", "zh-TW"))

    def numbers(value):
        if isinstance(value, dict):
            return {k: numbers(v) for k, v in value.items()}
        return [numbers(v) for v in value] if isinstance(value, list) else value if not isinstance(value, str) else type(value)

    assert numbers(english) == numbers(chinese)


TOYS = (
    Layer(n_kv_heads=4, k_dim=8, v_dim=4),
    Layer(n_kv_heads=4, k_dim=8, v_dim=8, window=10),
    Layer(n_kv_heads=2, k_dim=8, v_dim=8, chunk=16, index_bytes=3),
    Layer(latent=24, latent_rope=8, index_bytes=12),
    Layer(n_kv_heads=2, k_dim=8, v_dim=8, cross_tokens=5),
    Layer(n_kv_heads=2, k_dim=8, v_dim=8, window=0, cross_tokens=7),
    Layer(state_bytes=96, state_parts=(StatePart(4, matrix=12),)),
    Layer(n_kv_heads=2, k_dim=8, v_dim=8, state_bytes=40),
    Layer(shared_with=0, n_kv_heads=4, k_dim=8, v_dim=4),
    Layer(),
)


@pytest.mark.parametrize("kv_dtype", ["bf16", "fp8", "fp8/bf16", "int4", "fp8_per_token_head"])
@pytest.mark.parametrize("tp", [1, 2])
def test_the_rows_of_an_estimate_add_up_to_it(kv_dtype, tp, capsys):
    spec = ModelSpec("toy", TOYS, n_heads=4, hidden_size=1)
    report = Estimate(spec, 40, 3, kv_dtype, tp)
    report.print()
    lines = capsys.readouterr().out.splitlines()
    rows = lines[2 : next(i for i, line in enumerate(lines) if line.startswith("ideal"))]
    assert sum(int(row.split()[-1].replace(",", "")) for row in rows) == report.nbytes == kv_bytes(spec, 40, 3, kv_dtype, tp)


@settings(deadline=None)
@given(st.builds(Layer, n_kv_heads=st.sampled_from([0, 1, 2, 4]), k_dim=st.integers(0, 9), v_dim=st.integers(0, 9), latent=st.integers(0, 9),
                 index_bytes=st.integers(0, 5), window=st.none() | st.integers(0, 50), chunk=st.none() | st.integers(1, 50),
                 cross_tokens=st.integers(0, 5), state_bytes=st.integers(0, 50)),
       st.sampled_from(["bf16", "int4", "fp8/fp32"]), st.sampled_from([1, 2, 4]), st.integers(0, 60), st.booleans())  # fmt: skip
def test_the_rows_of_any_layer_add_up_to_its_term(layer, kv_dtype, tp, n_tokens, plain):
    spec = ModelSpec("toy", (layer, layer), n_heads=4, hidden_size=1)
    rows = [row for term in kv_terms(spec, n_tokens, 3, kv_dtype, tp) for row in rows_of(term, 3, tp, plain)]
    assert sum(row.nbytes for row in rows) == kv_bytes(spec, n_tokens, 3, kv_dtype, tp)
    assert all(row.n_layers == 2 and row.nbytes >= 0 for row in rows)


def test_an_estimate_shows_each_kind_of_thing_that_is_kept(capsys):
    Estimate(ModelSpec("toy", TOYS, n_heads=4, hidden_size=1), 40, 1, "bf16", 1).print()
    text = capsys.readouterr().out
    for piece in ("all", "window 10", "chunk 16", "index keys", "encoder", "state", "reads layer 0", "nothing", "latent 16 + RoPE 8 = 24",
                  "4 × (8 + 4) = 48"):  # fmt: skip
        assert piece in text, piece


@pytest.mark.parametrize("engine", ENGINES)
def test_three_labelled_numbers(engine, capsys):
    spec = load_spec("gemma-3-27b")
    ideal = kv_bytes(spec, 8192, 2)
    admitted, allocated = (ask(spec, 8192, engine, batch=2).nbytes for ask in (admission, allocation))
    line = f"estimate gemma-3-27b -n 8192 -b 2 --engine {engine}"
    text = printed(line, capsys)
    for name, n in (("ideal", ideal), ("admitted", admitted), ("allocated", allocated)):
        assert f"{name} = {n:,} B" in text
    assert ENGINES[engine].version in text
    assert ENGINES[engine].rules[0].where not in text
    assert ENGINES[engine].rules[0].where.split(":")[0] in printed(f"{line} -v", capsys)
    answer = json.loads(printed(f"{line} --json", capsys))
    assert (answer["kv_bytes"], answer["admission"]["bytes"], answer["allocation"]["bytes"]) == (ideal, admitted, allocated)


def test_names_with_brackets_stand_as_they_are(tmp_path, capsys):
    folder = tmp_path / ":smile:[red]toy"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 128, "vocab_size": 100}))  # fmt: skip
    for command in ("estimate", "budget", "fit", "compare"):
        assert ":smile:[red]toy" in printed(f"{command} {folder}", capsys)


def test_the_log_of_a_known_card_follows_and_that_of_another_model_does_not(capsys, monkeypatch):
    assert main(["explain-log", "LOG"]) == 0
    assert "1,948–1,953" in capsys.readouterr().out
    assert main(["explain-log", "LOG", "--model", "llama-2-7b"]) == 1
    assert "does not follow" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", StringIO(LOG))
    assert main(["explain-log", "-"]) == 0
    for wrong in (["no-such-file"], ["."], ["LOG", "--model", "no-such-model"], ["LOG", "--kv-dtype", "fp7"]):
        assert main(["explain-log", *wrong]) == 2


def test_every_kv_format_can_be_asked_for(capsys):
    for name in KV_FORMATS:
        model = "deepseek-v3" if name == "fp8_ds_mla" else "llama-3-8b"
        assert json.loads(printed(f"estimate {model} --kv-dtype {name} --json", capsys))["kv_dtype"] == name


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
@pytest.mark.parametrize("line", ["models --search gemma-3-27 -v", "estimate gemma-3-27b --engine llama.cpp -v"])
def test_wrapped_sources_and_notes_end_without_spaces(line, lang, capsys):
    text = printed(line, capsys, lang)
    source = text[text.index("text_config of") :]
    assert [row for row in source.splitlines() if row != row.rstrip()] == []
    assert load_spec("gemma-3-27b").source in " ".join(source.split())


def test_the_legend_says_how_each_kind_of_row_comes_about(capsys):
    def legend(line):
        return next(row for row in printed(line, capsys).splitlines() if row.startswith(("layers ×", "K and V", "latent", "state")))

    assert legend("estimate llama-2-7b -b 3") == "layers × values × tokens × 2 B × 3 sequences"
    assert legend("estimate t5-small --encoder-tokens 9") == "layers × values × tokens × 2 B × 1 sequence"
    assert "state: layers × bytes; K and V: layers × values × tokens × 2 B" in legend("estimate jamba-v0.1")
    assert "index keys: layers × bytes × tokens" in legend("estimate deepseek-v3.2 --kv-dtype fp8")


@pytest.mark.parametrize("engine", ["transformers", "llama.cpp"])
def test_an_engines_lines_say_which_layers_they_are(engine, capsys):
    text = printed(f"estimate gemma-3-27b --engine {engine}", capsys)
    assert "52 layers, sliding window" in text and "10 layers, full attention" in text
    assert "60 layers, latent (MLA)" in printed(f"estimate deepseek-v2 --engine {engine}", capsys)
    assert "28 layers, recurrent state" in printed(f"estimate jamba-v0.1 --engine {engine}", capsys)
    if engine == "llama.cpp":
        assert "sliding" not in printed("estimate gemma-3-27b --engine llama.cpp --no-hybrid", capsys)


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_notes_name_options_of_the_command(lang, capsys):
    offered = set(re.findall(r"--[a-z][a-z-]+", printed("estimate --help", capsys)))
    i18n.set_language(lang)
    notes = {note for p in presets() for name in ("sglang", "llama.cpp") if "t5" not in p and "bart" not in p and "whisper" not in p
             for note in admission(load_spec(p), 9, name).notes}  # fmt: skip
    named = {option for note in notes for option in re.findall(r"--[a-z][a-z-]+", note)}
    assert named - {"--swa-full"} <= offered and "--no-hybrid" in named
    assert all("--no-hybrid" in note for note in notes if "hybrid=" in note)


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_a_note_in_a_comparison_follows_its_model(lang, capsys):
    text = printed("compare qwen2.5-7b llama-2-7b --gpu t4-16gb --gpus 8", capsys, lang)
    assert ("Qwen2.5-7B：28 個" if lang == "zh-TW" else "Qwen2.5-7B: 28 query") in text


NARROW = [line for _, line in EVERY] + ["compare llama-3-70b deepseek-v3 --gpu h200-141gb --gpus 16 -n 4096 -n 131072"]


@pytest.mark.parametrize("columns", [60, 50, 30])
@pytest.mark.parametrize("line", NARROW)
def test_a_narrow_screen_loses_no_number(line, columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    wide = printed(line, capsys)
    monkeypatch.setenv("COLUMNS", str(columns))
    narrow = printed(line, capsys)
    assert [row for row in narrow.splitlines() if cell_len(row) > columns] == []
    joined = "".join(narrow.split())
    assert [n for n in re.findall(r"\d[\d,.]*\d", wide) if n not in joined] == []


def test_huge_numbers_are_whole_on_80_columns(capsys):
    n = 10**17
    text = printed(f"estimate llama-2-70b -n {n} -b {n}", capsys)
    assert f"{kv_bytes(load_spec('llama-2-70b'), n, n):,}" in text and f"{n:,}" in text
    assert [row for row in text.splitlines() if cell_len(row) > 80] == []
    text = printed(f"budget llama-2-70b --gpus 2 --weight-gb {10**20}", capsys)
    assert "99,999,999,999,999,983,616.00 GB" in text, "the float nearest to it, whole"
    assert [row for row in text.splitlines() if cell_len(row) > 80] == []


def test_small_sizes_are_in_mb_and_large_counts_have_commas(capsys):
    text = printed("estimate llama-3-8b -n 190", capsys)
    assert "= 23.75 MiB = 24.90 MB" in text
    assert "× 4,096 sequences" in printed("estimate llama-2-7b -b 4096", capsys)


def test_one_sequence_is_no_sequences(capsys):
    text = printed("budget llama-2-70b --gpus 2 -n 30000", capsys)
    assert re.search(r"= 1\.\d\d → 1 sequence$", text, re.MULTILINE)


@pytest.mark.parametrize(("line", "says"), [
    ("budget deepseek-v3 --gpu h200-141gb --gpus 8 -n 131072", "8 × 8.58 GiB: every card keeps the whole latent"),
    ("fit deepseek-v3 --gpu h200-141gb --gpus 8 -n 131072", "8 × 8.58 GiB: every card keeps the whole latent"),
    ("budget llama-2-70b --gpus 16", "16 × 160.00 MiB: each of 8 KV heads is on 2 cards")])  # fmt: skip
def test_what_cards_repeat_is_said(line, says, capsys):
    assert says in " ".join(printed(line, capsys).split())


def test_nothing_repeated_is_nothing_said(capsys):
    for line in ("budget llama-2-70b --gpus 8", "budget deepseek-v3 --weight-gb 1", "budget gemma-3-27b --gpus 2"):
        text = printed(line, capsys)
        assert "every card" not in text and "KV heads is on" not in text


@pytest.mark.parametrize("command", ["budget", "fit"])
def test_windows_and_states_send_to_the_engine(command, capsys):
    assert "--engine vllm" in printed(f"{command} gemma-3-27b", capsys)
    assert "--engine vllm" not in printed(f"{command} llama-2-7b", capsys)


def test_a_reason_is_given_exactly_where_cards_repeat_something():
    for preset in presets():
        spec = load_spec(preset, **({"encoder_tokens": 9} if preset.startswith(("t5", "bart", "whisper")) else {}))
        for n in (2, 4, 8, 16, 32):
            if splits(spec, n):
                budget = memory_budget(spec, n_gpus=n, weight_bytes=0)
                assert bool(repeated(budget)) == (budget.kv_per_sequence(1000) > kv_bytes(spec, 1000)), (preset, n)
