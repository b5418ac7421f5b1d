"""Peak of live tensor bytes, on real memory and on the meta device, against counts made by hand."""

import pytest

torch = pytest.importorskip("torch")

from kvlib.live import peak_live_bytes


@pytest.fixture(params=["cpu", "meta"])
def x(request):
    return torch.ones(1000, device=request.param)  # 4,000 bytes in float32


def test_inputs_do_not_count(x):
    assert peak_live_bytes(lambda: x.view(10, 100).t()) == 0


def test_what_is_freed_before_does_not_add_up(x):
    def chain():
        y = x + 1
        for _ in range(5):
            y = y + 1  # old and new y are alive while the sum runs

    assert peak_live_bytes(chain) == 2 * 4000


def test_what_is_kept_adds_up(x):
    assert peak_live_bytes(lambda: [x + i for i in range(5)]) == 5 * 4000


def test_views_cost_nothing_and_copies_do(x):
    assert peak_live_bytes(lambda: (x + 1).view(10, 100).t()) == 4000
    assert peak_live_bytes(lambda: (x + 1).view(10, 100).t().contiguous()) == 2 * 4000


def test_in_place_operations_cost_nothing(x):
    assert peak_live_bytes(lambda: (x + 1).mul_(2).add_(1)) == 4000


def test_a_full_size_layer_needs_no_memory():
    huge = torch.empty(2**20, 2**20, device="meta", dtype=torch.bfloat16)
    assert peak_live_bytes(lambda: huge * 2) == 2 * 2**40
