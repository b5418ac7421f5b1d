"""The `kvlib` command, run in-process where that suffices, and as a process for what only a process shows."""

import json
import subprocess
import sys

import pytest

from kvlib import GB, i18n, kv_bytes, load_spec, memory_budget
from kvlib.cli import main

# What version 0.1.0 promised to scripts; keys may be added, never renamed or dropped.
ESTIMATE_KEYS = {"model", "meaning", "n_tokens", "batch", "kv_dtype", "tp", "kv_bytes", "growth", "terms", "notes"}
BUDGET_KEYS = {
    "model", "gpu", "n_gpus", "capacity_convention", "utilization", "capacity", "weight_dtype", "weights", "runtime",
    "activations", "left_for_kv", "kv_dtype", "n_tokens", "block_size", "kv_per_sequence", "sequences",
    "max_sequences", "notes",
}  # fmt: skip

# a model_type that transformers builds and that kvlib has no layout for
UNCOUNTED = {"model_type": "doge", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
             "intermediate_size": 128, "vocab_size": 100}  # fmt: skip


pytestmark = pytest.mark.usefixtures("english")


def run(*args: str, env: dict | None = None) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "kvlib.cli", *args], check=False, capture_output=True, text=True,
                          encoding="utf-8", env=env)  # fmt: skip


def test_estimate_json(capsys):
    assert main(["estimate", "llama-2-70b", "--tokens", "4096", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) >= ESTIMATE_KEYS
    assert answer["kv_bytes"] == 1_342_177_280
    assert sum(term["bytes"] for term in answer["terms"]) == answer["kv_bytes"]
    assert "ideal" in answer["meaning"]


def test_estimate_batch_and_variant(capsys):
    main(["estimate", "llama-2-70b", "-n", "4096", "-b", "32", "--json"])
    assert json.loads(capsys.readouterr().out)["kv_bytes"] == 42_949_672_960
    main(["estimate", "llama-2-70b", "-n", "4096", "--set", "num_key_value_heads=64", "--json"])
    assert json.loads(capsys.readouterr().out)["kv_bytes"] == 10 * 2**30


def test_estimate_shows_the_formula_with_its_numbers(capsys):
    main(["estimate", "gemma-3-27b", "--tokens", "131072", "--kv-dtype", "fp8"])
    text = capsys.readouterr().out
    for piece in ("52", "window 1,024", "16 × (128 + 128) = 4,096", "1 B ×", "ideal"):
        assert piece.lower() in text.lower(), piece
    assert f"{kv_bytes(load_spec('gemma-3-27b'), 131_072, kv_dtype='fp8'):,} B" in text


def test_estimate_reads_a_config_file(tmp_path, capsys):
    fields = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
              "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(fields))
    for path in (tmp_path, tmp_path / "config.json"):
        assert main(["estimate", str(path), "--tokens", "10", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["kv_bytes"] == 2 * 2 * 2 * 16 * 2 * 10


def test_budget_json(capsys):
    args = ["budget", "llama-2-70b", "--gpus", "2", "--capacity", "reported", "--utilization", "0.9", "--json"]
    assert main(args) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer) >= BUDGET_KEYS
    assert round(answer["sequences"], 2) == 6.65
    assert answer["max_sequences"] == 6


def test_budget_with_the_rounded_weights_of_the_interview(capsys):
    assert main(["budget", "llama-2-70b", "--gpus", "2", "--weight-gb", "140"]) == 0
    assert "= 10.43 → 10 sequences" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "means"),
    [
        (["--gpu", "h200-141gb"], {"gpu": "h200-141gb"}),
        (["--gpus", "4"], {"n_gpus": 4}),
        (["--capacity", "binary"], {"capacity": "binary"}),
        (["--utilization", "0.95"], {"utilization": 0.95}),
        (["--weight-dtype", "fp8"], {"weight_dtype": "fp8"}),
        (["--weight-gb", "140"], {"weight_bytes": 140 * GB}),
        (["--kv-dtype", "int4"], {"kv_dtype": "int4"}),
        (["--runtime-gb", "1.5"], {"runtime_per_gpu": 1_500_000_000}),
        (["--activation-gb", "2"], {"activation_bytes": 2 * GB}),
    ],
)
def test_every_budget_option_does_what_the_library_does(options, means, capsys):
    wanted = memory_budget(load_spec("llama-2-70b"), **{"n_gpus": 2, **means})
    main(["budget", "llama-2-70b", "--gpus", "2", "--tokens", "5000", "--block-size", "64", "--json", *options])
    said = json.loads(capsys.readouterr().out)
    for key in ("capacity", "weights", "runtime", "activations", "left_for_kv"):
        assert said[key] == getattr(wanted, key)
    assert said["kv_per_sequence"] == wanted.kv_per_sequence(5000)
    assert said["sequences"] == wanted.sequences(5000)
    assert said["max_sequences"] == wanted.max_sequences(5000, 64)
    main(["budget", "llama-2-70b", "--gpus", "2", "--tokens", "5000", *options])
    printed = capsys.readouterr().out
    for size in (wanted.capacity, wanted.weights, wanted.runtime, wanted.activations, wanted.left_for_kv):
        assert f"{size / GB:,.2f} GB" in printed


