"""The rows: read in transformers 5.24, `configuration_*.py` and `modeling_*.py` of each type."""

from dataclasses import replace

from kvlib.layouts import extras, mixers
from kvlib.layouts.facts import TIED, Experts, Layout

BIASED = {"qkv_bias": True, "o_bias": True, "mlp_bias": True, "norm_bias": True}
"""The older style: a bias everywhere."""
PLAIN = {"qkv_bias": False, "o_bias": False}
"""No bias in attention, whatever the config says."""

LLAMA = Layout(mlp_bias=("mlp_bias", False))
MISTRAL = Layout(**PLAIN)
QWEN3 = Layout(qk_norm="head")
GEMMA = Layout(tied=TIED)
OLMO2 = Layout(qk_norm="full")
GRANITE_MOE = Layout(experts=Experts(width="intermediate_size"))
GPT2 = Layout(tied=TIED, positions=("max_position_embeddings", 0), gated=False,
              mlp_width=extras.times_hidden("n_inner", "intermediate_size"), **BIASED)  # fmt: skip
GPT_J = Layout(gated=False, norms=1, head_bias=True, mlp_width=extras.times_hidden("n_inner"), mlp_bias=True,
               norm_bias=True, **PLAIN)  # fmt: skip
DEEPSEEK = Experts("first dense", shared=True)
DEEPSEEK_V3 = Layout(experts=DEEPSEEK)
GLM4_MOE = Layout(qk_norm="head", qk_norm_when=("use_qk_norm", False), o_bias=False, experts=DEEPSEEK)
QWEN_SHARED = Experts("step", shared_width="shared_expert_intermediate_size", shared_gate=True)
QWEN3_NEXT = Layout(qk_norm="head", q_gate="query", mixer=mixers.gated_delta_net, experts=QWEN_SHARED)
MINIMAX = Layout(experts=Experts(width="intermediate_size"), mixer=mixers.lightning, **PLAIN)
EXAONE4 = Layout(qk_norm="head", **PLAIN)

