"""How versions of vLLM count tokens and requests for their log, and which of its lines are easily misread."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kvlib.engines.log_lines import Lines
from kvlib.engines.plan import Ask
from kvlib.i18n import T
from kvlib.units import format_bytes


class Sizes(Protocol):
    """What counting needs to know of a pool."""

    ask: Ask
    counting: "Counting"
    block: int
    groups: int
    size: int
    per_request: int


@dataclass(frozen=True, slots=True)
class Counting:
    """One way to count. first, last: the versions that count so. hybrid: may windows keep less there? ahead: does a
    request count the tokens of more than one step in flight? blocks: the pools that print a number of tokens.
    """

    name: str
    first: tuple[int, ...]
    last: tuple[int, ...]
    hybrid: bool
    ahead: bool
    tokens: Callable[[int, Sizes], int]
    concurrency: Callable[[int, Sizes], float]
    blocks: Callable[[int, Sizes], range]
    token_formula: Callable[[int, Sizes], str]
    concurrency_formula: Callable[[int, Sizes], str]

    def fits(self, lines: Lines) -> bool:
        """Could the log be of a version that counts so? Its version decides, else its wording."""
        if lines.version is not None:
            numbers = tuple(int(part) for part in lines.version.split(".")[:2])
            if lines.blocks is None or self.name == "plain":
                return self.first <= numbers <= self.last or (self.name == "plain" and lines.blocks is not None)
            return False
        if lines.blocks is not None:
            return self.name == "plain"
        return self.ahead if lines.one_line else True


def _plain(n: int, x: Sizes) -> int:
    return n * x.size


def _shared(n: int, x: Sizes) -> int:
    return n // x.groups * x.size


def _requests(n: int, x: Sizes) -> float:
    return n / x.per_request


def _capacity(n: int, x: Sizes) -> int:
    return int(_requests(n, x) * x.ask.max_model_len)


def _around(tokens: int, x: Sizes) -> range:
    n = tokens * x.per_request // x.ask.max_model_len
    return range(max(0, n - 1), n + 2 + x.per_request // x.ask.max_model_len)


_PER_REQUEST = (_requests, lambda n, x: f"{n:,} / {x.per_request:,}")
_CAPACITY = dict(tokens=_capacity, concurrency=_requests, blocks=_around,
                 token_formula=lambda n, x: f"⌊{n:,} / {x.per_request:,} × {x.ask.max_model_len:,}⌋",
                 concurrency_formula=_PER_REQUEST[1])  # fmt: skip

COUNTINGS = (
    Counting("plain", (0, 0), (0, 8), False, False, _plain, lambda n, x: n * x.size / x.ask.max_model_len,
             lambda t, x: range(t // x.size, t // x.size + 1), lambda n, x: f"{n:,} × {x.size}",
             lambda n, x: f"{n:,} × {x.size} / {x.ask.max_model_len:,}"),
    Counting("shared", (0, 9), (0, 23), True, False, _shared, _requests,
             lambda t, x: range(t // x.size * x.groups, (t // x.size + 1) * x.groups),
             lambda n, x: f"{n:,} × {x.size}" if x.groups == 1 else f"⌊{n:,} / {x.groups}⌋ × {x.size:,}", _PER_REQUEST[1]),
    Counting("capacity", (0, 21), (0, 27), True, False, **_CAPACITY),
    Counting("ahead", (0, 25), (9, 0), True, True, **_CAPACITY),
)  # fmt: skip
"""Read in vLLM 0.5.4, 0.6.3, 0.6.4, 0.6.6, 0.7.3, 0.8.5, 0.9.2, 0.10.2, 0.11.2, 0.14.0, 0.18.0, 0.20.0, 0.24.0, 0.28.0 and
0.33.0 (v1/core/kv_cache_utils.py, before that executor/); where a version between two of them changed, both count."""


def misleading(lines: Lines, reading: Sizes, n: int) -> tuple[str, ...]:
    """What a reader of this log may take for something else, for the cases that apply to it."""
    return tuple(note for applies, note in _cases(lines, reading, n) if applies)


def _cases(lines: Lines, x: Sizes, n: int) -> list[tuple[object, str]]:
    requests, longest = n / x.per_request, x.ask.max_model_len
    held = format_bytes(n * x.block)
    shared = x.counting.name == "shared" and x.groups > 1
    ranks = x.ask.tp * x.ask.pp
    latent = any(layer.latent for layer in x.ask.spec.layers)
    return [
        (lines.starts > 1, T(f"這份紀錄有 {lines.starts} 次啟動；這裡看的是最後一次。",
                             f"This log has {lines.starts} starts; this is the last one.")),
        (shared and lines.tokens, T(
            f"「KV cache size」在 0.20 以前把區塊平分給 {x.groups} 組，低估了混合架構：{longest:,} 個 token 的請求，這個池放得下 "
            f"{int(requests * longest):,} 個 token（vllm#40691）。",
            f"Up to 0.20 “KV cache size” shares the blocks evenly among {x.groups} groups, which is too low for hybrid models: "
            f"of requests of {longest:,} tokens the pool holds {int(requests * longest):,} tokens (vllm#40691).")),
        (x.counting.name in ("capacity", "ahead") and x.groups > 1 and lines.tokens, T(
            f"「KV cache size」是並行數 × {longest:,}：只對這麼長的請求成立，短的請求放得下的 token 較少。",
            f"“KV cache size” is concurrency × {longest:,}: it holds for requests of that length; of short ones the pool holds "
            "fewer tokens.")),
        (ranks > 1, T(
            f"記憶體是一張卡的，token 數是整個引擎的：{x.ask.tp} 張張量平行的卡存同樣的 token，各存自己的頭。" +
            ("MLA 的潛在向量每張卡都有一份，加卡不會多放 token。" if latent else ""),
            f"Memory is of one rank, tokens are of the whole engine: {x.ask.tp} tensor-parallel ranks hold the same tokens, "
            "each its own heads." + (" An MLA latent is whole on every rank, so more ranks hold no more tokens." if latent else ""))),
        (lines.ranks, T("各卡印出的數字不同；所有的卡都用最小的那個。", "The ranks print different numbers; all take the smallest.")),
        (ranks > 1 and lines.memory and n * x.block < float(lines.memory) * 2**30 - 2**30 / 100, T(
            f"印出的區塊數相當於 {held}，少於這一行的 {lines.memory} GiB：另一張卡剩得更少。",
            f"The printed size is {held}, less than the {lines.memory} GiB of this line: another rank had less left.")),
        (x.ask.pp > 1 and lines.needed, T(
            "一個請求所需的記憶體是最大一段的；有些版本印出整個模型的（vllm#34076）。",
            "The memory one request needs is that of the largest stage; some versions print the whole model's (vllm#34076).")),
        (lines.gb, T(f"「{lines.gb} GB」其實是 GiB（0.8 起才改寫單位）。",
                     f"“{lines.gb} GB” is GiB: versions before 0.8 name the wrong unit.")),
        (lines.peak, T("peak_torch_memory 含權重；0.6.6 起的 activation peak 不含。",
                       "peak_torch_memory includes the weights; the activation peak of 0.6.6 and later does not.")),
        (lines.concurrency and float(lines.concurrency) < 1, T(
            f"並行數小於 1：{longest:,} 個 token 的請求一個也放不下，引擎會拒絕啟動。",
            f"A concurrency below 1: not even one request of {longest:,} tokens fits, and the engine refuses to start.")),
        (lines.override, T("區塊數是手動指定的（num_gpu_blocks_override），不是由記憶體算出來的。",
                           "The number of blocks was set by hand (num_gpu_blocks_override), not computed from memory.")),
        (lines.draft, T("推測解碼的草稿模型也占快取；這裡只算了主模型。",
                        "Speculative decoding: the draft's layers take cache too, and only the main model's are counted here.")),
        (x.counting.name != "plain" and not lines.override, T(
            "區塊數含一個從不分配的區塊。", "The blocks include one that is never handed out.")),
    ]  # fmt: skip
