"""The guard of the generic reading: a field of an unknown model type that may change the cache and was not read.

An unknown `model_type` with ordinary fields is read like a Llama. That is right until its config has a field of a kind that
nobody here has seen; such a field refuses the reading, because half a reading would be a guess. The guard holds for a known
type too when it brings code of its own (`auto_map`).
"""

import re

from kvlib.config.fields import Fields
from kvlib.errors import SpecError, short

SUSPICIOUS = re.compile(
    r"attn|attention|kv|cache|latent|lora_rank|head|window|chunk|share|loop|cycle|recurren|state|ssm|mamba|conv|linear"
    r"|index|cross|memory|mem_|local|global|hybrid|sparse|compress|encoder|block|period|interval|pattern|sink|mtp|nextn"
    r"|prompt|_steps|recursion|self_decoder|repeat|group"
)
HARD = re.compile(r"attn|attention|kv|cache|window|head|latent|chunk")
"""Words that no beginning makes harmless."""
HARMLESS = re.compile(
    r"^(use_cache|chunk_size_feed_forward|max_window_layers|n_group|topk_group|auto_map|unk_index|mask_index|lm_head\w*)$|^_|"
    r"(^|_)(dropout(_prob|_rate)?|pdrop|bias|q?k?_?norm|norm_eps|eps|implementation|dtype|softcap(ping)?|cap|scal(e|ar|ing)"
    r"|multiplier|temperature(_tuning)?|softmax_in_fp32|in_fp32|intermediate_size|experts|attn_value|weights|upcast_attn|loss"
    r"|gate|to_keep|layer_idx|config)$"
)
HARMLESS_BEGINNING = re.compile(r"^(rope|partial|moe|mlp|expert|router|vision|audio|classifier|summary|output|decoder_sparse|quant)")


def refuse_unread(fields: Fields) -> None:
    """Raise SpecError for the first field that looks as if it changed the cache, has a value, and was not asked for."""
    for name in ("num_attention_heads", "num_key_value_heads", "head_dim"):
        fields.key(name)  # ordinary, also where all layers are recurrent and nobody asked
    for name, value in fields.config.items():
        quiet = value in (None, False, 0, "", "none") or value in ([], {})
        if quiet and SUSPICIOUS.search(name):
            fields.asked.add(name)  # looked at, and harmless: `name=null` is an answer to this guard
        if not quiet and name not in fields.asked and _may_change_the_cache(name):
            raise SpecError(f"{fields.where}: model_type {short(fields.text('model_type'))} is not known to kvlib or has code of its own, and {name} = {short(value)} may "
                            "change what its cache holds; kvlib does not read it, so describe the layers yourself with "
                            "ModelSpec, or set it to null")  # fmt: skip


def _may_change_the_cache(name: str) -> bool:
    if not SUSPICIOUS.search(name) or HARMLESS.search(name):
        return False
    return bool(HARD.search(name)) or not HARMLESS_BEGINNING.search(name)
