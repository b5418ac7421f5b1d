"""The engines' rules: what each does, and the file and symbol in which it was read.

Reports show this table. The code beside it computes what it says; a rule that changes in a new version changes here.
"""

from kvlib.engines.plan import Rule

VERSIONS = {"vllm": "0.33.0", "sglang": "0.5.23", "transformers": "5.24.0", "llama.cpp": "0c1e57098"}
"""Releases of the packages; of llama.cpp the commit."""

_INTERFACE, _PLANNING = "vllm/v1/kv_cache_interface.py", "vllm/v1/core/kv_cache_planning.py"
_POOLS = "sglang/srt/model_executor/pool_configurator.py"

RULES = {
    "vllm": (
        Rule("一個請求占整數個區塊，預設每塊 16 個 token", "a request takes whole blocks, of 16 tokens by default",
             "vllm/config/cache.py: CacheConfig.DEFAULT_BLOCK_SIZE"),
        Rule("一步最多 8,192 個 token（70 GiB 以上的卡跑伺服器時；較小的卡 2,048）",
             "a step takes up to 8,192 tokens (server on cards from 70 GiB; 2,048 on smaller ones)",
             "vllm/engine/arg_utils.py: default_max_num_batched_tokens"),
        Rule("在途 token：每個並行批次一整步，預設 PP + 1 個批次；0.24 以前只算一步",
             "tokens in flight: a full step per concurrent batch, PP + 1 batches by default; up to 0.24 a single step",
             "vllm/config/vllm.py: max_in_flight_tokens, max_concurrent_batches"),
        Rule("滑動視窗：min(W − 1 + 在途 token, max_model_len) 進位到區塊，再加一塊",
             "sliding window: min(W − 1 + in flight, max_model_len) rounded up to blocks, and one more",
             f"{_INTERFACE}: SlidingWindowSpec.max_admission_blocks_per_request"),
        Rule("分段注意力：min(段長 + 在途 token, max_model_len) 進位到區塊",
             "chunked attention: min(chunk + in flight, max_model_len) rounded up to blocks",
             f"{_INTERFACE}: ChunkedLocalAttentionSpec.max_admission_blocks_per_request"),
        Rule("收下請求時，每組要的區塊不超過上述上限", "on admission no group asks for more blocks than that",
             "vllm/v1/core/single_type_kv_cache_manager.py: get_num_blocks_to_allocate"),
        Rule("各組層數相同：以最少的為準；最多的不到它的 1.5 倍時以最多的為準，不足的補層",
             "groups have equally many layers: as many as the rarest kind has, or the most frequent if that is under "
             "1.5 times as many; the others are padded", f"{_PLANNING}: _get_kv_cache_groups_uniform_page_size"),
        Rule("頁的大小取最大的：能整除就加大區塊，不能就補齊",
             "pages are as large as the largest: larger blocks where it is a multiple, padding where not",
             f"{_PLANNING}: unify_kv_cache_spec_page_size"),
        Rule("有遞迴狀態時，注意力的區塊加大到頁不小於狀態，狀態的頁補到一樣大",
             "beside a recurrent state the attention block grows until its page is no smaller; the state is padded",
             "vllm/platforms/interface.py: _align_hybrid_block_size"),
        Rule("狀態每組占一個區塊，開啟前綴快取時占兩個（有些核心再加一個檢查點）",
             "a state takes one block per group, two with prefix caching; some kernels add a checkpoint",
             f"{_INTERFACE}: MambaSpec.max_memory_usage_bytes"),
        Rule("每張卡的 KV 頭：max(1, KV 頭 // TP)；MLA 的潛在向量每張卡都有一份",
             "KV heads per rank: max(1, KV heads // TP); an MLA latent is whole on every rank",
             "vllm/config/model.py: get_num_kv_heads"),
        Rule("管線階段：平均分層，餘下的從倒數第二段往前各加一層；區塊數取各段最少的",
             "pipeline stages: layers evenly, the rest to the stages before the last; all take the fewest blocks",
             "vllm/distributed/utils.py: get_pp_indices; " + _PLANNING + ": get_kv_cache_configs"),
        Rule("記憶體預設以層為最外維；以區塊為最外維時，不同大小的頁可並排，這裡不算",
             "the layout is layer-outermost by default; with a block-outermost one, which is not computed here, pages of "
             "different sizes lie side by side", f"{_PLANNING}: _get_packed_kv_cache_groups"),
        Rule("KV 的格式；MLA 只有 16、32 位元與 fp8", "formats of K and V; of an MLA latent, 16 and 32 bits and fp8",
             "vllm/config/cache.py: CacheDType; vllm/v1/attention/backends/mla: supported_kv_cache_dtypes"),
        Rule("稀疏的 MLA（有索引鍵）以 FlashMLA 存 fp8 時，是 fp8_ds_mla：每層每 token 656 B；FlashInfer（Blackwell）仍是 576 B",
             "fp8 of a sparse MLA (with index keys) is fp8_ds_mla with FlashMLA: 656 B per token and layer; still 576 B with "
             "FlashInfer (on Blackwell)", "vllm/model_executor/layers/attention/mla_attention.py: MLAAttention; "
             "vllm/v1/attention/backends/mla/flashmla_sparse.py"),
        Rule("池裡有一個區塊保留不用", "one block of the pool is never handed out", f"{_PLANNING}: get_kv_cache_configs"),
    ),
    "sglang": (
        Rule("一頁預設 1 個 token；有些注意力後端改成 64 或 128",
             "a page has 1 token by default; some attention backends make it 64 or 128",
             "sglang/srt/arg_groups/overrides.py: _page_size_default"),
        Rule("收下請求時要算：輸入 + 最多 4,096 個新 token + 一頁", "a request is charged its input, up to 4,096 new tokens and a page",
             "sglang/srt/managers/schedule_policy.py: add_one_req, CLIP_MAX_NEW_TOKENS"),
        Rule("視窗池要算：超出視窗的一段 + min(token 數, W) + 一頁",
             "in the window pool: the chunk beyond the window, min(tokens, W) and a page",
             "sglang/srt/mem_cache/prefill_budget.py: estimate_swa_kv_tokens"),
        Rule("視窗池的 token 數是全部 token 池的 0.8 倍", "the window pool has 0.8 times the slots of the full pool",
             f"{_POOLS}: HybridSWAPoolConfigurator; arg_groups/fields/schedule.py: swa_full_tokens_ratio"),
        Rule("token 池的大小往下取整到頁，另加一頁", "a token pool is rounded down to pages, and has one page more",
             f"{_POOLS}: calculate_pool_sizes; mem_cache/memory_pool.py: MHATokenToKVPool"),
        Rule("狀態的記憶體是 token 池的 0.9 倍，另加一份；保留前綴時一個請求計 3 份狀態",
             "states take 0.9 times the memory of the token pools, and one state more; a request counts as 3 states "
             "while prefixes are kept",
             "sglang/srt/mem_cache/kv_cache_configurator.py: mamba_full_memory_ratio, _calculate_mamba_ratio"),
        Rule("每張卡的 KV 頭：max(1, KV 頭 // TP)；MLA 的潛在向量每張卡都有一份",
             "KV heads per rank: max(1, KV heads // TP); an MLA latent is whole on every rank",
             "sglang/srt/configs/model_config.py: get_num_kv_heads"),
        Rule("管線階段：平均分層，餘下的各加在最後幾段", "pipeline stages: layers evenly, the rest to the last stages",
             "sglang/srt/distributed/utils.py: get_pp_indices"),
        Rule("KV 的格式", "formats of K and V", "sglang/srt/arg_groups/fields/model.py: kv_cache_dtype"),
    ),
    "transformers": (
        Rule("DynamicCache 保留全部 token；視窗或分段的層留 W − 1 個",
             "a DynamicCache keeps all tokens; W − 1 in a layer with a window or chunks",
             "transformers/cache_utils.py: DynamicLayer, DynamicSlidingWindowLayer"),
        Rule("StaticCache 每層配置 max_cache_len 個 token；視窗層 min(W, max_cache_len)",
             "a StaticCache allocates max_cache_len tokens per layer; min(W, max_cache_len) with a window",
             "transformers/cache_utils.py: StaticLayer, StaticSlidingWindowLayer"),
        Rule("遞迴狀態：卷積留 k 個輸入（比需要的多一個，模型的型別），矩陣是 float32；RecurrentGemma 留 k − 1 個",
             "a recurrent state keeps k inputs of its convolution, one more than it needs, in the model's dtype, and its matrix in "
             "float32; RecurrentGemma keeps k − 1", "transformers/cache_utils.py: LinearAttentionLayer; "
             "models/recurrent_gemma/modeling_recurrent_gemma.py: RecurrentGemmaRecurrentBlock"),
        Rule("共用快取的層什麼都不存", "a layer that shares another's cache stores nothing",
             "transformers/cache_utils.py: DummyLayer, get_layer_types_and_kwargs"),
        Rule("Falcon-40B（new_decoder_architecture）與 MPT 每個查詢頭各存一份 K 與 V",
             "Falcon-40B (new_decoder_architecture) and MPT store K and V once per query head",
             "transformers/models/falcon/modeling_falcon.py: _split_heads; mpt/modeling_mpt.py: MptAttention"),
        Rule("QuantizedCache 只給每層都留全部 token 的模型；fp8 一個張量一個尺度，整數每 64 個值一組，最近 128 個 token 不量化",
             "a QuantizedCache is for models whose layers all keep all tokens; fp8 has a scale per tensor, integers one per 64 "
             "values and 128 tokens that stay as they are",
             "transformers/cache_utils.py: QuantizedCache, Fp8QuantizedLayer, QuantizedLayer, HQQQuantizedLayer"),
    ),
    "llama.cpp": (
        Rule("n_ctx 進位到 256 的倍數；各序列分開時每個序列再進位一次",
             "n_ctx is rounded up to a multiple of 256; so is each sequence's share unless all share one buffer",
             "src/llama-context.cpp: llama_context"),
        Rule("視窗層：min(n_ctx, W × 共用的序列數 + n_ubatch) 進位到 256",
             "windowed layers: min(n_ctx, W × sequences that share it + n_ubatch), rounded up to 256",
             "src/llama-kv-cache-iswa.cpp: llama_kv_cache_iswa"),
        Rule("n_ubatch 預設 512", "n_ubatch is 512 by default", "src/llama-context.cpp: llama_context_default_params"),
        Rule("遞迴狀態每個序列一份，float32", "one recurrent state per sequence, in float32",
             "src/llama-model.cpp: create_memory"),
        Rule("KV 的格式，K 與 V 可以不同", "formats of K and V, which may differ", "common/arg.cpp: kv_cache_types"),
        Rule("MLA 只存 K（潛在向量與 RoPE 部分）", "MLA stores K alone: the latent and its rotary part",
             "src/llama-kv-cache.cpp: llama_kv_cache"),
    ),
}  # fmt: skip
