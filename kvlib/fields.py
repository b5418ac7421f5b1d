"""Reading single fields of a config.json: one name, its aliases, one type, one clear error."""

from collections.abc import Mapping

from kvlib.errors import MissingField, SpecError, whole

ALIASES = {
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "hidden_size": ("n_embd", "d_model"),
    "num_attention_heads": ("n_head", "n_heads"),
    "num_key_value_heads": ("n_head_kv", "num_kv_heads", "n_kv_heads", "multi_query_group_num"),
    "head_dim": ("attention_head_dim", "kv_channels"),
}


class Fields:
    """A config mapping that is read by the transformers name of a field, aliases included."""

    def __init__(self, config: Mapping, where: str) -> None:
        self.config, self.where = config, where
        self.asked: set[str] = set()  # every name under which something was looked for

    def key(self, name: str) -> str:
        """The name under which `name` stands in the config, or `name` itself when it is absent.

        Raises SpecError when two aliases stand there with different values.
        """
        names = (name, *ALIASES.get(name, ()))
        self.asked.update(names)
        present = [k for k in names if self.config.get(k) is not None]
        if len({repr(self.config[k]) for k in present}) > 1:
            values = ", ".join(f"{k} = {self.config[k]!r}" for k in present)
            raise SpecError(f"{self.where}: {values} contradict each other; keep one")
        return present[0] if present else name

    def get(self, name: str) -> object:
        """The value, or None when the field is absent or null."""
        return self.config.get(self.key(name))

    def integer(self, name: str, *, minimum: int = 1) -> int:
        """The value as a whole number ≥ minimum; MissingField when absent or null, SpecError when anything else."""
        value = self.get(name)
        if value is None:
            state = "null" if name in self.config else "absent"
            raise MissingField(f"{self.where}: {name} is {state} and decides the answer; add it")
        return whole(f"{self.where}: {self.key(name)}", value, minimum)

    def optional(self, name: str, *, minimum: int = 1) -> int | None:
        """None when absent or null, else the value as a whole number ≥ minimum."""
        return None if self.get(name) is None else self.integer(name, minimum=minimum)

    def text(self, name: str) -> str | None:
        """None when absent or null, else the value as text."""
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            raise SpecError(f"{self.where}: {name} is {value!r}; expected a text")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """The value as true or false; `default` when absent or null."""
        value = self.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise SpecError(f"{self.where}: {name} is {value!r}; expected true or false")
        return value
