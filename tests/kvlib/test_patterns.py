"""Every way to write which layer is which, against the pattern spelled out by hand.

F full, S sliding, C chunked, I indexed, R recurrent, H attention and state, X cross-attention, - keeps nothing.
"""

import pytest

from kvlib import SpecError, kv_bytes, kv_growth, load_spec
from kvlib.config.kinds import KINDS

PLAIN = {
    "model_type": "new", "hidden_size": 48, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 10,
    "intermediate_size": 96, "vocab_size": 100, "max_position_embeddings": 512,
}  # fmt: skip
WINDOW = {"sliding_window": 16}
MAMBA = {"mamba_d_state": 4, "mamba_d_conv": 3, "mamba_expand": 2}
MAMBA_2 = MAMBA | {"mamba_n_heads": 12, "mamba_d_head": 8, "mamba_n_groups": 1}
DELTA = {"linear_key_head_dim": 4, "linear_value_head_dim": 6, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
         "linear_conv_kernel_dim": 4}  # fmt: skip
LATENT = {"kv_lora_rank": 12, "qk_rope_head_dim": 4}


def drawn(config: dict) -> str:
    """The pattern of a config's layers, one letter each, from what they keep."""

    def letter(layer) -> str:
        if layer.cross_tokens and layer.window == 0:
            return "X"
        attends = bool(layer.values_per_token)
        if layer.state_bytes:
            return "H" if attends else "R"
        if not attends:
            return "-"
        return "S" if layer.window else "C" if layer.chunk else "I" if layer.index_bytes else "F"

    return "".join(letter(layer) for layer in load_spec(config, encoder_tokens=7).layers)


def config(n_layers: int, *parts: dict, **more: object) -> dict:
    merged = PLAIN | {"num_hidden_layers": n_layers}
    for part in parts:
        merged |= part
    return merged | more


