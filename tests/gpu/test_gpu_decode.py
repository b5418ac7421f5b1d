"""The decode step on a GPU: replayed from a graph, and compiled, it is the ordinary step."""

import pytest
import torch

from kvlib.decode import decode_step, prefill
from kvlib.graph import GraphDecoder
from kvlib.model import Llama, LlamaConfig

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA: not run here")
CONFIG = LlamaConfig(n_layers=3, n_heads=8, n_kv_heads=2, head_dim=64, hidden_size=128, intermediate_size=192,
                     vocab_size=500, max_position_embeddings=256)  # fmt: skip
PROMPTS = [[3, 1, 4, 1], [5], list(range(100, 190))]


@pytest.fixture(scope="module")
def model():
    return Llama.random(CONFIG, device="cuda")


@pytest.mark.parametrize(("compiled", "impl"), [(False, "auto"), (False, "grouped"), (True, "auto")])
def test_a_graph_replays_the_ordinary_step(model, compiled, impl):
    decoder, cache = GraphDecoder(model, 3, 128, compiled=compiled, impl=impl), model.new_cache(3, 128)
    decoder.cache.k.fill_(torch.nan), decoder.cache.v.fill_(torch.nan)
    torch.testing.assert_close(decoder.prefill(PROMPTS), prefill(model, cache, PROMPTS), rtol=0, atol=1e-4)
    for step in range(24):
        tokens, on = torch.randint(500, (3,), device="cuda"), [True, step % 3 != 1, step < 20]
        logits, expected = decoder.step(tokens, on), decode_step(model, cache, tokens, [int(x) for x in on])
        torch.testing.assert_close(logits[on], expected[on], rtol=0, atol=1e-4)
        assert decoder.cache.lengths == cache.lengths == tuple(decoder.cache.device_lengths.tolist())


def test_a_graph_agrees_with_the_cpu(model):
    decoder, twin = GraphDecoder(model, 3, 128), Llama.random(CONFIG)
    cache = twin.new_cache(3, 128)
    decoder.prefill(PROMPTS), prefill(twin, cache, PROMPTS)
    for step in range(8):
        tokens = torch.tensor([step, 7 * step, 499 - step])
        logits, expected = decoder.step(tokens.cuda()).cpu(), decode_step(twin, cache, tokens)
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-3)


def test_capture_and_inactive_rows_write_nowhere(model):
    decoder = GraphDecoder(model, 3, 128)
    decoder.prefill(PROMPTS)
    before = [x[..., :128, :].clone() for x in (decoder.cache.k, decoder.cache.v)]
    for x in before:
        x.nan_to_num_()
    for on in ([False, False, False], [False, True, False]):  # the first step captures
        lengths = decoder.cache.lengths
        decoder.step(torch.tensor([1, 2, 3], device="cuda"), on)
        for old, new in zip(before, (decoder.cache.k, decoder.cache.v), strict=True):
            changed = (old != new[..., :128, :].nan_to_num()).any(-1).any(2).any(0).nonzero().tolist()
            assert changed == [[row, n] for row, (n, x) in enumerate(zip(lengths, on, strict=True)) if x]


def test_a_graph_follows_truncate_and_reset(model):
    decoder, fresh = GraphDecoder(model, 3, 128), GraphDecoder(model, 3, 128)
    decoder.prefill(PROMPTS)
    tokens = torch.tensor([7, 8, 9], device="cuda")
    decoder.step(tokens)
    decoder.cache.truncate((2, 1, 50))
    fresh.prefill([p[:n] for p, n in zip(PROMPTS, (2, 1, 50), strict=True)])
    torch.testing.assert_close(decoder.step(tokens), fresh.step(tokens), rtol=0, atol=1e-4)
    decoder.cache.reset()
    decoder.prefill(PROMPTS), fresh.cache.reset(), fresh.prefill(PROMPTS)
    torch.testing.assert_close(decoder.step(tokens), fresh.step(tokens), rtol=0, atol=1e-4)
