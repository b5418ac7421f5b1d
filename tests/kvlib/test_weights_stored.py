"""Bytes of checkpoints as stored, against published files and against what the quantisers themselves write."""

import math

import pytest
import torch
from oracle import transformers_params
from sweep_probe import build, make_config
from transformers import FineGrainedFP8Config
from transformers.integrations.finegrained_fp8 import replace_with_fp8_linear

from kvlib import SpecError, load_spec
from kvlib.stored.packings import METHODS

AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": True}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False}
FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}


def group(weights: dict, activations: dict | None = None, form: str = "pack-quantized", ignore: tuple = ()) -> dict:
    groups = {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": activations}}
    return {"quant_method": "compressed-tensors", "format": form, "config_groups": groups, "ignore": list(ignore)}


def targets(*names: str) -> dict:
    """int4 for the modules that are named."""
    config = group({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128})
    return config | {"config_groups": {"group_0": config["config_groups"]["group_0"] | {"targets": list(names)}}}


FP8_ROWS = group({"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True},
                 {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True}, "float-quantized", ["lm_head"])  # fmt: skip

PUBLISHED = {
    "gpt-oss-20b": ("gpt-oss-20b", {}, 13_761_264_768),  # total_size of openai/gpt-oss-20b's index
    "gpt-oss-120b": ("gpt-oss-120b", {}, 65_248_815_744),  # total_size of openai/gpt-oss-120b's index
    "Llama-3.1-70B AWQ": ("llama-3.1-70b", {"quantization_config": AWQ}, 39_767_785_472),  # its index: total_size
    "Qwen3-32B-AWQ": ("qwen3-32b", {"quantization_config": AWQ}, 19_325_298_688),  # sum over the tensors of its four files
    # safetensors parameters of a Llama-3 70B in FP8-dynamic, as the Hub counts them by dtype
    "Llama-3-70B FP8 rows": ("llama-3.3-70b", {"quantization_config": FP8_ROWS}, 2 * 2_109_382_656 + 68_451_041_280),
}  # fmt: skip


@pytest.mark.parametrize(("preset", "changes", "nbytes"), PUBLISHED.values(), ids=PUBLISHED)
def test_stored_bytes_equal_the_published_checkpoint(preset, changes, nbytes):
    assert load_spec(preset, **changes).weight_bytes("stored") == nbytes


def test_stored_bytes_of_deepseek_v3_equal_its_checkpoint_without_the_layer_for_multi_token_prediction():
    """The Hub counts 3,918,786,560 values of bf16, 680,571,043,840 of fp8 and 41,555,600 of fp32 in its files.

    They also hold what the causal LM does not have: a 62nd layer like the last one, with an embedding, a head, a projection
    of two hidden states and four norms of its own; and each router's correction in fp32, no parameter in transformers.
    """
    h, vocab, experts, q_rank, kv_rank = 7168, 129280, 256, 1536, 512
    maps = [(q_rank, h), (128 * 192, q_rank), (kv_rank + 64, h), (128 * 256, kv_rank), (h, 128 * 128)]
    maps += [(2048, h), (2048, h), (h, 2048)] * (experts + 1)
    layer = sum(out * into + 4 * math.ceil(out / 128) * math.ceil(into / 128) for out, into in maps)
    layer += 2 * (experts * h + 2 * h + q_rank + kv_rank)  # router and norms in bf16
    layer += 2 * (2 * vocab * h + 2 * h * h + 3 * h)
    corrections = 4 * experts * (58 + 1)
    files = 2 * 3_918_786_560 + 680_571_043_840 + 4 * 41_555_600
    assert load_spec("deepseek-v3").weight_bytes("stored") + layer + corrections == files


WRITTEN = {
    # (config, out, in, the tensors that the package itself made for a linear map of that size: bytes per value, shape)
    "gptq": (GPTQ, 11008, 4096, [(4, 512, 11008), (4, 32, 1376), (2, 32, 11008), (4, 4096)]),
    "gptq 8 bits, one group": (GPTQ | {"bits": 8, "group_size": -1}, 256, 512, [(4, 128, 256), (4, 1, 64), (2, 1, 256), (4, 512)]),
    "gptq 3 bits": (GPTQ | {"bits": 3, "group_size": 64}, 512, 1024, [(4, 96, 512), (4, 16, 48), (2, 16, 512), (4, 1024)]),
    "nf4": ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 768, 512, [(1, 196608), (4, 6144), (4, 16)]),
    "nf4, double": ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}, 768, 512,
                    [(1, 196608), (1, 6144), (4, 16), (4, 24), (4, 256)]),
    "int8": ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 768, 512, [(1, 768, 512), (4, 768), (1,)]),
    "packed": (group({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}), 256, 512,
               [(4, 256, 64), (2, 256, 16), (8, 2)]),
    "packed, zero points": (group({"num_bits": 4, "strategy": "group", "group_size": 128, "symmetric": False}), 256, 512,
                            [(4, 256, 64), (2, 256, 4), (4, 32, 4), (8, 2)]),
    "packed, 8 bits": (group({"num_bits": 8, "strategy": "channel"}), 256, 512, [(4, 256, 128), (2, 256, 1), (8, 2)]),
    "fp8, static": (group({"num_bits": 8, "type": "float", "strategy": "tensor"}, {"dynamic": False}, "float-quantized"), 256, 512,
                    [(1, 256, 512), (2, 1), (2, 1)]),
    "int8 rows": (group({"num_bits": 8, "strategy": "channel"}, {"dynamic": True}, "int-quantized"), 256, 512,
                  [(1, 256, 512), (2, 256, 1)]),
    "fp8 blocks": (group({"num_bits": 8, "strategy": "block", "block_structure": [128, 128]}, {"dynamic": True}, "float-quantized"),
                   256, 512, [(1, 256, 512), (2, 2, 4)]),
    "nvfp4": (group({"num_bits": 4, "strategy": "tensor_group", "group_size": 16}, {"dynamic": "local"}, "nvfp4-pack-quantized"),
              256, 512, [(1, 256, 256), (1, 256, 32), (4, 1), (4, 1)]),
    "nvfp4, weights only": (group({"num_bits": 4, "strategy": "tensor_group", "group_size": 16}, None, "nvfp4-pack-quantized"),
                            256, 512, [(1, 256, 256), (1, 256, 32), (4, 1)]),
    "mxfp4": (group({"num_bits": 4, "strategy": "group", "group_size": 32}, None, "mxfp4-pack-quantized"), 256, 512,
              [(1, 256, 256), (1, 256, 16)]),
}  # fmt: skip


