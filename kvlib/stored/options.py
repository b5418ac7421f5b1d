"""The options of a quantization_config, each checked as it is read: every error names the option.

Raises SpecError for an option whose value is malformed, or whose meaning for the stored bytes is not known.
"""

from collections.abc import Mapping

from kvlib.errors import SpecError, short, whole

WAY_OUT = "give the bytes of the weights, weight_bytes= (--weight-gb), or one dtype for all, weight_dtype= (--weight-dtype)"


def names(config: Mapping, *keys: str) -> tuple[str, ...]:
    """Lists of names of modules, put together: a method may keep one under several names."""
    for key in keys:
        if not (config.get(key) is None or (isinstance(config[key], list | tuple) and all(isinstance(x, str) for x in config[key]))):
            raise SpecError(f"quantization_config.{key} is {short(config[key])}; expected a list of names of modules")
    return tuple(name for key in keys for name in config.get(key) or ())


def pair(name: str, value: object) -> tuple[int, int]:
    """The rows and columns of one block."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise SpecError(f"quantization_config.{name} is {short(value)}; expected two whole numbers, such as [128, 128]")
    return whole(f"quantization_config.{name}", value[0]), whole(f"quantization_config.{name}", value[1])


def group_size(config: Mapping) -> int:
    """Values that share a scale, -1: all of one row; absent: 128, the default of GPTQConfig and AwqConfig in transformers."""
    size = integer(config, "group_size", config.get("q_group_size", 128), minimum=-1)
    return size if size else integer(config, "group_size")


def unknown(what: str) -> SpecError:
    """The error for an option that is well formed and not known, with the way out."""
    return SpecError(f"quantization_config.{what}; {WAY_OUT}")


def choice(config: Mapping, key: str, default: object, *known: object) -> object:
    """The option's value, which must be one of `known`."""
    value = config.get(key, default)
    if value not in known:
        raise unknown(f"{key} is {short(value)}; kvlib knows {', '.join(map(repr, known))}")
    return value


def flag(config: Mapping, key: str) -> bool:
    """The option's value, which must be true or false; absent or null is false."""
    value = config.get(key)
    if not (value is None or isinstance(value, bool)):
        raise SpecError(f"quantization_config.{key} is {short(value)}; expected true or false")
    return bool(value)


def inner(config: Mapping, key: str) -> Mapping:
    """The options in the object of that name; none where it is absent or null."""
    value = config.get(key)
    if not (value is None or isinstance(value, Mapping)):
        raise SpecError(f"quantization_config: {key} is {short(value)}; expected an object")
    return value or {}


def bits_of(config: Mapping, default: object = None) -> int:
    """Bits per value that GPTQ and AWQ pack into int32."""
    bits = integer(config, "bits", default)
    if bits not in (2, 3, 4, 8):
        raise unknown(f"bits is {bits}; kvlib knows 2, 3, 4, 8")
    return bits


def integer(config: Mapping, key: str, default: object = None, minimum: int = 1) -> int:
    """The option's value as a whole number ≥ minimum."""
    return whole(f"quantization_config.{key}", config.get(key, default), minimum)


def left_alone(config: Mapping) -> tuple[str, ...]:
    """The modules that GPTQ or AWQ leaves alone: a list, and GPTQModel's `dynamic`, whose entries with "-:" are skipped.

    Its other entries give some modules bits or groups of their own, which are not known here.
    """
    dynamic = config.get("dynamic") or {}
    if not isinstance(dynamic, Mapping):
        raise SpecError(f"quantization_config.dynamic is {short(dynamic)}; expected an object of patterns")
    if other := next((pattern for pattern in dynamic if not str(pattern).startswith("-:")), None):
        raise unknown(f"dynamic gives {short(other)} options of its own, and kvlib reads only entries that skip modules (-:)")
    return (*names(config, "modules_to_not_convert"), *("re:" + pattern.removeprefix("-:") for pattern in dynamic))


def in_block(config: Mapping) -> tuple[str, ...]:
    """The names in `modules_in_block_to_quantize`, which may be in groups."""
    key, groups = "modules_in_block_to_quantize", config.get("modules_in_block_to_quantize") or []
    nested = isinstance(groups, list | tuple) and all(isinstance(group, list | tuple) for group in groups)
    return names({key: [name for group in groups for name in group] if nested else groups}, key)
