"""Contiguous reservation, simulated. The oracle keeps one list entry per slot."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlib import SpecError
from kvlib.reservation import (
    Request,
    chat_traffic,
    reserve_exact,
    reserve_max,
    reserve_power_of_two,
    simulate,
)

requests = st.lists(st.builds(Request, st.integers(1, 20), st.integers(1, 20)), min_size=8, max_size=25)
policies = st.sampled_from([reserve_max(40), reserve_power_of_two, reserve_exact])


def slot_by_slot(traffic, n_slots, reserve):
    """The same rules on a list with one entry per slot; returns the share of slots that hold a token."""
    owner, written, queue, running, shares = [None] * n_slots, [False] * n_slots, list(enumerate(traffic)), {}, []
    while queue:
        while queue:
            index, request = queue[0]
            size = reserve(request)
            start = next((i for i in range(n_slots - size + 1) if owner[i : i + size] == [None] * size), None)
            if start is None:
                break
            owner[start : start + size] = [index] * size
            for i in range(start, start + request.prompt):
                written[i] = True
            running[index] = [start, request.prompt, request.output]
            queue.pop(0)
        if queue:
            shares.append(sum(written) / n_slots)
        for index, entry in list(running.items()):
            start, length, left = entry
            written[start + length] = True
            running[index] = [start, length + 1, left - 1]
            if left == 1:
                for i in [i for i in range(n_slots) if owner[i] == index]:
                    owner[i], written[i] = None, False
                del running[index]
    return sum(shares) / len(shares)


@settings(max_examples=60, deadline=None)
@given(requests, policies)
def test_every_slot_is_in_one_of_four_parts(traffic, reserve):
    usage = simulate(traffic, 64, reserve)
    parts = (usage.tokens, usage.later, usage.never, usage.holes)
    assert sum(parts) == pytest.approx(1)
    assert min(parts) >= 0


@settings(max_examples=60, deadline=None)
@given(requests, policies)
def test_equals_a_simulation_slot_by_slot(traffic, reserve):
    assert simulate(traffic, 64, reserve).tokens == pytest.approx(slot_by_slot(traffic, 64, reserve))


def test_an_oracle_reserves_nothing_that_is_never_used():
    assert simulate(chat_traffic(100, seed=1), 10_000, reserve_exact).never == 0


def test_one_request_at_a_time_by_hand():
    # 2 prompt tokens and 2 generated; 4 of 6 slots reserved; seen with 2 and 3 tokens while the second one waits
    usage = simulate([Request(2, 2)] * 2, 6, reserve_exact)
    assert (usage.tokens, usage.later, usage.holes) == pytest.approx((2.5 / 6, 1.5 / 6, 2 / 6))


def test_traffic_is_replayable_and_within_bounds():
    assert chat_traffic(50, seed=3) == chat_traffic(50, seed=3) != chat_traffic(50, seed=4)
    assert all(2 <= r.prompt + r.output <= 512 for r in chat_traffic(500, seed=0, max_len=512))


@pytest.mark.parametrize(
    ("traffic", "slots", "reserve", "message"),
    [
        ([Request(9, 9)] * 3, 10, reserve_exact, "at most 10"),
        ([Request(9, 9)] * 3, 100, reserve_max(10), "at least 18"),
        ([Request(1, 1)], 100, reserve_exact, "more requests or fewer slots"),
    ],
)
def test_what_cannot_be_simulated_is_refused(traffic, slots, reserve, message):
    with pytest.raises(SpecError, match=message):
        simulate(traffic, slots, reserve)
