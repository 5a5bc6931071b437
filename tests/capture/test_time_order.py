"""Frames come in the order of their times, whatever the order of the file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mxwire.capture.time_order import CLOCK_STEPS, WINDOW_NS, in_time_order
from mxwire.frames import FrameBatch

HOUR = 3600 * 10**9


def batches_of(times: list[int], cuts: list[int]) -> Iterator[FrameBatch]:
    """Frames that say their own number, cut into batches."""
    every = FrameBatch.from_frames([number.to_bytes(4, "big") for number in range(len(times))], times)
    edges = [0, *sorted(cut % (len(times) + 1) for cut in cuts), len(times)]
    for start, end in pairwise(edges):
        yield every.select(np.arange(start, end))


def read(batches: Iterator[FrameBatch]) -> list[tuple[int, int]]:
    """Times and numbers, with the frame's own opinion of its number checked."""
    found = []
    for batch in in_time_order(batches):
        for place in range(len(batch)):
            assert int.from_bytes(batch.frame(place), "big") + 1 == batch.number[place]
            found.append((int(batch.timestamp_ns[place]), int(batch.number[place])))
    return found


@given(st.lists(st.integers(0, WINDOW_NS), max_size=60), st.lists(st.integers(0, 1000), max_size=6))
def test_disorder_within_the_window_is_undone(times, cuts):
    """Whatever the cuts, as long as a batch reaches at most into the one before it: larger ones do."""
    found = read(batches_of(times, cuts[:1]))
    assert found == sorted(zip(times, range(1, len(times) + 1), strict=True))


@given(st.lists(st.integers(0, 3 * WINDOW_NS), max_size=60), st.lists(st.integers(0, 1000), max_size=6))
def test_no_frame_is_lost_or_doubled(times, cuts):
    found = read(batches_of(times, cuts))
    assert sorted(found, key=lambda each: each[1]) == list(zip(times, range(1, len(times) + 1), strict=True))


def test_a_clock_that_was_set_back_does_not_mix_times():
    times = [HOUR + 2, HOUR + 1, HOUR + 3, 20, 10, 30]
    assert [number for _, number in read(batches_of(times, []))] == [2, 1, 3, 5, 4, 6]
    assert [number for _, number in read(batches_of(times, [3]))] == [2, 1, 3, 5, 4, 6]


def test_a_clock_that_is_mad_costs_no_more_than_a_bounded_effort():
    times = [HOUR * (place % 2) for place in range(20_000)]
    found = read(batches_of(times, []))
    assert len(found) == len(times) and found[2 * CLOCK_STEPS :] == list(
        zip(times[2 * CLOCK_STEPS :], range(2 * CLOCK_STEPS + 1, len(times) + 1), strict=True)
    )


def test_order_that_is_right_costs_no_copy():
    (batch,) = batches_of([1, 2, 2, 3], [])
    (same,) = in_time_order([batch])
    assert same is batch
