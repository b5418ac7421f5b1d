"""`kvlib estimate`."""

from enum import StrEnum
from typing import Annotated

import typer

from kvlib.budget import check_split
from kvlib.commands import options as opt
from kvlib.commands.app import app, examples
from kvlib.errors import SpecError
from kvlib.i18n import T
from kvlib.kv_formats import kv_name

EngineName = StrEnum("EngineName", {name: name for name in ("vllm", "sglang", "transformers", "llama.cpp")})
ENGINE = T("引擎", "Engine")


@app.command(
    help=T("一批序列的 KV 快取占多少位元組：理想值、引擎預留的、配置的。", "Bytes of KV cache that a batch of sequences needs: ideally, and what "
           "an engine admits and allocates."),
    epilog=examples("estimate llama-2-70b --tokens 4096 --batch 32", "estimate gemma-3-27b -n 131072 --engine vllm",
                    "estimate ./config.json --kv-dtype q8_0/q4_0 --json", "estimate llama-2-70b --set num_key_value_heads=64"),
)  # fmt: skip
def estimate(
    model: opt.Model,
    tokens: opt.Tokens = 4096,
    batch: Annotated[int, typer.Option("--batch", "-b", metavar="N", min=1, help=T("序列數", "Number of sequences"))] = 1,
    kv_dtype: opt.KvDtype = "bf16",
    tp: Annotated[int, typer.Option(metavar="N", min=1, help=T("張量平行的卡數；大於 1 時，算的是一張卡", "Tensor-parallel ranks; above 1 "
                                                  "the numbers are those of one rank"))] = 1,
    mtp: opt.Mtp = False,
    encoder_tokens: opt.EncoderTokens = None,
    engine: Annotated[EngineName | None, typer.Option(metavar="ENGINE", show_default=False, rich_help_panel=ENGINE, help=T(
        f"再算引擎為請求預留多少、池或靜態快取配置多少：{', '.join(EngineName)}",
        f"Also what this engine admits for the requests, and what its pool or static cache allocates: {', '.join(EngineName)}"))] = None,
    block_size: Annotated[int | None, typer.Option(metavar="N", min=1, show_default=False, rich_help_panel=ENGINE, help=T(
        "每個區塊或頁的 token 數", "Tokens per block or page"))] = None,
    max_batched_tokens: Annotated[int | None, typer.Option(metavar="N", min=1, show_default=False, rich_help_panel=ENGINE, help=T(
        "一步最多幾個 token", "Most tokens of one step"))] = None,
    max_model_len: Annotated[int | None, typer.Option(metavar="N", min=1, show_default=False, rich_help_panel=ENGINE, help=T(
        "允許的最長請求（預設同 --tokens）", "The longest request that is allowed (default: as --tokens)"))] = None,
    pp: Annotated[int | None, typer.Option(metavar="N", min=1, show_default=False, rich_help_panel=ENGINE, help=T(
        "管線平行的段數；算的是最大的一段", "Pipeline stages; the numbers are those of the largest"))] = None,
    pool_gb: Annotated[float | None, typer.Option(metavar="GB", min=0, show_default=False, rich_help_panel=ENGINE, help=T(
        "一張卡給快取的池（預設剛好夠用）", "Pool for the cache on one card (default: the smallest that serves)"))] = None,
    no_prefix_caching: Annotated[bool, typer.Option("--no-prefix-caching", rich_help_panel=ENGINE, help=T(
        "關閉前綴快取", "Do not keep finished prefixes"))] = False,
    no_hybrid: Annotated[bool, typer.Option("--no-hybrid", rich_help_panel=ENGINE, help=T(
        "有視窗的層也留全部 token", "Layers with a window keep all tokens too"))] = False,
    unified: Annotated[bool, typer.Option("--unified", rich_help_panel=ENGINE, help=T(
        "llama.cpp：所有序列共用一個緩衝區", "All sequences share one buffer (llama.cpp)"))] = False,
    set_fields: opt.Set = None,
    verbose: opt.Verbose = False,
    as_json: opt.Json = False,
    lang: opt.Language = None,
) -> int:  # fmt: skip
    from kvlib.reports.estimate import Estimate

    options = {"block_size": block_size, "max_num_batched_tokens": max_batched_tokens, "max_model_len": max_model_len, "pp": pp,
               "prefix_caching": False if no_prefix_caching else None, "hybrid": False if no_hybrid else None,
               "unified": unified or None}  # fmt: skip
    options = {name: value for name, value in options.items() if value is not None}
    if engine is None and (options or pool_gb is not None):
        raise SpecError(f"{next(iter(options), 'pool_gb')} is an option of engines; add --engine, one of {', '.join(EngineName)}")
    spec = opt.load(model, mtp, encoder_tokens, set_fields)
    check_split(spec, tp, "tp")
    plans = ()
    if engine is not None:
        from kvlib.engines import admission, allocation

        options |= {"engine": str(engine), "kv_dtype": kv_dtype, "tp": tp, "batch": batch}
        plans = (admission(spec, tokens, **options),
                 allocation(spec, tokens, pool_bytes=opt.to_bytes("--pool-gb", pool_gb), **options))  # fmt: skip
    opt.show(Estimate(spec, tokens, batch, kv_name(kv_dtype), tp, *plans, verbose=verbose), as_json)
    return 0
