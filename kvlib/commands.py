"""`kvlib estimate` and `kvlib budget`: arguments in, a report out. The reports are in `report`, the arithmetic elsewhere."""

import json
from enum import StrEnum
from math import isfinite
from typing import Annotated

import typer

from kvlib import report
from kvlib.budget import memory_budget
from kvlib.dtypes import BITS
from kvlib.errors import SpecError
from kvlib.hardware import CAPACITIES, GPUS
from kvlib.i18n import LANGUAGES, T
from kvlib.kv_formats import KV_FORMATS, kv_name
from kvlib.readers import load_spec
from kvlib.sources import presets
from kvlib.spec import ModelSpec
from kvlib.units import GB

Lang = StrEnum("Lang", {lang: lang for lang in LANGUAGES})
Dtype = StrEnum("Dtype", {name: name for name in BITS})
Capacity = StrEnum("Capacity", {name: name for name in CAPACITIES})

EXAMPLE = T("範例：", "Example: ")
EXAMPLES = (f"\n\n{EXAMPLE}kvlib estimate llama-2-70b --tokens 4096 --batch 32"
            f"\n\n{EXAMPLE}kvlib budget llama-2-70b --gpu h100-80gb --gpus 2 --tokens 4096")  # fmt: skip

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help=T("KV 快取要多少記憶體，以及這些數字怎麼來。", "How much memory a KV cache takes, and where the number comes from."),
    epilog=T("結束碼：0 算出答案；1 一個序列也放不下（budget）；2 輸入有誤。",
             "Exit codes: 0 answered; 1 not even one sequence fits (budget); 2 wrong input.")
    + EXAMPLES,
)  # fmt: skip


Model = Annotated[str, typer.Argument(metavar="MODEL|config.json", show_default=False, help=T(
    f"內建模型名稱，或 config.json 的路徑。內建：{', '.join(presets())}",
    f"A preset, or the path of a config.json. Presets: {', '.join(presets())}"))]  # fmt: skip
Tokens = Annotated[int, typer.Option("--tokens", "-n", min=1, help=T("每個序列的 token 數", "Tokens per sequence"))]
KvDtype = Annotated[str, typer.Option(metavar="FORMAT|K/V", help=T(
    f"K 與 V 的儲存格式；不同時寫 K/V，例如 q8_0/q4_0。可用：{', '.join(KV_FORMATS)}",
    f"How K and V are stored; K/V where they differ, as in q8_0/q4_0. Formats: {', '.join(KV_FORMATS)}"))]  # fmt: skip
Set = Annotated[list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help=T(
    "改寫 config 的一個欄位；可重複，例如 num_key_value_heads=64",
    "Replace one config field; may be repeated, as in num_key_value_heads=64"))]  # fmt: skip
Json = Annotated[bool, typer.Option("--json", help=T("輸出 JSON", "Print JSON"))]
Language = Annotated[Lang | None, typer.Option("--lang", show_default=False, help=T(
    "報表語言（預設依系統的 locale）", "Language of the report (default: the locale's)"))]  # fmt: skip


@app.command(
    help=T("一批序列的 KV 快取要占多少位元組。", "Bytes of KV cache that a batch of sequences needs."),
    epilog=f"{EXAMPLE}kvlib estimate llama-2-70b --tokens 4096 --batch 32"
    f"\n\n{EXAMPLE}kvlib estimate ./config.json --kv-dtype fp8 --json"
    f"\n\n{EXAMPLE}kvlib estimate llama-2-70b --set num_key_value_heads=64",
)
def estimate(
    model: Model,
    tokens: Tokens = 4096,
    batch: Annotated[int, typer.Option("--batch", "-b", min=1, help=T("序列數", "Number of sequences"))] = 1,
    kv_dtype: KvDtype = "bf16",
    tp: Annotated[int, typer.Option(min=1, help=T("張量平行的卡數；大於 1 時，數字是其中一張卡的", "Tensor-parallel ranks; above 1 "
                                                  "the numbers are those of one rank"))] = 1,
    set_fields: Set = None,
    as_json: Json = False,
    lang: Language = None,
) -> int:  # fmt: skip
    spec = _load(model, set_fields)
    answer = report.Estimate(spec, tokens, batch, kv_name(kv_dtype), tp)
    _show(answer, as_json)
    return 0


