"""The numbers that follow-up answers of sheet 5 state are those that kvlib computes."""

import pytest

from kvlib import load_spec
from kvlib.roofline import ridge, step_cost, tokens_where_kv_equals_weights
from tools.book import ROOT
from tools.sheet import Sheet
from tools.source import LANGUAGES

SHEET = {e.id: e for e in Sheet.read(ROOT / "exercises" / "src" / "05-decode-on-cuda.md").exercises}


def tpot() -> list[str]:
    llama = load_spec("llama-2-70b")
    one, many = (step_cost(llama, 4096, batch) for batch in (1, 32))
    seconds = [cost.seconds("h100-80gb", n_gpus=2) for cost in (one, many)]
    speeds = [1 / seconds[0], 32 / seconds[1]]
    crossing = tokens_where_kv_equals_weights(llama)
    return [
        f"{1e3 * seconds[0]:.2f}", f"{1e3 * seconds[1]:.2f}", f"{speeds[0]:.0f}", f"{speeds[1]:,.0f}",
        f"{speeds[1] / speeds[0]:.1f}", f"{100 * many.kv_bytes / many.nbytes:.0f}%", f"{one.weight_bytes:,}",
        f"{one.kv_bytes // 4096:,}", f"{crossing:,.0f}", f"{crossing / 32:,.0f}", f"{one.kv_bytes / 1e9:.2f} GB",
        f"{ridge('h100-80gb'):.0f}", f"{step_cost(llama, 4096, 256).intensity:.0f}",
        f"{step_cost(llama, 4096, 1024).intensity:.0f}", f"{100 * 1e3 * seconds[0] / 26:.0f}%",
    ]  # fmt: skip


def merge() -> list[str]:
    written = 16 * 64 * (128 + 1) * 4
    long, short = 32768 * 4096, 1024 * 4096
    assert 2 * written / long < 0.01
    return [f"{written:,}", f"{2 * written / 1e6:.2f} MB", f"{long / 1e6:.0f} MB", f"{short / 1e6:.1f} MB",
            f"{100 * 2 * written / short:.0f}%"]  # fmt: skip


def split() -> list[str]:
    n_splits = -(-132 // 8)
    return [f"{n_splits}", f"{8 * n_splits}", f"{64 * 8}", f"{-(-2048 // 128)} × 64 = {-(-2048 // 128) * 64:,}"]


def kernel() -> list[str]:
    elements = 64 * 8 * 32768 * 128
    assert elements == 2**31
    return [f"{elements:,}", f"{64 // 8}", f"{ridge('h100-80gb'):.0f}"]


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize(("id", "computed"), [("tpot-floor", tpot), ("merge-splits", merge), ("split-k-decode", split),
                                              ("triton-decode", kernel)])  # fmt: skip
def test_follow_ups_state_what_is_computed(id, computed, lang):
    said = "\n".join(SHEET[id].prose("follow-up", lang))
    assert not [number for number in computed() if number not in said]
