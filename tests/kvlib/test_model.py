"""The small Llama against the real transformers package with the same weights, and against float64 without a cache."""

import json
from types import SimpleNamespace

import float64_oracle as oracle
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from kvlib import SpecError, rope
from kvlib.cache import ContiguousCache, GrowingCache
from kvlib.decode import decode_step, generate, prefill
from kvlib.model import Llama, LlamaConfig, shapes

SIZES = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
         "intermediate_size": 48, "vocab_size": 101, "max_position_embeddings": 160,
         "tie_word_embeddings": False}  # fmt: skip
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500_000.0, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 40}  # fmt: skip
LINEAR = {"rope_type": "linear", "rope_theta": 10_000.0, "factor": 4.0}
PLAIN = {"rope_type": "default", "rope_theta": 10_000.0}
FAMILIES = {
    "llama, llama3 scaling": SIZES | {"model_type": "llama", "rope_parameters": LLAMA3},
    "llama, wide heads, biases": SIZES | {"model_type": "llama", "head_dim": 12, "attention_bias": True,
                                          "rope_parameters": LINEAR},
    "llama, multi-query, tied": SIZES | {"model_type": "llama", "num_key_value_heads": 1, "tie_word_embeddings": True},
    "qwen2, tied, biases": SIZES | {"model_type": "qwen2", "tie_word_embeddings": True, "rms_norm_eps": 1e-5},
    "mistral, no window": SIZES | {"model_type": "mistral", "sliding_window": None, "head_dim": 16},
}  # fmt: skip
PROMPTS = [[5, 99, 3, 3, 42, 17, 8], [1], [64, 2, 90, 31, 7, 7, 100, 0, 12, 55, 21]]
N_STEPS = 64


def pair_of(fields, folder):
    """A transformers model with random weights, biases and norms too, and the folder it is saved in."""
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**fields)).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, x in model.named_parameters():
            noise = torch.randn(x.shape, generator=generator)
            x.copy_(noise / x.shape[-1] ** 0.5 if x.dim() == 2 else 0.1 * noise + ("norm" in name))
    model.save_pretrained(folder)
    return SimpleNamespace(theirs=model, folder=folder)


@pytest.fixture(scope="module", params=FAMILIES.values(), ids=FAMILIES)
def pair(request, tmp_path_factory):
    return pair_of(request.param, tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    return pair_of(FAMILIES["llama, wide heads, biases"], tmp_path_factory.mktemp("one"))


@torch.no_grad()
def their_logits(model, row):
    """(n, vocab_size), one full forward without a cache."""
    return model(torch.tensor([row]), use_cache=False).logits[0]


def close(found, expected, tolerance):
    """Equal up to `tolerance` times the largest logit."""
    return (found.double() - expected.double()).abs().max() <= tolerance * expected.abs().max()


def continued(seed=1):
    """PROMPTS and N_STEPS random tokens more per row."""
    more = torch.randint(0, 101, (len(PROMPTS), N_STEPS), generator=torch.Generator().manual_seed(seed))
    return [p + row for p, row in zip(PROMPTS, more.tolist(), strict=True)]


def cached_logits(model, chunk=None):
    """Prefill of PROMPTS and N_STEPS decode steps: per row, the logits from the last token of its prompt on."""
    cache, rows = model.new_cache(len(PROMPTS), 150), continued()
    found = [prefill(model, cache, PROMPTS, chunk)]
    for step in range(N_STEPS):
        tokens = torch.tensor([row[len(p) + step] for row, p in zip(rows, PROMPTS, strict=True)])
        found.append(decode_step(model, cache, tokens))
    assert cache.lengths == tuple(map(len, rows))
    return torch.stack(found, dim=1)


# ---- equal to transformers -------------------------------------------------------------------------------------------


def test_prefill_and_64_steps_equal_transformers_in_float32(pair):
    """Properties 1, 6 and 13: weights from a folder, rows of different lengths, to 1e-5 of the largest logit."""
    found = cached_logits(Llama.from_folder(pair.folder), chunk=4)
    for row, prompt, logits in zip(continued(), PROMPTS, found, strict=True):
        assert close(logits, their_logits(pair.theirs, row)[len(prompt) - 1 :], 1e-5)


def test_every_position_of_a_full_forward_equals_transformers(pair):
    model = Llama(LlamaConfig.from_hf(pair.theirs.config.to_dict()), pair.theirs.state_dict())
    rows = torch.randint(0, 101, (2, 150), generator=torch.Generator().manual_seed(1))
    hidden = model.forward(rows, model.new_cache(2, 150))
    assert close(model.logits(hidden), pair.theirs(rows, use_cache=False).logits.detach(), 1e-5)


def test_generated_tokens_equal_those_of_transformers(pair):
    """Property 6: greedy tokens of transformers' own generate, with its cache, each row alone; ours in one batch."""
    found = generate(Llama.from_folder(pair.folder), PROMPTS, 40)
    for prompt, tokens in zip(PROMPTS, found, strict=True):
        options = {"attention_mask": torch.ones(1, len(prompt)), "eos_token_id": None, "pad_token_id": 0}
        theirs = pair.theirs.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=40, **options)
        assert tokens == theirs[0, len(prompt) :].tolist()


