"""The rows: read in transformers 5.24, `configuration_*.py` and `modeling_*.py` of each type.

kimi_k2, hunyuan, minimax_text_01, minimax_m1 and nemotron-nas are not in transformers under these names; their rows were
read in the classes that come with the checkpoints, and published parameter counts are the test.
"""

from dataclasses import replace

from kvlib.layouts import encoders, extras, mixers, rules, stacks
from kvlib.layouts.facts import TIED, Experts, Layout


def _rows(names: str, layout: Layout) -> dict[str, Layout]:
    return dict.fromkeys(names.split(), layout)


def _biases(*names: str, field: str, absent: bool = False) -> dict[str, tuple[str, bool]]:
    """The biases `names`, all decided by one field of the config."""
    return {f"{name}_bias": (field, absent) for name in names}


PLAIN = {"qkv_bias": False, "o_bias": False}
"""No bias in attention, whatever the config says."""
BIASED = {"qkv_bias": True, "o_bias": True, "mlp_bias": True, "norm_bias": True}
"""The older style: a bias everywhere."""
MLP_BIAS = {"mlp_bias": ("mlp_bias", False)}
WIDE, SHARED = {"width": "intermediate_size"}, {"shared_width": "shared_expert_intermediate_size"}

LLAMA = Layout(**MLP_BIAS)
QWEN2 = Layout(qkv_bias=True, o_bias=False)
QWEN3 = Layout(qk_norm="head")
GEMMA2 = Layout(tied=TIED, norms=4)
GLM = Layout(o_bias=False, qkv_bias=("attention_bias", True))
OLMO2 = Layout(qk_norm="full")
COHERE = Layout(tied=TIED, norms=1)
MIXTRAL = Layout(experts=Experts(**WIDE), **PLAIN)
GRANITE_MOE = Layout(experts=Experts(**WIDE))
MINIMAX = replace(MIXTRAL, mixer=mixers.lightning)
DEEPSEEK = Experts("first dense", shared=True)
DEEPSEEK_V3, DEEPSEEK_V32 = Layout(experts=DEEPSEEK), Layout(experts=DEEPSEEK, indexer=True)
GLM4_MOE = Layout(qk_norm="head", qk_norm_when=("use_qk_norm", False), o_bias=False, experts=DEEPSEEK)
QWEN_MOE = Experts("step", shared_gate=True, **SHARED)
QWEN3_NEXT = Layout(qk_norm="head", q_gate="query", mixer=mixers.gated_delta_net, experts=QWEN_MOE)
ERNIE = Layout(tied=TIED, **_biases("qkv", "o", "mlp", field="use_bias"))
LFM2 = Layout(tied=TIED, qk_norm="head", mixer=mixers.short_conv, mlp_width=rules.adjusted_width, **PLAIN)
GPT2 = Layout(tied=TIED, positions=("max_position_embeddings", 0), gated=False,
              mlp_width=rules.times_hidden("n_inner", "intermediate_size"), **BIASED)  # fmt: skip
GPT_J = Layout(gated=False, norms=1, head_bias=True, mlp_width=rules.times_hidden("n_inner"), mlp_bias=True, norm_bias=True,
               **PLAIN)  # fmt: skip
FAIRSEQ = Layout(tied=TIED, gated=False, mlp_width="ffn_dim", **BIASED)

