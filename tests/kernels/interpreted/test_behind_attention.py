"""impl="triton" of `kvlib.attention`, and a whole model that decodes with it."""

import pytest
import torch

from kvlib.attention import Mask, attention
from kvlib.decode import decode_step, prefill
from kvlib.errors import SpecError
from kvlib.graph import GraphDecoder
from kvlib.kernels import available
from kvlib.model import Llama, LlamaConfig
from tests.kernels.decode_cases import assert_close, case, int32, oracle


def test_available_says_interpreter():
    assert available() and available().where == "interpreter" and "TRITON_INTERPRET" in available().reason


@pytest.mark.parametrize(
    ("mask", "lengths"),
    [
        (None, (70, 70, 70)),
        (Mask.of(40, 41), (41, 41, 41)),
        (Mask((0, 68, 69), (1, 69, 70)), (1, 69, 70)),
        (Mask((0, 5, 69), (70,)), (1, 6, 70)),
        (Mask((69,), (3, 2, 70)), (3, 2, 70)),
        (int32(7, 70, 1), (7, 70, 1)),
    ],
    ids=str,
)
def test_triton_takes_every_mask_that_is_a_length(mask, lengths):
    q, k, v = case(3, 4, 2, 70, 64)
    out = attention(q, k, v, mask, impl="triton")
    assert_close(out, oracle(q, k, v, int32(*lengths)))
    torch.testing.assert_close(out, attention(q, k, v, mask, impl="grouped"), rtol=0, atol=4e-6)


def test_triton_refuses_what_it_cannot_mean():
    q, k, v = case(2, 4, 2, 10, 64)
    with pytest.raises(SpecError, match="q has 3 queries per row"):
        attention(q.expand(-1, -1, 3, -1), k, v, Mask.of(7, 10), impl="triton")
    with pytest.raises(SpecError, match="mask is a boolean tensor"):
        attention(q, k, v, torch.ones(2, 1, 1, 10, dtype=torch.bool), impl="triton")


def test_a_model_decodes_the_same_through_the_kernel():
    config = LlamaConfig(n_layers=2, n_heads=4, n_kv_heads=2, head_dim=64, hidden_size=32, intermediate_size=48,
                         vocab_size=40)  # fmt: skip
    model, prompts = Llama.random(config), [[3, 1, 4], [1, 5, 9, 2, 6]]
    decoder, cache = GraphDecoder(model, 2, 12, impl="triton"), model.new_cache(2, 12)
    logits = decoder.prefill(prompts)
    assert torch.equal(logits, prefill(model, cache, prompts))
    for on in ([1, 1], [0, 1], [1, 1]):
        tokens = logits.argmax(-1)
        logits, expected = decoder.step(tokens, [bool(x) for x in on]), decode_step(model, cache, tokens, on)
        active = torch.tensor(on).bool()
        torch.testing.assert_close(logits[active], expected[active], rtol=0, atol=2e-5)
