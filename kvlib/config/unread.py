"""The guard of the generic reading: a field of an unknown model type that may change the cache and was not read.

It also holds for a known type that brings code of its own (`auto_map`). An unknown `model_type` with ordinary fields is read like a Llama. That is right until its config has a field of a kind
that nobody here has seen; such a field refuses the reading, because half a reading would be a guess.
"""

import re

from kvlib.config.fields import Fields
from kvlib.errors import SpecError, short

SUSPICIOUS = re.compile(
    r"attn|attention|kv|cache|latent|lora_rank|head|window|chunk|share|loop|cycle|recurren|state|ssm|mamba|conv|linear"
    r"|index|cross|memory|mem_|local|global|hybrid|sparse|compress|encoder|block|period|interval|pattern|sink|mtp|nextn|prompt|_steps|recursion|self_decoder|repeat|group"
)
HARMLESS = re.compile(
    r"dropout|bias|norm|implementation|dtype|^use_cache$|chunk_size_feed_forward|initializer|init|_range|softcap|scal"
    r"|multiplier|temperature|logit|lm_head|head_bias|output_|_eps$|^_|pretraining_tp|max_window_layers|rope|partial"
    r"|interleave|mlp|moe|intermediate|expert|router|decoder_sparse_step|expansion|classifier|summary|vision|audio|clip|softmax|max_attn_value|^n_group$|topk_group|^auto_map$|quantization"
)


def refuse_unread(fields: Fields) -> None:
    """Raise SpecError for the first field that looks as if it changed the cache, has a value, and was not asked for."""
    for name in ("num_attention_heads", "num_key_value_heads", "head_dim"):
        fields.key(name)  # ordinary, also where all layers are recurrent and nobody asked
    for name, value in fields.config.items():
        quiet = value in (None, False, 0, "", "none") or value in ([], {})
        if quiet and SUSPICIOUS.search(name):
            fields.asked.add(name)  # looked at, and harmless: `name=null` is an answer to this guard
        if not quiet and name not in fields.asked and SUSPICIOUS.search(name) and not HARMLESS.search(name):
            raise SpecError(f"{fields.where}: model_type {short(fields.text('model_type'))} is not known to kvlib or has code of its own, and {name} = {short(value)} may "
                            "change what its cache holds; kvlib does not read it, so describe the layers yourself with "
                            "ModelSpec, or set it to null")  # fmt: skip