SPELLINGS = {
    "layer_types": (config(5, WINDOW, layer_types=["sliding_attention", "full_attention"] * 2 + ["sliding_attention"]), "SFSFS"),
    "sliding_window_pattern, a number": (config(7, WINDOW, sliding_window_pattern=3), "SSFSSFS"),
    "sliding_window_pattern, letters": (config(6, WINDOW, sliding_window_pattern="LLLG"), "SSSFSS"),
    "global_attn_every_n_layers": (config(5, WINDOW, global_attn_every_n_layers=2), "SFSFS"),
    "alternation, sliding first": (config(5, WINDOW, model_type="gemma2"), "SFSFS"),
    "alternation of gpt-oss": (config(4, WINDOW, model_type="gpt_oss", num_local_experts=2, num_experts_per_tok=1), "SFSF"),
    "full ones first": (config(6, WINDOW, model_type="cwm"), "FSSSFS"),
    "hybrid_layer_pattern": (config(4, WINDOW, hybrid_layer_pattern=[0, 1, 1, 0]), "FSSF"),
    "attn_type_list": (config(4, model_type="minimax_text_01", attn_type_list=[0, 0, 0, 1]), "RRRF"),
    "hybrid_override_pattern": (config(8, MAMBA_2, model_type="nemotron_h", hybrid_override_pattern="M-M*-MM*"), "R-RF-RRF"),
    "hybrid_override_pattern, no number": (PLAIN | MAMBA_2 | {"hybrid_override_pattern": "M*-E"}, "RF--"),
    "layers_block_type": (config(4, MAMBA_2, layers_block_type=["mamba", "hybrid", "mamba", "attention"]), "RHRF"),
    "full_attention_interval": (config(7, DELTA, full_attention_interval=3), "RRFRRFR"),
    "attn_layer_period": (config(9, MAMBA, attn_layer_period=4, attn_layer_offset=2), "RRFRRRFRR"),
    "hybrid_layer_ids": (config(5, MAMBA_2, model_type="zamba2", hybrid_layer_ids=[1, 4]), "RHRRH"),
    "full_attn_layers, counted from 1": (config(5, LATENT, linear_attn_config={
        "full_attn_layers": [2, 5], "kda_layers": [1, 3, 4], "num_heads": 3, "head_dim": 4, "short_conv_kernel_size": 4}),
        "RFRRF"),
    "attn_layer_indices, counted from 0": (config(4, MAMBA_2, attn_layer_indices=[0, 3]), "FRRF"),
    "full_attn_idxs": (config(4, model_type="lfm2", conv_L_cache=3, full_attn_idxs=[1]), "RFRR"),
    "layer_group_size": (config(8, LATENT, linear_num_heads=2, linear_head_dim=4, linear_conv_kernel_dim=4, layer_group_size=3),
                         "RRFRRFFF"),
    "block_types, repeated": (config(5, WINDOW, model_type="recurrent_gemma", lru_width=48, conv1d_width=4,
                                     block_types=["recurrent", "recurrent", "attention"]), "RRSRR"),
    "attention_types": (config(6, WINDOW, model_type="gpt_neo", attention_types=[[["global", "local"], 3]]), "FSFSFS"),
    "attention_layers": (config(3, WINDOW, model_type="gpt_neo", attention_layers=["global", "local", "local"]), "FSS"),
    "chunks, every fourth full": (config(6, model_type="llama4_text", attention_chunk_size=32), "CCCFCC"),
    "chunks, by no_rope_layers": (config(4, model_type="llama4_text", attention_chunk_size=32, no_rope_layers=[0, 1, 1, 0]),
                                  "FCCF"),
    "cross_attention_layers": (config(5, cross_attention_layers=[1, 4]), "FXFFX"),
    "block_configs": (config(4, block_configs=[
        {"attention": {"n_heads_in_group": 3}}, {"attention": {"no_op": True}},
        {"attention": {"replace_with_linear": True}}, {"attention": {"n_heads_in_group": 6, "window_length": 8}}],
        num_key_value_heads=None), "F--S"),
    "max_window_layers": (config(5, WINDOW, model_type="qwen2", use_sliding_window=True, max_window_layers=3), "FFFSS"),
    "sparse indexer": (config(3, LATENT, model_type="deepseek_v32", index_head_dim=8), "III"),
    "indexer in some layers": (config(3, LATENT, model_type="glm_moe_dsa", index_head_dim=8,
                                      indexer_types=["full", "shared", "full"]), "IFI"),
}  # fmt: skip


@pytest.mark.parametrize(("config", "pattern"), SPELLINGS.values(), ids=SPELLINGS)
def test_a_pattern_is_read_in_every_spelling(config, pattern):
    assert drawn(config) == pattern