def test_a_rank_is_reported_as_a_rank(capsys):
    spec = load_spec("gemma-3-27b")
    main(["estimate", "gemma-3-27b", "--tokens", "131072", "--tp", "2", "--kv-dtype", "fp8", "--json"])
    said = json.loads(capsys.readouterr().out)
    assert said["kv_bytes"] == kv_bytes(spec, 131_072, kv_dtype="fp8", tp=2)
    assert said["growth"]["per_token_early"] == 507_904 // 2 // 2
    main(["estimate", "gemma-3-27b", "--tokens", "131072", "--tp", "2"])
    text = capsys.readouterr().out
    assert "248.00 KiB" in text and "40.00 KiB" in text and "208.00 MiB" in text


def test_tokens_beyond_the_models_maximum_are_remarked_on(capsys):
    main(["estimate", "llama-2-70b", "--tokens", "4097", "--json"])
    assert "4,096" in json.loads(capsys.readouterr().out)["notes"][0]
    main(["estimate", "llama-2-70b", "--tokens", "4096", "--json"])
    assert json.loads(capsys.readouterr().out)["notes"] == []


def test_exit_codes(capsys):
    assert main(["budget", "llama-2-70b"]) == 1  # one card does not hold the weights
    assert main(["budget", "llama-2-70b", "--gpus", "2", "--utilization", "0.9"]) == 1  # 0.03 of a sequence is none
    for option in ("--runtime-gb", "--weight-gb", "--activation-gb"):
        assert main(["budget", "llama-2-70b", option, "nan"]) == 2
    assert main(["budget", "llama-2-70b", "--gpus", "3"]) == 2
    assert main(["estimate", "llama-2-70b", "--set", "num_kv_head=4"]) == 2
    assert "did you mean num_kv_heads" in capsys.readouterr().err
    main(["budget", "llama-2-70b"])
    assert "Does not fit" in capsys.readouterr().out
    assert main(["estimate", "llama-2-7"]) == 2
    assert "llama-2-7b?" in capsys.readouterr().err
    assert main(["estimate", "llama-2-7b", "--tokens", "0"]) == 2
    assert main(["estimate", "llama-2-7b", "--set", "no-equals-sign"]) == 2
    assert main(["budget", "llama-2-7b", "--gpu", "h100"]) == 2
    assert "h100-80gb" in capsys.readouterr().err


@pytest.mark.parametrize("args", [
    "estimate llama-2-7b --tokens HUGE", "estimate llama-2-7b --tokens HUGE --engine vllm", "budget llama-2-7b --weight-gb 1e308",
    "fit llama-2-7b --tokens HUGE", "fit llama-2-7b --tokens HUGE --plot x.png", "compare llama-2-7b --batch 3", "compare llama-2-7b -n HUGE"])
def test_numbers_without_measure_are_wrong_input(args, capsys):  # fmt: skip
    assert main(args.replace("HUGE", "9" * 400).split()) == 2
    assert capsys.readouterr().err