LAYOUTS = {
    # one gate, two norms, no biases of their own
    "llama": LLAMA, "exaone": LLAMA, "internlm3": LLAMA, "iquestcoder": LLAMA, "granite": LLAMA, "helium": replace(LLAMA, o_bias=False),
    "cwm": replace(LLAMA, **PLAIN), "arcee": replace(LLAMA, gated=False), "seed_oss": replace(LLAMA, o_bias=("attention_out_bias", False), qkv_bias=("attention_bias", True)),
    "smollm3": replace(LLAMA, tied=TIED), "olmo": Layout(norms=0, final_norm=False), "granite_swa": replace(LLAMA, tied=TIED, sinks=True),
    "mistral": MISTRAL, "ministral": MISTRAL, "ministral3": MISTRAL, "phi3": MISTRAL,
    "qwen2": Layout(qkv_bias=True, o_bias=False), "qwen3": QWEN3, "hunyuan_v1_dense": QWEN3,
    "gemma": GEMMA, "gemma2": replace(GEMMA, norms=4), "gemma3_text": replace(GEMMA, norms=4, qk_norm="head"), "vaultgemma": GEMMA,
    "gemma3n_text": replace(GEMMA, norms=4, qk_norm="head", extra=(extras.per_layer_inputs, extras.alternating_updates)),
    "gemma4_text": replace(GEMMA, norms=extras.norms_around_experts, qk_norm="head", key_is_value=("attention_k_eq_v", False),
                           extra=(extras.per_layer_inputs, extras.experts_beside, extras.double_width)),
    "glm": Layout(qkv_bias=("attention_bias", True), o_bias=False), "glm4": Layout(qkv_bias=("attention_bias", True), o_bias=False, norms=4),
    "cohere": Layout(tied=TIED, norms=1, qk_norm="full", qk_norm_when=("use_qk_norm", False)), "cohere2": Layout(tied=TIED, norms=1),
    "olmo2": OLMO2, "olmo3": OLMO2, "exaone4": EXAONE4, "nanochat": Layout(gated=False, norms=0, final_norm=False),
    "ernie4_5": Layout(tied=TIED, qkv_bias=("use_bias", False), o_bias=("use_bias", False), mlp_bias=("use_bias", False)),
    "apertus": Layout(gated=False, qk_norm="head", extra=(extras.learned_activation,)),
    "bitnet": Layout(extra=(extras.sub_norms,)), "diffllama": Layout(extra=(extras.differential,)), "hyperclovax": replace(LLAMA, norms=extras.post_norms),
    "jais2": Layout(gated=False, qkv_bias=("attention_bias", True), o_bias=("attention_bias", True), mlp_bias=("mlp_bias", True), norm_bias=True),
    # older decoders
    "gpt2": GPT2, "gpt-sw3": GPT2, "gpt_bigcode": GPT2, "gpt_neo": replace(GPT2, qkv_bias=False),
    "openai-gpt": replace(GPT2, final_norm=False, mlp_width=extras.times_hidden()), "biogpt": Layout(tied=TIED, gated=False, positions=("max_position_embeddings", 2), **BIASED),
    "xglm": Layout(tied=TIED, gated=False, mlp_width="ffn_dim", **BIASED), "ctrl": Layout(tied=TIED, gated=False, mlp_width="dff", head_bias=True, **BIASED),
    "gpt_neox_japanese": Layout(tied=TIED, gated=False, mlp_width=extras.multiple_of_hidden, norm_bias=True, extra=(extras.one_output_bias,), **PLAIN),
    "qwen2_vl_text": Layout(qkv_bias=True, o_bias=False), "qwen2_5_vl_text": Layout(qkv_bias=True, o_bias=False), "qwen3_vl_text": QWEN3,
    "qwen3_vl_moe_text": Layout(qk_norm="head", experts=Experts("step")),
    "gptj": GPT_J, "codegen": GPT_J, "gpt_neox": Layout(gated=False, qkv_bias=("attention_bias", True), o_bias=("attention_bias", True), mlp_bias=True, norm_bias=True),
    "opt": Layout(tied=TIED, positions=("max_position_embeddings", 2), embedding_width="word_embed_proj_dim", gated=False, mlp_width="ffn_dim",
                  norms=extras.affine_norms, final_norm=extras.norm_at_the_end, qkv_bias=("enable_bias", True), o_bias=("enable_bias", True), mlp_bias=("enable_bias", True), norm_bias=True),
    "bloom": Layout(tied=TIED, embedding_norm=True, gated=False, mlp_width=extras.times_hidden(), **BIASED),
    "falcon": Layout(tied=TIED, gated=False, norms=extras.parallel_norms, norm_bias=True, qkv_bias=("bias", False), o_bias=("bias", False),
                     mlp_bias=("bias", False), mlp_width=extras.times_hidden("ffn_hidden_size")),
    "mpt": Layout(tied=TIED, gated=False, mlp_width=extras.times_hidden(), **PLAIN),
    "starcoder2": Layout(tied=TIED, gated=False, qkv_bias=("use_bias", True), o_bias=("use_bias", True), mlp_bias=("use_bias", True), norm_bias=True),
    "stablelm": Layout(norms=extras.one_norm_if_parallel, norm_bias=True, qkv_bias=("use_qkv_bias", False), o_bias=False, qk_norm="full", qk_norm_when=("qk_layernorm", False)),
    "phi": Layout(gated=False, norms=1, head_bias=True, qk_norm="head", qk_norm_when=("qk_layernorm", False), qk_norm_bias=True, **BIASED),
    "persimmon": Layout(gated=False, qk_norm="head", qk_norm_when=("qk_layernorm", True), qk_norm_bias=True, **BIASED),
    "nemotron": Layout(gated=False, norm_bias=True, mlp_bias=("mlp_bias", False)),
    # mixtures of experts
    "mixtral": Layout(experts=Experts(width="intermediate_size"), **PLAIN), "granitemoe": GRANITE_MOE,
    "granitemoeshared": Layout(experts=Experts(width="intermediate_size", shared_width="shared_intermediate_size")),
    "gpt_oss": Layout(qkv_bias=("attention_bias", True), o_bias=("attention_bias", True), sinks=True, experts=Experts(width="intermediate_size", router_bias=True, bias=True)),
    "deepseek_v2": replace(DEEPSEEK_V3, mlp_bias=("mlp_bias", False)), "deepseek_v3": DEEPSEEK_V3, "deepseek_v32": replace(DEEPSEEK_V3, indexer=True), "sarvam_mla": DEEPSEEK_V3, "kimi_k2": DEEPSEEK_V3,
    "glm4_moe": GLM4_MOE, "sarvam_moe": GLM4_MOE, "dots1": Layout(qk_norm="head", experts=DEEPSEEK),
    "glm4_moe_lite": DEEPSEEK_V3, "glm_moe_dsa": replace(DEEPSEEK_V3, indexer=True), "youtu": Layout(tied=TIED), "minicpm3": replace(LLAMA, tied=TIED),
    "qwen2_moe": Layout(qkv_bias=("qkv_bias", True), o_bias=False, experts=QWEN_SHARED),
    "qwen3_moe": Layout(qk_norm="head", experts=Experts("step")), "qwen3_next": QWEN3_NEXT,
    "qwen3_5_moe_text": QWEN3_NEXT, "qwen3_5_text": replace(QWEN3_NEXT, experts=None),
    "olmoe": Layout(qk_norm="full", experts=Experts(width="intermediate_size")), "flex_olmo": Layout(qk_norm="full", experts=Experts(width="intermediate_size")),
    "phimoe": Layout(norm_bias=True, head_bias=("lm_head_bias", False), experts=Experts(width="intermediate_size")),
    "minimax_m2": Layout(qk_norm="full", experts=Experts(width="intermediate_size"), **PLAIN),
    "minimax": MINIMAX, "minimax_text_01": MINIMAX, "minimax_m1": MINIMAX,
    "hunyuan": Layout(qk_norm="head", qk_norm_when=("use_qk_norm", False), experts=Experts(width="intermediate_size", shared=True)),
    "mimo_v2_flash": Layout(o_bias=False, sinks_if_sliding=True, experts=Experts("first dense")),
    "kolibri1": Layout(norms=4, qk_norm="head", experts=Experts(shared_width="shared_expert_intermediate_size"), **PLAIN),
    "lara_mini": Layout(tied=TIED, qk_norm="head", mixer=mixers.gated_delta_net, experts=Experts(shared_width="shared_expert_intermediate_size")),
    "granitemoe_swa": replace(GRANITE_MOE, sinks=True, experts=Experts(width="intermediate_size", shared_width="shared_intermediate_size")),
    "llama4_text": Layout(mlp_width="intermediate_size_mlp", experts=Experts("interleaved", width="intermediate_size", shared_width="intermediate_size")),
    "dbrx": Layout(experts=Experts(width="ffn_config.ffn_hidden_size"), **PLAIN),
    "hunyuan_v1_moe": Layout(qk_norm="head", experts=Experts(width="intermediate_size", shared_width="intermediate_size")),
    "ernie4_5_moe": Layout(tied=TIED, qkv_bias=("use_bias", False), o_bias=("use_bias", False), mlp_bias=("use_bias", False), head_bias=("use_bias", False),
                           experts=Experts("range", shared=True, correction=True)),
    "cohere2_moe": Layout(tied=TIED, norms=1, mlp_width="prefix_dense_intermediate_size", experts=Experts(width="intermediate_size", shared=True)),
    "exaone_moe": Layout(qk_norm="head", experts=DEEPSEEK, **PLAIN), "hy_v3": Layout(mlp_bias=("mlp_bias", False), qk_norm="head", experts=DEEPSEEK),
    "solar_open": Layout(o_bias=False, experts=Experts(shared=True)), "mellum": Layout(qk_norm="head", experts=Experts()),
    "flint": Layout(qk_norm="head", sinks=True, experts=replace(QWEN_SHARED, shared_gate=False)),
    "afmoe": Layout(qk_norm="head", q_gate="value", norms=4, experts=replace(DEEPSEEK, where="first dense", correction=True)),
    "aria_text": replace(LLAMA, experts=Experts(width="intermediate_size", shared=True)),
    # recurrent and hybrid
    "mamba": Layout(tied=TIED, one_block=True, norms=1, mixer=mixers.mamba), "falcon_mamba": Layout(tied=TIED, one_block=True, norms=1, mixer=mixers.mamba),
    "mamba2": Layout(one_block=True, norms=1, mixer=mixers.mamba2),
    "jamba": Layout(mixer=mixers.mamba_normed, experts=Experts("period", width="intermediate_size"), **PLAIN),
    "bamba": Layout(mlp_bias=("mlp_bias", False), mixer=mixers.mamba2), "falcon_h1": Layout(mlp_bias=("mlp_bias", False), mixer=mixers.mamba2),
    "granitemoehybrid": replace(GRANITE_MOE, mixer=mixers.mamba2, extra=(extras.shared_feed_forward,)),
    "nemotron_h": Layout(tied=False, gated=False, one_block=True, norms=1, mixer=mixers.mamba2, mlp_bias=("mlp_bias", False),
                         experts=Experts("named", shared_width="moe_shared_expert_intermediate_size", latent="moe_latent_size"), **PLAIN),
    "lfm2": Layout(tied=TIED, qk_norm="head", mixer=mixers.short_conv, mlp_width=extras.adjusted_width, **PLAIN),
    "lfm2_moe": Layout(tied=TIED, qk_norm="head", mixer=mixers.short_conv, experts=Experts("first dense"), **PLAIN),
    "recurrent_gemma": Layout(tied=TIED, mixer=mixers.rg_lru, mlp_bias=True, mlp_width=extras.half_width, o_bias=True),
    "kimi_linear": Layout(tied=False, mixer=mixers.kimi_delta, experts=DEEPSEEK), "olmo_hybrid": Layout(qk_norm="full", mixer=mixers.gated_delta_net),
}  # fmt: skip
