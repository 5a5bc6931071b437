"""Searches against imaginary devices: what they find, and that they always end."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.errors import MxwireError
from mxwire.linerate import search as searches
from mxwire.linerate.search import TRIALS_MAXIMUM, search_count, search_rate, step_down


def decide(search, attempt):
    tried = []

    def noted(value):
        tried.append(value)
        return attempt(value)

    return searches.decide(search, noted), tried


@given(st.floats(1, 1e8), st.floats(0, 1.2), st.floats(0.001, 0.2), st.integers(1, 5))
def test_the_limit_of_a_device_is_found_to_the_resolution(top, share, resolution, repetitions):
    limit = top * share
    found, tried = decide(search_rate(top, resolution, repetitions), lambda rate: rate <= limit)
    assert found.settled
    assert found.value <= limit
    assert found.value == top if limit >= top else limit - found.value <= top * resolution * 1.0001
    if found.value:
        assert tried.count(found.value) == repetitions
    assert all(0 < rate <= top for rate in tried)


@settings(max_examples=200)
@given(st.integers(0, 10_000), st.floats(0, 1), st.floats(0.01, 0.2), st.integers(1, 5))
def test_a_device_that_loses_at_random_gets_a_rate_that_passed_or_none(seed, loss, resolution, repetitions):
    random = Random(seed)
    outcomes: dict[float, list[bool]] = {}

    def attempt(rate: float) -> bool:
        outcomes.setdefault(rate, []).append(random.random() >= loss)
        return outcomes[rate][-1]

    found, tried = decide(search_rate(1000.0, resolution, repetitions), attempt)
    assert len(tried) <= TRIALS_MAXIMUM
    if found.value and found.settled:
        assert outcomes[found.value].count(True) >= repetitions and all(outcomes[found.value])


def test_a_resolution_must_be_possible():
    for resolution in (0.0, 1.0, -1.0):
        with pytest.raises(MxwireError, match="resolution"):
            next(search_rate(10.0, resolution))


@given(st.floats(1, 1e7), st.floats(0, 1.5))
def test_losses_are_measured_down_to_two_rates_without_any(limit, share):
    capacity = limit * share
    found, tried = decide(step_down(limit), lambda rate: max(0.0, 1 - capacity / rate))
    assert [rate for rate, _ in found] == tried
    assert tried[0] == limit and all(a > b for a, b in pairwise(tried))
    losses = [loss for _, loss in found]
    if len(tried) < 10:
        assert losses[-2:] == [0, 0] and 0 not in losses[:-2]


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(1, 1000))
def test_the_longest_burst_is_found_to_the_resolution(maximum, buffer, resolution):
    found, tried = decide(search_count(maximum, resolution), lambda count: count <= buffer)
    assert found <= buffer
    assert found == maximum if buffer >= maximum else buffer - found < max(resolution, 1)
    assert all(1 <= each <= maximum for each in tried) and len(tried) < 50


def test_a_burst_has_at_least_one_frame():
    with pytest.raises(MxwireError):
        next(search_count(0))