def test_options_of_engines_need_an_engine(capsys):
    for option in (["--block-size", "16"], ["--pp", "2"], ["--pool-gb", "1"], ["--no-hybrid"], ["--unified"], ["--no-prefix-caching"]):
        assert main(["estimate", "llama-2-7b", *option]) == 2
        assert "--engine" in capsys.readouterr().err
    assert main(["estimate", "llama-2-7b", "--engine", "transformers", "--block-size", "16"]) == 2
    assert main(["estimate", "llama-2-7b", "--engine", "tgi"]) == 2


def test_layers_for_multi_token_prediction_and_an_encoder(capsys):
    def estimated(*args):
        assert main(["estimate", *args, "--json"]) == 0
        return json.loads(capsys.readouterr().out)["kv_bytes"]

    assert estimated("deepseek-v3", "--mtp") * 61 == estimated("deepseek-v3") * 62
    assert main(["estimate", "t5-small"]) == 2
    assert "encoder" in capsys.readouterr().err
    t5 = load_spec("t5-small", encoder_tokens=100)
    assert estimated("t5-small", "--encoder-tokens", "100", "-n", "7") == kv_bytes(t5, 7) > estimated("t5-small", "--encoder-tokens", "0", "-n", "7")


def test_weights_as_stored(capsys):
    assert main(["budget", "gpt-oss-120b", "--weight-dtype", "stored", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["weights"] == load_spec("gpt-oss-120b").weight_bytes("stored")
    assert answer["n_active_params"] < answer["n_params"] == load_spec("gpt-oss-120b").n_params


def test_models_lists_and_searches(capsys):
    from kvlib import presets

    main(["models", "--json"])
    assert [m["preset"] for m in json.loads(capsys.readouterr().out)["models"]] == presets()
    assert main(["models", "--search", "gemma 27b"]) == 0
    found = capsys.readouterr().out
    assert "gemma-3-27b" in found and "gemma-3-12b" not in found and "507,904" in found
    assert main(["models", "--search", "no such model"]) == 2


def test_exit_code_reaches_the_shell():
    assert run("budget", "llama-2-70b").returncode == 1
    wrong = run("estimate", "no-such-model")
    assert wrong.returncode == 2
    assert wrong.stdout == ""


@pytest.mark.parametrize("command", ["estimate", "budget"])
def test_both_languages_by_option_and_by_locale(command):
    import os

    plain = {k: v for k, v in os.environ.items() if not k.startswith("LC_") and k != "LANG"}
    args = [command, "llama-2-7b"]
    chinese = run(*args, "--lang", "zh-TW", env={**plain, "LC_ALL": "C.UTF-8"}).stdout
    english = run(*args, "--lang", "en", env={**plain, "LC_ALL": "zh_TW.UTF-8", "PYTHONUTF8": "1"}).stdout
    assert "token" in chinese and "token" in english
    assert run(*args, env={**plain, "LC_ALL": "zh_TW.UTF-8", "PYTHONUTF8": "1"}).stdout == chinese
    assert run(*args, env={**plain, "LANG": "en_US.UTF-8", "PYTHONUTF8": "1"}).stdout == english
    assert any("\u4e00" <= c <= "\u9fff" for c in chinese)
    assert not any("\u4e00" <= c <= "\u9fff" for c in english)


def test_a_console_without_the_characters_gets_an_answer():
    import os

    shown = run("budget", "llama-2-70b", "--gpus", "2", env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert shown.returncode == 0
    assert "11.96" in shown.stdout


@pytest.mark.parametrize("lang", ["zh-TW", "en"])
def test_help_has_examples_in_the_language_asked_for(lang):
    for args in ([], ["estimate"], ["budget"]):
        text = run("--lang", lang, *args, "--help").stdout
        assert "kvlib budget llama-2-70b" in text or "kvlib estimate llama-2-70b" in text
        assert ("範例" in text) == (lang == "zh-TW")


@pytest.mark.parametrize("args", [
    ["estimate", "llama-2-70b"], ["estimate", "llama-2-70b", "--engine", "vllm"], ["budget", "llama-2-70b", "--gpus", "2"],
    ["fit", "llama-2-70b"], ["compare", "llama-2-7b", "llama-2-70b"], ["models", "--search", "llama-2"]])  # fmt: skip
def test_an_answer_imports_no_heavy_package(args):
    code = (f"import sys; from kvlib.cli import main; main({args!r}); "
            "print(sorted({m.partition('.')[0] for m in sys.modules}), file=sys.stderr)")  # fmt: skip
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, encoding="utf-8")
    heavy = {"torch", "numpy", "matplotlib", "transformers", "pydantic", "ipywidgets", "IPython", "PIL", "huggingface_hub"}
    assert heavy & set(eval(result.stderr)) == set()


def test_json_needs_no_rich():
    code = ("import sys; from kvlib.cli import main; main(['estimate', 'llama-2-70b', '--json']); "
            "assert 'rich' not in sys.modules and 'kvlib.engines' not in sys.modules")  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_budgets_fit_80_columns(lang, capsys):
    from rich.cells import cell_len

    for preset in ("llama-2-70b", "gemma-3-27b", "deepseek-v3", "gpt-oss-120b"):
        main(["budget", preset, "--gpus", "16", "--capacity", "reported", "--utilization", "0.9", "--lang", lang])
    too_wide = [line for line in capsys.readouterr().out.splitlines() if cell_len(line) > 80]
    assert too_wide == []


def budgeted(capsys, *args: str) -> dict:
    main(["budget", *args, "--json"])
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("model", ["gpt-oss-120b", "deepseek-v3"])
def test_a_quantised_checkpoint_weighs_what_it_stores(model, capsys):
    spec = load_spec(model)
    cards = ["--gpu", "h200-141gb", "--gpus", "8"]
    answer = budgeted(capsys, model, *cards)
    assert (answer["weight_dtype"], answer["weights"]) == ("stored", spec.weight_bytes("stored"))
    assert answer["max_sequences"] > 0
    assert budgeted(capsys, model, *cards, "--weight-dtype", "bf16")["weights"] == 2 * spec.n_params
    assert budgeted(capsys, model, *cards, "--weight-gb", "9")["weight_dtype"] is None


def test_a_quantisation_that_kvlib_cannot_size_is_said(tmp_path, capsys):
    fields = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
              "intermediate_size": 128, "vocab_size": 100, "dtype": "bfloat16", "quantization_config": {"quant_method": "strange"}}  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(fields))
    for command in ("budget", "fit"):
        assert main([command, str(path)]) == 2
        said = capsys.readouterr().err
        assert "'strange'" in said and "--weight-gb" in said and "--weight-dtype" in said
    assert budgeted(capsys, str(path), "--weight-dtype", "fp8")["weights"] == load_spec(path).n_params
    assert main(["compare", str(path), "--json"]) == 0
    side = json.loads(capsys.readouterr().out)["models"][0]
    assert side["weights"] is None and "'strange'" in side["notes"][-1]
    path.write_text(json.dumps(fields | {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True}}))
    assert budgeted(capsys, str(path))["weight_dtype"] == "stored"
    main(["budget", str(path)])
    assert "awq, as stored" in capsys.readouterr().out


