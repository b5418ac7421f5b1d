"""The static decode step, run eagerly: equal to the ordinary step, and a row that does not take part is not touched."""

import pytest
import torch

from kvlib.attention import attention
from kvlib.cache import CacheError
from kvlib.decode import decode_step, prefill
from kvlib.errors import SpecError
from kvlib.graph import GraphDecoder, static_step
from kvlib.model import Llama, LlamaConfig
from tests.kernels.decode_cases import case, int32, oracle

CONFIG = LlamaConfig(n_layers=3, n_heads=6, n_kv_heads=2, head_dim=16, hidden_size=48, intermediate_size=64,
                     vocab_size=50, max_position_embeddings=40, qkv_bias=True)  # fmt: skip
PROMPTS = [[3, 1, 4, 1], [5], [9, 2, 6, 5, 3, 5, 8]]


@pytest.fixture(scope="module", params=[torch.float64, torch.float32], ids=str)
def model(request):
    return Llama.random(CONFIG, dtype=request.param)


def tolerance(model: Llama) -> dict:
    return {"rtol": 0, "atol": 1e-12 if model.dtype == torch.float64 else 2e-5}


def bits(decoder: GraphDecoder) -> tuple[torch.Tensor, torch.Tensor]:
    """All slots but the spare one, NaN compared as itself."""
    kind = torch.int64 if decoder.model.dtype == torch.float64 else torch.int32
    return tuple(x[..., : decoder.cache.capacity, :].clone().view(kind) for x in (decoder.cache.k, decoder.cache.v))


@pytest.mark.parametrize("impl", ["reference", "grouped", "sdpa"])
def test_lengths_on_the_device_mean_what_a_mask_means(impl):
    q, k, v = case(3, 4, 2, 9, 16)
    lengths = (4, 0, 9)
    for row, n in enumerate(lengths):
        k[row, :, n:] = v[row, :, n:] = torch.nan
    out = attention(q, k, v, int32(*lengths), impl)
    torch.testing.assert_close(out.double(), oracle(q, k, v, int32(*lengths)), rtol=0, atol=2e-6)
    with pytest.raises(SpecError, match="expected \\(3,\\) and 1 query"):
        attention(q, k, v, int32(1, 2), impl)
    with pytest.raises(SpecError, match="2 queries per row"):
        attention(q.expand(-1, -1, 2, -1), k, v, int32(1, 2, 3), impl)


@pytest.mark.parametrize("impl", ["auto", "reference", "sdpa"])
def test_static_steps_equal_ordinary_ones(model, impl):
    decoder, cache = GraphDecoder(model, 3, 20, impl=impl), model.new_cache(3, 20)
    decoder.cache.k.fill_(torch.nan), decoder.cache.v.fill_(torch.nan)
    logits, expected = decoder.prefill(PROMPTS, chunk=3), prefill(model, cache, PROMPTS)
    generator = torch.Generator().manual_seed(0)
    for step in range(13):
        tokens, on = torch.randint(50, (3,), generator=generator), [True, step % 3 != 1, step < 9]
        logits, expected = decoder.step(tokens, on), decode_step(model, cache, tokens, [int(x) for x in on])
        torch.testing.assert_close(logits[on], expected[on], **tolerance(model))
        assert decoder.cache.lengths == cache.lengths == tuple(decoder.cache.device_lengths.tolist())


def test_static_steps_equal_one_full_forward(model):
    """The oracle knows no step: all tokens of a row at once, in a batch of one, filled to the last slot."""
    decoder = GraphDecoder(model, 3, 12)
    decoder.prefill(PROMPTS)
    rows = [list(p) for p in PROMPTS]
    for step in range(5):
        tokens = torch.tensor([step + 7, 2 * step, 30 - step])
        logits = decoder.step(tokens)
        for row, token in zip(rows, tokens.tolist(), strict=True):
            row.append(token)
    for row, tokens in enumerate(rows):
        torch.testing.assert_close(logits[row], prefill(model, model.new_cache(1, 12), [tokens])[0], **tolerance(model))
    assert decoder.cache.lengths == (9, 6, 12)


