"""What a stored K or V costs: published numbers, arrays that were really packed, and a walk over every group of every head."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlib import Layer, SpecError, kv_bytes, load_spec
from kvlib.engines import ENGINES
from kvlib.kv_formats import KV_FORMATS, kv_name, kv_pair, token_bytes

LLAMA_3_8B = {
    "fp32": 262_144, "bf16": 131_072, "fp16": 131_072, "fp8": 65_536, "int8": 65_536, "int4": 32_768,
    "fp8_per_token_head": 67_584, "int8_per_token_head": 67_584, "int4_per_token_head": 34_816,
    "int8_g64": 69_632, "int4_g64": 36_864, "nvfp4": 36_864, "mxfp8": 67_584,
    "q8_0": 69_632, "q5_1": 49_152, "q5_0": 45_056, "q4_1": 40_960, "q4_0": 36_864, "iq4_nl": 36_864,
}  # fmt: skip
"""Bytes per token: 32 layers, 8 KV heads of 128, so 65,536 values and 512 heads' vectors."""

# name: (bits of a value, values that share scales or None for the whole head, bytes of scales), written from the sources anew
LAYOUTS = {
    "fp32": (32, None, 0), "bf16": (16, None, 0), "fp16": (16, None, 0), "fp8": (8, None, 0), "int8": (8, None, 0),
    "int4": (4, None, 0), "fp8_per_token_head": (8, None, 4), "int8_per_token_head": (8, None, 4),
    "int4_per_token_head": (4, None, 4), "int4_g64": (4, 64, 2 + 2), "int8_g64": (8, 64, 2 + 2),
    "nvfp4": (4, 16, 1), "mxfp8": (8, 32, 1),
    "q8_0": (8, 32, 2), "q5_1": (5, 32, 2 + 2), "q5_0": (5, 32, 2), "q4_1": (4, 32, 2 + 2), "q4_0": (4, 32, 2),
    "iq4_nl": (4, 32, 2),
}  # fmt: skip
names = st.sampled_from(list(LAYOUTS))
wide_layers = st.builds(
    Layer,
    n_kv_heads=st.sampled_from([0, 1, 2, 4, 8]),
    k_dim=st.integers(1, 3).map(lambda n: 64 * n),
    v_dim=st.integers(1, 3).map(lambda n: 64 * n),
    latent=st.integers(0, 3).map(lambda n: 64 * n),
    index_bytes=st.integers(0, 200),
)


def one_layer(heads: int = 1, width: int = 128) -> Layer:
    return Layer(n_kv_heads=heads, k_dim=width, v_dim=width)


def walk(width: int, name: str) -> Fraction:
    """Goes through one head's vector value by value and adds scales whenever a group begins."""
    bits, group, scales = LAYOUTS[name]
    total = Fraction(0)
    for i in range(width):
        if i % (group or width) == 0:
            total += scales
        total += Fraction(bits, 8)
    return total


