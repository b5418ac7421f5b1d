"""Reading single fields of a config.json: one name, its aliases, one type, one clear error."""

from collections.abc import Mapping

from kvlib.errors import MissingField, SpecError, short, whole

# transformers' name: the other names under which configs carry the same fact; a dot descends into a nested object
ALIASES = {
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers", "num_transformer_layers"),
    "hidden_size": ("n_embd", "n_embed", "d_model", "emb_dim", "model_dim"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads", "attention_heads"),
    "num_key_value_heads": (
        "n_head_kv", "num_kv_heads", "n_kv_heads", "num_query_groups", "multi_query_group_num", "num_attention_groups",
        "attn_config.kv_n_heads",
    ),
    "head_dim": ("attention_head_dim", "kv_channels", "d_kv", "d_head", "dim_head", "attention_head_size"),
    "sliding_window": ("sliding_window_size", "attention_window_size", "window_size", "attn_config.sliding_window_size"),
    "mamba_d_state": ("ssm_state_size", "state_size"),
    "mamba_d_conv": ("conv_kernel",),
    "mamba_expand": ("expand",),
    "mamba_n_heads": ("mamba_num_heads", "n_mamba_heads"),
    "mamba_d_head": ("mamba_head_dim", "mamba_headdim"),
    "mamba_n_groups": ("n_groups", "mamba_ngroups"),
    "mamba_ssm_dtype": ("mamba_ssm_cache_dtype",),
    "linear_num_heads": ("linear_attn_config.num_heads",),
    "linear_head_dim": ("linear_attn_config.head_dim",),
    "linear_conv_kernel_dim": ("linear_attn_config.short_conv_kernel_size", "short_conv_kernel_size"),
    "num_nextn_predict_layers": ("num_mtp_layers", "mtp_num_hidden_layers"),
    "dtype": ("torch_dtype",),
}  # fmt: skip

# The first of these that stands decides alone: a later extension of the context before the length of the original
# training, the decoder's own names before those that may speak of an encoder.
STRONGER = {
    "max_position_embeddings": (
        "model_max_length", "max_position_embeddings", "n_positions", "max_seq_len", "max_target_positions", "seq_length",
    ),
    "num_hidden_layers": ("decoder_layers", "num_decoder_layers"),
    "num_attention_heads": ("decoder_attention_heads", "num_decoder_attention_heads"),
}  # fmt: skip


def other_names(name: str) -> set[str]:
    """All names of the field that goes by `name`, which is one of them; a field without aliases has one name."""
    meant = {n for table in (ALIASES, STRONGER) for n, others in table.items() if name == n or name in others}
    return {name} | meant | {other for n in meant for table in (ALIASES, STRONGER) for other in table.get(n, ())}


class Fields:
    """A config mapping that is read by the transformers name of a field, aliases included.

    `where` names the config in errors. `ignored` are fields that the model's class does not look at.
    """

    def __init__(self, config: Mapping, where: str, ignored: tuple[str, ...] = ()) -> None:
        self.config = {k: v for k, v in config.items() if k not in ignored}
        self.where = where
        self.asked: set[str] = set()  # every name under which something was looked for
        self._found: dict[str, str] = {}  # what `key` answered

    def replaced(self, changes: Mapping) -> "Fields":
        """The same config with single fields replaced, under their transformers names; what it asks is asked here too."""
        names = {other for name in changes for other in other_names(name)}
        other = Fields({k: v for k, v in self.config.items() if k not in names} | dict(changes), self.where)
        other.asked = self.asked
        return other

    def key(self, name: str) -> str:
        """The name under which `name` stands in the config, or `name` itself when it is absent.

        Raises SpecError when two aliases stand there with different values.
        """
        if name in self._found:
            return self._found[name]
        stronger, names = STRONGER.get(name, ()), (name, *ALIASES.get(name, ()))
        self.asked.update(stronger, names, (n.partition(".")[0] for n in names))
        present = next(([k] for k in stronger if self._at(k) is not None), [k for k in names if self._at(k) is not None])
        if len({repr(self._at(k)) for k in present}) > 1:
            values = ", ".join(f"{k} = {short(self._at(k))}" for k in present)
            raise SpecError(f"{self.where}: {values} contradict each other; keep one")
        self._found[name] = present[0] if present else name
        return self._found[name]

    def get(self, name: str) -> object:
        """The value, or None when the field is absent or null."""
        return self._at(self.key(name))

    def has(self, name: str) -> bool:
        """Does the field stand there under any of its names, null included?"""
        self.key(name)
        return any(n in self.config for n in (name, *ALIASES.get(name, ())))

    def integer(self, name: str, *, minimum: int = 1) -> int:
        """The value as a whole number ≥ minimum; MissingField when absent or null, SpecError when anything else."""
        value = self.get(name)
        if value is None:
            others = f" (or {', '.join(ALIASES[name])})" if name in ALIASES else ""
            raise MissingField(f"{self.where}: {name} is {self._state(name)} and decides the answer; add it{others}")
        return whole(f"{self.where}: {self.key(name)}", value, minimum)

    def optional(self, name: str, *, minimum: int = 1) -> int | None:
        """None when absent or null, else the value as a whole number ≥ minimum."""
        return None if self.get(name) is None else self.integer(name, minimum=minimum)

    def text(self, name: str) -> str | None:
        """None when absent or null, else the value as text."""
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            raise SpecError(f"{self.where}: {self.key(name)} is {short(value)}; expected a text")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """The value as true or false; `default` when absent or null."""
        value = self.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise SpecError(f"{self.where}: {self.key(name)} is {short(value)}; expected true or false")
        return value

    def listed(self, name: str, length: int | None = None) -> list | None:
        """None when absent or null, else the value as a list; with `length`, of exactly so many entries."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise SpecError(f"{self.where}: {self.key(name)} is {short(value)}; expected a list")
        if length is not None and len(value) != length:
            raise SpecError(f"{self.where}: {self.key(name)} has {len(value)} entries and num_hidden_layers is {length}; "
                            "there must be one for each layer")  # fmt: skip
        return list(value)

    def indices(self, name: str, n_layers: int, first: int = 0) -> set[int] | None:
        """None when absent or null, else a list of layer numbers, counted from `first`, as 0-based indices."""
        value = self.listed(name)
        if value is None:
            return None
        found = {whole(f"{self.where}: an entry of {name}", i, first) - first for i in value}
        if found and max(found) >= n_layers:
            raise SpecError(f"{self.where}: {name} names layer {max(found) + first} and num_hidden_layers is {n_layers}; "
                            "correct one of them")  # fmt: skip
        return found

    def _at(self, path: str) -> object:
        value = self.config
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        return value

    def _state(self, name: str) -> str:
        return "null" if name in self.config else "absent"
