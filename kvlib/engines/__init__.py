"""What engines reserve and allocate for the cache, which is not what the model needs.

    ideal retained bytes      memory.kv_bytes      what the model still needs
    engine admission bytes    admission            what an engine reserves for one request of n_tokens
    allocated bytes           allocation           what its pool, or its static cache, holds

The rules are data, each with the version, file and symbol in which it was read: `ENGINES[name].rules`.
"""

from kvlib.engines import llamacpp, sglang, transformers, vllm
from kvlib.engines.options import checked, named
from kvlib.engines.plan import Ask, Engine, Line, Plan, Rule
from kvlib.errors import SpecError
from kvlib.spec import ModelSpec

__all__ = ["ENGINES", "Ask", "Engine", "Line", "Plan", "Rule", "admission", "allocation"]

ENGINES = {engine.name: engine for engine in (vllm.ENGINE, sglang.ENGINE, transformers.ENGINE, llamacpp.ENGINE)}


def admission(spec: ModelSpec, n_tokens: int, engine: str = "vllm", **options: object) -> Plan:
    """What `engine` reserves for a request of `n_tokens`, or for `batch` of them, on a rank of the largest stage.

    options: fields of `Ask`, such as kv_dtype="fp8", tp=2, pp=1, batch=1, block_size=16.

    >>> from kvlib import load_spec
    >>> plan = admission(load_spec("llama-2-70b"), 4097)
    >>> plan.blocks, plan.nbytes
    (257, 1347420160)

    Raises SpecError for an unknown engine, an option it does not have, a value out of range, or a model it cannot hold.
    """
    return _answer(spec, n_tokens, engine, options, "admit", "engine admission bytes")


def allocation(spec: ModelSpec, n_tokens: int, engine: str = "vllm", **options: object) -> Plan:
    """What the pool or the static cache of `engine` allocates, on one rank of the largest stage.

    With pool_bytes, the memory an engine may take: what it allocates of it, and how many tokens that holds. Without:
    the smallest that serves `batch` requests of `n_tokens`. options and errors as in `admission`.
    """
    return _answer(spec, n_tokens, engine, options, "allocate", "allocated bytes")


def _answer(spec: ModelSpec, n_tokens: int, name: str, options: dict, what: str, meaning: str) -> Plan:
    engine = ENGINES.get(name) if isinstance(name, str) else None
    if engine is None:
        raise SpecError(f"engine is {name!r}; expected one of {', '.join(ENGINES)}")
    if unknown := sorted(set(options) - set(Ask.__dataclass_fields__)):
        known = ", ".join(list(Ask.__dataclass_fields__)[2:])
        raise SpecError(f"there is no option {unknown[0]!r}; expected one of {known}")
    if what == "admit" and options.get("pool_bytes") is not None:
        raise SpecError(f"{named('pool_bytes')} is the size of a pool; ask allocation() for it")
    ask = checked(Ask(spec, n_tokens, **options), engine)
    return Plan(ask, engine, meaning, **getattr(engine, what)(ask))
