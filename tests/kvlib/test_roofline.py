"""One decode step on the roofline: counted operations against torch's counter, and the answers of the interview."""

import pytest

from kvlib import SpecError, load_spec
from kvlib.hardware import GPUS
from kvlib.roofline import ridge, step_cost, tokens_where_kv_equals_weights

SPEC = load_spec("llama-2-70b")


def test_floor_of_a_70b_step_on_two_h100():
    # (137.95 + 1.34) GB / 6.7 TB/s
    assert step_cost(SPEC, 4096).seconds("h100-80gb", 2) == pytest.approx((137_953_296_384 + 1_342_177_280) / 6.7e12)


def test_kv_traffic_equals_weight_traffic_at_421000_tokens():
    tokens = tokens_where_kv_equals_weights(SPEC)
    assert round(tokens, -3) == 421_000
    assert step_cost(SPEC, round(tokens / 32), batch=32).kv_bytes == pytest.approx(SPEC.weight_bytes(), rel=1e-4)


def test_ridge_of_an_h100():
    assert round(ridge("h100-80gb")) == 295


@pytest.mark.parametrize("batch", [1, 8, 256])
def test_batching_does_not_raise_the_intensity_of_attention_and_grouping_does(batch):
    assert step_cost(SPEC, 4096, batch).attention_intensity == SPEC.n_heads / SPEC.n_kv_heads
    mha = load_spec("llama-2-70b", num_key_value_heads=64)
    assert step_cost(mha, 4096, batch).attention_intensity == 1


def test_a_large_batch_is_limited_by_arithmetic():
    cost, gpu = step_cost(SPEC, 1, batch=4096), GPUS["h100-80gb"]
    assert cost.seconds(gpu) == cost.flops / gpu.flops > cost.nbytes / gpu.bandwidth


@pytest.mark.parametrize("tied", [False, True])
def test_operations_equal_what_torch_counts(tied):
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    from kvlib.model import Llama, LlamaConfig

    fields = {"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
              "num_key_value_heads": 2, "intermediate_size": 48, "vocab_size": 64, "tie_word_embeddings": tied}  # fmt: skip
    model, spec = Llama.random(LlamaConfig.from_hf(fields)), load_spec(fields)
    cache = model.new_cache(3, 16)
    model.forward(torch.zeros(3, 9, dtype=torch.long), cache)
    with FlopCounterMode(display=False) as counter:
        model.logits(model.forward(torch.zeros(3, 1, dtype=torch.long), cache, impl="reference"))
    cost = step_cost(spec, n_tokens=10, batch=3)
    assert cost.flops == counter.get_total_flops()


@pytest.mark.parametrize("preset", ["gpt-oss-20b", "deepseek-v3"])
def test_what_cannot_be_counted_is_refused(preset):
    with pytest.raises(SpecError, match="counted"):
        step_cost(load_spec(preset), 1)


def test_windows_have_no_single_crossing():
    with pytest.raises(SpecError, match="windows"):
        tokens_where_kv_equals_weights(load_spec("gemma-3-27b"))


def test_a_plain_size_has_no_speed():
    with pytest.raises(SpecError, match="only a size"):
        ridge("96gb")
    with pytest.raises(SpecError, match="only a size"):
        step_cost(load_spec("llama-3-8b"), 100).seconds("96gb")
