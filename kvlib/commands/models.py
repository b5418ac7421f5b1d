"""`kvlib models`."""

from typing import Annotated

import typer

from kvlib.commands import options as opt
from kvlib.commands.app import app, examples
from kvlib.errors import SpecError
from kvlib.i18n import T


@app.command(
    help=T("列出內建模型：每一層留下什麼、每個 token 幾個位元組。", "List the models that come with kvlib: what each layer keeps, and bytes per token."),
    epilog=examples("models", "models --search gemma -v"),
)
def models(
    search: Annotated[str, typer.Option(metavar="TEXT", show_default=False, help=T(
        "名稱或 Hub id 含有這些字", "Words that the name or the Hub id contains"))] = "",
    verbose: opt.Verbose = False,
    as_json: opt.Json = False,
    lang: opt.Language = None,
) -> int:  # fmt: skip
    from kvlib.catalogue import catalogue
    from kvlib.reports.models import Catalogue

    entries = catalogue(search)
    if not entries:
        raise SpecError(f"--search {search!r}: no shipped model has this in its name; `kvlib models` lists them all")
    opt.show(Catalogue(entries, verbose), as_json)
    return 0