@pytest.mark.parametrize(("change", "names"), [
    ({"layer_types": ["full_attention"] * 3}, "layer_types has 3 entries and num_hidden_layers is 4"),
    ({"layer_types": "full_attention"}, "expected a list"),
    ({"layer_types": ["full_attention", "full_attention", "full_attention", "wavelet"]}, "'wavelet'"),
    ({"layer_types": ["full_attention", 3, None, "full_attention"]}, "None"),
    ({"hybrid_override_pattern": "M*"}, "describes 2 layers and num_hidden_layers is 4"),
    ({"hybrid_override_pattern": "M*?*"}, r"'\?'"),
    ({"hybrid_layer_pattern": [0, 1, 2, 0]}, "holds 2"),
    ({"hybrid_layer_pattern": [0, 1, True, 0]}, "holds True"),
    ({"attn_type_list": [1]}, "attn_type_list has 1 entries"),
    ({"attn_layer_indices": [4]}, "names layer 4 and num_hidden_layers is 4"),
    ({"linear_attn_config": {"full_attn_layers": [0]}}, "is 0; expected a whole number ≥ 1"),
    ({"full_attention_interval": 0}, "full_attention_interval is 0"),
    ({"attn_layer_period": 4}, "attn_layer_offset is absent"),
    ({"attn_layer_period": 4, "attn_layer_offset": 4}, "no layer would have attention"),
    ({"indexer_types": ["full", "foo", "full", "full"]}, "indexer_types holds 'foo'"),
    ({"attention_chunk_size": 16, "no_rope_layers": [1, 1, "x", 0]}, "no_rope_layers holds 'x'"),
    ({"sliding_window": 16, "global_attn_every_n_layers": 0}, "global_attn_every_n_layers is 0"),
    ({"sliding_window": 16, "sliding_window_pattern": 0}, "sliding_window_pattern is 0"),
    ({"sliding_window": 16, "sliding_window_pattern": "LLZ"}, "'Z'"),
    ({"sliding_window": 16, "sliding_window_pattern": ""}, "sliding_window_pattern is empty"),
    ({"sliding_window": 16}, "nothing says which layers"),
    ({"attention_chunk_size": 16}, "nothing says which layers"),
    ({"attention_types": [[["global"], 10**12]]}, "describes 1000000000000 layers"),
    ({"attention_types": ["global"]}, "expected .*kinds.*repeats"),
    ({"block_configs": [{}] * 4}, "block_configs"),
    ({"block_configs": [{"attention": {"n_heads_in_group": 4}}] * 4}, "does not divide num_attention_heads = 6"),
    ({"full_attention_interval": 2}, "no field says what state it keeps"),
])  # fmt: skip
def test_a_pattern_that_cannot_be_read_is_refused_by_name(change, names):
    with pytest.raises(SpecError, match=names):
        load_spec(config(4, change))


def test_layer_types_decide_where_an_older_spelling_stands_beside_them():
    both = config(4, WINDOW, layer_types=["full_attention", "sliding_attention"] * 2, sliding_window_pattern=4)
    assert drawn(both) == "FSFS"


def test_every_spelling_means_one_kind():
    assert len(KINDS) == len(set(KINDS))
    assert set(KINDS.values()) >= {"full_attention", "sliding_attention", "chunked_attention", "recurrent", "none"}


# --- what single layers keep ------------------------------------------------------------------------------------------


def kept(config: dict) -> list[tuple[int, int, int]]:
    return [(layer.n_kv_heads, layer.k_dim, layer.v_dim) for layer in load_spec(config).layers]


def test_the_layers_of_one_kind_may_have_heads_and_widths_of_their_own():
    kinds = ["full_attention", "sliding_attention"]
    local = config(2, WINDOW, layer_types=kinds, swa_num_key_value_heads=3, swa_head_dim=8, swa_v_head_dim=4)
    assert kept(local) == [(2, 10, 10), (3, 8, 4)]
    wide = config(2, WINDOW, layer_types=kinds, num_global_key_value_heads=1, global_head_dim=20)
    assert kept(wide) == [(1, 20, 20), (2, 10, 10)]


def test_single_layers_may_be_replaced_by_their_number():
    per_layer = {"01": {"head_dim": 20}, "2": {"num_key_value_heads": 1}}
    assert kept(config(3, per_layer_config=per_layer)) == [(2, 10, 10), (2, 20, 20), (1, 10, 10)]
    assert kept(config(2, num_key_value_heads_per_layer=[3, 6])) == [(3, 10, 10), (6, 10, 10)]
    with pytest.raises(SpecError, match="has 1 entries"):
        load_spec(config(2, num_key_value_heads_per_layer=[3]))


def test_v_may_be_narrower_than_k():
    assert kept(config(1, v_head_dim=6)) == [(2, 10, 6)]


def test_a_searched_architecture_has_kv_heads_by_block():
    blocks = [{"attention": {"n_heads_in_group": g}} for g in (1, 3, 6)]
    assert kept(config(3, block_configs=blocks, num_key_value_heads=None)) == [(6, 10, 10), (2, 10, 10), (1, 10, 10)]


