"""GGUF files written by ggml's own writer: each says the same as the config.json of the same model, or is refused clearly."""

import json
import struct
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvlib import SpecError, kv_growth, load_spec
from kvlib.gguf import read_gguf
from kvlib.gguf.file import read_head

gguf = pytest.importorskip("gguf")
numpy = pytest.importorskip("numpy")

SHAPE = {"block_count": 4, "context_length": 8192, "embedding_length": 256, "feed_forward_length": 512, "vocab_size": 100,
         "attention.head_count": 8, "attention.head_count_kv": 2}  # fmt: skip
CONFIG = {"num_hidden_layers": 4, "max_position_embeddings": 8192, "hidden_size": 256, "intermediate_size": 512,
          "vocab_size": 100, "num_attention_heads": 8, "num_key_value_heads": 2}  # fmt: skip
HEAD_64 = {"attention.key_length": 64, "attention.value_length": 64}
WINDOW = {"attention.sliding_window": 1024}
MLA = {"attention.kv_lora_rank": 512, "rope.dimension_count": 64, "attention.head_count_kv": 1, "attention.key_length": 576,
       "attention.value_length": 512, "attention.key_length_mla": 192, "attention.value_length_mla": 128}  # fmt: skip
MLA_CONFIG = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}
MAMBA_2 = {"ssm.conv_kernel": 4, "ssm.state_size": 128, "ssm.group_count": 2, "ssm.inner_size": 512, "ssm.time_step_rank": 8}
MAMBA_2_CONFIG = {"mamba_d_conv": 4, "mamba_d_state": 128, "mamba_n_groups": 2, "mamba_n_heads": 8, "mamba_d_head": 64}
DELTA = {"ssm.conv_kernel": 4, "ssm.state_size": 128, "ssm.group_count": 4, "ssm.inner_size": 1024, "ssm.time_step_rank": 8,
         "full_attention_interval": 4}  # fmt: skip
DELTA_CONFIG = {"linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 4,
                "linear_value_head_dim": 128, "linear_num_value_heads": 8, "full_attention_interval": 4}  # fmt: skip
ALTERNATING = ["sliding_attention", "full_attention"] * 2

