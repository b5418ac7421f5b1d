"""The figure of `kvlib fit --plot`: how many sequences fit, against their length, as a band over the readings of the cards.

The only module of the command line that imports matplotlib.
"""

from collections.abc import Iterable
from math import log2
from pathlib import Path

from kvlib.budget import splits
from kvlib.errors import SpecError
from kvlib.fit import Reading, longest_sequence, readings
from kvlib.hardware import load_gpu
from kvlib.i18n import T, language
from kvlib.spec import ModelSpec

try:
    import matplotlib

    matplotlib.use("Agg")  # no window, no display
    from matplotlib import pyplot

    from kvlib.figures import png
    from kvlib.style import BLUE, GREEN, ORANGE, use
except ImportError as missing:
    raise SpecError(f"--plot needs {missing.name}, which is not installed; pip install 'kvlib[book]', or in a checkout "
                    "pip install -e '.[book]'") from missing  # fmt: skip

POINTS_PER_DOUBLING = 8
LEAST = 0.5  # sequences; below one nothing fits


def save(path: Path, spec: ModelSpec, gpu: str, n_gpus: int, n_tokens: int, utilizations: Iterable[float], options: dict) -> str:
    """Draw the figure to `path` and return it in words. options: those of `memory_budget`.

    Raises SpecError when `path` cannot be written, or not one sequence of one token fits on four times the cards.
    """
    use(language())
    bands = {n: readings(spec, gpu, n, utilizations, **options) for n in _cards(spec, n_gpus)}
    bands = {n: band for n, band in bands.items() if any(r.budget.fits and r.budget.max_sequences(1) for r in band)}
    if not bands:
        raise SpecError(f"--plot has nothing to draw: {spec.name} does not fit on {n_gpus} × {load_gpu(gpu).name} or four times "
                        "as many; raise --gpus")  # fmt: skip
    fig = _draw(spec, load_gpu(gpu).name, bands, n_tokens)
    try:
        path.write_bytes(png(fig))
    except OSError as error:
        raise SpecError(f"--plot {str(path)!r} cannot be written: {error.strerror}") from error
    return _words(spec, load_gpu(gpu).name, bands, n_tokens)


def _cards(spec: ModelSpec, n_gpus: int) -> list[int]:
    """The cards asked for, and the next two doublings that the heads can be split over."""
    return [n for n in (n_gpus, 2 * n_gpus, 4 * n_gpus) if splits(spec, n)]


def _lengths(spec: ModelSpec, n_tokens: int) -> list[int]:
    """From 1,024 tokens, or a sixteenth, to the longest that the model or the question has, evenly in doublings."""
    most = max(spec.max_position_embeddings or n_tokens, n_tokens)
    least = min(1024, most // 16 or 1)
    steps = max(1, round(log2(most / least) * POINTS_PER_DOUBLING))
    return sorted({round(least * (most / least) ** (i / steps)) for i in range(steps + 1)})


def _range(band: list[Reading], n_tokens: int) -> tuple[float, float]:
    """Sequences under the smallest and the largest reading."""
    found = [r.budget.sequences(n_tokens) for r in band]
    return min(found), max(found)


def _draw(spec: ModelSpec, gpu: str, bands: dict[int, list[Reading]], n_tokens: int):
    xs = _lengths(spec, n_tokens)
    fig, ax = pyplot.subplots()
    top = 1.0
    for (n, band), colour in zip(bands.items(), (ORANGE, BLUE, GREEN), strict=False):
        low, high = zip(*(_range(band, x) for x in xs), strict=True)
        ax.fill_between(xs, low, high, color=colour, alpha=0.3, linewidth=0)
        ax.plot(xs, high, color=colour)
        ax.annotate(f"{n} × {gpu}", (xs[-1], max(high[-1], LEAST)), xytext=(6, 0), textcoords="offset points", va="center", color=colour)
        top = max(top, high[0])
    ax.axhline(1, color="black", linewidth=1, linestyle="--")
    ax.axvline(n_tokens, color="black", linewidth=1, linestyle=":")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_ylim(LEAST, 2.5 * top)
    ax.set_xlim(xs[0], xs[-1])
    ax.xaxis.set_major_formatter(lambda x, _: f"{x / 1024:g}K" if x >= 1024 else f"{x:g}")
    ax.yaxis.set_major_formatter(lambda y, _: f"{y:,g}")
    ax.set_xlabel(T("每個序列的 token 數", "tokens per sequence"))
    ax.set_ylabel(T("放得下的序列", "sequences that fit"))
    ax.set_title(T(f"{spec.name}：放得下幾個序列", f"{spec.name}: how many sequences fit"))
    return fig


def _words(spec: ModelSpec, gpu: str, bands: dict[int, list[Reading]], n_tokens: int) -> str:
    """The figure in words, with its numbers at `n_tokens` and where it ends."""
    said = []
    for n, band in bands.items():
        low, high = _range(band, n_tokens)
        longest = max(band, key=lambda r: r.budget.capacity)
        end = longest_sequence(longest.budget)
        said.append(T(f"{n} 張 {gpu} 放得下 {low:,.2f} 到 {high:,.2f} 個", f"{n} × {gpu} hold {low:,.2f} to {high:,.2f}")
                    + (T("，長度不限", ", at any length") if end is None else
                       T(f"，單一序列最長 {end:,} 個 token", f", a single one up to {end:,} tokens")))  # fmt: skip
    head = T(f"圖：{spec.name} 的序列數對長度，兩軸都是對數，色帶涵蓋各種容量算法。{n_tokens:,} 個 token 時，",
             f"Figure: sequences of {spec.name} against their length, both axes logarithmic; a band spans the readings of the "
             f"cards' size. At {n_tokens:,} tokens ")  # fmt: skip
    return head + T("；", "; ").join(said) + T("。", ".")
