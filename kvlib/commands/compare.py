"""`kvlib compare`."""

from kvlib.commands import options as opt
from kvlib.commands.app import app, examples
from kvlib.i18n import T


@app.command(
    help=T("並列各模型：每 token 位元組、封頂與固定的部分、權重、序列數。", "Models side by side: bytes per token, capped and constant parts, "
           "weights, sequences that fit."),
    epilog=examples("compare llama-3-8b gemma-3-12b qwen3-8b --tokens 32768",
                    "compare llama-3-70b gpt-oss-120b --gpu h200-141gb --tokens 131072"),
)  # fmt: skip
def compare(
    models: opt.Models,
    tokens: opt.Tokens = 4096,
    gpu: opt.Gpu = "",
    gpus: opt.Gpus = 1,
    weight_dtype: opt.Weights = opt.BF16,
    kv_dtype: opt.KvDtype = "bf16",
    mtp: opt.Mtp = False,
    encoder_tokens: opt.EncoderTokens = None,
    as_json: opt.Json = False,
    lang: opt.Language = None,
) -> int:
    from kvlib.hardware import load_gpu
    from kvlib.kv_formats import kv_name
    from kvlib.reports.compare import Comparison, side

    card = load_gpu(gpu) if gpu else None
    kv_dtype, weights = kv_name(kv_dtype), str(weight_dtype)
    sides = [side(opt.load(model, mtp, encoder_tokens), kv_dtype, tokens, weights, card, gpus) for model in models]
    opt.show(Comparison(sides, tokens, kv_dtype, weights, card and card.name, gpus), as_json)
    return 0
