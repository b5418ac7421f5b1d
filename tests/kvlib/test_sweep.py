"""A fixed sample of the sweep: one class for each way in which a cache is laid out. All classes: `make sweep`."""

from collections import Counter

import pytest
import torch
from sweep import judge
from sweep_probe import Held, build, make_config, run

from kvlib import load_spec

SAMPLE = (
    "llama", "gpt2", "mpt", "falcon",  # names of fields, and one head for all
    "gpt_neo", "llama4_text", "mimo_v2_flash",  # windows and chunks, K wider than V
    "gemma3n_text",  # shared layers
    "minicpm3", "axk2",  # a latent, without and with an indexer's keys
    "jamba", "nemotron_h", "qwen3_next", "lfm2", "minimax",  # recurrent states
    "bart", "whisper",  # cross-attention
    "reformer", "blt",  # nothing like a KV cache
)  # fmt: skip


def test_a_sample_of_classes_is_right_or_refused_never_wrong(capsys):
    verdicts = [judge(model_type) for model_type in SAMPLE]
    counts = Counter(verdict.status for verdict in verdicts)
    with capsys.disabled():
        print(f"\nsweep sample: right {counts['right']} / refused {counts['refused']} / wrong {counts['wrong']}")
    assert not [str(verdict) for verdict in verdicts if verdict.status in ("wrong", "not comparable")]
    assert counts["right"] >= len(SAMPLE) - 2


def test_a_wrong_reading_is_called_wrong(monkeypatch):
    """The sweep can fail: kvlib's answer for one layer less."""
    one_less = {"num_hidden_layers": 31}
    monkeypatch.setattr("sweep.load_spec", lambda fields: load_spec({**fields, **one_less}))
    assert judge("llama").status == "wrong"


@pytest.mark.parametrize(
    ("held", "n_tokens", "nbytes"),
    [
        (Held(0, "keys", (2, 3, 7, 10), torch.bfloat16), 7, 2 * 3 * 7 * 10 * 2),
        (Held(0, "keys", (2, 3, 7, 10), torch.bfloat16, window=8), 7, 2 * 3 * 7 * 10 * 2),
        (Held(0, "keys", (2, 3, 7, 10), torch.bfloat16, window=8), 30, 2 * 3 * 8 * 10 * 2),
        (Held(0, "conv_states", (2, 50, 4), torch.bfloat16), 30, 2 * 50 * 3 * 2),
        (Held(0, "recurrent_states", (2, 5, 6), torch.float32), 30, 2 * 5 * 6 * 4),
        (Held(0, "indexer_keys", (2, 30, 128), torch.bfloat16), 30, 2 * 30 * 132),
    ],
)
def test_what_the_ideal_counts_of_a_held_tensor(held, n_tokens, nbytes):
    assert held.ideal_bytes(n_tokens) == nbytes


def test_falcon_40b_keeps_its_kv_heads_once_per_query_head_in_transformers():
    """The one known difference between architecture and engine: 128 heads held, 8 of them different."""
    config = make_config("falcon", num_hidden_layers=2, num_attention_heads=128, num_kv_heads=8, hidden_size=8192,
                         new_decoder_architecture=True)  # fmt: skip
    held = run(build(config), 5)
    assert {x.shape for x in held} == {(1, 128, 5, 64)}
    assert load_spec(config.to_dict()).n_kv_heads == 8
