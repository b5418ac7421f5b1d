"""Which of our tensors a checkpoint's list of module names means.

Lists like `modules_to_not_convert` name modules of the class that wrote them: whole paths, ends of paths, regular
expressions, globs. Every tensor of ours has the names under which families know it, in every layer.
"""

import re
from collections.abc import Iterable

from kvlib.errors import SpecError, short
from kvlib.spec import Weight
from kvlib.stored.options import WAY_OUT

_ATTENTION = ("self_attn", "self_attention", "attention", "attn", "attn.attention")
_FEED_FORWARD = ("mlp", "feed_forward", "block_sparse_moe", "ffn", "mixer", "shared_mlp")
_RECURRENT = ("mamba", "linear_attn", "mixer", "self_attn", "conv", "temporal_block")
LEAVES = {
    "q_proj": ("q_proj", "qkv_proj", "query_key_value", "c_attn", "Wqkv"), "k_proj": ("k_proj", "qkv_proj", "query_key_value"),
    "v_proj": ("v_proj", "qkv_proj", "query_key_value"), "o_proj": ("o_proj", "out_proj", "dense", "c_proj"),
    "kv_a_proj": ("kv_a_proj_with_mqa",), "gate": ("gate_proj", "g_proj", "q_proj"),
    "indexer.q_proj": ("indexer.wq_b",), "indexer.k_proj": ("indexer.wk",), "indexer.head_weights": ("indexer.weights_proj",),
    "router": ("gate", "router", "router.gate"), "shared_gate": ("shared_expert_gate",),
    "qkvz_proj": ("in_proj_qkvz", "in_proj_qkv", "in_proj_z"), "ba_proj": ("in_proj_ba", "in_proj_b", "in_proj_a"),
}  # fmt: skip
"""Names of our tensors where a checkpoint calls the module otherwise."""
FUSED = {"gate_proj": ("gate_proj", "gate_up_proj", "w1", "dense_h_to_4h"),
         "up_proj": ("up_proj", "gate_up_proj", "w3", "dense_h_to_4h", "fc1", "c_fc", "fc_in"),
         "down_proj": ("down_proj", "w2", "dense_4h_to_h", "fc2", "c_proj", "fc_out")}  # fmt: skip
PARTS = {"gate_up_proj": ("gate_proj", "up_proj"), "qkv_proj": ("q_proj", "k_proj", "v_proj")}
"""Maps that some checkpoints fuse into one, whose name ends like that of a part."""
SPLIT = ({"in_proj_qkv", "in_proj_z"}, {"in_proj_b", "in_proj_a"})
"""Maps that together are one tensor of ours."""
IRRELEVANT = re.compile(r"norm|embed|vision|visual|image|audio|projector|wte|wpe|conv1d|patch|ln_|mtp|eh_proj|shared_head|bias|lm_head")
"""Names of modules that are no linear map of a text decoder, or of a head that is tied."""


