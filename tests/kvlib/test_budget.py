"""The ledger: the six conventions of the interview question, and what must hold of every budget."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlib import GB, GPUS, GiB, Layer, ModelSpec, SpecError, kv_bytes, load_gpu, load_spec, memory_budget

SPEC = load_spec("llama-2-70b")


@pytest.mark.parametrize(
    ("convention", "sequences"),
    [
        ({"capacity": "decimal", "weight_bytes": 140 * GB}, 10.4),
        ({"capacity": "decimal"}, 11.96),
        ({"capacity": "reported"}, 19.31),
        ({"capacity": "binary"}, 20.75),
        ({"capacity": "reported", "utilization": 0.90}, 6.65),
        ({"capacity": "reported", "utilization": 0.92}, 9.18),
    ],
)
def test_the_six_conventions_of_the_interview(convention, sequences):
    budget = memory_budget(SPEC, gpu="h100-80gb", n_gpus=2, **convention)
    digits = len(str(sequences).partition(".")[2])
    assert round(budget.sequences(4096), digits) == sequences
    assert budget.max_sequences(4096) == int(sequences)


@given(
    st.sampled_from([(name, capacity) for name, card in GPUS.items() for capacity in card.capacities]),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.floats(0.01, 1),
    st.integers(0, 10 * GB),
    st.integers(0, 10 * GB),
)
def test_every_byte_of_the_capacity_is_in_one_entry(card, n_gpus, utilization, runtime, activations):
    gpu, capacity = card
    b = memory_budget(SPEC, gpu, n_gpus, capacity=capacity, utilization=utilization, runtime_per_gpu=runtime,
                      activation_bytes=activations)  # fmt: skip
    assert b.weights + b.runtime + b.activations + b.left_for_kv == b.capacity
    assert b.capacity <= n_gpus * GPUS[gpu].capacity(capacity)
    assert b.runtime == n_gpus * runtime


@given(st.integers(1, 10_000), st.integers(1, 64))
def test_max_sequences_is_the_largest_number_that_fits(n_tokens, block_size):
    b = memory_budget(SPEC, n_gpus=4)
    blocks = -(-n_tokens // block_size)
    one = blocks * kv_bytes(SPEC, block_size)
    most = b.max_sequences(n_tokens, block_size)
    assert most * one <= b.left_for_kv < (most + 1) * one


def test_a_partly_filled_block_is_paid_in_full():
    # 4,097 tokens in blocks of 16 are 257 blocks
    assert memory_budget(SPEC, n_gpus=2, weight_bytes=0, runtime_per_gpu=0, capacity=1_347_420_160 // 2).max_sequences(
        4097, block_size=16) == 1  # fmt: skip
    assert memory_budget(SPEC, n_gpus=2, weight_bytes=0, runtime_per_gpu=0, capacity=1_347_420_158 // 2).max_sequences(
        4097, block_size=16) == 0  # fmt: skip


def test_beyond_the_kv_heads_more_cards_replicate():
    at_8 = memory_budget(SPEC, n_gpus=8).kv_per_sequence(4096)
    assert at_8 == kv_bytes(SPEC, 4096)
    assert memory_budget(SPEC, n_gpus=16).kv_per_sequence(4096) == 2 * at_8


def test_llama_3_8b_on_16_ranks_keeps_16384_bytes_per_token_each():
    assert kv_bytes(load_spec("llama-3-8b"), 1, tp=16) == 16_384


def test_what_does_not_fit_is_negative_and_holds_nothing():
    b = memory_budget(SPEC, gpu="rtx-3090-24gb")
    assert b.left_for_kv < 0
    assert b.sequences(4096) == 0.0
    assert b.max_sequences(4096) == 0


def test_capacity_conventions_of_one_card():
    gpu = GPUS["h100-80gb"]
    assert gpu.capacity("decimal") == 80 * 10**9
    assert gpu.capacity("binary") == 80 * 2**30
    assert gpu.capacity("reported") == int(79.10 * GiB)


@pytest.mark.parametrize(
    ("gpu", "gib"),
    [("a100-40gb", 39.4), ("h100-80gb", 79.10), ("rtx-3090-24gb", 23.58), ("rtx-4090-24gb", 23.65), ("l40-48gb", 44.40),
     ("a30-24gb", 23.53), ("t4-16gb", 14.75), ("rtx-5090-32gb", 31.37), ("l4-24gb", 22.03), ("l40s-48gb", 44.42),
     ("rtx-6000-ada-48gb", 44.43), ("v100-32gb", 31.74)],
)  # fmt: skip
def test_reported_totals_are_those_that_torch_printed(gpu, gib):
    assert GPUS[gpu].capacity("reported") == int(Fraction(str(gib)) * 2**30)


@pytest.mark.parametrize("gpu", [g for g in GPUS.values() if g.reported is not None], ids=lambda g: g.name)
def test_a_program_sees_less_than_the_binary_reading_of_the_label(gpu):
    assert 0.9 * gpu.capacity("binary") < gpu.capacity("reported") < gpu.capacity("binary")


def test_query_heads_must_split_over_the_cards():
    with pytest.raises(SpecError, match="28 query heads"):
        memory_budget(load_spec("qwen2.5-7b"), n_gpus=8)


def test_the_numbers_of_cards_that_work_are_listed():
    spec = ModelSpec("test", (Layer(n_kv_heads=4, k_dim=64, v_dim=64),), n_heads=12, hidden_size=768)
    with pytest.raises(SpecError, match=r"choose one of 1, 2, 4, 12$"):  # 6 divides the 12 query heads, not the 4 KV heads
        memory_budget(spec, n_gpus=6, weight_bytes=0)


def test_a_name_is_no_spec():
    with pytest.raises(SpecError, match="load_spec"):
        memory_budget("llama-2-70b")
    with pytest.raises(SpecError, match="load_spec"):
        kv_bytes("llama-2-70b", 1)


def test_fp8_kv_doubles_the_sequences_and_leaves_the_weights_alone():
    plain, fp8 = (memory_budget(SPEC, n_gpus=2, kv_dtype=d) for d in ("bf16", "fp8"))
    assert fp8.weights == plain.weights
    assert fp8.sequences(4096) == 2 * plain.sequences(4096)


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        ({"gpu": "h100"}, "h100"),
        ({"gpu": ["h100-80gb"]}, "gpu is"),
        ({"n_gpus": 0}, "n_gpus"),
        ({"n_gpus": 3}, "n_gpus is 3"),
        ({"n_gpus": 128}, "n_gpus is 128"),
        ({"utilization": float("nan")}, "utilization"),
        ({"capacity": "marketing"}, "marketing"),
        ({"utilization": 0}, "utilization"),
        ({"utilization": 1.1}, "utilization"),
        ({"kv_dtype": "fp7"}, "fp7"),
        ({"weight_dtype": "fp7"}, "fp7"),
        ({"weight_bytes": -1}, "weight_bytes"),
        ({"runtime_per_gpu": -1}, "runtime_per_gpu"),
        ({"activation_bytes": 0.5}, "activation_bytes"),
    ],
)
def test_a_wrong_argument_is_named(wrong, names):
    with pytest.raises(SpecError, match=names):
        memory_budget(SPEC, **wrong)


def test_an_h200_s_141_gb_are_131_3_gib():
    assert round(load_gpu("h200-141gb").capacity("decimal") / GiB, 1) == 131.3


def test_what_nobody_reported_is_refused_and_not_invented():
    unknown = [name for name, card in GPUS.items() if card.reported is None]
    assert "mi300x-192gb" in unknown
    for name in (*unknown, "96gb"):
        assert load_gpu(name).capacities == ("decimal", "binary")
        with pytest.raises(SpecError, match="is not known"):
            memory_budget(load_spec("llama-2-7b"), name, capacity="reported")


def test_a_card_may_be_nothing_but_a_size():
    small = load_spec("llama-2-7b")
    assert memory_budget(small, "96gb").capacity == memory_budget(small, "96 GB").capacity == 96 * GB
    assert memory_budget(small, "96GB", 2, capacity="binary").capacity == 2 * 96 * GiB
    for wrong in ("0gb", "96", "gb", "-1gb", "96gib"):
        with pytest.raises(SpecError, match="gpu is"):
            load_gpu(wrong)


def test_the_librarys_default_of_the_weights_stays_bf16():
    spec = load_spec("gpt-oss-20b")
    assert memory_budget(spec).weights == 2 * spec.n_params
