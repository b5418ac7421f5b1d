"""Counts and widths that a class computes by a rule of its own, from the fields of its config."""

from collections.abc import Callable

from kvlib.config.fields import Fields
from kvlib.layouts.facts import first


def parallel_norms(fields: Fields) -> int:
    """Attention and feed-forward side by side share one norm, or have one each where the config says so (Falcon)."""
    if not fields.flag("parallel_attn", default=True):
        return 2
    newer, given = fields.flag("new_decoder_architecture", default=False), fields.optional("num_ln_in_parallel_attn")
    return 2 if given == 2 or (newer and given is None) else 1


def one_norm_if_parallel(fields: Fields) -> int:
    """Attention and feed-forward side by side share one norm (StableLM)."""
    return 1 if fields.flag("use_parallel_residual", default=False) else 2


def post_norms(fields: Fields) -> int:
    """Norms after each block too, unless the config says otherwise (HyperCLOVA X)."""
    return 4 if fields.flag("use_post_norm", default=True) else 2


def affine_norms(fields: Fields) -> int:
    """Norms without any weight, where the config says so (OPT)."""
    return 2 if fields.flag("layer_norm_elementwise_affine", default=True) else 0


def norm_at_the_end(fields: Fields) -> bool:
    """Only layers that normalise before each block need a norm after the last (OPT)."""
    removed = fields.flag("_remove_final_layer_norm", default=False)
    return bool(affine_norms(fields)) and fields.flag("do_layer_norm_before", default=True) and not removed


def times_hidden(*names: str) -> Callable[[Fields], int]:
    """A rule for an inner width: the field of one of `names`, or four times the hidden size where it is absent."""

    def width(fields: Fields) -> int:
        return (fields.optional(first(fields, *names)) if names else None) or 4 * fields.integer("hidden_size")

    return width


def multiple_of_hidden(fields: Fields) -> int:
    """An inner width given as a multiple of the hidden size."""
    return (fields.optional("intermediate_multiple_size") or 4) * fields.integer("hidden_size")


def half_width(fields: Fields) -> int:
    """The config counts gate and up together."""
    return fields.integer("intermediate_size") // 2


def adjusted_width(fields: Fields) -> int:
    """Two thirds of the config's width, times a factor, rounded up to a multiple (LFM2)."""
    width = fields.integer(first(fields, "intermediate_size", "block_ff_dim"))
    if not fields.flag("block_auto_adjust_ff_dim", default=True):
        return width
    factor = fields.get("block_ffn_dim_multiplier")
    width = int((1 if factor is None else factor) * int(2 * width / 3))
    multiple = fields.optional("block_multiple_of") or 256
    return -(-width // multiple) * multiple


def sandwich_norms(fields: Fields) -> int:
    """Norms after each block too, unless the config says otherwise (LFM3)."""
    return 4 if fields.flag("use_sandwich_norm", default=True) else 2


def shared_or_dense(fields: Fields) -> int:
    """The experts that every token uses; none of them stands for one as wide as a dense block (Hunyuan 3)."""
    width = fields.integer("moe_intermediate_size") * fields.integer("num_shared_experts", minimum=0)
    return width or fields.integer("intermediate_size")


def norms_around_experts(fields: Fields) -> int:
    """Four norms, and three more where experts work beside the feed-forward block (Gemma 4)."""
    return 7 if fields.flag("enable_moe_block", default=False) else 4
