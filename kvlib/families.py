"""What a config.json leaves to the code that loads it, one row per `model_type`: the facts that decide the cache.

A published config does not say everything: that every sixth Gemma-3 layer is a full one, or that an absent head_dim means
256, stands only in the model's class. This table holds those facts and nothing else; a new family of the same kind is a new
row. Read in transformers 5.24, `configuration_*.py` and `modeling_*.py` of each type; a test builds every class there and
holds its row to it. What decides the weights is in `layouts`.
"""

from dataclasses import dataclass

from kvlib.errors import MissingField
from kvlib.fields import Fields


@dataclass(frozen=True, slots=True)
class Family:
    """Class facts of one model type.

    own: fields to which the class gives a number of its own when they are absent, so they must be given.
    windows: does the class have sliding windows at all? If not, a `sliding_window` contradicts it.
    window_switch: does the window count only with `use_sliding_window: true`?
    full_below: are the layers below `max_window_layers` full ones?
    full_every, full_at: with a window or chunk and no pattern, layer i is full when i % full_every == full_at (default: the
    last of each group); None: no layer is full.
    kind: the kind of every layer when neither a pattern nor a window says otherwise; None: a pattern must be given.
    attention: the kind that a pattern means when it says full attention (a layer may slide or hold a state all the same).
    per_layer: attentions per layer, each with a cache of its own.
    sliding_kv_heads: how many times `num_key_value_heads` a sliding layer has when `swa_num_key_value_heads` is absent.
    window_beside_query: does `sliding_window_size` count the earlier tokens only, the query's own one coming on top?
    ignored: fields that the class does not look at, though other classes do.
    renamed: (name here, name elsewhere) of fields whose name means something else in other classes.
    state_dtype: the dtype of a recurrent state when `mamba_ssm_dtype` is absent; None: the model's.
    state_heads: does a recurrent layer keep one head_dim × head_dim matrix per query head (lightning attention)?
    encoder: is it a bidirectional encoder, which keeps no cache unless `is_decoder` is true?
    """

    own: tuple[str, ...] = ()
    windows: bool = False
    window_switch: bool = False
    full_below: bool = False
    full_every: int | None = None
    full_at: int = -1
    kind: str | None = "full_attention"
    attention: str = "full_attention"
    per_layer: int = 1
    sliding_kv_heads: int = 1
    window_beside_query: bool = False
    ignored: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    state_dtype: str | None = None
    state_heads: bool = False
    encoder: bool = False

    def needs(self, fields: Fields, name: str) -> None:
        """Raise MissingField when `name` is absent or null and the class has a number of its own for it."""
        if name in self.own:
            state = "null" if name in fields.config else "absent"
            raise MissingField(f"{fields.where}: {name} is {state} and this model_type has a default of its own; add it")


GENERIC = Family(windows=True, window_switch=True)
"""An unknown model type whose config has the ordinary fields, and none that may change the cache and is not read."""

KV, HEAD, WINDOW, LATENT = "num_key_value_heads", "head_dim", "sliding_window", "kv_lora_rank"
LONGEST, STATE_HEADS = "max_position_embeddings", "mamba_n_heads"


def _rows(names: str, family: Family) -> dict[str, Family]:
    return dict.fromkeys(names.split(), family)


def _windowed(own: tuple[str, ...], **facts: object) -> Family:
    return Family((*own, WINDOW), windows=True, **facts)