def test_prefill_and_64_steps_equal_float64_without_a_cache(pair):
    """Properties 1 and 6, to 1e-10. (transformers itself cannot judge that: its norms round to float32.)"""
    config, weights = pair.theirs.config, load_file(pair.folder / "model.safetensors")
    freqs = pair.theirs.model.rotary_emb.inv_freq
    found = cached_logits(Llama.from_folder(pair.folder, torch.float64))
    for row, prompt, logits in zip(continued(), PROMPTS, found, strict=True):
        full = oracle.full_forward(weights, row, config.num_attention_heads, config.num_key_value_heads, freqs,
                                   config.rms_norm_eps)  # fmt: skip
        assert close(logits, full[len(prompt) - 1 :], 1e-10)
        assert close(their_logits(pair.theirs, row), full, 1e-5)  # the two judges agree


def test_bfloat16_is_as_near_to_float64_as_that_of_transformers(pair):
    """Property 11: 16-bit logits differ between implementations. Stated: their root mean square error is at most 1.25
    times that of transformers, and 1 % of the largest logit.
    """
    exact = cached_logits(Llama.from_folder(pair.folder, torch.float64))
    theirs = AutoModelForCausalLM.from_pretrained(pair.folder, dtype=torch.bfloat16)
    their_rows = [their_logits(theirs, row)[len(p) - 1 :] for row, p in zip(continued(), PROMPTS, strict=True)]
    ours, other = (
        (x.double() - exact).square().mean().sqrt() / exact.abs().max()
        for x in (cached_logits(Llama.from_folder(pair.folder, torch.bfloat16)), torch.stack(their_rows))
    )
    assert ours <= 1.25 * other
    assert ours <= 0.01


# ---- positions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scaling", [PLAIN, LINEAR, LLAMA3, LLAMA3 | {"original_max_position_embeddings": 8192}])
@pytest.mark.parametrize("head_dim", [16, 80, 128])
def test_rotary_tables_equal_transformers_to_the_bit(scaling, head_dim):
    config = AutoConfig.for_model("llama", head_dim=head_dim, rope_parameters=scaling, max_position_embeddings=131_072)
    theirs = LlamaRotaryEmbedding(config)
    freqs = rope.frequencies(head_dim, scaling["rope_theta"], scaling)
    assert theirs.attention_scaling == 1
    assert torch.equal(freqs, theirs.inv_freq)
    cos, sin = theirs(torch.zeros(1), torch.arange(9000)[None])
    assert all(map(torch.equal, rope.tables(9000, freqs), (cos[0], sin[0])))