def test_weights_that_kvlib_cannot_count_are_counted_by_transformers(tmp_path, capsys):
    transformers = pytest.importorskip("transformers")
    fields = UNCOUNTED
    path = tmp_path / "config.json"
    path.write_text(json.dumps(fields))
    assert load_spec(path).weights is None
    import torch

    with torch.device("meta"):
        built = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(**fields))
    wanted = sum(p.numel() for p in built.parameters())
    for command in ("budget", "fit"):
        main([command, str(path), "--json"])
        answer = json.loads(capsys.readouterr().out)
        assert answer["weights"] == 2 * wanted
        assert any("transformers builds" in note for note in answer["notes"])


def test_what_transformers_counts_is_the_model_with_its_replaced_fields(tmp_path, capsys):
    """A decoder inside a multi-modal config: --set reaches it, and the outer config's tied head holds for it."""
    pytest.importorskip("transformers")
    path = tmp_path / "config.json"
    outer = {"model_type": "brand_new_vl", "text_config": UNCOUNTED | {"tie_word_embeddings": False}, "tie_word_embeddings": False}
    path.write_text(json.dumps(outer))
    untied = budgeted(capsys, str(path))["n_params"]
    more = budgeted(capsys, str(path), "--set", f"num_hidden_layers={UNCOUNTED['num_hidden_layers'] + 1}")["n_params"]
    assert more > untied
    path.write_text(json.dumps(outer | {"tie_word_embeddings": True}))
    assert untied - budgeted(capsys, str(path))["n_params"] == UNCOUNTED["vocab_size"] * UNCOUNTED["hidden_size"]


