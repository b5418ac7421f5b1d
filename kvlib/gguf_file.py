"""The head of a GGUF file: its keys and values and the names of its tensors, without the tensors.

Invariant: nothing behind the head is read, so a file of 100 GB takes as long as its vocabulary. Format: ggml, docs/gguf.md,
versions 2 and 3, either byte order. A tokenizer's long lists of strings are counted and not kept.
"""

from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from struct import calcsize, error, unpack_from

from kvlib.errors import SpecError

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""GGUF's type numbers and Python's struct codes. 8 is a string, 9 an array."""
STRING, ARRAY = 8, 9


@dataclass(frozen=True, slots=True)
class Head:
    """values: by key; an array of strings is the number of its entries. tensors: names."""

    values: dict[str, object]
    tensors: frozenset[str]


def read_head(path: str | Path) -> Head:
    """Read the head of the GGUF file `path`.

    Raises SpecError when the file cannot be read, is no GGUF file, of a version that is not known, or cut off.
    """
    try:
        with Path(path).open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            if data[:4] != b"GGUF":
                raise SpecError(f"{path} is no GGUF file: it begins with {data[:4]!r}; give a model's .gguf or its config.json")
            return _Cursor(path, data).head()
    except OSError as err:
        raise SpecError(f"{path} cannot be read: {err.strerror}; give a model's .gguf file") from err
    except (error, UnicodeDecodeError) as err:
        raise SpecError(f"{path} is cut off or damaged: its head is not whole; download it again") from err
    except ValueError as err:
        if isinstance(err, SpecError):
            raise
        raise SpecError(f"{path} is empty; download it again") from err  # an empty file cannot be mapped


class _Cursor:
    """A place in the file, and reading from there on."""

    def __init__(self, path: str | Path, data: mmap) -> None:
        self.path, self.data, self.at, self.order = path, data, 4, "<"

    def head(self) -> Head:
        version = self.number("I")
        if version & 0xFFFF == 0:  # written in the other byte order
            self.at, self.order = 4, ">"
            version = self.number("I")
        if version not in (2, 3):
            raise SpecError(f"{self.path} is GGUF version {version}; kvlib reads 2 and 3: convert the model again")
        n_tensors, n_values = self.number("Q"), self.number("Q")
        values = {}
        for _ in range(n_values):
            key = self.text()
            if key in values:
                raise SpecError(f"{self.path}: the key {key} stands there twice; convert the model again")
            values[key] = self.value(self.number("I"))
        return Head(values, frozenset(self.tensor() for _ in range(n_tensors)))

    def number(self, code: str) -> int | float | bool:
        (value,) = self.numbers(code, 1)
        return value

    def numbers(self, code: str, count: int) -> tuple:
        if count * calcsize(f"{self.order}{code}") > len(self.data) - self.at:
            raise error("more numbers than the file is long")
        values = unpack_from(f"{self.order}{count}{code}", self.data, self.at)
        self.at += calcsize(f"{self.order}{count}{code}")
        return values

    def text(self) -> str:
        length = self.number("Q")
        self.at += length
        if self.at > len(self.data):
            raise error("a string longer than the file")
        return self.data[self.at - length : self.at].decode()

    def value(self, kind: int) -> object:
        if kind in NUMBERS:
            return self.number(NUMBERS[kind])
        if kind == STRING:
            return self.text()
        if kind != ARRAY:
            raise error(f"no type {kind}")
        kind, count = self.number("I"), self.number("Q")
        if kind in NUMBERS:
            return list(self.numbers(NUMBERS[kind], count))
        if kind != STRING:
            raise error(f"no array of type {kind}")
        for _ in range(count):
            self.at += 8 + unpack_from(f"{self.order}Q", self.data, self.at)[0]
        return count

    def tensor(self) -> str:
        """The name; then number of dimensions, dimensions, type and offset, which are passed over."""
        name, n_dims = self.text(), self.number("I")
        self.at += 8 * n_dims + 4 + 8
        if self.at > len(self.data):
            raise error("a tensor's description is cut off")
        return name