@pytest.mark.parametrize(("config", "out", "into", "tensors"), WRITTEN.values(), ids=WRITTEN)
def test_a_linear_map_takes_the_bytes_of_the_tensors_that_its_quantiser_wrote(config, out, into, tensors):
    """Shapes as auto_gptq 0.7.1, bitsandbytes 0.50.2 and compressed-tensors 0.20.1 made them on a CPU."""
    assert METHODS[config["quant_method"]](config).matrix(out, into) == sum(math.prod(t) for t in tensors)


SKIPPED = [["model.layers.1.mlp.gate_proj", "lm_head"], ["model.layers.0.self_attn", "model.layers.2.self_attn.q_proj"],
           ["model.layers.*.self_attn.k_proj", "model.norm", "model.embed_tokens"], ["q_proj", "down_proj"], []]  # fmt: skip


@pytest.mark.parametrize("blocks", [[128, 128], [16, 48], None])
@pytest.mark.parametrize("scheme", ["dynamic", "static"])
@pytest.mark.parametrize("skipped", SKIPPED, ids=map(str, SKIPPED))
def test_fp8_equals_the_modules_that_transformers_puts_in(skipped, blocks, scheme):
    config = make_config("qwen2", num_hidden_layers=3, hidden_size=96, intermediate_size=80, num_attention_heads=6,
                         num_key_value_heads=2, vocab_size=101)  # fmt: skip
    quantization = {"quant_method": "fp8", "weight_block_size": blocks, "activation_scheme": scheme,
                    "modules_to_not_convert": [*skipped, "lm_head"]}  # fmt: skip
    model = build(config)
    replace_with_fp8_linear(model, quantization["modules_to_not_convert"],
                            FineGrainedFP8Config(weight_block_size=blocks, activation_scheme=scheme))  # fmt: skip
    biases = {n for n, _ in model.named_parameters() if n.endswith(".bias")}  # made anew in fp32, stored in the model's dtype
    held = sum(p.numel() * (2 if n in biases else p.element_size()) for n, p in model.named_parameters())
    spec = load_spec(config.to_dict() | {"quantization_config": quantization, "dtype": "bfloat16"})
    assert spec.weight_bytes("stored") == held
    assert any(p.dtype == torch.float8_e4m3fn for p in model.parameters())