def test_scores_depend_on_the_distance_of_two_tokens_only():
    cos, sin = rope.tables(60, rope.frequencies(16, 10_000.0))
    q, k = torch.randn(2, 16, generator=torch.Generator().manual_seed(0))
    scores = rope.rotate(q, cos, sin) @ rope.rotate(k, cos, sin).T  # (60, 60): query at i, key at j
    for distance in (-7, 0, 1, 30):
        assert scores.diagonal(distance).std() < 1e-5
    assert scores[0].std() > 0.1
    assert torch.equal(rope.rotate(q, cos[0], sin[0]), q)


def test_a_token_beyond_the_last_position_is_refused_and_one_at_it_is_not(one):
    model = Llama.from_folder(one.folder)
    cache = model.new_cache(2, 200)
    prefill(model, cache, [[1] * 159, [2] * 3])
    decode_step(model, cache, torch.tensor([1, 2]))
    with pytest.raises(SpecError, match="token 161 is beyond max_position_embeddings = 160"):
        decode_step(model, cache, torch.tensor([1, 2]))
    assert cache.lengths == (160, 4)
    decode_step(model, cache, torch.tensor([1, 2]), n_new=[0, 1])  # a full row that has ended holds nobody up
    assert cache.lengths == (160, 5)


# ---- loading ---------------------------------------------------------------------------------------------------------


