"""Models side by side: each number is the one that the model has alone, and a column is there when it says something."""

import json

import pytest

from kvlib import kv_bytes, kv_growth, load_spec, memory_budget
from kvlib.cli import main

pytestmark = pytest.mark.usefixtures("english")


def compared(capsys, *args: str) -> dict:
    assert main(["compare", *args, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("model", ["llama-3-8b", "gemma-3-12b", "jamba-v0.1"])
def test_each_number_is_the_models_own(model, capsys):
    answer = compared(capsys, model, "llama-2-7b", "--gpu", "h200-141gb", "--gpus", "2", "-n", "5000", "--kv-dtype", "fp8")["models"][0]
    spec = load_spec(model)
    growth, budget = kv_growth(spec, "fp8"), memory_budget(spec, "h200-141gb", 2, kv_dtype="fp8")
    assert answer["growth"] == {name: getattr(growth, name) for name in ("per_token_early", "per_token_late", "capped", "constant")}
    assert answer["kv_bytes"] == kv_bytes(spec, 5000, kv_dtype="fp8")
    assert (answer["n_params"], answer["weights"]) == (spec.n_params, spec.weight_bytes("bf16"))
    assert answer["max_sequences"] == budget.max_sequences(5000)
    assert answer["sequences"] == budget.sequences(5000)


def test_what_cannot_be_said_of_one_model_does_not_stop_the_others(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "mystery", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 8,
                                "num_key_value_heads": 8, "intermediate_size": 128, "vocab_size": 100}))  # fmt: skip
    answer = compared(capsys, str(path), "qwen2.5-7b", "llama-3-8b", "--gpu", "h100-80gb", "--gpus", "8")
    unknown, qwen, llama = answer["models"]
    assert unknown["weights"] is unknown["max_sequences"] is None and "mystery" in unknown["notes"][-1]
    assert qwen["weights"] and qwen["max_sequences"] is None and "28" in qwen["notes"][-1]
    assert llama["max_sequences"] > 0


def test_weights_as_stored_where_the_config_says_how(tmp_path, capsys):
    fields = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
              "intermediate_size": 128, "vocab_size": 100, "tie_word_embeddings": False}  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(fields))
    silent, gpt = compared(capsys, str(path), "gpt-oss-20b", "--weight-dtype", "stored")["models"]
    assert silent["weights"] is None and "dtype" in silent["notes"][-1] and silent["n_params"]
    assert gpt["weights"] == load_spec("gpt-oss-20b").weight_bytes("stored") < load_spec("gpt-oss-20b").weight_bytes("bf16")


def test_columns_without_content_are_left_out(capsys):
    main(["compare", "llama-2-7b", "llama-3-8b"])
    plain = capsys.readouterr().out
    main(["compare", "llama-2-7b", "gemma-3-12b"])
    windows = capsys.readouterr().out
    main(["compare", "llama-2-7b", "jamba-v0.1", "--gpu", "t4-16gb"])
    states = capsys.readouterr().out
    assert [("capped" in t, "constant" in t, "seqs" in t) for t in (plain, windows, states)] == [
        (False, False, False), (True, False, False), (False, True, True)]  # fmt: skip


def test_without_a_card_there_are_no_sequences(capsys):
    answer = compared(capsys, "llama-2-7b", "llama-3-8b")
    assert answer["gpu"] is None
    assert {m["sequences"] for m in answer["models"]} == {None}


@pytest.mark.parametrize("wrong", [[], ["llama-2-7b", "no-such-model"], ["llama-2-7b", "--gpu", "h100"], ["llama-2-7b", "--kv-dtype", "x"]])
def test_wrong_input(wrong, capsys):
    assert main(["compare", *wrong]) == 2
    assert capsys.readouterr().err


def printed(capsys, *args: str) -> str:
    assert main(["compare", *args]) == 0
    return capsys.readouterr().out