def test_without_a_quantization_config_stored_is_the_config_s_dtype():
    assert load_spec("llama-3-8b", torch_dtype="float32").weight_bytes("stored") == 4 * load_spec("llama-3-8b").n_params
    assert load_spec("qwen3-8b", torch_dtype="bfloat16").weight_bytes("stored") == 2 * transformers_params(
        {"model_type": "qwen3", **{k: getattr(make_config("qwen3"), k) for k in ("vocab_size",)}}
        | {"hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
           "intermediate_size": 12288, "tie_word_embeddings": False})  # fmt: skip


def test_without_either_nothing_is_guessed():
    config = make_config("llama").to_dict()
    for name in ("dtype", "torch_dtype"):
        config.pop(name, None)
    with pytest.raises(SpecError, match="torch_dtype.* is absent.*name a dtype"):
        load_spec(config).weight_bytes("stored")


@pytest.mark.parametrize(
    ("quantization", "message"),
    [
        ({"quant_method": "brand-new"}, "quant_method is 'brand-new'.*weight_bytes"),
        ({"bits": 4}, "quant_method is None"),
        ({"quant_method": ["x"]}, r"quant_method is \['x'\].*weight_bytes"),
        ({"quant_method": {"gptq": 4}}, "quant_method is {'gptq': 4}"),
        ({"quant_method": "gguf", "nbytes": -5}, "one .gguf file.*weight-gb"),
        ({"quant_method": "bitsandbytes"}, "load_in_8bit and load_in_4bit are both false.*weight-gb"),
        ({"load_in_4bit": False, "load_in_8bit": None}, "load_in_8bit and load_in_4bit are both false"),
        ({"load_in_4bit": True, "load_in_8bit": True}, "load_in_8bit and load_in_4bit are both true"),
        ({"load_in_4bit": True, "load_in_8bit": "false"}, "load_in_8bit is 'false'; expected true or false"),
        ({"load_in_4bit": True, "bnb_4bit_use_double_quant": "no"}, "bnb_4bit_use_double_quant is 'no'"),
        (GPTQ | {"bits": 99}, "bits is 99; kvlib knows 2, 3, 4, 8.*weight-gb"), (AWQ | {"bits": 5}, "bits is 5"),
        (GPTQ | {"lm_head": "no"}, "lm_head is 'no'"),
        (group([1]), r"weights is \[1\]; expected an object"), (group({"num_bits": 8}, "all"), "input_activations is 'all'"),
        (FP8 | {"modules_to_not_convert": ["proj"]}, "'proj'"),  # the end of every map's name, and the name of none
        (FP8 | {"modules_to_not_convert": ["re:.*up_proj"]}, "names gate_up_proj and only some of gate_proj, up_proj.*weight-gb"),
        (GPTQ | {"dynamic": {"-:.*v_proj": {}}}, "names qkv_proj and only some of q_proj, k_proj, v_proj"),
        (AWQ | {"version": "gemv"}, "version is 'gemv'"),
        (GPTQ | {"bits": "four"}, "bits is 'four'"),
        (GPTQ | {"group_size": 0}, "group_size is 0"),
        (FP8 | {"weight_block_size": 128}, "weight_block_size is 128"),
        (FP8 | {"weight_block_size": [128]}, "weight_block_size"),
        (FP8 | {"activation_scheme": "odd"}, "activation_scheme is 'odd'"),
        (FP8 | {"modules_to_not_convert": 3}, "modules_to_not_convert is 3"),
        (FP8 | {"modules_to_not_convert": [7]}, "modules_to_not_convert"),
        (FP8 | {"modules_to_not_convert": ["model.layers.0.flux_capacitor"]}, "flux_capacitor"),
        (FP8 | {"modules_to_not_convert": ["self_attn"]}, "'self_attn'"),  # the end of no map's name
        (FP8 | {"modules_to_not_convert": ["re:("]}, "not a regular expression"),
        ({"quant_method": "compressed-tensors"}, "config_groups has 0 groups"),
        ({"quant_method": "compressed-tensors", "config_groups": [1]}, "config_groups is"),
        (group({"num_bits": 8, "strategy": "group", "group_size": None}), "group_size is None"),
        (group({"num_bits": 4, "type": "int"}, form="float-quantized"), "num_bits = 4"),
        (group({"num_bits": 4, "strategy": "odd"}), "strategy is 'odd'"),
        (group({"num_bits": 8}, form="marlin-24"), "format is 'marlin-24'.*weight-gb"),
        (GPTQ | {"checkpoint_format": "marlin"}, "checkpoint_format is 'marlin'.*weight-gb"),
        (GPTQ | {"is_marlin_format": True}, "is_marlin_format is True.*weight-gb"),
        (GPTQ | {"dynamic": {r".*\.down_proj": {"bits": 8}}}, r"dynamic gives '.*down_proj' options.*weight-gb"),
        (GPTQ | {"dynamic": ["-:q_proj"]}, "dynamic is "),
        (GPTQ | {"dynamic": {"-:.*flux.*": {}}}, "not quantised names 're:.*flux.*'"),
        (GPTQ | {"modules_in_block_to_quantize": 3}, "modules_in_block_to_quantize is 3"),
        (GPTQ | {"modules_in_block_to_quantize": [["mlp.flux"]]}, "are quantised names 'mlp.flux'.*weight-gb"),
        (GPTQ | {"modules_in_block_to_quantize": ["model.layers.0.mlp.up_proj", "model.layers.1.mlp.up_proj"],
                 "modules_to_not_convert": ["model.layers.1.mlp.up_proj"]}, "of mlp.up_proj quantization_config packs"),
        (targets("Embedding"), "target 'Embedding'.*weight-gb"), (targets("re:("), "not a regular expression"),
        (targets("Linear") | {"sparsity_config": {"format": "sparse-24-bitmask"}}, "sparsity_config.*weight-gb"),
    ],
    ids=str,
)
def test_what_is_not_known_is_refused_by_name(quantization, message):
    spec = load_spec("llama-3-8b", quantization_config=quantization)
    with pytest.raises(SpecError, match=message):
        spec.weight_bytes("stored")


