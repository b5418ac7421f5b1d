"""Arguments that several commands share, and how they become what the library takes."""

import json
import re
from enum import StrEnum
from math import isfinite
from typing import Annotated

import typer

from kvlib.dtypes import BITS
from kvlib.errors import SpecError
from kvlib.hardware import CAPACITIES, GPUS
from kvlib.i18n import LANGUAGES, T
from kvlib.kv_formats import KV_FORMATS
from kvlib.readers import load_spec
from kvlib.reports import Report
from kvlib.spec import ModelSpec
from kvlib.units import GB

Lang = StrEnum("Lang", {lang: lang for lang in LANGUAGES})
WeightDtype = StrEnum("WeightDtype", {name: name for name in (*BITS, "stored")})
Capacity = StrEnum("Capacity", {name: name for name in CAPACITIES})
DECIMAL = Capacity("decimal")

WHAT_A_MODEL_IS = T("內建模型（kvlib models 列出）、config.json 或它的資料夾、.gguf 檔，或 Hub 的 id（組織/名稱）",
                    "A preset (kvlib models lists them), a config.json or its folder, a .gguf file, or a Hub id (org/name)")  # fmt: skip
Model = Annotated[str, typer.Argument(metavar="MODEL", show_default=False, help=WHAT_A_MODEL_IS)]
Models = Annotated[list[str], typer.Argument(metavar="MODEL…", show_default=False, help=WHAT_A_MODEL_IS)]


def count(text: str | int) -> int:
    """A number of tokens, with commas between thousands if one likes. 32k is refused: it has two meanings."""
    text = str(text).strip()
    if unclear := re.fullmatch(r"(\d{1,9})([km])", text, re.IGNORECASE):
        n, power = int(unclear[1]), 1 if unclear[2].lower() == "k" else 2
        thousands, binary = f"{n * 1000**power:,}", f"{n * 1024**power:,}"
        raise typer.BadParameter(T(f"{text} 可能是 {thousands}，也可能是 {binary}：請寫出其中一個",
                                   f"{text} is {thousands} or {binary}: write one of them"))  # fmt: skip
    plain = text.replace(",", "") if re.fullmatch(r"\d{1,3}(,\d{3})+", text) else text
    try:
        n = int(plain)
    except ValueError:
        raise typer.BadParameter(T(f"{text[:40]} 不是整數", f"{text[:40]!r} is not a whole number")) from None
    if n < 1:
        raise typer.BadParameter(T(f"{n} 太小，至少要 1", f"{n} is not in the range x>=1."))
    return n


TOKENS = typer.Option("--tokens", "-n", metavar="N", parser=count, help=T("每個序列的 token 數", "Tokens per sequence"))
Tokens = Annotated[int, TOKENS]
KvDtype = Annotated[str, typer.Option(metavar="FORMAT|K/V", help=T(
    f"K 與 V 的儲存格式；不同時寫 K/V，例如 q8_0/q4_0。可用：{', '.join(KV_FORMATS)}",
    f"How K and V are stored; K/V where they differ, as in q8_0/q4_0. Formats: {', '.join(KV_FORMATS)}"))]  # fmt: skip
Mtp = Annotated[bool, typer.Option("--mtp", help=T("多 token 預測的層也算", "Count the layers for multi-token prediction too"))]
EncoderTokens = Annotated[int | None, typer.Option(metavar="N", min=0, show_default=False, help=T(
    "交叉注意力留下幾個編碼器 token（文字編碼器的輸入、影像的 patch）", "Tokens of the encoder's output that cross-attention keeps (input "
    "text, image patches)"))]  # fmt: skip
Set = Annotated[list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", show_default=False, help=T(
    "改寫 config 的一個欄位；可重複，例如 num_key_value_heads=64",
    "Replace one config field; may be repeated, as in num_key_value_heads=64"))]  # fmt: skip
Gpu = Annotated[str, typer.Option(metavar="GPU", help=T("GPU 型號：", "Card: ") + ", ".join(GPUS)
                                  + T("；其他的卡寫容量，例如 96gb", "; for any other its size, such as 96gb"))]  # fmt: skip
CapacityOf = Annotated[Capacity, typer.Option("--capacity", metavar="READING", help=T(
    "「80 GB」怎麼算：decimal 是 80·10⁹，binary 是 80·2³⁰，reported 是程式實際看到的容量", "What 80 GB means: decimal 80·10⁹, binary "
    "80·2³⁰, reported: what a program sees"))]  # fmt: skip
Utilization = Annotated[float, typer.Option(metavar="SHARE", help=T("可用的比例", "Fraction that may be used"))]
Gpus = Annotated[int, typer.Option(metavar="N", min=1, help=T("卡數（張量平行）", "Number of cards (tensor parallel)"))]
Weights = Annotated[WeightDtype | None, typer.Option(metavar="DTYPE", show_default=False, help=T(
    f"權重的儲存型別：{', '.join(BITS)}，或 stored（照檢查點的存法）；預設：有量化的檢查點用 stored，其餘 bf16",
    f"How weights are stored: {', '.join(BITS)}, or stored (as in the checkpoint). Default: stored where the checkpoint is "
    "quantised, else bf16"))]  # fmt: skip
WeightGB = Annotated[float | None, typer.Option(metavar="GB", min=0, show_default=False, help=T(
    "權重的 GB 數（預設：參數量 × 型別）", "Weights in GB, if not parameters × dtype"))]  # fmt: skip
RuntimeGB = Annotated[float, typer.Option(metavar="GB", min=0, help=T("執行環境每張卡占幾 GB", "Runtime per card, in GB"))]
ActivationGB = Annotated[float, typer.Option(metavar="GB", min=0, help=T("啟動值占幾 GB（所有卡合計）", "Activations over all cards, in GB"))]
BlockSize = Annotated[int, typer.Option(metavar="N", min=1, help=T("每個區塊的 token 數", "Tokens per block"))]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help=T("列出每條規則或事實的出處", "Say where each rule or fact was read"))]
Json = Annotated[bool, typer.Option("--json", help=T("輸出 JSON（格式見 kvlib/schemas）", "Print JSON (kvlib/schemas says what is in it)"))]
Language = Annotated[Lang | None, typer.Option("--lang", show_default=False, help=T(
    "報表語言（預設依系統的 locale）", "Language of the report (default: the locale's)"))]  # fmt: skip


def load(model: str, mtp: bool, encoder_tokens: int | None, set_fields: list[str] | None = None) -> ModelSpec:
    """The model as the options describe it. Raises SpecError as `load_spec` does, and for a --set without a value."""
    return load_spec(model, mtp=mtp, encoder_tokens=encoder_tokens, **overrides(set_fields))


def overrides(set_fields: list[str] | None) -> dict[str, object]:
    """The fields of --set. Raises SpecError for one without a value."""
    found = {}
    for item in set_fields or []:
        field, equals, value = item.partition("=")
        if not (field and equals):
            raise SpecError(f"--set {item!r}; expected FIELD=VALUE, such as num_key_value_heads=64")
        try:
            found[field] = json.loads(value)
        except ValueError:
            found[field] = value
    return found


def to_bytes(option: str, gb: float | None) -> int | None:
    """Bytes of a number of GB, None as it is. Raises SpecError for what is no number."""
    if gb is None:
        return None
    if not isfinite(gb):
        raise SpecError(f"{option} is {gb}; expected a number of GB")
    return round(gb * GB)


def show(answer: Report, as_json: bool) -> None:
    """Print a report, as JSON or for people. Whatever can go wrong does so before the first line."""
    found = answer.as_dict()
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False, indent=2))
    else:
        answer.print()
