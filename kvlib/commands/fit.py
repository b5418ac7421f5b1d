"""`kvlib fit`."""

from pathlib import Path
from typing import Annotated

import typer

from kvlib.commands import options as opt
from kvlib.commands.app import app, examples
from kvlib.errors import SpecError
from kvlib.i18n import T


@app.command(
    help=T("反推最長的序列、放得下幾個、最少幾張卡；各種容量算法並列。", "The other way round: the longest sequence, how many fit, the fewest "
           "cards, under every reading of their size."),
    epilog=examples("fit llama-2-70b --gpu h100-80gb --gpus 2", "fit gemma-3-27b --gpus 1 --tokens 131072 --sequences 8",
                    "fit llama-2-70b --gpus 2 --plot fit.png"),
)  # fmt: skip
def fit(
    model: opt.Model,
    gpu: opt.Gpu = "h100-80gb",
    gpus: opt.Gpus = 1,
    tokens: opt.Tokens = 4096,
    sequences: Annotated[int, typer.Option("--sequences", "-s", metavar="N", min=1, help=T(
        "也找放得下這麼多序列的最少卡數", "Also find the fewest cards for so many sequences"))] = 1,
    utilization: Annotated[list[float] | None, typer.Option(metavar="SHARE", show_default=False, help=T(
        "可用的比例；可重複（預設 1、0.92、0.9）", "Fraction that may be used; may be repeated (default: 1, 0.92, 0.9)"))] = None,
    weight_dtype: opt.Weights = None,
    weight_gb: opt.WeightGB = None,
    kv_dtype: opt.KvDtype = "bf16",
    runtime_gb: opt.RuntimeGB = 3.0,
    activation_gb: opt.ActivationGB = 0.0,
    block_size: opt.BlockSize = 1,
    plot: Annotated[Path | None, typer.Option(metavar="PNG", dir_okay=False, show_default=False, help=T(
        "把序列數對長度的圖存成 PNG", "Save a figure of sequences against length as a PNG"))] = None,
    mtp: opt.Mtp = False,
    encoder_tokens: opt.EncoderTokens = None,
    set_fields: opt.Set = None,
    as_json: opt.Json = False,
    lang: opt.Language = None,
) -> int:  # fmt: skip
    from kvlib.commands.weighing import weigh
    from kvlib.fit import UTILIZATIONS, fewest_cards, readings
    from kvlib.reports.fit import FitReport
    from kvlib.reports.screen import console, say

    if plot is not None and plot.suffix.lower() != ".png":
        raise SpecError(f"--plot {str(plot)!r}: the figure is a PNG; give a name that ends in .png")
    spec, dtype, nbytes = weigh(model, weight_dtype, weight_gb, mtp, encoder_tokens, set_fields)
    options = {
        "weight_dtype": dtype or "bf16", "kv_dtype": kv_dtype, "weight_bytes": nbytes,
        "runtime_per_gpu": opt.to_bytes("--runtime-gb", runtime_gb), "activation_bytes": opt.to_bytes("--activation-gb", activation_gb),
    }  # fmt: skip
    found = readings(spec, gpu, gpus, utilization or UTILIZATIONS, **options)
    cards = [tuple(fewest_cards(spec, gpu, tokens, n, block_size, capacity=r.capacity, utilization=r.utilization, **options)
                   for n in (1, sequences)) for r in found]  # fmt: skip
    answer = FitReport(found, cards, tokens, sequences, block_size, dtype)
    opt.show(answer, as_json)
    if plot is not None:
        from kvlib.reports.fit_figure import save

        words = save(plot, spec, gpu, gpus, tokens, utilization or UTILIZATIONS, options)
        if not as_json:
            say(console(), words, "")
    return 0 if answer.fits else 1
