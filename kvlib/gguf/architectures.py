"""What a GGUF leaves to llama.cpp's code, one row per `general.architecture`; an architecture without a row has no such facts.

Read in llama.cpp: src/llama-model.cpp (load_hparams), src/models/*.cpp (load_arch_hparams) and convert_hf_to_gguf.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Architecture:
    """Facts about one `general.architecture`.

    model_type: transformers' name of it. with_experts, with_sigmoid: its name where there are experts, and where a sigmoid
    picks them. experts: transformers' name of their number. widths: its names of the feed-forward widths, dense and expert.
    full_every: with a window or chunk and no pattern in the file, layer i is full when (i + 1) is a multiple of this; 0: none
    is; None: the file must say it. window, chunk: the size where the file has none. always: the file must have a window.
    state: what its recurrent layers keep, a key of `states.STATES`. kind: what a layer is if nothing says otherwise.
    interval: with no key for it, every so many layers one is full and the others are recurrent. without_kv: what a layer with
    0 KV heads is; mlp_layers: only feed-forward, if it has a feed-forward width. own_kv: with no key for it, so many layers
    keep KV and the rest share theirs. head_dim: transformers' name of the width. constants: further fields of its configs.
    """

    model_type: str
    with_experts: str | None = None
    with_sigmoid: str | None = None
    experts: str = "num_experts"
    widths: tuple[str, str] = ("intermediate_size", "moe_intermediate_size")
    full_every: int | None = None
    window: int | None = None
    chunk: int | None = None
    always: bool = False
    state: str | None = None
    kind: str = "full_attention"
    interval: int | None = None
    without_kv: str = "linear_attention"
    mlp_layers: bool = False
    own_kv: int | None = None
    head_dim: str = "head_dim"
    constants: Mapping = field(default_factory=dict)


_A, _LOCAL, _ROUTED = Architecture, {"experts": "num_local_experts"}, {"experts": "n_routed_experts"}
_NO_WINDOW = {"constants": {"window_unwritten": True}}  # the converter drops the window that the config may have

ARCHITECTURES = {
    # only the name differs
    "command-r": _A("cohere"), "ernie4_5-moe": _A("ernie4_5_moe"), "gptneox": _A("gpt_neox"), "phi2": _A("phi"),
    "hunyuan-dense": _A("hunyuan_v1_dense"), "hunyuan-moe": _A("hunyuan_v1_moe"), "qwen2vl": _A("qwen2_vl_text"),
    "qwen3vl": _A("qwen3_vl_text"), "qwen3vlmoe": _A("qwen3_vl_moe_text"), "qwen2moe": _A("qwen2_moe"),
    "qwen3moe": _A("qwen3_moe"), "llama": _A("llama", with_experts="mixtral", **_LOCAL, **_NO_WINDOW),
    "starcoder2": _A("starcoder2", **_NO_WINDOW),
    "granitemoe": _A("granitemoe", **_LOCAL), "minimax-m2": _A("minimax_m2", **_LOCAL), "phimoe": _A("phimoe", **_LOCAL),
    "glm4moe": _A("glm4_moe", **_ROUTED), "dots1": _A("dots1", **_ROUTED),
    "deepseek2": _A("deepseek_v2", with_sigmoid="deepseek_v3", **_ROUTED), "glm-dsa": _A("glm_moe_dsa", **_ROUTED),
    # the KV heads of the file count, not the flag that a config may have
    "falcon": _A("falcon", constants={"multi_query": False}), "starcoder": _A("gpt_bigcode", constants={"multi_query": False}),
    "t5": _A("t5", head_dim="d_kv", constants={"is_encoder_decoder": True}),
    # windows and chunks
    "gemma2": _A("gemma2", full_every=2, window=4096), "gemma3": _A("gemma3_text", full_every=6, always=True),
    "gemma3n": _A("gemma3n_text", full_every=5, own_kv=20, always=True), "gemma4": _A("gemma4_text", always=True),
    "cohere2": _A("cohere2", full_every=4, always=True), "afmoe": _A("afmoe", full_every=4), "olmo2": _A("olmo2", full_every=4), "exaone4": _A("exaone4", full_every=4),
    "gpt-oss": _A("gpt_oss", full_every=2, always=True, **_LOCAL), "phi3": _A("phi3", full_every=0),
    "llama4": _A("llama4_text", full_every=4, chunk=8192, widths=("intermediate_size_mlp", "intermediate_size"), **_LOCAL),
    # recurrent states
    "mamba": _A("mamba", state="mamba", kind="linear_attention"), "mamba2": _A("mamba2", state="mamba2", kind="linear_attention"),
    "jamba": _A("jamba", state="mamba"), "falcon-h1": _A("falcon_h1", state="mamba2", kind="hybrid"),
    "granitehybrid": _A("granitemoehybrid", state="mamba2", **_LOCAL),
    "nemotron_h": _A("nemotron_h", state="mamba2", mlp_layers=True),
    "nemotron_h_moe": _A("nemotron_h", state="mamba2", mlp_layers=True, **_ROUTED),
    "qwen3next": _A("qwen3_next", state="delta", interval=4), "qwen35": _A("qwen3_5_text", state="delta", interval=4),
    "qwen35moe": _A("qwen3_5_moe_text", state="delta", interval=4), "kimi-linear": _A("kimi_linear", state="kda"),
    "lfm2": _A("lfm2", state="conv"), "lfm2moe": _A("lfm2_moe", state="conv"), "deci": _A("nemotron-nas", without_kv="no_op"),
}  # fmt: skip

PLAIN = {
    "context_length": "max_position_embeddings", "embedding_length": "hidden_size",
    "attention.q_lora_rank": "q_lora_rank", "attention.kv_lora_rank": "kv_lora_rank",
    "attention.shared_kv_layers": "num_kv_shared_layers", "attention.indexer.head_count": "index_n_heads",
    "attention.indexer.key_length": "index_head_dim", "attention.indexer.top_k": "index_topk",
    "nextn_predict_layers": "num_nextn_predict_layers", "leading_dense_block_count": "first_k_dense_replace",
    "expert_used_count": "num_experts_per_tok", "expert_shared_count": "n_shared_experts",
    "interleave_moe_layer_step": "interleave_moe_layer_step",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
}  # fmt: skip
"""Keys, without the architecture in front, that have a field of the same meaning; where one is absent, so is the other."""

NOT_CAUSAL = ("t5encoder", "gemma-embedding", "dream", "llada", "llada-moe", "rnd1", "wavtokenizer-dec")
"""Encoders and diffusion models, where llama.cpp switches causal attention off without a key."""