FAMILIES: dict[str, Family] = {
    # all layers full; what an absent field means is all that differs
    **_rows("""apertus arcee aria_text cohere diffllama flex_olmo granite granitemoe granitemoeshared hunyuan_v1_dense
        hunyuan_v1_moe hyperclovax jais2 llama nanochat nemotron olmo olmo2 olmoe phi gpt2 gptj gpt_neox gpt_neox_japanese
        codegen bloom mpt opt persimmon biogpt xglm openai-gpt ctrl git""", Family()),
    **_rows("falcon gpt_bigcode", Family(("multi_query",))),
    **_rows("""bitnet emu3_text_model ernie4_5_moe exaone glm4_moe glm4v_text glm4v_moe_text stablelm""", Family((KV,))),
    **_rows("""ernie4_5 gemma glm glm4 helium hy_v3 internlm3 iquestcoder jetmoe minimax_m2 sarvam_moe seed_oss solar_open""",
            Family((KV, HEAD))),
    "dbrx": Family((KV,)),
    "openelm": Family((HEAD,), renamed=(("num_kv_heads", f"{KV}_per_layer"), ("num_query_heads", "num_attention_heads_per_layer"))),
    "mllama_text_model": Family((KV,), kind=None),
    # latent attention
    **_rows("deepseek_v2 deepseek_v3 kimi_k2 glm4_moe_lite minicpm3 sarvam_mla youtu axk1", Family((LATENT,))),
    **_rows("deepseek_v32 glm_moe_dsa axk2", Family((LATENT,), kind="indexed_attention")),
    "hy_v4": Family((LATENT, "indexer_types"), kind="indexed_attention"),
    "longcat_flash": Family((LATENT,), per_layer=2),
    # windows and chunks
    **_rows("phi3 doge", Family(windows=True)),
    **_rows("mixtral phimoe starcoder2 phi4_multimodal", Family((KV,), windows=True)),
    "ministral3": Family((KV, HEAD), windows=True),
    **_rows("mistral ministral", _windowed((KV,))),
    "moshi": _windowed(()),
    "cohere2": _windowed((), full_every=4),
    "olmo3": _windowed((LONGEST,), full_every=4),
    **_rows("afmoe cohere2_moe", _windowed((HEAD,), full_every=4)),
    **_rows("exaone4 exaone_moe", _windowed((KV, LONGEST), full_every=4)),
    **_rows("gemma2 gpt_oss vaultgemma", _windowed((KV, HEAD), full_every=2)),
    "gemma3_text": _windowed((KV, HEAD), full_every=6),
    "gemma3n_text": _windowed((KV, HEAD, "num_kv_shared_layers"), full_every=5),
    **_rows("gemma4_text gemma4_unified_text", _windowed((KV, HEAD, "global_head_dim"), full_every=6)),
    "kolibri1": _windowed((KV, HEAD), full_every=5),
    "mimo_v2_flash": _windowed((KV, HEAD, "v_head_dim"), kind=None, sliding_kv_heads=2, window_beside_query=True),
    "gpt_neo": _windowed((), kind=None),
    **_rows("beam flint laguna mellum", _windowed((KV, HEAD), kind=None)),
    "cwm": _windowed((KV, HEAD), full_every=4, full_at=0),
    "granite_swa": _windowed((KV,), full_every=4, full_at=0),
    "granitemoe_swa": _windowed((), full_every=4, full_at=0),
    "llama4_text": Family((KV, HEAD, "attention_chunk_size"), full_every=4),
    **_rows("qwen2 qwen2_vl_text qwen2_5_vl_text", Family((KV,), windows=True, window_switch=True, full_below=True)),
    "qwen2_moe": _windowed((KV,), window_switch=True, full_below=True),
    "qwen3": Family((KV, HEAD), windows=True, window_switch=True, full_below=True),
    "qwen3_moe": Family((KV,), windows=True, window_switch=True),
    "qwen3_vl_text": Family((KV, HEAD)),
    "qwen3_vl_moe_text": Family((KV,)),
    "smollm3": Family((KV,), windows=True, window_switch=True, kind="full_attention"),
    "dots1": _windowed((KV,), full_below=True),
    # recurrent states
    **_rows("mamba falcon_mamba", Family(kind="recurrent")),
    "mamba2": Family((STATE_HEADS,), kind="recurrent", renamed=(("num_heads", STATE_HEADS), ("head_dim", "mamba_d_head"))),
    "bamba": Family((STATE_HEADS,), kind="recurrent"),
    "falcon_h1": Family((KV, STATE_HEADS), kind="hybrid"),
    "jamba": Family((KV,), kind=None),
    "granitemoehybrid": Family((STATE_HEADS,), kind=None),
    "nemotron_h": Family((KV, HEAD, STATE_HEADS), kind=None, state_dtype="fp32"),
    "zamba": Family((KV, HEAD), kind=None, ignored=("attn_layer_period", "attn_layer_offset", "n_mamba_heads")),
    "zamba2": Family((HEAD, STATE_HEADS), kind=None, ignored=("kv_channels", "num_query_groups")),
    **_rows("qwen3_next qwen3_5_text qwen3_5_moe_text", Family((KV, HEAD), kind=None, state_dtype="fp32")),
    "lara_mini": _windowed((KV, HEAD), kind=None, state_dtype="fp32"),
    "olmo_hybrid": Family(kind=None, state_dtype="fp32"),
    **_rows("kimi_linear bailing_hybrid", Family((LATENT,), kind=None, state_dtype="fp32")),
    "recurrent_gemma": _windowed((), kind=None, attention="sliding_attention", state_dtype="fp32"),
    **_rows("lfm2 lfm2_moe", Family((KV,), kind=None)),
    "lfm3": _windowed((KV, HEAD), kind=None),
    **_rows("minimax minimax_text_01 minimax_m1", Family((KV,), kind=None, state_heads=True)),
    # decoders with an encoder: cross-attention in every layer
    **_rows("""bart bigbird_pegasus blenderbot blenderbot-small marian mbart mvp m2m_100 pegasus plbart prophetnet whisper
        speech_to_text t5 mt5 umt5 longt5 switch_transformers""", Family()),
    # encoders, which may be run as decoders
    **_rows("""bert bert-generation big_bird camembert data2vec-text electra ernie megatron-bert rembert roberta
        roberta-prelayernorm roc_bert roformer xlm-roberta xlm-roberta-xl xmod""", Family(encoder=True)),
}  # fmt: skip
