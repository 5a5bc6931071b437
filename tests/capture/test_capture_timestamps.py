"""Ticks of any resolution become the nanoseconds that exact fractions say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mxwire.capture.interfaces import TimestampClock


def wrapped(nanoseconds):
    return (nanoseconds + 2**63) % 2**64 - 2**63


@given(
    resolution=st.integers(0, 255),
    offset=st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5),
    ticks=st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 2**33), min_size=1, max_size=5),
)
def test_against_fractions(resolution, offset, ticks):
    clock = TimestampClock.from_option(resolution, offset)
    base = 2 if resolution & 0x80 else 10
    second = Fraction(1, base ** (resolution & 0x7F))
    expected = [wrapped(int(tick * second * 10**9) + offset * 10**9) for tick in ticks]
    assert clock.nanoseconds(np.array(ticks, np.uint64)).tolist() == expected
    assert clock.ticks_per_second == 1 / second
