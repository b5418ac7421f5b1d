"""Lines of vLLM's start-up log that are easily taken for something else, and when."""

from kvlib.engines.log_checks import less_on_another_rank, needed_by_all_stages
from kvlib.engines.log_counting import Reading
from kvlib.engines.log_lines import Lines
from kvlib.i18n import T
from kvlib.units import format_bytes


def misleading(lines: Lines, x: Reading, n: int | None) -> tuple[str, ...]:
    """What a reader may misread in this log. x: how it came about, with a pool of n blocks, or None where it does not tell."""
    return tuple(note for applies, note in (*_sizes(lines, x, n), *_memory(lines, x, n)) if applies)


def _sizes(lines: Lines, x: Reading, n: int | None) -> list[tuple[object, str]]:
    n = n or 0
    longest, holds = x.ask.max_model_len, int(x.requests(n) * x.ask.max_model_len)
    several = lines.tokens is not None and x.groups > 1
    return [
        (lines.starts > 1, T(f"這份紀錄有 {lines.starts} 次啟動，這裡看的是最後一次。",
                             f"This log has {lines.starts} starts; this is the last one.")),
        (several and x.counting.evenly, T(
            f"到 0.20 為止，「KV cache size」把區塊平分給 {x.groups} 組，低估了混合架構：以 {longest:,} 個 token 的請求計，"
            f"這個池放得下 {holds:,} 個 token（vllm#40691）。",
            f"Up to 0.20 “KV cache size” shares the blocks evenly among {x.groups} groups, too low for a hybrid model: "
            f"in requests of {longest:,} tokens the pool holds {holds:,} tokens (vllm#40691).")),
        (several and x.counting.v1 and not x.counting.evenly, T(
            f"「KV cache size」是並行數 × {longest:,}，只對這麼長的請求成立；請求短，放得下的 token 就少。",
            f"“KV cache size” is concurrency × {longest:,} and holds for requests of that length; in short requests "
            "the pool holds fewer tokens.")),
        (lines.concurrency is not None and float(lines.concurrency) < 1, T(
            f"並行數小於 1：{longest:,} 個 token 的請求一個也放不下，引擎不會啟動。",
            f"A concurrency below 1: not even one request of {longest:,} tokens fits, and the engine does not start.")),
        (lines.refused_for and lines.concurrency is None and n, T(
            f"引擎沒有啟動：這個池是 {format_bytes(n * x.block)}，一個 {longest:,} 個 token 的請求要 "
            f"{format_bytes(x.per_request * x.block)}。",
            f"The engine did not start: this pool is {format_bytes(n * x.block)}, and one request of {longest:,} tokens takes "
            f"{format_bytes(x.per_request * x.block)}.")),
        (lines.override, T(
            "區塊數是手動指定的（num_gpu_blocks_override），不是由記憶體算出來的。",
            "The number of blocks was set by hand (num_gpu_blocks_override), not computed from memory.")),
        (lines.draft, T(
            "推測解碼的草稿模型也占快取，這裡只算主模型。",
            "Speculative decoding: the draft's layers take cache too; only the main model's are counted here.")),
        (lines.context_parallel, T(
            "上下文平行把 token 分到各卡，印出的並行數這裡不驗算。",
            "Context parallelism shares the tokens out; the printed concurrency is not checked here.")),
        (n and x.counting.v1 and not lines.override, T(
            f"{n:,} 個區塊裡，有一個保留不用。", f"One of the {n:,} blocks is never handed out.")),
    ]  # fmt: skip


def _memory(lines: Lines, x: Reading, n: int | None) -> list[tuple[object, str]]:
    held, whole_need = (n or 0) * x.block, needed_by_all_stages(x, lines)
    latent = any(layer.latent for layer in x.ask.spec.layers)
    whole = T("MLA 的潛在向量每張卡都有一份，加卡不會多放 token。",
              "An MLA latent is whole on every rank, so more ranks hold no more tokens.") if latent else ""  # fmt: skip
    return [
        (x.ask.tp > 1, T(
            f"記憶體是一張卡的，token 數是整個引擎的：{x.ask.tp} 張張量平行的卡存同樣的 token。{whole}",
            f"Memory is of one rank, tokens are of the whole engine: {x.ask.tp} tensor-parallel ranks hold the same "
            f"tokens. {whole}".rstrip())),
        (lines.ranks, T("各卡印出的數字不同，所有的卡都用最小的。", "The ranks print different numbers; all take the smallest.")),
        (less_on_another_rank(x, lines, n), T(
            f"印出的 token 數相當於 {format_bytes(held)}，比這一行的 {lines.memory} GiB 少："
            "可能是沒印出記憶體的另一張卡剩得更少，也可能是模型不對。要有每張卡的那一行才分得出來。",
            f"The printed tokens take {format_bytes(held)}, less than the {lines.memory} GiB of this line: "
            "another rank, which did not print its memory, may have had less left, or the model is another one. The lines of all "
            "ranks would tell.")),
        (whole_need, T(
            f"管線平行：這裡的「needed」是 {x.ask.pp} 段合計的 {float(whole_need or 0):.2f} GiB，其實一段只存自己的層"
            "（vllm#34076）。",
            f"Pipeline parallelism: “needed” is here the {float(whole_need or 0):.2f} GiB of all {x.ask.pp} stages together; a "
            "stage stores its own layers (vllm#34076).")),
        (lines.gb, T(f"「{lines.gb} GB」其實是 GiB：0.8 以前寫錯單位。",
                     f"“{lines.gb} GB” is GiB: versions before 0.8 name the wrong unit.")),
        (lines.peak, T("peak_torch_memory 含權重；0.6.6 起的 activation peak 不含。",
                       "peak_torch_memory includes the weights; the activation peak of 0.6.6 and later does not.")),
    ]  # fmt: skip
