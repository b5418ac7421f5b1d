"""The catalogue lists what is shipped, computes what it says about it, and costs next to nothing to list."""

import subprocess
import sys
import time

import pytest

from kvlib import load_spec, presets
from kvlib.catalogue import catalogue
from kvlib.i18n import set_language


def entry(preset: str):
    return next(e for e in catalogue() if e.preset == preset)


def test_without_a_search_it_is_every_preset_in_order():
    entries = catalogue()
    assert [e.preset for e in entries] == presets()
    assert all(e.name.lower() == e.preset and e.hub_id and e.source for e in entries)


@pytest.mark.parametrize(("search", "found"), [
    ("Gemma-3N", ["gemma-3n-e4b"]), ("qwen 30b", ["qwen3-30b-a3b"]), ("30b QWEN", ["qwen3-30b-a3b"]),
    ("zai-org", ["glm-4.5", "glm-5"]), ("no such model", []), ("  ", presets())])  # fmt: skip
def test_a_search_is_for_every_word_in_name_or_hub_id_in_any_case(search, found):
    assert [e.preset for e in catalogue(search)] == found


def test_a_row_s_spec_is_the_preset_s():
    assert entry("gemma-3-27b").spec == load_spec("gemma-3-27b")


def test_where_the_encoder_s_length_is_the_reader_s_to_give_a_row_counts_without_it():
    assert entry("t5-small").spec == load_spec("t5-small", encoder_tokens=0)
    assert entry("t5-small").growth.constant == 0


def test_growth_is_that_of_one_sequence_in_bf16():
    growth = entry("gemma-3-27b").growth
    assert (growth.per_token_early, growth.per_token_late, growth.capped) == (507_904, 81_920, 436_207_616)


@pytest.mark.parametrize(("preset", "attention"), [
    ("llama-3-8b", "32 × 8 × (128 + 128)"),
    ("gemma-3-27b", "52 × 16 × (128 + 128) window 1,024; 10 × 16 × (128 + 128)"),
    ("llama-4-scout", "36 × 8 × (128 + 128) chunk 8,192; 12 × 8 × (128 + 128)"),
    ("mimo-v2-flash", "9 × 4 × (192 + 128); 39 × 8 × (192 + 128) window 129"),
    ("deepseek-v3.2", "61 × latent 576 index 132 B"),
    ("gemma-3n-e4b", "16 × 2 × (256 + 256) window 512; 4 × 2 × (256 + 256); 15 × shared"),
    ("nemotron-h-56b", "54 × state 16,900,096 B; 54 × nothing; 10 × 8 × (128 + 128)"),
    ("falcon-h1-7b", "44 × 2 × (128 + 128) state 1,594,368 B"),
    ("whisper-large-v3", "32 × 20 × (64 + 64) encoder 1,500 tokens"),
    ("t5-small", "6 × 8 × (64 + 64); and the encoder's output")])  # fmt: skip
def test_attention_says_what_every_layer_keeps(preset, attention):
    assert entry(preset).attention == attention


def test_attention_is_in_the_reader_s_language():
    set_language("zh-TW")
    try:
        assert entry("gemma-3n-e4b").attention == "16 × 2 × (256 + 256) 視窗 512；4 × 2 × (256 + 256)；15 × 共用"
        assert entry("t5-small").attention == "6 × 8 × (64 + 64)；另加編碼器的輸出"
    finally:
        set_language("en")


@pytest.mark.parametrize("preset", presets())
def test_every_row_can_be_shown(preset):
    row = entry(preset)
    counts = [int(part.split(" × ")[0]) for part in row.attention.split("; ") if part[0].isdigit() and " × " in part]
    assert sum(counts) == row.spec.n_layers
    assert row.growth.per_token_early > 0


def test_listing_reads_no_spec_and_takes_a_few_milliseconds():
    start = time.process_time()
    entries = catalogue()
    assert time.process_time() - start < 0.1
    assert not any("spec" in vars(e) for e in entries)


def test_neither_torch_nor_transformers_is_imported():
    code = ("import sys; from kvlib.catalogue import catalogue; [e.attention for e in catalogue()]; "
            "assert not {'torch', 'transformers', 'numpy'} & set(sys.modules)")  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True)
