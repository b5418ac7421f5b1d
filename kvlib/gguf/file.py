"""The head of a GGUF file, read with the `gguf` package of llama.cpp: its keys and values and the names of its tensors."""

from dataclasses import dataclass
from pathlib import Path

from kvlib.errors import SpecError


@dataclass(frozen=True, slots=True)
class Head:
    """values: by key; an array of strings is the number of its entries. tensors: names."""

    values: dict[str, object]
    tensors: frozenset[str]


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
    except OSError as err:
        raise SpecError(f"{path} cannot be read: {err.strerror}; give a model's .gguf file") from err
    except SpecError:
        raise
    except Exception as err:  # the package raises whatever numpy does where a file ends too early
        raise SpecError(f"{path} is cut off or damaged, or of an unknown version ({err}); download it again") from err
    return Head(values, frozenset(tensor.name for tensor in reader.tensors))


def _value(field: object) -> object:
    """A field's value; of an array of strings (a vocabulary) only its length, which is all that is asked for."""
    strings = [kind.name for kind in field.types] == ["ARRAY", "STRING"]
    return len(field.data) if strings else field.contents()
