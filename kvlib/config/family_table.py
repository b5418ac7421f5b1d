"""The class facts of every model type that kvlib knows by name: a row each.

Read in transformers 5.24, `configuration_*.py` and `modeling_*.py` of each type, for the others in the code published with
the model; a test builds every class of transformers and holds its row to it.
"""

from kvlib.config.families import FEATURES, Family

KV, HEAD, WINDOW, LATENT = "num_key_value_heads", "head_dim", "sliding_window", "kv_lora_rank"
LONGEST, STATE_HEADS = "max_position_embeddings", "mamba_n_heads"
V_DIM, PATTERN = ("v_head_dim",), ("sliding_window_pattern",)
DECODER = tuple(name for name in FEATURES if "decoder" in name)


def _rows(names: str, family: Family) -> dict[str, Family]:
    return dict.fromkeys(names.split(), family)


def _windowed(own: tuple[str, ...], **facts: object) -> Family:
    return Family((*own, WINDOW), windows=True, **facts)


FAMILIES: dict[str, Family] = {
    # all layers full; what an absent field means is all that differs
    **_rows("""apertus arcee aria_text cohere diffllama flex_olmo granite granitemoe granitemoeshared hunyuan_v1_dense
        hunyuan_v1_moe hyperclovax jais2 llama nanochat nemotron olmo olmo2 olmoe phi gpt2 gptj gpt_neox gpt_neox_japanese
        codegen bloom opt persimmon biogpt xglm openai-gpt ctrl git xlm""", Family()),
    "mpt": Family(expands=True),  # it does not look at attn_config.kv_n_heads
    **_rows("falcon RefinedWebModel", Family(("multi_query",), expands="new_decoder_architecture")),
    "gpt_bigcode": Family(("multi_query",), ignored=(KV,)),
    **_rows("""bitnet emu3_text_model ernie4_5_moe exaone glm4_moe glm4v_text glm4v_moe_text stablelm""", Family((KV,))),
    **_rows("""ernie4_5 gemma glm glm4 helium hy_v3 internlm3 iquestcoder jetmoe minimax_m2 sarvam_moe seed_oss solar_open""",
            Family((KV, HEAD))),
    "dbrx": Family((KV,)),
    "RefinedWeb": Family((KV,), expands=True),
    "hunyuan": Family((KV,), ("use_cla",)),
    "openelm": Family(
        (HEAD,), ignored=("num_kv_heads", "num_query_heads"),
        renamed=(("num_kv_heads", f"{KV}_per_layer"), ("num_query_heads", "num_attention_heads_per_layer")),
    ),
    **_rows("nemotron-nas deci", Family(kind=None, windows=True)),
    "mllama_text_model": Family((KV,), kind=None),
    # latent attention
    **_rows("deepseek_v2 deepseek_v3 kimi_k2 glm4_moe_lite minicpm3 sarvam_mla youtu axk1", Family((LATENT,), V_DIM)),
    **_rows("deepseek_v32 glm_moe_dsa axk2", Family((LATENT,), V_DIM, kind="indexed_attention")),
    "hy_v4": Family((LATENT, "indexer_types"), V_DIM, kind="indexed_attention"),
    "longcat_flash": Family((LATENT,), V_DIM, per_layer=2, ignored=("num_hidden_layers",)),
    # windows and chunks
    **_rows("phi3 phi4mm doge", Family(windows=True)),
    **_rows("mixtral phimoe starcoder2 phi4_multimodal", Family((KV,), windows=True)),
    "ministral3": Family((KV, HEAD), windows=True),
    **_rows("mistral ministral", _windowed((KV,))),
    "moshi": _windowed(()),
    "cohere2": _windowed((), reads=PATTERN, full_every=4),
    "olmo3": _windowed((LONGEST,), full_every=4),
    "afmoe": _windowed((HEAD,), full_every=4),
    "cohere2_moe": _windowed((HEAD,), reads=PATTERN, full_every=4),
    **_rows("exaone4 exaone_moe", _windowed((KV, LONGEST), reads=PATTERN, full_every=4)),
    **_rows("gemma2 gpt_oss vaultgemma", _windowed((KV, HEAD), full_every=2)),
    "gemma3_text": _windowed((KV, HEAD), reads=PATTERN, full_every=6),
    "gemma3n_text": _windowed((KV, HEAD, "num_kv_shared_layers"), full_every=5),
    **_rows("gemma4_text gemma4_unified_text", _windowed((KV, HEAD, "global_head_dim", "attention_k_eq_v"), reads=("num_kv_shared_layers",), full_every=6)),
    "kolibri1": _windowed((KV, HEAD), full_every=5),
    "mimo_v2_flash": _windowed((KV, HEAD, "v_head_dim"), kind=None, sliding_kv_heads=2, window_beside_query=True),
    "gpt_neo": _windowed((), kind=None),
    **_rows("beam flint laguna mellum", _windowed((KV, HEAD), kind=None)),
    "modernbert-decoder": _windowed((), kind=None, full_at=0),
    "cwm": _windowed((KV, HEAD), full_every=4, full_at=0),
    "granite_swa": _windowed((KV,), full_every=4, full_at=0),
    "granitemoe_swa": _windowed((), full_every=4, full_at=0),
    "llama4_text": Family((KV, HEAD, "attention_chunk_size"), full_every=4),
    **_rows("qwen2 qwen2_vl_text qwen2_5_vl_text", Family((KV,), windows=True, window_switch=True, full_below=True)),
    "qwen2_moe": _windowed((KV, "layer_types"), window_switch=True),
    "qwen3": Family((KV, HEAD), windows=True, window_switch=True, full_below=True),
    "qwen3_moe": Family((KV,), windows=True, window_switch=True),
    "qwen3_vl_text": Family((KV, HEAD)),
    "qwen3_vl_moe_text": Family((KV,)),
    "smollm3": Family((KV, "layer_types"), windows=True, window_switch=True),
    "dots1": _windowed((KV,), full_below=True),
    # recurrent states
    **_rows("mamba falcon_mamba", Family(kind="recurrent", renamed=(("intermediate_size", "mamba_d_inner"),))),
    "mamba2": Family(
        (STATE_HEADS,), kind="recurrent", ignored=("num_heads", "head_dim"),
        renamed=(("num_heads", STATE_HEADS), ("head_dim", "mamba_d_head")),
    ),
    "bamba": Family((KV, STATE_HEADS), kind="recurrent"),
    "falcon_h1": Family((KV, STATE_HEADS), kind="hybrid"),
    "jamba": Family((KV,), kind=None),
    "granitemoehybrid": Family((STATE_HEADS,), kind=None),
    "nemotron_h": Family((KV, HEAD, STATE_HEADS), kind=None, state_dtype="fp32"),
    "zamba": Family((KV, HEAD), kind=None, ignored=("attn_layer_period", "attn_layer_offset", "n_mamba_heads")),
    "zamba2": Family((HEAD, STATE_HEADS), kind=None, ignored=("kv_channels", "num_query_groups")),
    **_rows("qwen3_next qwen3_5_text qwen3_5_moe_text", Family((KV, HEAD), kind=None)),
    "lara_mini": _windowed((KV, HEAD), kind=None),
    "olmo_hybrid": Family(kind=None),
    **_rows("kimi_linear bailing_hybrid", Family((LATENT,), V_DIM, kind=None, state_dtype="fp32")),
    "recurrent_gemma": _windowed((), kind=None, attention="sliding_attention"),
    **_rows("lfm2 lfm2_moe", Family((KV,), kind=None)),
    "lfm3": _windowed((KV, HEAD), kind=None),
    **_rows("minimax minimax_text_01 minimax_m1", Family((KV,), kind=None, state_heads=True)),
    # decoders with an encoder: cross-attention in every layer
    **_rows("""bart bigbird_pegasus blenderbot blenderbot-small marian mbart mvp m2m_100 pegasus plbart speech_to_text whisper""",
            Family(("decoder_layers", "decoder_attention_heads"), cross=True, ignored=(KV, HEAD))),
    "prophetnet": Family(("num_decoder_layers", "num_decoder_attention_heads"), cross=True, ignored=(KV, HEAD)),
    **_rows("t5 mt5 umt5 longt5 switch_transformers", Family((HEAD,), DECODER, cross=True, ignored=(KV, HEAD))),
    "trocr": Family(reads=DECODER),
    # models that read in both directions; the first may be run as decoders
    **_rows("""bert bert-generation big_bird camembert data2vec-text electra ernie megatron-bert rembert roberta
        roberta-prelayernorm roc_bert roformer xlm-roberta xlm-roberta-xl xmod
        albert clip_text_model convbert deberta deberta-v2 distilbert esm longformer modernbert mpnet nomic_bert
        siglip_text_model vit xlnet Dream llada rnd1""", Family(encoder=True)),
}  # fmt: skip
