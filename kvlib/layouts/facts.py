"""Which weight tensors a decoder has beyond what its config says: one `Layout` row per `model_type`.

A published config does not say everything: that Qwen2 puts biases on q, k and v, or that Gemma-2 has four norms in each
layer, stands only in the model's class. These rows hold those facts and nothing else. A fact that a config may change is
a pair: the field that says it, and what its absence means.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kvlib.config.fields import Fields
from kvlib.errors import MissingField, SpecError, whole
from kvlib.spec import Layer, Weight

Switch = bool | tuple[str, bool] | Callable[[Fields], bool]
"""A fact of the class, or a field that decides it with the value that its absence means, or a rule over several."""

Size = str | Callable[[Fields], int]
"""A field, or a rule where the class computes the size from several."""

ATTENTION_BIAS = ("attention_bias", False)
UNTIED, TIED = ("tie_word_embeddings", False), ("tie_word_embeddings", True)


class Uncounted(SpecError):
    """A config whose weights no row describes, though its KV cache may be known."""


def on(fields: Fields, switch: Switch) -> bool:
    """The fact that `switch` stands for."""
    if isinstance(switch, bool):
        return switch
    return fields.flag(switch[0], default=switch[1]) if isinstance(switch, tuple) else switch(fields)


def first(fields: Fields, *names: str) -> str:
    """The first of several names of one fact that the config has, or the first name when it has none."""
    return next((name for name in names if fields.get(name) is not None), names[0])


def number(fields: Fields, *names: str, minimum: int = 1) -> int:
    """One number under the first of its names that the config has; a list of equal numbers, one per layer, is one too.

    Raises MissingField when it is absent, Uncounted when it differs from layer to layer, SpecError when it is malformed.
    """
    name = first(fields, *names)
    value = fields.get(name)
    if not isinstance(value, list | tuple):
        return fields.integer(name, minimum=minimum)
    if len(set(map(repr, value))) != 1:
        raise Uncounted(f"{fields.where}: {name} differs from layer to layer, and kvlib reads one number for all")
    return whole(f"{fields.where}: {name}", value[0], minimum)


def stated(fields: Fields, *names: str, minimum: int = 1) -> int | None:
    """`number`, or None where the config says null. Raises MissingField when it says nothing: classes differ then."""
    if fields.get(first(fields, *names)) is not None:
        return number(fields, *names, minimum=minimum)
    if not any(fields.has(name) for name in names):
        raise MissingField(f"{fields.where}: {names[0]} is absent and decides the answer; add it, null where there is none")
    return None


def size(fields: Fields, name: Size, minimum: int = 1) -> int:
    """The size that `name` stands for. Raises MissingField when it is absent, SpecError when it is malformed."""
    return number(fields, name, minimum=minimum) if isinstance(name, str) else name(fields)


def layer_size(fields: Fields, name: Size, layer: int, n_layers: int) -> int:
    """The size that `name` stands for in one layer: a config may list one for each."""
    if isinstance(name, str) and isinstance(fields.get(name), list):
        return whole(f"{fields.where}: {name}[{layer}]", fields.listed(name, n_layers)[layer])
    return size(fields, name)


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts.

    where: which layers have it: "all", or the rule of `blocks.sparse_layers`. width: inner width of one expert.
    shared: are there experts of that width that every token uses? shared_width: the width of all of them together, where
    a field says it.
    shared_gate: does a learned gate weigh the shared expert? correction: is the per-expert bias of the router a parameter?
    needs_list: has the class layers without experts of its own when `mlp_only_layers` is absent?
    latent: field of a narrower width that the routed experts work in, between two projections.
    """

    where: str = "all"
    width: Size = "moe_intermediate_size"
    shared: bool = False
    shared_width: Size = ""
    shared_gate: bool = False
    router_bias: Switch = False
    bias: Switch = False
    correction: bool = False
    needs_list: bool = False
    latent: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """The weight tensors of one model type.

    tied: does the head reuse the embedding? head_bias: has the head a bias?
    positions: field that holds the number of learned position embeddings, and how many more the class adds.
    embedding_width: field of an embedding narrower than the hidden size, with a projection in and one out.
    embedding_norm, final_norm: is there a norm after the embedding, and one before the head?
    norms: norm vectors of the hidden size in each layer; norm_bias: does each come with a bias?
    qkv_bias, o_bias, mlp_bias: biases of the linear maps.
    qk_norm: "head" normalises each head of q and k with one vector, "full" with one as wide as all heads; "" not at all.
    q_gate: "value" gates the attention output element by element, "query" too but as part of q with its bias, "head" with
    one number per query head.
    key_is_value: do full layers use their keys as values too? sinks: a learned attention-sink value per query head, in all
    layers or only in those that slide?
    gated: has the feed-forward block a gate (SwiGLU, GeGLU)? mlp_width: its inner width.
    mixer: the tensors of one layer that keeps a recurrent state. one_block: is a layer either a mixer or a feed-forward
    block, with one norm, instead of both? indexer: does sparse attention select tokens with an indexer of its own?
    extra: tensors that no other fact describes. blocks: a rule for the tensors of all layers, instead of all facts on them.
    """

    tied: Switch = UNTIED
    head_bias: Switch = False
    positions: tuple[str, int] | None = None
    embedding_width: str = ""
    embedding_norm: bool = False
    final_norm: Switch = True
    norms: int | Callable[[Fields], int] = 2
    norm_bias: Switch = False
    qkv_bias: Switch = ATTENTION_BIAS
    o_bias: Switch = ATTENTION_BIAS
    qk_norm: str = ""
    qk_norm_when: Switch = True
    qk_norm_bias: Switch = False
    q_gate: str = ""
    q_gate_when: Switch = True
    key_is_value: Switch = False
    sinks: Switch = False
    sinks_if_sliding: bool = False
    indexer: bool = False
    gated: bool = True
    mlp_bias: Switch = False
    mlp_width: Size = "intermediate_size"
    experts: Experts | None = None
    mixer: Callable[[Fields, Layer], list[Weight]] | None = None
    one_block: bool = False
    blocks: Callable[[Fields, tuple[Layer, ...]], list[Weight]] | None = None
    extra: tuple[Callable[[Fields, tuple[Layer, ...]], list[Weight]], ...] = ()
