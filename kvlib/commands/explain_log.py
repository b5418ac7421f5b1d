"""`kvlib explain-log`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from kvlib.commands import options as opt
from kvlib.commands.app import app, examples
from kvlib.errors import SpecError
from kvlib.i18n import T


@app.command(
    name="explain-log",
    help=T("vLLM 啟動時印的快取大小、區塊數、並行數，與模型算的相符嗎？", "Do the cache size, blocks and concurrency that vLLM prints at its start "
           "follow from the model?"),
    epilog=examples("explain-log vllm.log", "explain-log vllm.log --model llama-3.1-8b --max-batched-tokens 2048"),
)  # fmt: skip
def explain_log(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help=T(
        "紀錄檔；- 讀標準輸入", "The log; - reads standard input"))],
    model: Annotated[str | None, typer.Option(show_default=False, help=T("預設取自紀錄；", "Default: the log's. ") + opt.WHAT_A_MODEL_IS)] = None,
    kv_dtype: Annotated[str | None, typer.Option(metavar="FORMAT", show_default=False, help=T(
        "KV 的儲存格式（預設取自紀錄）", "How K and V are stored (default: the log's)"))] = None,
    tp: Annotated[int | None, typer.Option(metavar="N", min=1, show_default=False, help=T(
        "張量平行的卡數（預設取自紀錄）", "Tensor-parallel ranks (default: the log's)"))] = None,
    pp: Annotated[int | None, typer.Option(metavar="N", min=1, show_default=False, help=T(
        "管線平行的段數（預設取自紀錄）", "Pipeline stages (default: the log's)"))] = None,
    block_size: Annotated[int | None, typer.Option(metavar="N", min=1, show_default=False, help=T(
        "每個區塊的 token 數（預設取自紀錄）", "Tokens per block (default: the log's)"))] = None,
    max_batched_tokens: Annotated[int | None, typer.Option(metavar="N", min=1, show_default=False, help=T(
        "一步最多幾個 token（預設取自紀錄）", "Most tokens of one step (default: the log's)"))] = None,
    max_model_len: Annotated[int | None, typer.Option(metavar="N", min=1, show_default=False, help=T(
        "引擎允許的最長請求（預設取自紀錄）", "The longest request that is allowed (default: the log's)"))] = None,
    as_json: opt.Json = False,
    lang: opt.Language = None,
) -> int:  # fmt: skip
    from kvlib.engine_log import explain_log as explain
    from kvlib.reports.log import LogReport

    found = explain(_read(file), model, kv_dtype=kv_dtype, tp=tp, pp=pp, block_size=block_size,
                    max_num_batched_tokens=max_batched_tokens, max_model_len=max_model_len)  # fmt: skip
    opt.show(LogReport(found), as_json)
    return 1 if found.follows is False else 0


def _read(file: Path) -> str:
    if str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SpecError(f"the log {str(file)!r} cannot be read: {error.strerror}") from error