class Names:
    """The modules that a list of names means, in a model of `n_layers` layers. what: those that the list is about."""

    def __init__(self, what: str, entries: tuple[str, ...], n_layers: int) -> None:
        self.what = what
        entries = tuple(re.sub(r"^(model\.)?language_model\.(model\.)?", "model.", entry) for entry in entries)
        self.n_layers = n_layers
        self.plain = {entry for entry in entries if re.fullmatch(r"[\w.]+", entry)}
        self.endings = tuple(entry for entry in self.plain if "layers." not in entry)
        self.expressions = {entry: _expression(entry) for entry in entries if entry not in self.plain}
        self.met: set[str] = set()

    def copies(self, weight: Weight) -> int:
        """How many of the tensor's copies the list names. Raises SpecError when that cannot be told."""
        named = self.layers_named(weight)
        if named in (0, self.n_layers):
            return weight.count if named else 0
        if weight.part != "experts" and named == weight.count:  # in every layer that has it
            return named
        if weight.part != "experts" and weight.count == self.n_layers:
            return named
        raise SpecError(f"the list of {self.what} names {weight.name} in {named} of {self.n_layers} layers, and not every layer has "
                        f"one; {WAY_OUT}")  # fmt: skip

    def layers_named(self, weight: Weight) -> int:
        """In how many layers the list names the tensor's module; the head counts as one in all of them."""
        if not (self.plain or self.expressions):
            return 0
        if weight.part == "head":
            return self.n_layers * self._named(("lm_head", "model.lm_head"))
        return sum(self._named(_paths(weight, i)) for i in range(self.n_layers))

    def refuse_unknown(self) -> None:
        """Raise SpecError for an entry that named none of the tensors asked about and is nothing else that is known."""
        for entry in sorted(self.plain | set(self.expressions)):
            beyond = re.search(r"layers\.(\d+)", entry)
            if not (entry in self.met or IRRELEVANT.search(entry) or (beyond and int(beyond[1]) >= self.n_layers)):
                raise SpecError(f"the list of {self.what} names {short(entry)}, and which tensors that means is not known; {WAY_OUT}")  # fmt: skip

    def _named(self, paths: Iterable[str]) -> bool:
        found = set()
        for path in paths:
            starts = {path[: m.start()] for m in re.finditer(r"\.|$", path)}
            met = (starts & self.plain) | {e for e in self.endings if f".{path}".endswith(f".{e}")}
            met |= {entry for entry in self.expressions if self._matches(entry, path)}
            self.met |= met
            if met:
                found.add(path.rpartition(".")[2])
        for parts in SPLIT:
            if 0 < len(found & parts) < len(parts):
                raise SpecError(f"the list of {self.what} names {', '.join(sorted(found & parts))} and not all of "
                                f"{', '.join(sorted(parts))}; {WAY_OUT}")  # fmt: skip
        return bool(found)

    def _matches(self, entry: str, path: str) -> bool:
        """Does the expression match? SpecError where it names a fused map and only some of the maps that are fused in it."""
        expression, (parent, dot, leaf) = self.expressions[entry], path.rpartition(".")
        if not expression.match(path):
            return False
        if len({bool(expression.match(parent + dot + part)) for part in PARTS.get(leaf, ())}) > 1:
            raise SpecError(f"the list of {self.what} has {short(entry)}, which names {leaf} and only some of {', '.join(PARTS[leaf])}; "
                            f"{WAY_OUT}")  # fmt: skip
        return True


def _paths(weight: Weight, layer: int) -> list[str]:
    """The names of the tensor's module in one layer."""
    owner, _, leaf = weight.name.rpartition(".")
    if weight.part in ("attention", "recurrent"):
        parents, leaves = _ATTENTION if weight.part == "attention" else _RECURRENT, LEAVES.get(weight.name, (weight.name,))
    else:
        inside = {"experts": "experts.0.", "shared_experts": "shared_experts."}.get(owner, "")
        leaves = tuple(inside + name for name in FUSED.get(leaf, ())) or LEAVES.get(weight.name, (weight.name,))
        if owner == "shared_experts":
            leaves += tuple(name.replace("shared_experts.", "shared_expert.") for name in leaves)
        parents = _FEED_FORWARD
    return [f"model.layers.{layer}.{parent}.{name}" for parent in parents for name in leaves]


def _expression(entry: str) -> re.Pattern:
    """A glob, or a regular expression that stops where the name of a module does."""
    if entry.startswith("re:"):
        text = entry[3:]
    elif "*" in entry and ".*" not in entry.replace("layers.*", ""):
        text = entry.replace(".", r"\.").replace("*", ".*")
    else:
        text = rf"(?:{entry})(?:(?<=\.)|(?=\.|$))"
    try:
        return re.compile(text)
    except re.error as error:
        raise SpecError(f"quantization_config names modules by {short(entry)}, which is not a regular expression: {error}") from error  # fmt: skip