def test_multi_query_means_one_head_unless_the_newer_architecture_counts_them():
    falcon = config(1, model_type="falcon", num_key_value_heads=None, multi_query=True)
    assert kept(falcon | {"num_kv_heads": 6}) == [(1, 10, 10)]
    assert kept(falcon | {"num_kv_heads": 3, "new_decoder_architecture": True}) == [(3, 10, 10)]
    assert kept(falcon | {"multi_query": False}) == [(6, 10, 10)]


def test_a_nested_object_may_hold_the_heads():
    assert kept(config(1, model_type="dbrx", num_key_value_heads=None, attn_config={"kv_n_heads": 3})) == [(3, 10, 10)]


def test_the_last_layers_share_with_the_last_of_their_kind():
    kinds = ["sliding_attention", "full_attention"] * 3
    shared = load_spec(config(6, WINDOW, layer_types=kinds, num_kv_shared_layers=3)).layers
    assert [layer.shared_with for layer in shared] == [None, None, None, 1, 2, 1]
    none = load_spec(config(6, WINDOW, layer_types=kinds, num_kv_shared_layers=0)).layers
    assert [layer.shared_with for layer in none] == [None] * 6


def test_cross_layer_attention_counts_only_when_switched_on():
    cla = config(5, cla_share_factor=2)
    assert [layer.shared_with for layer in load_spec(cla | {"use_cla": True}).layers] == [None, 0, None, 2, None]
    assert [layer.shared_with for layer in load_spec(cla | {"use_cla": False}).layers] == [None] * 5


