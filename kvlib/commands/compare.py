"""`kvlib compare`."""

from typing import Annotated

import typer

from kvlib.commands import options as opt
from kvlib.commands.app import app, examples
from kvlib.errors import SpecError
from kvlib.i18n import T


@app.command(
    help=T("並列各模型：每 token 位元組、封頂與固定的部分、權重、序列數。", "Models side by side: bytes per token, capped and constant parts, "
           "weights, sequences that fit."),
    epilog=examples("compare llama-3-8b gemma-3-12b qwen3-8b -n 4096 -n 32768",
                    "compare llama-3-70b gpt-oss-120b --gpu h200-141gb --tokens 131072"),
)  # fmt: skip
def compare(
    models: opt.Models,
    tokens: Annotated[list[int] | None, typer.Option("--tokens", "-n", metavar="N", parser=opt.count, show_default=False, help=T(
        "每個序列的 token 數；可重複（預設 4096）", "Tokens per sequence; may be repeated (default: 4096)"))] = None,
    gpu: opt.Gpu = "",
    gpus: Annotated[int | None, typer.Option(metavar="N", min=1, show_default=False, help=T(
        "卡數（張量平行；預設 1）", "Number of cards (tensor parallel; default: 1)"))] = None,
    capacity: opt.CapacityOf = opt.DECIMAL,
    utilization: opt.Utilization = 1.0,
    weight_dtype: opt.Weights = None,
    kv_dtype: opt.KvDtype = "bf16",
    mtp: opt.Mtp = False,
    encoder_tokens: opt.EncoderTokens = None,
    set_fields: opt.Set = None,
    as_json: opt.Json = False,
    lang: opt.Language = None,
) -> int:  # fmt: skip
    from kvlib.commands.weighing import weigh
    from kvlib.hardware import load_gpu
    from kvlib.kv_formats import kv_name
    from kvlib.reports.compare import Cards, Comparison, side

    if gpus is not None and not gpu:
        raise SpecError("--gpus says how many cards; add --gpu, which says of which kind")
    cards = Cards(load_gpu(gpu), gpus or 1, str(capacity), utilization) if gpu else None
    weighed = [weigh(model, weight_dtype, None, mtp, encoder_tokens, set_fields) for model in models]
    kv_dtype, lengths = kv_name(kv_dtype), tuple(dict.fromkeys(tokens or [4096]))
    sides = [side(w.spec, kv_dtype, lengths, w.dtype, cards) for w in weighed]
    opt.show(Comparison(sides, lengths, kv_dtype, weight_dtype and str(weight_dtype), cards), as_json)
    return 0
