"""The head of a GGUF file, read with the `gguf` package of llama.cpp: its keys and values, and what its tensors are."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kvlib.errors import SpecError


class Tensor(NamedTuple):
    """shape: as torch writes it, (out, in), experts first. nbytes: as stored in the file, scales included."""

    shape: tuple[int, ...]
    nbytes: int


@dataclass(frozen=True, slots=True)
class Head:
    """values: by key; an array of strings is the number of its entries. tensors: by name."""

    values: dict[str, object]
    tensors: dict[str, Tensor]

    @property
    def n_files(self) -> int:
        """In how many files the model is; the tensors are those of this one."""
        parts = self.values.get("split.count", 1)
        return parts if isinstance(parts, int) and parts > 1 else 1


def read_head(path: str | Path) -> Head:
    """Read the head of the GGUF file `path`; its tensors are mapped and not read.

    Raises SpecError when the package is missing, and when the file cannot be read, is no GGUF file, or is cut off.
    """
    try:
        from gguf import GGUFReader
    except ImportError as err:
        raise SpecError(f"{path}: reading a .gguf file takes the gguf package; pip install gguf, or give the model's "
                        "config.json") from err  # fmt: skip

    class Reader(GGUFReader):
        """Stops where the file ends: the package itself would go on collecting empty arrays until memory is full."""

        def _get(self, offset, dtype, count=1, *order, **orders):
            found = super()._get(offset, dtype, count, *order, **orders)
            if found.size < int(count):
                raise EOFError("it ends too early")
            return found

    try:
        with Path(path).open("rb") as file:
            magic = file.read(4)
        if magic != b"GGUF":
            raise SpecError(f"{path} is no GGUF file: it begins with {magic!r}; give a model's .gguf or its config.json")
        reader = Reader(path)
        values = {key: _value(field) for key, field in reader.fields.items()}
        tensors = {t.name: Tensor(tuple(int(n) for n in reversed(t.shape)), int(t.n_bytes)) for t in reader.tensors}
    except OSError as err:
        raise SpecError(f"{path} cannot be read: {err.strerror}; give a model's .gguf file") from err
    except SpecError:
        raise
    except Exception as err:  # the package raises whatever numpy does where a file ends too early
        raise SpecError(f"{path} is cut off or damaged, or of an unknown version ({err}); download it again") from err
    return Head(values, tensors)


def _value(field: object) -> object:
    """A field's value; of an array of strings (a vocabulary) only its length, which is all that is asked for."""
    strings = [kind.name for kind in field.types] == ["ARRAY", "STRING"]
    return len(field.data) if strings else field.contents()