def test_an_encoders_output_is_kept_once_per_sequence():
    whisper = config(2, model_type="whisper", decoder_layers=2, encoder_layers=9, decoder_attention_heads=6,
                     encoder_attention_heads=4, num_key_value_heads=None, is_encoder_decoder=True)  # fmt: skip
    del whisper["num_hidden_layers"], whisper["num_attention_heads"]
    spec = load_spec(whisper, encoder_tokens=100)
    per_token = 2 * 2 * 6 * (48 // 6) * 2
    assert kv_growth(spec).per_token_early == per_token
    assert kv_growth(spec).constant == 100 * per_token
    assert load_spec(whisper, encoder_tokens=0).layers[0].cross_tokens == 0
    assert load_spec(whisper | {"num_mel_bins": 80, "max_source_positions": 1500}).layers[0].cross_tokens == 1500


def test_the_decoders_own_names_decide_in_a_model_with_an_encoder():
    t5 = {"model_type": "t5", "num_layers": 9, "num_decoder_layers": 3, "d_model": 48, "num_heads": 6, "d_kv": 10,
          "vocab_size": 100, "d_ff": 96, "is_encoder_decoder": True}  # fmt: skip
    spec = load_spec(t5, encoder_tokens=5)
    assert [(x.n_kv_heads, x.k_dim, x.cross_tokens) for x in spec.layers] == [(6, 10, 5)] * 3


def test_layers_for_multi_token_prediction_are_named_and_counted_on_request():
    mtp = config(3, LATENT, model_type="deepseek_v3", num_nextn_predict_layers=2)
    without, counted = load_spec(mtp), load_spec(mtp, mtp=True)
    assert len(without.layers) == 3 and "num_nextn_predict_layers" in " ".join(without.notes)
    assert len(counted.layers) == 5 and "not the weights" in counted.notes[0]
    assert kv_bytes(counted, 7) * 3 == kv_bytes(without, 7) * 5


def test_a_sparse_indexer_adds_132_bytes_per_token_and_layer_whatever_the_kv_dtype():
    dsa = config(3, model_type="deepseek_v32", kv_lora_rank=512, qk_rope_head_dim=64, index_head_dim=128)
    assert kv_growth(load_spec(dsa), "bf16").per_token_early == 3 * (576 * 2 + 132)
    assert kv_growth(load_spec(dsa), "fp8").per_token_early == 3 * (576 + 132)


# --- recurrent states, each spelled out -------------------------------------------------------------------------------

STATES = {
    "mamba-1": (MAMBA, (2 * 48) * 2 * 2 + (2 * 48 * 4) * 2),
    "mamba-1, state in float32": (MAMBA | {"mamba_ssm_dtype": "float32"}, (2 * 48) * 2 * 2 + (2 * 48 * 4) * 4),
    "mamba-2": (MAMBA_2, (12 * 8 + 2 * 4) * 2 * 2 + (12 * 8 * 4) * 2),
    "mamba-2, model in float32": (MAMBA_2 | {"torch_dtype": "float32"}, (12 * 8 + 2 * 4) * 2 * 4 + (12 * 8 * 4) * 4),
    "gated delta net": (DELTA, (2 * 2 * 4 + 4 * 6) * 3 * 2 + (4 * 4 * 6) * 2),
    "kimi delta": ({"linear_num_heads": 3, "linear_head_dim": 4, "linear_conv_kernel_dim": 4}, 36 * 3 * 2 + (3 * 4 * 4) * 2),
    "short convolution": ({"conv_L_cache": 3}, 48 * 2 * 2),
    "RG-LRU": ({"lru_width": 40, "conv1d_width": 4}, 40 * 3 * 2 + 40 * 2),
}


@pytest.mark.parametrize(("fields", "nbytes"), STATES.values(), ids=STATES)
def test_a_recurrent_layer_keeps_its_convolution_and_its_matrix(fields, nbytes):
    spec = load_spec(config(2, fields, layer_types=["linear_attention", "full_attention"]))
    assert [layer.state_bytes for layer in spec.layers] == [nbytes, 0]
    assert kv_growth(spec, "fp8").constant == kv_growth(spec, "fp32").constant == nbytes


def test_lightning_attention_keeps_a_square_per_query_head():
    spec = load_spec(config(2, model_type="minimax_text_01", attn_type_list=[0, 1]))
    assert spec.layers[0].state_bytes == 6 * 10 * 10 * 2


def test_tensor_parallelism_splits_a_state_by_its_heads_and_replicates_what_there_is_too_little_of():
    """Mamba-2 in vLLM: heads are shared out; a group of B and C that all heads use is on every rank."""
    layer = load_spec(config(1, MAMBA_2, layer_types=["mamba"])).layers[0]
    head, group = 8 * 2 * 2 + 8 * 4 * 2, 2 * 4 * 2 * 2
    assert [layer.rank_state_bytes(tp) for tp in (1, 2, 4, 12)] == [12 * head + group, 6 * head + group, 3 * head + group,
                                                                   head + group]  # fmt: skip


def test_chatglm_counts_groups_only_with_multi_query_attention():
    chatglm = config(1, num_key_value_heads=None, multi_query_group_num=2)
    assert kept(chatglm | {"multi_query_attention": True}) == [(2, 10, 10)]
    assert kept(chatglm | {"multi_query_attention": False}) == [(6, 10, 10)]


def test_openelm_has_lists_of_heads_under_names_that_are_numbers_elsewhere():
    openelm = {"model_type": "openelm", "model_dim": 48, "num_transformer_layers": 3, "head_dim": 10,
               "num_kv_heads": [1, 2, 3], "num_query_heads": [4, 4, 6], "vocab_size": 100}  # fmt: skip
    assert kept(openelm) == [(1, 10, 10), (2, 10, 10), (3, 10, 10)]
    with pytest.raises(SpecError, match="num_key_value_heads_per_layer has 2 entries"):
        load_spec(openelm | {"num_kv_heads": [1, 2]})


def test_a_field_that_the_guard_names_can_be_set_to_null():
    odd = config(1, cache_quantum=3)
    with pytest.raises(SpecError, match="set it to null"):
        load_spec(odd)
    assert kept(config(1)) == [(layer.n_kv_heads, 10, 10) for layer in load_spec(odd, cache_quantum=None).layers]