def whole_bytes(parts: list[Fraction]) -> int:
    return -int(-sum(parts) // 1)


def test_every_format_has_an_expected_answer_and_a_source():
    assert set(LAYOUTS) == set(LLAMA_3_8B) == set(KV_FORMATS) - {"fp8_ds_mla"}
    assert all(row.source and row.name == name for name, row in KV_FORMATS.items())


@pytest.mark.parametrize(("name", "per_token"), LLAMA_3_8B.items())
def test_a_token_of_llama_3_8b_in_every_format(name, per_token):
    assert kv_bytes(load_spec("llama-3-8b"), 1, kv_dtype=name) == per_token


@given(wide_layers, names, names)
def test_the_formula_equals_a_walk_over_heads_and_groups(layer, k, v):
    counted = whole_bytes([walk(layer.k_dim, k) for _ in range(layer.n_kv_heads)])
    counted += whole_bytes([walk(layer.v_dim, v) for _ in range(layer.n_kv_heads)])
    counted += whole_bytes([walk(layer.latent, k)]) + layer.index_bytes
    assert token_bytes(layer, (k, v)) == counted


@pytest.mark.parametrize("name", ["q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "bf16"])
@pytest.mark.parametrize("shape", [(1, 64), (8, 128), (2, 576)])
def test_as_many_bytes_as_ggml_really_writes(name, shape):
    gguf, numpy = pytest.importorskip("gguf"), pytest.importorskip("numpy")
    packed = gguf.quants.quantize(numpy.ones(shape, numpy.float32), gguf.GGMLQuantizationType[name.upper()])
    heads, width = shape
    assert token_bytes(one_layer(heads, width), name) == 2 * packed.nbytes


@pytest.mark.parametrize("name", ["q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "nvfp4"])
def test_blocks_are_those_of_ggml(name):
    gguf = pytest.importorskip("gguf")
    values, nbytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name.upper()]]
    assert KV_FORMATS[name].nbytes(values) == nbytes


@pytest.mark.parametrize(("name", "dtype"), [("fp32", "float32"), ("bf16", "bfloat16"), ("fp16", "float16"),
                                             ("fp8", "float8_e4m3fn"), ("fp8", "float8_e5m2"), ("int8", "int8")])  # fmt: skip
def test_plain_formats_take_what_torch_takes(name, dtype):
    torch = pytest.importorskip("torch")
    held = torch.zeros(2, 8, 1, 128, dtype=getattr(torch, dtype))  # K and V, heads, one token, width
    assert token_bytes(one_layer(8), name) == held.nbytes
    assert token_bytes(one_layer(8), held.dtype) == held.nbytes


def test_fp8_takes_what_the_quantised_layer_of_transformers_holds():
    torch, cache = pytest.importorskip("torch"), pytest.importorskip("transformers.cache_utils")
    if not hasattr(cache, "Fp8QuantizedLayer"):
        pytest.skip("this transformers has no fp8 cache layer")
    layer, kv = cache.Fp8QuantizedLayer(), torch.ones(1, 8, 5, 128)
    layer.update(kv, kv)
    held = layer._quantized_keys[0].nbytes + layer._quantized_values[0].nbytes
    assert held == 5 * token_bytes(one_layer(8), "fp8")


@pytest.mark.parametrize("name", ["fp8_per_token_head", "int8_per_token_head"])
def test_scales_per_token_and_head_take_what_torch_takes(name):
    torch = pytest.importorskip("torch")
    data, scales = torch.zeros(2, 8, 7, 96, dtype=torch.int8), torch.zeros(2, 8, 7, dtype=torch.float32)
    assert 7 * token_bytes(one_layer(8, 96), name) == data.nbytes + scales.nbytes


def test_groups_of_64_take_what_packed_words_and_half_scales_take():
    torch = pytest.importorskip("torch")
    words = torch.zeros(2, 8, 7, 128 // 8, dtype=torch.int32)  # eight 4-bit values in a word
    scale_and_zero = torch.zeros(2, 2, 8, 7, 128 // 64, dtype=torch.float16)
    assert 7 * token_bytes(one_layer(8), "int4_g64") == words.nbytes + scale_and_zero.nbytes
    values = torch.zeros(2, 8, 7, 128, dtype=torch.uint8)
    assert 7 * token_bytes(one_layer(8), "int8_g64") == values.nbytes + scale_and_zero.nbytes


def test_a_format_that_an_engine_offers_is_not_said_to_have_none():
    offered = {name for engine in ENGINES.values() for name in engine.formats}
    for word in ("no engine", "none of the engines"):
        assert not [name for name in offered if word in KV_FORMATS[name].source]
    assert set(KV_FORMATS) - offered == {"int8", "int4"}  # without scales nobody stores them


def test_the_packed_latent_of_deepseek():
    torch = pytest.importorskip("torch")
    parts = (torch.zeros(512, dtype=torch.float8_e4m3fn), torch.zeros(512 // 128), torch.zeros(64, dtype=torch.bfloat16))
    layer = Layer(latent=576, latent_rope=64)
    assert token_bytes(layer, "fp8_ds_mla") == sum(part.nbytes for part in parts) == 656
    assert token_bytes(layer, "fp8") == 576
    assert token_bytes(replace(layer, index_bytes=132), "fp8_ds_mla") == 656 + 132
    assert token_bytes(layer, "fp8_ds_mla", tp=8) == 656


@pytest.mark.parametrize(
    ("layer", "says"),
    [
        (one_layer(8), "8 × 128"),
        (Layer(latent=576), "576"),
        (Layer(latent=320, latent_rope=64), "320"),
        (one_layer(1, 576), "576"),
    ],
)
def test_the_packed_latent_is_refused_for_anything_else(layer, says):
    with pytest.raises(SpecError, match=rf"fp8_ds_mla.*512 \+ 64.*{says}"):
        token_bytes(layer, "fp8_ds_mla")


def test_a_layer_without_kv_stores_none_in_any_format():
    for name in KV_FORMATS:
        assert token_bytes(Layer(state_bytes=100), name) == 0
        assert token_bytes(Layer(state_bytes=100, index_bytes=132), name) == 132


@pytest.mark.parametrize(("name", "width", "group"), [("q8_0", 80, 32), ("q4_0", 48, 32), ("int4_g64", 96, 64),
                                                      ("mxfp8", 112, 32), ("nvfp4", 72, 16)])  # fmt: skip
def test_a_group_that_does_not_divide_the_head_is_refused(name, width, group):
    with pytest.raises(SpecError, match=rf"{name}.* {group} values.* {width} .*choose one of .*fp8_per_token_head") as error:
        token_bytes(one_layer(8, width), name)
    offered = str(error.value).partition("choose one of ")[2].split(", ")
    assert name not in offered
    assert all(token_bytes(one_layer(8, width), other) for other in offered)


def test_k_and_v_each_have_their_own_format():
    layer = Layer(n_kv_heads=8, k_dim=128, v_dim=64)
    assert token_bytes(layer, "q8_0/q4_0") == 8 * (4 * 34 + 2 * 18)
    assert token_bytes(layer, ("q8_0", "q4_0")) == token_bytes(layer, "q8_0/q4_0")
    assert token_bytes(layer, "q4_0/q8_0") == 8 * (4 * 18 + 2 * 34)
    assert kv_bytes(load_spec("llama-3-8b"), 1, kv_dtype="q8_0/q4_0") == (69_632 + 36_864) // 2


def test_a_latent_is_stored_once_and_in_the_format_of_k():
    layer = Layer(latent=576, latent_rope=64)
    assert token_bytes(layer, "q8_0/bf16") == 576 // 32 * 34
    assert token_bytes(layer, "fp8_per_token_head") == 576 + 4


@given(wide_layers, names, names, st.sampled_from([1, 2, 4, 8, 16]))
def test_a_rank_stores_at_least_one_head_and_a_whole_latent(layer, k, v, tp):
    heads = layer.n_kv_heads and max(1, layer.n_kv_heads // tp)
    assert token_bytes(layer, (k, v), tp) == token_bytes(replace(layer, n_kv_heads=heads), (k, v))


def test_replicated_heads_of_llama_3_8b():
    layers = load_spec("llama-3-8b").layers
    assert sum(token_bytes(layer, "bf16", tp=16) for layer in layers) == 16_384
    assert sum(token_bytes(layer, "fp8_per_token_head", tp=16) for layer in layers) == 67_584 // 8
    with pytest.raises(SpecError, match=r"tp is 3 .* 8 KV heads"):
        token_bytes(layers[0], "bf16", tp=3)


@given(wide_layers, names, names)
def test_a_shared_cache_is_not_stored_again(layer, k, v):
    assert token_bytes(replace(layer, shared_with=0), (k, v)) == 0


@given(wide_layers, names)
def test_scales_never_make_it_smaller_and_more_bits_never_do(layer, name):
    plain = {32: "fp32", 16: "bf16", 8: "fp8", 5: "int4", 4: "int4"}[LAYOUTS[name][0]]
    assert token_bytes(layer, plain) <= token_bytes(layer, name) <= token_bytes(layer, "fp32")


@given(wide_layers, names, st.integers(1, 4))
def test_additive_over_heads_where_no_byte_is_split(layer, name, times):
    free = replace(layer, latent=0, index_bytes=0)
    many = replace(free, n_kv_heads=free.n_kv_heads * times)
    assert token_bytes(many, name) == times * token_bytes(free, name)


def test_half_a_byte_is_rounded_up_per_token_for_k_and_for_v():
    assert token_bytes(Layer(n_kv_heads=1, k_dim=1, v_dim=3), "int4") == 1 + 2
    assert token_bytes(Layer(n_kv_heads=2, k_dim=1, v_dim=3), "int4") == 1 + 3


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("bf16", "bf16"), ("BFloat16", "bf16"), ("f16", "fp16"), ("fp8_e4m3", "fp8"), ("torch.float8_e5m2", "fp8"),
        ("q8_0/q4_0", "q8_0/q4_0"), (" Q8_0 / f16 ", "q8_0/fp16"), (("q8_0", "q4_0"), "q8_0/q4_0"), (["f16", "f16"], "fp16"),
        ("q8_0/q8_0", "q8_0"),
    ],
)  # fmt: skip
def test_a_format_has_one_name(given, canonical):
    assert kv_name(given) == canonical
    assert kv_name(kv_name(given)) == canonical
    assert kv_pair(kv_name(given)) == kv_pair(given)


@pytest.mark.parametrize("wrong", ["fp7", "", "q8_0/", "/q8_0", "q8_0/q4_0/q4_0", (), ("bf16",) * 3, None, 16, "bf16/fp7", "q8_1"])
def test_an_unknown_format_is_named(wrong):
    with pytest.raises(SpecError, match=r"kv_dtype is .*such as q8_0/q4_0"):
        kv_pair(wrong)