def test_what_transformers_counts_is_not_packed_by_our_rules(tmp_path, capsys):
    pytest.importorskip("transformers")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(UNCOUNTED | {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 32}}))
    for stored in ([], ["--weight-dtype", "stored"]):
        assert main(["budget", str(path), *stored]) == 2
        assert "--weight-gb" in capsys.readouterr().err
    answer = budgeted(capsys, str(path), "--weight-dtype", "bf16")
    assert answer["weights"] == 2 * answer["n_params"] > 0


def test_without_transformers_the_weights_have_to_be_given(tmp_path, capsys, monkeypatch):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(UNCOUNTED))
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert main(["budget", str(path)]) == 2
    assert "--weight-gb" in capsys.readouterr().err
    assert main(["budget", str(path), "--weight-gb", "1"]) == 0


@pytest.mark.parametrize("args", [["llama-2-7b", "--tp", "1000000000"], ["deepseek-v3.2", "--tp", "7"], ["llama-2-7b", "--tp", "3"],
                                  ["deepseek-v3.2", "--tp", "7", "--engine", "vllm"]])  # fmt: skip
def test_an_estimate_refuses_the_splits_that_a_budget_refuses(args, capsys):
    assert main(["estimate", *args]) == 2
    said = capsys.readouterr()
    assert f"tp is {args[2]}" in said.err and said.out == ""


def test_nothing_is_printed_before_an_error(capsys):
    assert main(["estimate", "llama-2-7b", "--kv-dtype", "fp8_ds_mla"]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("text", "tokens"), [("4,096", 4096), ("4096", 4096), ("1,048,576", 1048576)])
def test_commas_between_thousands_may_be_written(text, tokens, capsys):
    assert main(["estimate", "llama-2-7b", "--tokens", text, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_tokens"] == tokens


@pytest.mark.parametrize(("text", "both"), [("32k", ("32,000", "32,768")), ("128K", ("128,000", "131,072")), ("1M", ("1,000,000", "1,048,576"))])
def test_a_k_has_two_meanings_and_neither_is_guessed(text, both, capsys):
    for command in ("estimate", "budget", "fit", "compare"):
        assert main([command, "llama-2-7b", "--tokens", text]) == 2
        assert all(n in capsys.readouterr().err for n in both[:1])
    main(["estimate", "llama-2-7b", "--tokens", text])
    assert both[1] in capsys.readouterr().err


@pytest.mark.parametrize("text", ["4,09", ",4096", "1.5", "x", "", "-3", "32kk", "0", "9" * 5000])
def test_what_is_no_number_of_tokens(text, capsys):
    assert main(["estimate", "llama-2-7b", f"--tokens={text}"]) == 2
    assert "--tokens" in capsys.readouterr().err


def test_the_version_and_the_module():
    from importlib.metadata import version

    asked = subprocess.run([sys.executable, "-m", "kvlib", "--version"], check=True, capture_output=True, text=True)
    assert asked.stdout == f"kvlib {version('kvlib')}\n"
    both = [subprocess.run([sys.executable, "-m", module, "estimate", "llama-2-7b", "--json"], check=True, capture_output=True).stdout
            for module in ("kvlib", "kvlib.cli")]  # fmt: skip
    assert both[0] == both[1] != b""


def test_an_error_with_json_is_text_on_stderr(capsys):
    assert main(["budget", "no-such-model", "--json"]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("Error: ")
