"""Reading single values of a GGUF file's head: one key, one type, one clear error that names them."""

from pathlib import Path

from kvlib.config.patterns import MOST_LAYERS
from kvlib.errors import SpecError, whole
from kvlib.gguf.file import Head


class Keys:
    """The values of one head, by key without the architecture's name in front."""

    def __init__(self, head: Head, architecture: str, path: str | Path) -> None:
        self.head, self.architecture, self.path = head, architecture, path
        self.n_blocks = self.integer("block_count")
        # block_count counts an encoder's layers, and those for multi-token prediction; a config does not
        self.n_layers = self.optional("decoder_block_count") or self.n_blocks - (self.optional("nextn_predict_layers") or 0)
        if self.n_layers < 1 or max(self.n_layers, self.n_blocks) > MOST_LAYERS:
            raise SpecError(f"{self.where('block_count')} is {self.n_blocks}, which makes {self.n_layers} layers; kvlib reads from "
                            f"1 to {MOST_LAYERS}")  # fmt: skip

    def where(self, key: str) -> str:
        return f"{self.path}: {self.architecture}.{key}"

    def get(self, key: str) -> object:
        return self.head.values.get(f"{self.architecture}.{key}")

    def integer(self, key: str, minimum: int = 1) -> int:
        if self.get(key) is None:
            raise SpecError(f"{self.where(key)} is absent and decides the answer; give the model's config.json")
        return whole(self.where(key), self.get(key), minimum)

    def optional(self, key: str) -> int | None:
        return None if self.get(key) is None else self.integer(key, 0)

    def divided(self, key: str, by: int) -> int:
        value = self.integer(key)
        if value % by:
            raise SpecError(f"{self.where(key)} is {value} and no multiple of {by}; give the model's config.json")
        return value // by

    def per_layer(self, key: str) -> list[int]:
        """A number for all layers, or an array with one for each; truth values count as 0 and 1."""
        value = self.get(key)
        if not isinstance(value, list):
            return [self.integer(key, 0)] * self.n_layers
        if len(value) != self.n_blocks:
            raise SpecError(f"{self.where(key)} has {len(value)} entries and block_count is {self.n_blocks}; give the model's "
                            "config.json")  # fmt: skip
        return [whole(self.where(key), int(n) if isinstance(n, bool) else n, 0) for n in value[: self.n_layers]]