@app.command(
    help=T("這些卡放了權重之後，還放得下多少序列。", "What the cards hold beside the weights, and how many sequences that is."),
    epilog=f"{EXAMPLE}kvlib budget llama-2-70b --gpu h100-80gb --gpus 2 --tokens 4096"
    f"\n\n{EXAMPLE}kvlib budget llama-2-70b --gpus 2 --capacity reported --utilization 0.9"
    f"\n\n{EXAMPLE}kvlib budget llama-2-70b --gpus 2 --weight-dtype fp8 --block-size 16 --json",
)
def budget(
    model: Model,
    gpu: Annotated[str, typer.Option(help=T("GPU 型號：", "Card: ") + ", ".join(GPUS))] = "h100-80gb",
    gpus: Annotated[int, typer.Option(min=1, help=T("卡數（張量平行）", "Number of cards (tensor parallel)"))] = 1,
    tokens: Tokens = 4096,
    capacity: Annotated[Capacity, typer.Option(help=T(
        "「80 GB」怎麼算：decimal 是 80·10⁹，binary 是 80·2³⁰，reported 是程式實際看到的容量", "What 80 GB means: decimal 80·10⁹, binary "
        "80·2³⁰, reported: what a program sees"))] = Capacity("decimal"),
    utilization: Annotated[float, typer.Option(help=T("可用的比例", "Fraction that may be used"))] = 1.0,
    weight_dtype: Annotated[Dtype, typer.Option(help=T("權重的儲存型別", "How weights are stored"))] = Dtype("bf16"),
    weight_gb: Annotated[float | None, typer.Option(min=0, show_default=False, help=T(
        "直接指定權重有幾 GB（預設：參數數量 × 型別）", "Weights in GB, if not parameters × dtype"))] = None,
    kv_dtype: KvDtype = "bf16",
    runtime_gb: Annotated[float, typer.Option(min=0, help=T("執行環境每張卡占幾 GB", "Runtime per card, in GB"))] = 3.0,
    activation_gb: Annotated[float, typer.Option(min=0, help=T("啟動值占幾 GB（所有卡合計）", "Activations over all cards, in GB"))] = 0.0,
    block_size: Annotated[int, typer.Option(min=1, help=T("每個區塊的 token 數", "Tokens per block"))] = 1,
    set_fields: Set = None,
    as_json: Json = False,
    lang: Language = None,
) -> int:  # fmt: skip
    ledger = memory_budget(
        _load(model, set_fields),
        gpu,
        gpus,
        capacity=str(capacity),
        utilization=utilization,
        weight_dtype=str(weight_dtype),
        kv_dtype=kv_dtype,
        weight_bytes=None if weight_gb is None else _bytes("--weight-gb", weight_gb),
        runtime_per_gpu=_bytes("--runtime-gb", runtime_gb),
        activation_bytes=_bytes("--activation-gb", activation_gb),
    )
    _show(report.BudgetReport(ledger, tokens, block_size, str(capacity), utilization,
                              None if weight_gb is not None else str(weight_dtype)), as_json)  # fmt: skip
    return 0 if ledger.max_sequences(tokens, block_size) else 1


def _bytes(option: str, gb: float) -> int:
    if not isfinite(gb):
        raise SpecError(f"{option} is {gb}; expected a number of GB")
    return round(gb * GB)


def _load(model: str, set_fields: list[str] | None) -> ModelSpec:
    overrides = {}
    for item in set_fields or []:
        field, equals, value = item.partition("=")
        try:
            overrides[field] = json.loads(value)
        except ValueError:
            overrides[field] = value
        if not (field and equals):
            raise SpecError(f"--set {item!r}; expected FIELD=VALUE, such as num_key_value_heads=64")
    return load_spec(model, **overrides)


def _show(answer: "report.Report", as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(answer.as_dict(), ensure_ascii=False, indent=2))
    else:
        answer.print()