@pytest.mark.parametrize("on", [[True, False, True], [False, True, False], [False, False, False]], ids=str)
def test_rows_that_do_not_take_part_write_nowhere(model, on):
    decoder = GraphDecoder(model, 3, 7)  # row 2 is full
    decoder.cache.k.fill_(torch.nan), decoder.cache.v.fill_(torch.nan)
    decoder.prefill(PROMPTS)
    on = [on[0], on[1], False]
    before, lengths = bits(decoder), decoder.cache.lengths
    decoder.step(torch.tensor([1, 2, 3]), on)
    for old, new in zip(before, bits(decoder), strict=True):
        changed = (old != new).any(-1).any(2).any(0).nonzero().tolist()  # pairs (row, slot)
        assert changed == [[row, n] for row, (n, x) in enumerate(zip(lengths, on, strict=True)) if x]
    assert decoder.cache.lengths == tuple(n + x for n, x in zip(lengths, on, strict=True))


def test_a_full_row_is_refused_and_nothing_changes(model):
    decoder = GraphDecoder(model, 3, 7)
    decoder.prefill(PROMPTS)
    before, lengths = bits(decoder), decoder.cache.lengths
    with pytest.raises(CacheError, match=r"rows \[2\] hold 7 tokens"):
        decoder.step(torch.tensor([1, 2, 3]))
    assert all(torch.equal(a, b) for a, b in zip(before, bits(decoder), strict=True))
    assert decoder.cache.lengths == lengths == tuple(decoder.cache.device_lengths.tolist())


def test_the_spare_slot_is_no_capacity(model):
    decoder = GraphDecoder(model, 1, 4)
    with pytest.raises(CacheError, match="exceed the capacity of 4"):
        decoder.prefill([[1, 2, 3, 4, 5]])


def test_truncate_and_reset_reach_the_device(model):
    decoder, fresh = GraphDecoder(model, 3, 12), GraphDecoder(model, 3, 12)
    decoder.prefill(PROMPTS)
    decoder.step(torch.tensor([7, 8, 9]))
    decoder.cache.truncate((2, 1, 3))
    fresh.prefill([p[:n] for p, n in zip(PROMPTS, (2, 1, 3), strict=True)])
    tokens = torch.tensor([4, 5, 6])
    torch.testing.assert_close(decoder.step(tokens), fresh.step(tokens), **tolerance(model))
    decoder.cache.reset()
    assert decoder.cache.device_lengths.tolist() == [0, 0, 0]
    torch.testing.assert_close(decoder.prefill(PROMPTS), GraphDecoder(model, 3, 12).prefill(PROMPTS), rtol=0, atol=0)


def test_a_step_depends_on_the_lengths_of_the_device_alone(model):
    """What a graph replays was recorded at other lengths: the host's must not matter."""
    decoder = GraphDecoder(model, 3, 12)
    decoder.prefill(PROMPTS)
    tokens, active = torch.tensor([1, 2, 3]), torch.ones(3, dtype=torch.int32)
    expected = decoder.step(tokens)
    decoder.cache.truncate(tuple(map(len, PROMPTS)))
    decoder.cache._lengths = [11, 11, 11]
    torch.testing.assert_close(static_step(model, decoder.cache, tokens, active), expected, rtol=0, atol=0)
    assert decoder.cache.device_lengths.tolist() == [5, 2, 8]


def test_logits_of_a_step_are_not_overwritten_by_the_next(model):
    decoder = GraphDecoder(model, 3, 12)
    decoder.prefill(PROMPTS)
    first = decoder.step(torch.tensor([1, 2, 3]))
    kept = first.clone()
    decoder.step(torch.tensor([4, 5, 6]))
    assert torch.equal(first, kept)


def test_wrong_calls_are_refused(model):
    decoder = GraphDecoder(model, 3, 12)
    with pytest.raises(SpecError, match="max_position_embeddings = 40"):
        GraphDecoder(model, 1, 41)
    with pytest.raises(SpecError, match="capacity is 0"):
        GraphDecoder(model, 1, 0)
    with pytest.raises(SpecError, match="expected \\(3,\\) and 3"):
        decoder.step(torch.tensor([1, 2]))
    with pytest.raises(SpecError, match="active 2 entries"):
        decoder.step(torch.tensor([1, 2, 3]), [True, True])
    k = torch.zeros(3, 2, 1, 16, dtype=model.dtype)
    decoder.cache.append(0, k, k)
    with pytest.raises(CacheError, match="appended 1 of 3 layers"):
        decoder.step(torch.tensor([1, 2, 3]))
