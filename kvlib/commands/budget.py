"""`kvlib budget`."""

from kvlib.budget import memory_budget
from kvlib.commands import options as opt
from kvlib.commands.app import app, examples
from kvlib.i18n import T


@app.command(
    help=T("這些卡放了權重之後，還放得下多少序列。", "What the cards hold beside the weights, and how many sequences that is."),
    epilog=examples("budget llama-2-70b --gpu h100-80gb --gpus 2 --tokens 4096",
                    "budget llama-2-70b --gpus 2 --capacity reported --utilization 0.9",
                    "budget llama-2-70b --gpus 2 --weight-dtype fp8 --block-size 16 --json"),
)  # fmt: skip
def budget(
    model: opt.Model,
    gpu: opt.Gpu = "h100-80gb",
    gpus: opt.Gpus = 1,
    tokens: opt.Tokens = 4096,
    capacity: opt.CapacityOf = opt.DECIMAL,
    utilization: opt.Utilization = 1.0,
    weight_dtype: opt.Weights = None,
    weight_gb: opt.WeightGB = None,
    kv_dtype: opt.KvDtype = "bf16",
    runtime_gb: opt.RuntimeGB = 3.0,
    activation_gb: opt.ActivationGB = 0.0,
    block_size: opt.BlockSize = 1,
    mtp: opt.Mtp = False,
    encoder_tokens: opt.EncoderTokens = None,
    set_fields: opt.Set = None,
    as_json: opt.Json = False,
    lang: opt.Language = None,
) -> int:
    from kvlib.commands.weighing import weigh
    from kvlib.reports.budget import BudgetReport

    spec, dtype, nbytes = weigh(model, weight_dtype, weight_gb, mtp, encoder_tokens, set_fields)
    ledger = memory_budget(
        spec,
        gpu,
        gpus,
        capacity=str(capacity),
        utilization=utilization,
        weight_dtype=dtype or "bf16",
        kv_dtype=kv_dtype,
        weight_bytes=nbytes,
        runtime_per_gpu=opt.to_bytes("--runtime-gb", runtime_gb),
        activation_bytes=opt.to_bytes("--activation-gb", activation_gb),
    )
    opt.show(BudgetReport(ledger, tokens, block_size, str(capacity), utilization, dtype), as_json)
    return 0 if ledger.max_sequences(tokens, block_size) else 1