def test_each_model_has_weights_as_its_checkpoint_stores_them(capsys):
    llama, gpt = compared(capsys, "llama-3-8b", "gpt-oss-20b", "--gpu", "h100-80gb")["models"]
    assert (llama["weight_dtype"], gpt["weight_dtype"]) == ("bf16", "stored")
    assert (llama["weights"], gpt["weights"]) == (2 * llama["n_params"], load_spec("gpt-oss-20b").weight_bytes("stored"))
    assert compared(capsys, "gpt-oss-20b", "--weight-dtype", "bf16")["models"][0]["weights"] == 2 * gpt["n_params"]
    assert "mxfp4" in printed(capsys, "llama-3-8b", "gpt-oss-20b")


def test_the_kv_shown_beside_the_sequences_is_that_on_all_cards(capsys):
    args = ["deepseek-v3", "--gpu", "h200-141gb", "--gpus", "8", "-n", "32768"]
    model = compared(capsys, *args)["models"][0]
    one = kv_bytes(load_spec("deepseek-v3"), 32768)
    assert (model["kv_bytes"], model["lengths"][0]["kv_on_cards"]) == (one, 8 * one)
    text = printed(capsys, *args)
    assert f"{8 * one / 2**30:.2f}" in text and f"{one / 2**30:.2f}" not in text
    assert "every card keeps the whole latent" in text and "on all 8 cards together" in text


def test_several_lengths_and_a_replaced_field(capsys):
    answer = compared(capsys, "llama-2-7b", "-n", "1024", "-n", "4,096", "--gpu", "h100-80gb", "--set", "num_key_value_heads=8")
    spec = load_spec("llama-2-7b", num_key_value_heads=8)
    budget = memory_budget(spec)
    assert answer["n_tokens"] == 1024
    assert [(x["n_tokens"], x["kv_bytes"], x["max_sequences"]) for x in answer["models"][0]["lengths"]] == [
        (n, kv_bytes(spec, n), budget.max_sequences(n)) for n in (1024, 4096)]  # fmt: skip
    text = printed(capsys, "llama-2-7b", "-n", "1024", "-n", "4096", "--gpu", "h100-80gb")
    assert text.count("1,024") == 3, "in the title, over the KV and over the sequences"


def test_capacity_and_utilization(capsys):
    answer = compared(capsys, "llama-2-7b", "--gpu", "h100-80gb", "--capacity", "reported", "--utilization", "0.9")
    wanted = memory_budget(load_spec("llama-2-7b"), capacity="reported", utilization=0.9)
    assert answer["models"][0]["sequences"] == wanted.sequences(4096)
    assert (answer["capacity_convention"], answer["utilization"]) == ("reported", 0.9)


def test_all_that_is_taken_from_the_cards_is_said(capsys):
    args = ["llama-2-7b", "qwen2.5-7b", "--gpu", "h100-80gb", "--gpus", "8"]
    llama, qwen = compared(capsys, *args)["models"]
    assert (llama["runtime"], llama["activations"]) == (8 * 3 * 10**9, 0)
    left = 8 * 80 * 10**9 - llama["weights"] - llama["runtime"] - llama["activations"]
    assert llama["max_sequences"] == left // llama["lengths"][0]["kv_on_cards"]
    assert (qwen["runtime"], qwen["activations"]) == (None, None)  # 28 query heads
    for lang, words in (("en", "runtime 8 × 3 GB"), ("zh-TW", "執行環境 8 × 3 GB")):
        assert words in printed(capsys, *args, "--lang", lang)
    assert "runtime" not in printed(capsys, "llama-2-7b")


def test_a_number_of_cards_needs_a_card(capsys):
    assert main(["compare", "llama-2-7b", "--gpus", "8"]) == 2
    assert "--gpu" in capsys.readouterr().err


def test_nothing_that_fits_is_an_answer_all_the_same(capsys):
    assert compared(capsys, "llama-2-70b", "--gpu", "t4-16gb")["models"][0]["max_sequences"] == 0


def test_windows_and_states_send_to_the_engine(capsys):
    text = printed(capsys, "llama-2-7b", "gemma-3-12b", "jamba-v0.1")
    assert "Gemma-3-12B, Jamba-v0.1: KV is the ideal" in " ".join(text.split())
    assert "--engine" not in printed(capsys, "llama-2-7b")
