"""SGLang: pools of token slots, one for the layers that keep all tokens, one for those with a window, one for states.

Every pool keeps one page, or one state, more than it hands out: writes of padded batches go there.
"""

from fractions import Fraction

from kvlib.engines.plan import Ask, Engine, Line, ceil_to, last_first, short_of
from kvlib.engines.rules import RULES, VERSIONS
from kvlib.errors import SpecError
from kvlib.i18n import T

WINDOW_SHARE = Fraction(8, 10)
"""Token slots of the window pool for each slot of the full pool. SGLang computes with floats; the shares here are exact."""

STATE_SHARE = Fraction(9, 10)
"""Memory of the states for each byte that the token pools take."""

STATES_PER_REQUEST = 3
"""States that a running request is counted with while prefixes are kept for reuse: its own, and those of prefixes."""


def _cells(ask: Ask, stage: range) -> tuple[int, int, int]:
    """Bytes of one slot in the full pool and in the window pool, and of one request's state."""
    if any(layer.cross_tokens for layer in ask.spec.layers):
        raise SpecError(f"{ask.spec.name} has cross-attention, and kvlib has no rule for what SGLang keeps of it; use "
                        "another engine")  # fmt: skip
    full = window = state = 0
    for layer in (ask.spec.layers[i] for i in stage):
        if ask.hybrid and layer.cap is not None:
            window += ask.token_bytes(layer) if layer.cap else 0
        else:
            full += ask.token_bytes(layer)
        state += ask.state_bytes(layer)
    return full, window, state


def _largest(ask: Ask) -> tuple[int, tuple[int, int, int]]:
    """The stage that holds most, and its cells."""
    cells = [_cells(ask, stage) for stage in ENGINE.stages(ask)]
    stage = max(range(len(cells)), key=lambda i: sum(cells[i]))
    return stage, cells[stage]


def _window(ask: Ask) -> int:
    return max((layer.cap or 0 for layer in ask.spec.layers), default=0)


def _charges(ask: Ask) -> tuple[int, str, int, str]:
    """Slots that one request is charged in either pool, all its tokens taken as prompt, and the arithmetic."""
    n, page, window, chunk = ask.n_tokens, ask.block_size, _window(ask), ask.max_num_batched_tokens
    tail = max(min(ceil_to(n, page), chunk) - window, 0)
    near = min(ceil_to(n, page), window)
    return n + page, f"{n:,} + {page}", tail + near + page, f"{tail:,} + {near:,} + {page}"


def _states(ask: Ask) -> int:
    return STATES_PER_REQUEST if ask.prefix_caching else 1


def admit(ask: Ask) -> dict:
    """The slots that the scheduler charges the batch's requests with before it lets them in."""
    stage, (full, window, state) = _largest(ask)
    full_slots, full_text, window_slots, window_text = _charges(ask)
    times = f"{ask.batch} × " if ask.batch > 1 else ""
    rows = (
        ("full", T("留全部 token 的層", "layers that keep all tokens"), f"({full_text})", full_slots, full),
        ("window", T("有視窗的層", "layers with a window"), f"({window_text})", window_slots, window),
        ("state", T("遞迴狀態", "recurrent state"), str(_states(ask)), _states(ask), state),
    )
    lines = tuple(Line(key, label, f"{times}{text} × {cell:,} B", ask.batch * slots * cell)
                  for key, label, text, slots, cell in rows if cell)  # fmt: skip
    slots = ask.batch * (full_slots if full or not window else window_slots)
    return {"lines": lines, "stage": stage, "blocks": slots // ask.block_size, "notes": _notes(ask)}


def allocate(ask: Ask) -> dict:
    """The pools: what fits into pool_bytes, or the smallest that lets the batch in."""
    stage, (full, window, state) = _largest(ask)
    page = ask.block_size
    states = ask.batch * _states(ask) if state else 0
    memory = ask.pool_bytes
    if memory is not None and state:
        share = int(memory * STATE_SHARE / (1 + STATE_SHARE)) if full or window else memory
        states = max(0, share // state - 1)
        memory -= (states + 1) * state
    if memory is None:
        full_tokens, window_tokens = _smallest(ask, full, window)
    else:
        cell = full + WINDOW_SHARE * window if full else window
        full_tokens = int(memory // cell) // page * page if cell else 0
        window_tokens = _share(full_tokens, page) if full else full_tokens
    rows = (
        ("full", T("全部 token 池", "pool of all tokens"), full_tokens, page, full),
        ("window", T("視窗池", "window pool"), window_tokens, page, window),
        ("state", T("狀態池", "state pool"), states, 1, state),
    )
    lines = tuple(Line(key, label, f"({n:,} + {spare}) × {cell:,} B", (n + spare) * cell)
                  for key, label, n, spare, cell in rows if cell)  # fmt: skip
    facts = {"tokens": full_tokens if full else window_tokens}
    facts |= {"window_tokens": window_tokens} if full and window else {}
    facts |= {"states": states} if state else {}
    full_charge, _, window_charge, _ = _charges(ask)
    pools = (full and (full_tokens - 1, full_charge), window and (window_tokens - 1, window_charge),
             state and (states, _states(ask)))  # fmt: skip
    fit = min((max(0, free) // charge for free, charge in filter(None, pools)), default=ask.batch)
    return {"lines": lines, "stage": stage, "blocks": facts["tokens"] // page, "facts": facts,
            "notes": (*short_of(ask, fit), *_notes(ask))}  # fmt: skip


def _share(tokens: int, page: int) -> int:
    return int(tokens * WINDOW_SHARE) // page * page


def _smallest(ask: Ask, full: int, window: int) -> tuple[int, int]:
    """Slots of both pools so that the batch is let in: a charge must be less than what is free."""
    page = ask.block_size
    full_charge, _, window_charge, _ = _charges(ask)
    if not full:
        return 0, ceil_to(ask.batch * window_charge + 1, page)
    tokens = ceil_to(ask.batch * full_charge + 1, page)
    while window and _share(tokens, page) <= ask.batch * window_charge:
        tokens += page
    return tokens, _share(tokens, page)


def _notes(ask: Ask) -> tuple[str, ...]:
    notes = []
    if ask.hybrid and _window(ask):
        notes.append(T("SGLang 只替部分架構設視窗池，其餘每層都留全部 token：--no-hybrid（hybrid=False）",
                       "only some architectures have a window pool; in others every layer keeps all tokens: "
                       "--no-hybrid (hybrid=False)"))  # fmt: skip
    if ask.tp > 1 and any(layer.state_bytes for layer in ask.spec.layers):
        notes.append(T("狀態按頭分到各卡", "the state is split over the ranks by heads"))
    return tuple(notes)


ENGINE = Engine(
    name="sglang",
    version=VERSIONS["sglang"],
    defaults={"block_size": 1, "max_num_batched_tokens": 8192, "pool_bytes": None,
              "prefix_caching": True, "hybrid": True},
    partition=last_first,
    admit=admit,
    allocate=allocate,
    rules=RULES["sglang"],
    formats=("fp32", "bf16", "fp16", "fp8", "mxfp8", "nvfp4", "fp8_ds_mla"),
    facts={
        "tokens": ("放得下 {:,} 個 token", "tokens that fit: {:,}"),
        "window_tokens": ("視窗池 {:,} 個 token", "tokens of the window pool: {:,}"),
        "states": ("{:,} 份狀態", "states: {:,}"),
    },
)