QUERIES = 32 * 4096 * 4096  # of Llama-3-8B, in 32 layers
PACKED_QUERIES = 32 * METHODS["gptq"](GPTQ).matrix(4096, 4096)


@pytest.mark.parametrize("changes", [{"dynamic": {r"-:.*\.q_proj": {}}}, {"dynamic": {"-:model.layers.[0-9]+.self_attn.q_proj": {}}},
                                     {"modules_to_not_convert": ["q_proj"]}])  # fmt: skip
def test_modules_that_dynamic_skips_stay_plain(changes):
    whole = load_spec("llama-3-8b", quantization_config=GPTQ).weight_bytes("stored")
    spec = load_spec("llama-3-8b", quantization_config=GPTQ | changes)
    assert spec.weight_bytes("stored") - whole == 2 * QUERIES - PACKED_QUERIES


@pytest.mark.parametrize("names", [["self_attn.q_proj"], [["self_attn.q_proj"]]])
def test_only_the_modules_of_a_block_that_are_named_are_packed(names):
    spec = load_spec("llama-3-8b", quantization_config=GPTQ | {"modules_in_block_to_quantize": names})
    assert spec.weight_bytes("stored") == 2 * (spec.n_params - QUERIES) + PACKED_QUERIES
    everything = [["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"], ["self_attn.o_proj"], ["mlp.up_proj", "mlp.gate_proj"],
                  ["mlp.down_proj"]]  # fmt: skip
    for head in ({}, {"lm_head": True}):
        named = load_spec("llama-3-8b", quantization_config=GPTQ | head | {"modules_in_block_to_quantize": everything})
        plain = load_spec("llama-3-8b", quantization_config=GPTQ | head)
        assert named.weight_bytes("stored") == plain.weight_bytes("stored")


