"""What one stored K or V really costs: its bits, and the scales that it cannot be read without.

    bytes of one head = width · bits / 8 + (width / group) · scale_bytes

Invariant: a format is a row of data; the formula knows no names. Scales per tensor (fp8's, nvfp4's second one) are a
few bytes per model and not counted. Rounding: whole bytes per token and layer, for K and for V.
"""

from dataclasses import dataclass

from kvlib.dtypes import ALIASES, BITS
from kvlib.errors import SpecError, whole
from kvlib.spec import Layer


@dataclass(frozen=True, slots=True)
class KVFormat:
    """How K or V is stored.

    bits: per value. group: neighbouring values of one head that share scales; None: the whole head. scale_bytes: scales
    and zero points per group. latent: the only (latent rank, rotary width) that the format is defined for, the rotary
    part in 16 bits; None: it stores heads and latents of any width. source: where the rule was read.
    """

    name: str
    bits: int
    group: int | None = None
    scale_bytes: int = 0
    latent: tuple[int, int] | None = None
    source: str = ""

    def fits(self, width: int) -> bool:
        """Can it store heads of `width` values?"""
        return self.latent is None and width % (self.group or width) == 0

    def nbytes(self, width: int, heads: int = 1, rope: int = 0) -> int:
        """Bytes of one token's `heads` vectors of `width` values, the last `rope` of them rotary; 0 if there are none.

        Raises SpecError when the group does not divide the width, or the format does not store such a vector.
        """
        if not width * heads:
            return 0
        packed, plain = (width - rope, rope) if self.latent else (width, 0)
        if self.latent not in (None, (packed, plain)):
            rank, rotary = self.latent
            kept = f"{heads} × {width}" if heads > 1 else width
            raise SpecError(f"kv_dtype is {self.name!r}, which stores a latent of {rank} + {rotary} rotary values and "
                            f"nothing else; this layer keeps {kept} values; choose another, such as fp8")  # fmt: skip
        group = self.group or packed
        if packed % group:
            fitting = ", ".join(f.name for f in KV_FORMATS.values() if f.fits(width))
            raise SpecError(f"kv_dtype is {self.name!r}, which shares a scale among {group} values, and the head width "
                            f"{width} is no multiple of {group}; choose one of {fitting}")  # fmt: skip
        bits = packed * self.bits + packed // group * 8 * self.scale_bytes + 16 * plain
        return -(-heads * bits // 8)


_GGML = "llama.cpp, ggml/src/ggml-common.h (block layout) and common/arg.cpp (kv_cache_types)"
_KIVI = "KIVI, quant/new_pack.py: 16-bit scale and zero point per group; its window of 16-bit tokens is not counted"
_HQQ = "transformers, cache_utils.py: HQQQuantizedLayer (8 bits): scale and zero of the model's 16-bit dtype per 64 values"
_SGLANG = "SGLang, srt/arg_groups/fields/model.py: kv_cache_dtype, with FA4 on Blackwell"
_VLLM_SCALES = "vLLM, v1/kv_cache_interface.py: one float32 per token, head, and K or V beside the data"

KV_FORMATS = {
    row.name: row
    for row in (
        KVFormat("fp32", BITS["fp32"], source="plain storage"),
        KVFormat("bf16", BITS["bf16"], source="plain storage"),
        KVFormat("fp16", BITS["fp16"], source="plain storage"),
        KVFormat("fp8", BITS["fp8"], source="vLLM, v1/kv_cache_interface.py: FP8_PER_TENSOR"),
        KVFormat("int8", BITS["int8"], source="TensorRT-LLM: kv_cache_scaling_factor, one per tensor; none of the engines here"),
        KVFormat("int4", BITS["int4"], source="a lower bound: what stores KV in 4 bits keeps scales per token or group"),
        KVFormat("fp8_per_token_head", 8, None, 4, source=_VLLM_SCALES),
        KVFormat("int8_per_token_head", 8, None, 4, source=_VLLM_SCALES),
        KVFormat("int4_per_token_head", 4, None, 4, source=_VLLM_SCALES),
        KVFormat("int8_g64", 8, 64, 4, source=_HQQ),
        KVFormat("int4_g64", 4, 64, 4, source=_KIVI),
        KVFormat("nvfp4", 4, 16, 1, source="vLLM, utils/torch_utils.py: nvfp4_kv_cache_full_dim"),
        KVFormat("mxfp8", 8, 32, 1, source="OCP Microscaling Formats 1.0: an exponent byte per 32; " + _SGLANG),
        KVFormat("q8_0", 8, 32, 2, source=_GGML),
        KVFormat("q5_1", 5, 32, 4, source=_GGML),
        KVFormat("q5_0", 5, 32, 2, source=_GGML),
        KVFormat("q4_1", 4, 32, 4, source=_GGML),
        KVFormat("q4_0", 4, 32, 2, source=_GGML),
        KVFormat("iq4_nl", 4, 32, 2, source=_GGML),
        KVFormat("fp8_ds_mla", 8, 128, 4, latent=(512, 64), source="vLLM, v1/attention/backends/mla/flashmla_sparse.py"),
    )
}  # fmt: skip
"""Every format by its name; the names are those of the engines where they have one."""


def kv_pair(kv_dtype: object) -> tuple[KVFormat, KVFormat]:
    """The formats of K and of V.

    kv_dtype: a name ("bf16"), an alias or a torch dtype for both, a pair ("q8_0", "q4_0"), or both in one text,
    "q8_0/q4_0". Raises SpecError for an unknown name.
    """
    names = kv_dtype.split("/") if isinstance(kv_dtype, str) else kv_dtype
    names = list(names) if isinstance(names, tuple | list) else [names]
    if len(names) not in (1, 2):
        raise SpecError(f"kv_dtype is {kv_dtype!r}; expected one format, or two: K/V, such as q8_0/q4_0")
    return _format(names[0]), _format(names[-1])


def _format(name: object) -> KVFormat:
    text = str(name).removeprefix("torch.").strip().lower()
    row = KV_FORMATS.get(ALIASES.get(text, text))
    if row is None:
        raise SpecError(f"kv_dtype is {name!r}; expected one of {', '.join(KV_FORMATS)}, or K/V, such as q8_0/q4_0")
    return row


def kv_name(kv_dtype: object) -> str:
    """The canonical text: "bf16", or "q8_0/q4_0" when K and V differ."""
    k, v = kv_pair(kv_dtype)
    return k.name if k == v else f"{k.name}/{v.name}"


def rank_heads(layer: Layer, tp: int = 1) -> int:
    """KV heads of `layer` on one of `tp` ranks. Above the number of KV heads they are replicated, not split.

    Raises SpecError when neither of the two divides the other.
    """
    whole("tp", tp)
    heads = layer.n_kv_heads
    if heads and max(heads, tp) % min(heads, tp):
        raise SpecError(f"tp is {tp} and the layer has {heads} KV heads; one must divide the other")
    return heads and max(1, heads // tp)


def token_bytes(layer: Layer, kv_dtype: object = "bf16", tp: int = 1) -> int:
    """Bytes per retained token of one layer, on one of `tp` ranks: its share of the heads, a whole latent, index keys.

    A latent is one vector for K and V, so it is stored in the format of K. A layer that reads another one's cache has 0.
    Raises SpecError as `kv_pair`, `KVFormat.nbytes` and `rank_heads` do.
    """
    k, v = kv_pair(kv_dtype)
    heads = rank_heads(layer, tp)
    if layer.shared_with is not None:
        return 0
    latent = k.nbytes(layer.latent, rope=layer.latent_rope)
    return k.nbytes(layer.k_dim, heads) + v.nbytes(layer.v_dim, heads) + latent + layer.index_bytes
