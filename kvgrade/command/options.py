"""Options that several commands share."""

from enum import StrEnum
from typing import Annotated

import typer

from kvlib.i18n import LANGUAGES, T

Lang = StrEnum("Lang", {lang: lang for lang in LANGUAGES})
Levels = StrEnum("Levels", {n: n for n in ("1", "2")})

EXAMPLE = T("範例：", "Example: ")

Json = Annotated[bool, typer.Option("--json", help=T("輸出 JSON", "Print JSON"))]
Language = Annotated[Lang | None, typer.Option("--lang", show_default=False, help=T(
    "語言（預設依系統的 locale）", "Language (default: the locale's)"))]  # fmt: skip
Seed = Annotated[str | None, typer.Option("--seed", show_default=False, help=T(
    "種子：同樣的 seed 出同樣的題，預設隨機", "Seed of the questions; the same seed asks the same (default: random)"))]  # fmt: skip
Level = Annotated[Levels | None, typer.Option("--level", show_default=False, help=T(
    "獨立行程用 1，加沙箱用 2；預設取最高可用級", "1: a process of its own; 2: and a sandbox (default: the best this machine has)"))]  # fmt: skip