def test_only_the_targets_of_a_group_are_packed():
    spec = load_spec("llama-3-8b", quantization_config=targets(r"re:.*self_attn\.q_proj"))
    packed = 32 * METHODS["compressed-tensors"](targets("Linear")).matrix(4096, 4096)
    assert spec.weight_bytes("stored") == 2 * (spec.n_params - QUERIES) + packed
    one = load_spec("llama-3-8b", quantization_config=targets("model.layers.7.self_attn.q_proj"))
    assert one.weight_bytes("stored") == 2 * (spec.n_params - QUERIES // 32) + packed // 32
    dense = targets("Linear") | {"sparsity_config": {"format": "dense"}, "transform_config": {}}
    assert load_spec("llama-3-8b", quantization_config=dense).weight_bytes("stored") == load_spec(
        "llama-3-8b", quantization_config=targets("Linear")).weight_bytes("stored")  # fmt: skip


@pytest.mark.parametrize("names", [["up_proj"], ["mlp.up_proj"], ["*.up_proj"], [r"re:.*\.up_proj"]])
def test_the_end_of_a_fused_map_s_name_is_not_that_map(names):
    """up_proj, of 32 · 14,336 · 4,096 values, stays plain; gate_proj, which gate_up_proj also holds, does not."""
    plain = load_spec("llama-3-8b", quantization_config=FP8 | {"modules_to_not_convert": names})
    packed = load_spec("llama-3-8b", quantization_config=FP8)
    n = 32 * 14336 * 4096
    assert plain.weight_bytes("stored") - packed.weight_bytes("stored") == n - 4 * n // 128**2
    fused = load_spec("llama-3-8b", quantization_config=FP8 | {"modules_to_not_convert": ["gate_up_proj"]})
    assert fused.weight_bytes("stored") - packed.weight_bytes("stored") == 2 * (n - 4 * n // 128**2)


def test_a_map_in_two_parts_is_left_alone_when_both_are_named():
    """Gated DeltaNet's qkv and z are one tensor here; a list that names z alone says nothing about it as a whole."""
    def listed(*names: str) -> int:
        return load_spec("qwen3-next-80b-a3b", quantization_config=FP8 | {"modules_to_not_convert": list(names)}).weight_bytes("stored")

    assert listed("in_proj_qkv", "in_proj_z") == listed("in_proj_qkvz") > listed()
    with pytest.raises(SpecError, match="names in_proj_z and not all of in_proj_qkv, in_proj_z.*weight-gb"):
        listed("in_proj_z")


@pytest.mark.parametrize("quantization", [AWQ, GPTQ])
def test_a_quantised_checkpoint_whose_dtype_is_absent_is_not_guessed(quantization):
    config = make_config("llama").to_dict() | {"quantization_config": quantization}
    for name in ("dtype", "torch_dtype"):
        config.pop(name, None)
    with pytest.raises(SpecError, match="torch_dtype.* is absent"):
        load_spec(config).weight_bytes("stored")
    half = load_spec(config | {"dtype": "float16"}).weight_bytes("stored")
    assert 0 < half < load_spec(config | {"dtype": "float32"}).weight_bytes("stored")


def test_a_list_of_names_that_means_only_some_layers_leaves_those_plain():
    """Two of 32 layers keep one map of 14,336 × 4,096 in bf16 instead of fp8 with a scale per block."""
    names = [f"model.layers.{i}.mlp.up_proj" for i in (0, 31)]
    plain = load_spec("llama-3-8b", quantization_config=FP8 | {"modules_to_not_convert": names})
    packed = load_spec("llama-3-8b", quantization_config=FP8)
    n = 14336 * 4096
    assert plain.weight_bytes("stored") - packed.weight_bytes("stored") == 2 * (2 * n - n - 4 * n // 128**2)


LISTS = {
    # lists as published checkpoints carry them
    "Qwen3-30B-A3B-FP8": ("qwen3-30b-a3b", FP8, "modules_to_not_convert", ["lm_head", *(
        f"model.layers.{i}.{x}" for i in range(48) for x in ("input_layernorm", "mlp.gate", "post_attention_layernorm"))]),
    "gemma-3-27b nf4": ("gemma-3-27b", {"quant_method": "bitsandbytes", "load_in_4bit": True}, "llm_int8_skip_modules",
                        ["lm_head", "vision_tower", "multi_modal_projector"]),
    "Mixtral AWQ": ("mixtral-8x7b", AWQ, "modules_to_not_convert", ["gate"]),
}  # fmt: skip


@pytest.mark.parametrize(("preset", "quantization", "field", "names"), LISTS.values(), ids=LISTS)
def test_lists_that_only_name_what_is_never_packed_change_nothing(preset, quantization, field, names):
    listed = load_spec(preset, quantization_config=quantization | {field: names})
    assert listed.weight_bytes("stored") == load_spec(preset, quantization_config=quantization).weight_bytes("stored")


def test_kimi_k2_thinking_takes_the_594_gb_that_are_published():
    """int4 in groups of 32 for the routed experts, everything else in bf16."""
    ignore = ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", r"re:.*mlp\.(gate|up|gate_up|down)_proj.*"]
    int4 = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": True}
    spec = load_spec("kimi-k2", quantization_config=group(int4, ignore=ignore))
    assert round(spec.weight_bytes("stored") / 1e9) == 594


def test_a_list_that_names_every_router_changes_nothing_though_the_first_layers_have_none():
    routers = [f"model.layers.{i}.mlp.gate" for i in range(3, 61)]
    listed = load_spec("deepseek-v3", quantization_config=FP8 | {"modules_to_not_convert": routers})
    assert listed.weight_bytes("stored") == load_spec("deepseek-v3").weight_bytes("stored")


def test_experts_of_one_layer_cannot_be_told_from_the_list_alone():
    spec = load_spec("deepseek-v3", quantization_config=FP8 | {"modules_to_not_convert": ["model.layers.9.mlp.experts"]})
    with pytest.raises(SpecError, match=r"names experts.gate_proj in 1 of 61 layers.*weight_bytes"):
        spec.weight_bytes("stored")


def test_routers_embeddings_and_norms_are_never_packed():
    spec = load_spec("qwen3-30b-a3b", quantization_config=GPTQ)
    plain = sum(2 * w.n_params for w in spec.weights if w.part in ("embedding", "norm", "head") or "router" in w.name or "norm" in w.name)
    packed = sum(w.count * METHODS["gptq"](GPTQ).matrix(*w.shape) for w in spec.weights
                 if w.part in ("attention", "experts") and "norm" not in w.name)  # fmt: skip
    assert spec.weight_bytes("stored") == plain + packed