LAYOUTS: dict[str, Layout] = {
    # a gated feed-forward block, two norms
    **_rows("llama exaone internlm3 iquestcoder granite", LLAMA),
    **_rows("mistral ministral ministral3 phi3", Layout(**PLAIN)),
    **_rows("qwen2 qwen2_vl_text qwen2_5_vl_text", QWEN2),
    **_rows("qwen3 qwen3_vl_text hunyuan_v1_dense", QWEN3),
    "helium": replace(LLAMA, o_bias=False),
    "cwm": replace(LLAMA, **PLAIN),
    "seed_oss": replace(LLAMA, o_bias=("attention_out_bias", False), qkv_bias=("attention_bias", True)),
    "smollm3": replace(LLAMA, tied=TIED),
    "granite_swa": replace(LLAMA, tied=TIED, sinks=True),
    "ernie4_5": ERNIE,
    "glm": GLM,
    "bitnet": Layout(extra=(extras.sub_norms,)),
    "diffllama": Layout(extra=(extras.differential,)),
    "youtu": Layout(tied=TIED),
    "minicpm3": replace(LLAMA, tied=TIED),
    # more norms, or fewer
    **_rows("olmo2 olmo3", OLMO2),
    **_rows("gemma vaultgemma", Layout(tied=TIED)),
    "gemma2": GEMMA2,
    "gemma3_text": replace(GEMMA2, qk_norm="head"),
    "gemma3n_text": replace(GEMMA2, qk_norm="head", extra=(extras.per_layer_inputs, extras.alternating_updates)),
    "gemma4_text": Layout(tied=TIED, norms=rules.norms_around_experts, qk_norm="head", key_is_value=("attention_k_eq_v", False),
                          extra=(extras.per_layer_inputs, extras.experts_beside, extras.double_width)),
    "glm4": replace(GLM, norms=4),
    "hyperclovax": replace(LLAMA, norms=rules.post_norms),
    "exaone4": Layout(qk_norm="head", **PLAIN),
    "cohere": replace(COHERE, qk_norm="full", qk_norm_when=("use_qk_norm", False)),
    "cohere2": COHERE,
    "olmo": Layout(norms=0, final_norm=False),
    # no gate
    "arcee": replace(LLAMA, gated=False),
    "nanochat": Layout(gated=False, norms=0, final_norm=False),
    "apertus": Layout(gated=False, qk_norm="head", extra=(extras.learned_activation,)),
    "nemotron": Layout(gated=False, norm_bias=True, **MLP_BIAS),
    "jais2": Layout(gated=False, norm_bias=True, mlp_bias=("mlp_bias", True), **_biases("qkv", "o", field="attention_bias", absent=True)),
    "starcoder2": Layout(tied=TIED, gated=False, norm_bias=True, **_biases("qkv", "o", "mlp", field="use_bias", absent=True)),
    "phi": Layout(gated=False, norms=1, head_bias=True, qk_norm="head", qk_norm_when=("qk_layernorm", False), qk_norm_bias=True, **BIASED),
    "persimmon": Layout(gated=False, qk_norm="head", qk_norm_when=("qk_layernorm", True), qk_norm_bias=True, **BIASED),
    "stablelm": Layout(norms=rules.one_norm_if_parallel, norm_bias=True, qkv_bias=("use_qkv_bias", False), o_bias=False,
                       qk_norm="full", qk_norm_when=("qk_layernorm", False)),
    **_rows("gpt2 gpt-sw3 gpt_bigcode", GPT2),
    "gpt_neo": replace(GPT2, qkv_bias=False),
    "openai-gpt": replace(GPT2, final_norm=False, mlp_width=rules.times_hidden()),
    **_rows("gptj codegen", GPT_J),
    "gpt_neox": Layout(gated=False, mlp_bias=True, norm_bias=True, **_biases("qkv", "o", field="attention_bias", absent=True)),
    "gpt_neox_japanese": Layout(tied=TIED, gated=False, mlp_width=rules.multiple_of_hidden, norm_bias=True,
                                extra=(extras.one_output_bias,), **PLAIN),
    "opt": Layout(tied=TIED, positions=("max_position_embeddings", 2), embedding_width="word_embed_proj_dim", gated=False,
                  mlp_width="ffn_dim", norms=rules.affine_norms, final_norm=rules.norm_at_the_end, norm_bias=True,
                  **_biases("qkv", "o", "mlp", field="enable_bias", absent=True)),
    "xglm": FAIRSEQ,
    "biogpt": replace(FAIRSEQ, positions=("max_position_embeddings", 2), mlp_width="intermediate_size"),
    "ctrl": replace(FAIRSEQ, mlp_width="dff", head_bias=True),
    "bloom": Layout(tied=TIED, embedding_norm=True, gated=False, mlp_width=rules.times_hidden(), **BIASED),
    "falcon": Layout(tied=TIED, gated=False, norms=rules.parallel_norms, norm_bias=True,
                     mlp_width=rules.times_hidden("ffn_hidden_size"), **_biases("qkv", "o", "mlp", field="bias")),
    "mpt": Layout(tied=TIED, gated=False, mlp_width=rules.times_hidden(), **PLAIN),
    # mixtures of experts
    "mixtral": MIXTRAL,
    "minimax_m2": replace(MIXTRAL, qk_norm="full"),
    "dbrx": Layout(experts=Experts(width="ffn_config.ffn_hidden_size"), **PLAIN),
    "gpt_oss": Layout(sinks=True, experts=Experts(router_bias=True, bias=True, **WIDE),
                      **_biases("qkv", "o", field="attention_bias", absent=True)),
    "phimoe": Layout(norm_bias=True, head_bias=("lm_head_bias", False), experts=Experts(**WIDE)),
    **_rows("olmoe flex_olmo", replace(OLMO2, experts=Experts(**WIDE))),
    "granitemoe": GRANITE_MOE,
    "granitemoeshared": Layout(experts=Experts(shared_width="shared_intermediate_size", **WIDE)),
    "granitemoe_swa": Layout(sinks=True, experts=Experts(shared_width="shared_intermediate_size", **WIDE)),
    "aria_text": replace(LLAMA, experts=Experts(shared=True, **WIDE)),
    "llama4_text": Layout(mlp_width="intermediate_size_mlp", experts=Experts("interleaved", shared_width="intermediate_size", **WIDE)),
    "cohere2_moe": replace(COHERE, mlp_width="prefix_dense_intermediate_size", experts=Experts(shared=True, **WIDE)),
    "ernie4_5_moe": replace(ERNIE, head_bias=("use_bias", False), experts=Experts("range", shared=True, correction=True)),
    "hunyuan_v1_moe": replace(QWEN3, experts=Experts(shared_width="intermediate_size", **WIDE)),
    "hunyuan": Layout(qk_norm="head", qk_norm_when=("use_qk_norm", False), experts=Experts(shared=True, **WIDE)),
    "qwen2_moe": Layout(qkv_bias=("qkv_bias", True), o_bias=False, experts=QWEN_MOE),
    **_rows("qwen3_moe qwen3_vl_moe_text", replace(QWEN3, experts=Experts("step"))),
    "flint": replace(QWEN3, sinks=True, experts=Experts("step", needs_list=True, **SHARED)),
    "mellum": replace(QWEN3, experts=Experts()),
    "kolibri1": Layout(norms=4, qk_norm="head", experts=Experts(**SHARED), **PLAIN),
    **_rows("deepseek_v3 glm4_moe_lite sarvam_mla kimi_k2", DEEPSEEK_V3),
    **_rows("deepseek_v32 glm_moe_dsa", DEEPSEEK_V32),
    "deepseek_v2": replace(DEEPSEEK_V3, **MLP_BIAS),
    "glm4_moe": GLM4_MOE,
    "sarvam_moe": replace(GLM4_MOE, qk_norm_when=("use_qk_norm", True)),
    "dots1": replace(QWEN3, experts=DEEPSEEK),
    "hy_v3": replace(QWEN3, experts=Experts("first dense", shared_width=rules.shared_or_dense), **MLP_BIAS),
    "exaone_moe": Layout(qk_norm="head", experts=DEEPSEEK, **PLAIN),
    "afmoe": Layout(qk_norm="head", q_gate="value", norms=4, experts=replace(DEEPSEEK, correction=True)),
    "solar_open": Layout(o_bias=False, experts=Experts(shared=True)),
    "mimo_v2_flash": Layout(o_bias=False, sinks_if_sliding=True, experts=Experts("first dense")),
    # recurrent states
    **_rows("mamba falcon_mamba", Layout(tied=TIED, one_block=True, norms=1, mixer=mixers.mamba)),
    "mamba2": Layout(one_block=True, norms=1, mixer=mixers.mamba2),
    "jamba": Layout(mixer=mixers.mamba_normed, experts=Experts("period", **WIDE), **PLAIN),
    "bamba": Layout(mixer=mixers.mamba2, **MLP_BIAS),
    "falcon_h1": Layout(mixer=mixers.mamba2_with_norm_if_said, **MLP_BIAS),
    "granitemoehybrid": replace(GRANITE_MOE, mixer=mixers.mamba2, extra=(extras.shared_feed_forward,)),
    "nemotron_h": Layout(tied=False, gated=False, one_block=True, norms=1, mixer=mixers.mamba2, **MLP_BIAS, **PLAIN,
                         experts=Experts("named", shared_width="moe_shared_expert_intermediate_size", latent="moe_latent_size")),
    **_rows("qwen3_next qwen3_5_moe_text", QWEN3_NEXT),
    "qwen3_5_text": replace(QWEN3_NEXT, experts=None),
    "lara_mini": replace(QWEN3, tied=TIED, mixer=mixers.gated_delta_net, experts=Experts(**SHARED)),
    "olmo_hybrid": replace(OLMO2, mixer=mixers.gated_delta_net),
    "kimi_linear": Layout(tied=False, mixer=mixers.kimi_delta, experts=DEEPSEEK),
    **_rows("minimax minimax_text_01 minimax_m1", MINIMAX),
    "lfm2": LFM2,
    "lfm2_moe": replace(LFM2, mlp_width="intermediate_size", experts=Experts("first dense")),
    "lfm3": Layout(tied=TIED, norms=rules.sandwich_norms, qk_norm="head", q_gate="head", q_gate_when=("use_attention_gate", True),
                   mixer=mixers.short_conv),
    "recurrent_gemma": Layout(tied=TIED, mixer=mixers.rg_lru, mlp_bias=True, mlp_width=rules.half_width, o_bias=True),
    # layers that only a rule of their own describes
    "zamba2": Layout(tied=TIED, norms=0, blocks=stacks.mamba2_with_shared_blocks),
    "nemotron-nas": Layout(norms=0, blocks=stacks.searched_blocks),
    **_rows("bart plbart mvp", Layout(tied=TIED, positions=("max_position_embeddings", 2), embedding_norm=True, final_norm=False,
                                  norms=0, norm_bias=True, blocks=encoders.bart)),
    "mbart": Layout(tied=TIED, positions=("max_position_embeddings", 2), embedding_norm=True, norms=0, norm_bias=True,
                    blocks=encoders.mbart),
    **_rows("pegasus blenderbot blenderbot-small", Layout(tied=TIED, positions=("max_position_embeddings", 0), norms=0,
                                                          norm_bias=True, blocks=encoders.pegasus)),
    "marian": Layout(tied=TIED, positions=("max_position_embeddings", 0), norms=0, norm_bias=True, final_norm=False,
                     blocks=encoders.marian),
    "whisper": Layout(tied=TIED, positions=("max_target_positions", 0), norms=0, norm_bias=True, blocks=encoders.whisper),
    **_rows("t5 mt5", Layout(tied=TIED, norms=0, blocks=encoders.t5)),
}  # fmt: skip