def test_a_sharded_folder_gives_the_same_model(one, tmp_path):
    one.theirs.save_pretrained(tmp_path, max_shard_size="10KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 3
    a, b = (cached_logits(Llama.from_folder(folder)) for folder in (one.folder, tmp_path))
    assert torch.equal(a, b)


@pytest.mark.parametrize(
    "name",
    [
        "model.embed_tokens.weight",
        "model.layers.0.self_attn.q_proj.bias",
        "model.layers.1.self_attn.o_proj.bias",
        "model.layers.1.mlp.up_proj.weight",
        "model.layers.2.self_attn.k_proj.weight",
        "model.norm.weight",
        "lm_head.weight",
    ],
)
def test_an_absent_or_misshapen_weight_is_named(one, name):
    config, weights = LlamaConfig.from_hf(one.theirs.config.to_dict()), one.theirs.state_dict()
    shape = tuple(weights[name].shape)
    with pytest.raises(SpecError) as absent:
        Llama(config, {n: x for n, x in weights.items() if n != name})
    assert str(absent.value) == f"weight {name} is absent; expected shape {shape}"
    with pytest.raises(SpecError) as misshapen:
        Llama(config, weights | {name: weights[name][1:]})
    assert str(misshapen.value) == f"weight {name} is of shape {(shape[0] - 1, *shape[1:])}; expected shape {shape}"


def test_the_names_and_shapes_of_all_weights_are_those_of_transformers(pair):
    config = LlamaConfig.from_hf(json.loads((pair.folder / "config.json").read_text()))
    assert shapes(config) == {name: tuple(x.shape) for name, x in load_file(pair.folder / "model.safetensors").items()}


def test_a_folder_without_a_model_is_refused(one, tmp_path):
    with pytest.raises(SpecError, match="has no config.json or no"):
        Llama.from_folder(tmp_path)
    save_file({"x": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(SpecError, match="has no config.json"):
        Llama.from_folder(tmp_path)
    (tmp_path / "config.json").write_text((one.folder / "config.json").read_text())
    with pytest.raises(SpecError, match="weight model.embed_tokens.weight is absent"):
        Llama.from_folder(tmp_path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model_type": "gemma2", "head_dim": 8, "sliding_window": 8}, "model_type is 'gemma2'"),
        ({"model_type": "mistral", "sliding_window": 8}, "largest window 8"),
        ({"mlp_bias": True}, "mlp_bias is true"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ({"num_key_value_heads": 3}, "does not divide"),
        ({"hidden_size": None}, "hidden_size"),
    ],
)
def test_a_config_that_the_model_cannot_run_is_refused(change, says):
    with pytest.raises(SpecError, match=says):
        LlamaConfig.from_hf(SIZES | {"model_type": "llama"} | change)


def test_an_unknown_rope_scaling_is_refused():
    with pytest.raises(SpecError, match="rope_type is 'yarn'"):
        rope.frequencies(16, 10_000.0, {"rope_type": "yarn", "factor": 2.0})


def test_random_weights_depend_on_the_seed_only():
    config = LlamaConfig.from_hf(FAMILIES["qwen2, tied, biases"])
    a, b, other = (Llama.random(config, seed) for seed in (1, 1, 2))
    assert torch.equal(a.layers[2].qkv, b.layers[2].qkv)
    assert torch.equal(a.layers[0].qkv_bias, b.layers[0].qkv_bias)
    assert not torch.equal(a.layers[2].qkv, other.layers[2].qkv)


# ---- model and cache -------------------------------------------------------------------------------------------------


def test_a_new_cache_fits_the_model(one):
    cache = Llama.from_folder(one.folder, torch.bfloat16).new_cache(batch=5, capacity=9)
    assert cache.k.shape == cache.v.shape == (3, 5, 2, 9, 12)
    assert cache.k.dtype == cache.v.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ((2, 2, 2, 12), r"append to layer 2, but advance\(\) is due"),
        ((4, 2, 2, 12), "advance after 3 of 4 layers"),
        ((3, 2, 4, 12), r"expected \(batch, n_kv_heads, q_len, head_dim\) = \(2, 4, q_len, 12\)"),
        ((3, 2, 2, 8), r"= \(2, 2, q_len, 8\)"),
        ((3, 3, 2, 12), "2 rows of tokens and 2 n_new; the cache has 3 rows"),
    ],
)
def test_a_cache_of_another_model_is_refused(one, sizes, says):
    with pytest.raises(SpecError, match=says):
        Llama.from_folder(one.folder).forward(torch.zeros(2, 1, dtype=torch.long), ContiguousCache(*sizes, capacity=9))


def test_a_cache_of_another_dtype_is_refused(one):
    with pytest.raises(SpecError, match="k is torch.bfloat16 on cpu; the cache holds torch.float32"):
        prefill(Llama.from_folder(one.folder, torch.bfloat16), GrowingCache(3, 1, 2, 12), [[1]])


@pytest.mark.parametrize("n_new", [[1], [1, 2], [1, -1], [1, 1, 1]])
def test_wrong_counts_of_new_tokens_are_refused_and_change_nothing(one, n_new):
    model = Llama.from_folder(one.folder)
    cache = model.new_cache(2, 9)
    with pytest.raises(SpecError, match="n_new"):
        model.forward(torch.zeros(2, 1, dtype=torch.long), cache, n_new)
    fresh = model.new_cache(2, 9)
    assert torch.equal(decode_step(model, cache, torch.tensor([4, 5])), prefill(model, fresh, [[4], [5]]))


def test_weights_that_would_be_ignored_are_refused(one):
    config = LlamaConfig.from_hf(json.loads((one.folder / "config.json").read_text()))
    weights = {k: v for file in one.folder.glob("*.safetensors") for k, v in load_file(file).items()}
    with pytest.raises(SpecError, match=r"1 weights would be ignored, model.layers.0.self_attn.q_proj.scale"):
        Llama(config, weights | {"model.layers.0.self_attn.q_proj.scale": torch.ones(1)})


def test_a_quantised_checkpoint_is_refused(one):
    config = json.loads((one.folder / "config.json").read_text())
    with pytest.raises(SpecError, match="quantization_config"):
        LlamaConfig.from_hf(config | {"quantization_config": {"quant_method": "fp8"}})


@pytest.mark.parametrize("kind", ["linear", "llama3"])
def test_rope_scaling_that_lacks_a_field_is_refused(kind):
    with pytest.raises(SpecError, match="lacks factor"):
        rope.frequencies(8, 10_000.0, {"rope_type": kind})