# test: (general.architecture, keys besides SHAPE, model_type, config fields besides CONFIG); None takes a field away
MODELS = {
    "llama": ("llama", {}, "llama", {}),
    "llama-without-kv-heads": ("llama", {"attention.head_count_kv": None}, "llama", {"num_key_value_heads": 8}),
    "mixtral": ("llama", {"expert_count": 8, "expert_used_count": 2}, "mixtral", {"num_local_experts": 8, "sliding_window": None}),
    "qwen3": ("qwen3", HEAD_64, "qwen3", {"head_dim": 64}),
    "falcon": ("falcon", {"attention.head_count_kv": 1}, "falcon", {"multi_query": True, "num_key_value_heads": None}),
    "k-and-v-differ": ("mystery", {"attention.key_length": 64, "attention.value_length": 32}, "mystery",
                       {"head_dim": 64, "v_head_dim": 32}),
    "gemma2": ("gemma2", HEAD_64, "gemma2", {"head_dim": 64, "sliding_window": 4096, "layer_types": ALTERNATING}),
    "gemma3": ("gemma3", HEAD_64 | WINDOW | {"block_count": 8}, "gemma3_text",
               {"num_hidden_layers": 8, "head_dim": 64, "sliding_window": 1024}),
    "gemma3-pattern": ("gemma3", HEAD_64 | WINDOW | {"attention.sliding_window_pattern": 2}, "gemma3_text",
                       {"head_dim": 64, "sliding_window": 1024, "layer_types": ALTERNATING}),
    "gemma3n": ("gemma3n", HEAD_64 | WINDOW | {"block_count": 25, "attention.shared_kv_layers": 10}, "gemma3n_text",
                {"num_hidden_layers": 25, "head_dim": 64, "sliding_window": 1024, "num_kv_shared_layers": 10}),
    "gemma3n-of-old": ("gemma3n", HEAD_64 | WINDOW | {"block_count": 25}, "gemma3n_text",
                       {"num_hidden_layers": 25, "head_dim": 64, "sliding_window": 1024, "num_kv_shared_layers": 5}),
    "gpt-oss": ("gpt-oss", HEAD_64 | WINDOW | {"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 512},
                "gpt_oss", {"head_dim": 64, "sliding_window": 1024, "num_local_experts": 4}),
    "cohere2": ("cohere2", WINDOW, "cohere2", {"sliding_window": 1024, "layer_types": ["sliding_attention"] * 3 + ["full_attention"]}),
    "phi3": ("phi3", WINDOW, "phi3", {"sliding_window": 1024}),
    "olmo2-without-windows": ("olmo2", {}, "olmo2", {}),
    "window-beyond-the-context": ("phi3", {"attention.sliding_window": 9000}, "phi3", {"sliding_window": 9000}),
    "an-unknown-one-with-a-pattern": ("mystery", WINDOW | {"attention.sliding_window_pattern": [True, False, True, False]}, "mystery",
                                      {"sliding_window": 1024, "layer_types": ALTERNATING}),
    "heads-and-widths-by-kind": ("gemma4", WINDOW | {"attention.head_count_kv": [4, 2, 4, 2], "attention.key_length": 128,
                                 "attention.value_length": 128, "attention.key_length_swa": 64, "attention.value_length_swa": 64,
                                 "attention.sliding_window_pattern": [True, False, True, False]}, "mystery",
                                 {"num_key_value_heads": 4, "num_global_key_value_heads": 2, "head_dim": 64, "global_head_dim": 128,
                                  "sliding_window": 1024, "layer_types": ALTERNATING}),
    "llama4": ("llama4", HEAD_64, "llama4_text", {"head_dim": 64, "attention_chunk_size": 8192, "no_rope_layers": [1, 1, 1, 0]}),
    "deepseek3": ("deepseek2", MLA | {"expert_gating_func": 2, "attention.q_lora_rank": 96}, "deepseek_v3",
                  MLA_CONFIG | {"q_lora_rank": 96}),
    "deepseek2-of-old": ("deepseek2", MLA | {"attention.head_count_kv": 8, "attention.key_length": 192, "attention.value_length": 128,
                         "attention.key_length_mla": None, "attention.value_length_mla": None}, "deepseek_v2", MLA_CONFIG),
    "sparse-indexer": ("glm-dsa", MLA | {"attention.indexer.key_length": 128, "attention.indexer.head_count": 8,
                       "attention.indexer.top_k": 64}, "glm_moe_dsa", MLA_CONFIG | {"index_head_dim": 128, "index_n_heads": 8,
                                                                                    "index_topk": 64}),
    "multi-token-prediction": ("glm4moe", HEAD_64 | {"block_count": 5, "nextn_predict_layers": 1, "expert_count": 4}, "glm4_moe",
                               {"head_dim": 64, "num_nextn_predict_layers": 1, "n_routed_experts": 4}),
    "jamba": ("jamba", {"attention.head_count_kv": [0, 2, 0, 2], "ssm.conv_kernel": 4, "ssm.state_size": 16, "ssm.inner_size": 512,
              "ssm.time_step_rank": 16}, "jamba", {"attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_conv": 4,
                                                   "mamba_d_state": 16, "mamba_expand": 2}),
    "mamba2": ("mamba2", MAMBA_2 | {"attention.head_count": 0, "attention.head_count_kv": None, "feed_forward_length": 0}, "mamba2",
               {"num_heads": 8, "head_dim": 64, "state_size": 128, "n_groups": 2, "conv_kernel": 4, "expand": 2,
                "num_attention_heads": None, "num_key_value_heads": None, "intermediate_size": None}),
    "falcon-h1": ("falcon-h1", MAMBA_2 | HEAD_64, "falcon_h1", MAMBA_2_CONFIG | {"head_dim": 64}),
    "granite-hybrid": ("granitehybrid", MAMBA_2 | {"attention.head_count_kv": [0, 0, 0, 2]}, "granitemoehybrid",
                       MAMBA_2_CONFIG | {"layer_types": ["mamba"] * 3 + ["attention"]}),
    "nemotron-h": ("nemotron_h", MAMBA_2 | HEAD_64 | {"attention.head_count_kv": [0, 0, 2, 0], "feed_forward_length": [0, 512, 0, 512]},
                   "nemotron_h", MAMBA_2_CONFIG | {"head_dim": 64, "hybrid_override_pattern": "M-*-"}),
    "qwen3-next": ("qwen3next", DELTA | HEAD_64, "qwen3_next", DELTA_CONFIG | {"head_dim": 64}),
    "lfm2": ("lfm2", {"attention.head_count_kv": [0, 0, 2, 0], "shortconv.l_cache": 3}, "lfm2",
             {"conv_L_cache": 3, "layer_types": ["conv", "conv", "full_attention", "conv"]}),
    "kimi-linear": ("kimi-linear", MLA | {"attention.head_count_kv": [0, 0, 0, 1], "kda.head_dim": 32, "ssm.conv_kernel": 4},
                    "kimi_linear", MLA_CONFIG | {"linear_attn_config": {"full_attn_layers": [4], "num_heads": 8, "head_dim": 32,
                                                                        "short_conv_kernel_size": 4}}),
    "nas": ("deci", {"attention.head_count": [8, 0, 8, 8], "attention.head_count_kv": [2, 0, 1, 0]}, "mystery",
            {"block_configs": [{"attention": {"n_heads_in_group": 4}}, {"attention": {"no_op": True}},
                               {"attention": {"n_heads_in_group": 8}}, {"attention": {"replace_with_linear": True}}],
             "num_key_value_heads": None}),
}  # fmt: skip


def write(path: Path, architecture: str | None, keys: dict, tensors: tuple[str, ...] = ("token_embd.weight",),
          **options) -> Path:  # fmt: skip
    """A small real file: `keys` under the architecture's name, or as they stand when they have a dot in front."""
    writer = gguf.GGUFWriter(path, architecture or "none", **options)
    for key, value in keys.items():
        name = key[1:] if key.startswith(".") else f"{architecture}.{key}"
        kind = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string, list: writer.add_array}
        if value is not None:
            kind[type(value)](name, value)
    for name in tensors:
        writer.add_tensor(name, numpy.zeros((2, 4), numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(("architecture", "keys", "model_type", "fields"), MODELS.values(), ids=MODELS)
def test_a_file_says_what_the_config_of_the_same_model_says(architecture, keys, model_type, fields, tmp_path):
    path = write(tmp_path / "model.gguf", architecture, SHAPE | keys)
    config = {k: v for k, v in (CONFIG | {"model_type": model_type} | fields).items() if v is not None or k == "sliding_window"}
    there, wanted = load_spec(read_gguf(path)), load_spec(config)
    assert there.layers == wanted.layers
    assert (there.n_heads, there.hidden_size, there.max_position_embeddings) == (wanted.n_heads, 256, 8192)
    assert kv_growth(load_spec(read_gguf(path), mtp=True)) == kv_growth(load_spec(config, mtp=True))


def test_layers_of_the_four_numbers_that_matter(tmp_path):
    """By hand, without a config: 6 layers of Gemma 3, windows of 1,024, one full layer at the end."""
    path = write(tmp_path / "m.gguf", "gemma3", SHAPE | HEAD_64 | WINDOW | {"block_count": 6})
    layers = load_spec(read_gguf(path)).layers
    assert [layer.window for layer in layers] == [1024] * 5 + [None]
    assert {(layer.n_kv_heads, layer.k_dim, layer.v_dim) for layer in layers} == {(2, 64, 64)}


def test_transformers_reads_the_same_fields(tmp_path):
    """transformers has a reader of its own, for the plain fields of the architectures that it knows."""
    load = pytest.importorskip("transformers.modeling_gguf_pytorch_utils").load_gguf_checkpoint
    path = write(tmp_path / "m.gguf", "qwen3moe", SHAPE | HEAD_64 | {"expert_count": 4, "expert_used_count": 2})
    theirs, ours = load(str(path), return_tensors=False)["config"], read_gguf(path)
    same = CONFIG.keys() | {"model_type", "head_dim", "num_experts", "num_experts_per_tok", "tie_word_embeddings"}
    assert {name: theirs[name] for name in same} == {name: ours[name] for name in same}


def test_an_encoder_and_a_decoder(tmp_path):
    path = write(tmp_path / "m.gguf", "t5", SHAPE | HEAD_64 | {"decoder_block_count": 3, "attention.head_count_kv": None})
    layers = load_spec(read_gguf(path), encoder_tokens=30).layers
    assert [(layer.n_kv_heads, layer.k_dim, layer.v_dim, layer.cross_tokens) for layer in layers] == [(8, 64, 64, 30)] * 3
    with pytest.raises(SpecError, match="encoder_tokens"):
        load_spec(read_gguf(path))


def test_biases_are_those_of_the_tensors(tmp_path):
    plain = read_gguf(write(tmp_path / "plain.gguf", "llama", SHAPE))
    biased = read_gguf(write(tmp_path / "biased.gguf", "llama", SHAPE, ("blk.0.attn_q.bias", "blk.0.ffn_up.bias")))
    assert [plain[name] for name in ("attention_bias", "mlp_bias")] == [False, False]
    assert [biased[name] for name in ("attention_bias", "mlp_bias")] == [True, True]


def test_tied_is_a_model_whose_file_has_no_head(tmp_path):
    alone = write(tmp_path / "tied.gguf", "llama", SHAPE)
    headed = write(tmp_path / "untied.gguf", "llama", SHAPE, ("token_embd.weight", "output.weight"))
    part = write(tmp_path / "part.gguf", "llama", SHAPE | {".split.count": 2})
    assert (read_gguf(alone)["tie_word_embeddings"], read_gguf(headed)["tie_word_embeddings"]) == (True, False)
    assert "tie_word_embeddings" not in read_gguf(part)  # the head may be in the other file


def test_without_a_vocab_size_the_tokens_are_counted(tmp_path):
    path = write(tmp_path / "m.gguf", "llama", SHAPE | {"vocab_size": None, ".tokenizer.ggml.tokens": [f"t{i}" for i in range(77)]})
    assert read_gguf(path)["vocab_size"] == 77


@pytest.mark.parametrize(
    ("architecture", "keys", "names"),
    [
        ("mystery", WINDOW, r"mystery\.attention\.sliding_window_pattern is absent"),
        ("gemma4", WINDOW, r"gemma4\.attention\.sliding_window_pattern is absent"),
        ("mystery", {"ssm.state_size": 16}, "'mystery', whose recurrent state"),
        ("rwkv7", {"wkv.head_size": 64}, "'rwkv7', whose recurrent state"),
        ("jamba", {"attention.head_count_kv": [0, 2, 0, 2]}, r"jamba\.ssm\.inner_size is absent"),
        ("llama", {"attention.head_count": None}, r"llama\.attention\.head_count is absent"),
        ("llama", {"attention.head_count": "8"}, r"llama\.attention\.head_count is '8'"),
        ("llama", {"attention.head_count_kv": [2, 2]}, "has 2 entries and block_count is 4"),
        ("llama", {"attention.head_count": 7}, "is 256 and no multiple of 7"),
        ("llama", {"block_count": 0}, r"llama\.block_count is 0"),
        ("llama", {"block_count": 2**32 - 1}, r"block_count is 4294967295"),
        ("llama", {"nextn_predict_layers": 4}, r"block_count is 4, which makes 0 layers"),
        ("llama", {"block_count": None}, "no layers that keep KV"),
        ("llama", {"attention.head_count_kv": [2, -1, 2, 2]}, r"head_count_kv is -1"),
        ("gemma3", {}, r"gemma3\.attention\.sliding_window is absent"),
        ("t5encoder", {}, "'t5encoder' and has no layers that keep KV"),
        ("bert", {"attention.causal": False}, "'bert' and has no layers that keep KV"),
        ("gemma3", WINDOW | {"attention.sliding_window_pattern": 1.5}, "pattern is 1.5"),
        ("mamba2", MAMBA_2 | {"ssm.time_step_rank": 7}, r"ssm\.inner_size is 512 and no multiple of 7"),
    ],
)
def test_what_the_file_leaves_open_is_named(architecture, keys, names, tmp_path):
    path = write(tmp_path / "m.gguf", architecture, SHAPE | keys)
    with pytest.raises(SpecError, match=names) as error:
        read_gguf(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("order", gguf.GGUFEndian)
def test_the_head_holds_what_was_written_in_either_byte_order(order, tmp_path):
    keys = {".s": "文字", ".f": 0.5, ".b": True, ".list": [1, 2, 3], ".floats": [0.5, 1.5], ".flags": [True, False],
            ".words": ["a", "bc", ""], ".big": [2**30, -1]}  # fmt: skip
    head = read_head(write(tmp_path / "m.gguf", "llama", keys, ("a", "b.weight"), endianess=order))
    assert {key: head.values[key.removeprefix(".")] for key in keys} == keys | {".words": 3}
    assert head.tensors == {name: ((2, 4), 2 * 4 * 4) for name in ("a", "b.weight")}


def test_a_file_cut_off_anywhere_says_so(tmp_path):
    whole = write(tmp_path / "m.gguf", "llama", SHAPE | {".tokenizer.ggml.tokens": ["a", "b"]}).read_bytes()
    part = tmp_path / "part.gguf"
    for n in range(0, len(whole) - 1, 3):
        part.write_bytes(whole[:n])
        with pytest.raises(SpecError, match=r"cut off|no GGUF file"):
            read_head(part)


def test_without_the_package_the_error_says_what_to_install(tmp_path, monkeypatch):
    path = write(tmp_path / "m.gguf", "llama", SHAPE)
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(SpecError, match="pip install gguf"):
        read_gguf(path)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 600), value=st.integers(0, 255))
def test_a_damaged_file_never_ends_in_another_error(at, value, tmp_path):
    path = tmp_path / "m.gguf"
    if not path.exists():
        write(path, "gemma3", SHAPE | HEAD_64 | WINDOW)
    damaged = bytearray(path.read_bytes())
    damaged[at % len(damaged)] = value
    (tmp_path / "damaged.gguf").write_bytes(damaged)
    try:
        read_gguf(tmp_path / "damaged.gguf")
    except SpecError as error:
        assert "damaged.gguf" in str(error)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no GGUF file"),
        (b"{}", "no GGUF file"),
        (b"PK\x03\x04" + bytes(100), "no GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "unknown version"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**60), "cut off or damaged"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 0), "general.architecture is None"),
        (b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"k", 9, 0, 2**62), "cut off or damaged"),
        (b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"k", 9, 9, 1), "cut off or damaged"),
    ],
)  # fmt: skip
def test_what_is_no_gguf_file_says_so(content, says, tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(SpecError, match=says):
        read_gguf(path)


def test_a_file_that_is_not_there_says_so(tmp_path):
    with pytest.raises(SpecError, match=r"none\.gguf cannot be read"):
        read_gguf(tmp_path / "none.gguf")
    with pytest.raises(SpecError, match="cannot be read"):
        read_gguf(tmp_path)


def write_quantised(path: Path, keys: dict, tensors: dict) -> Path:
    """tensors: by name the shape, or the shape and a quantisation of 32 or 256 values to a block, whose bytes are zeros."""
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in (SHAPE | keys).items():
        if value is not None:
            (writer.add_uint16 if key == ".split.count" else writer.add_uint32)(key[1:] if key[0] == "." else f"llama.{key}", value)
    for name, (shape, kind) in tensors.items():
        if kind is None:
            writer.add_tensor(name, numpy.zeros(shape, numpy.float32))
            continue
        values, size = gguf.GGML_QUANT_SIZES[kind]
        stored = (*shape[:-1], shape[-1] // values * size)
        writer.add_tensor(name, numpy.zeros(stored, numpy.uint8), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


Q4_0, Q6_K = gguf.GGMLQuantizationType.Q4_0, gguf.GGMLQuantizationType.Q6_K
TENSORS = {"token_embd.weight": ((120, 256), Q6_K), "output_norm.weight": ((256,), None),
           "blk.0.attn_q.weight": ((256, 256), Q4_0), "blk.1.attn_q.weight": ((256, 256), Q4_0),
           "blk.0.ffn_up_exps.weight": ((8, 512, 256), Q4_0)}  # fmt: skip
# by hand: Q6_K stores 256 values in 210 bytes, Q4_0 stores 32 in 18
STORED = 120 * 210 + 256 * 4 + 2 * (256 * 256 // 32 * 18) + 8 * (512 * 256 // 32 * 18)
PARAMS = 120 * 256 + 256 + 2 * 256 * 256 + 8 * 512 * 256


def test_the_weights_of_a_file_are_its_tensors(tmp_path):
    spec = load_spec(write_quantised(tmp_path / "m.gguf", {"expert_count": 8, "expert_used_count": 2}, TENSORS))
    assert (spec.weight_bytes("stored"), spec.n_params) == (STORED, PARAMS)
    assert PARAMS - spec.n_active_params == 6 * 512 * 256, "6 of 8 experts rest"
    assert {(w.name, w.count) for w in spec.weights if "attn" in w.name} == {("attn_q.weight", 2)}


def test_a_json_does_not_pass_for_the_tensors_of_a_file():
    """Neither a negative number of bytes nor weights of its own."""
    plain = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
             "intermediate_size": 128, "vocab_size": 100, "dtype": "bfloat16"}  # fmt: skip
    spec = load_spec(plain | {"file_tensors": {"nbytes": -5, "weights": []}})
    assert spec.stored_nbytes is None
    assert spec.weight_bytes("stored") == 2 * load_spec(plain).n_params > 0


def test_a_file_can_be_budgeted(tmp_path, capsys, monkeypatch):
    from kvlib.cli import main

    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    path = str(write_quantised(tmp_path / "m.gguf", {"expert_count": 8, "expert_used_count": 2}, TENSORS))
    for command in ("budget", "fit", "compare"):
        assert main([command, path, "--gpu", "t4-16gb", "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer.get("weights", answer.get("models", [{}])[0].get("weights")) == STORED
    main(["budget", path])
    assert "gguf, as stored in the file" in capsys.readouterr().out


def test_of_a_split_file_only_the_first_was_seen(tmp_path, capsys, monkeypatch):
    from kvlib.cli import main

    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    path = str(write_quantised(tmp_path / "m.gguf", {".split.count": 3}, TENSORS))
    assert main(["budget", path]) == 2
    said = capsys.readouterr().err
    assert "only the first file is read" in said and "--weight-gb" in said and "--weight-dtype" in said
    assert main(["budget", path, "--weight-dtype", "bf16", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["weights"] == 2 * answer["n_params"] != STORED


def test_without_any_word_of_the_vocabulary_the_embedding_says_it(tmp_path):
    path = write_quantised(tmp_path / "m.gguf", {"vocab_size": None}, TENSORS)
    assert read_gguf(path)["vocab_size"] == 120


@pytest.mark.parametrize(("architecture", "noted"), [("llama", True), ("starcoder2", True), ("qwen3", False)])
def test_a_window_that_the_file_would_not_say_is_noted(architecture, noted, tmp_path):
    spec = load_spec(write(tmp_path / "m.gguf", architecture, SHAPE | HEAD_64))
    assert any("sliding windows" in note for note in spec.notes) == noted
