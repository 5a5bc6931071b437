"""One definition of percentiles serves all commands."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.bench.record import Measurement
from mxwire.host.perf.parameters import PerfResult
from mxwire.host.ping import PingStatistics
from mxwire.order_statistics import percentile


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=200), st.integers(0, 100))
def test_percentiles_are_those_of_numpy(values, percent):
    assert percentile(sorted(values), percent) == pytest.approx(np.percentile(values, percent))


def test_every_command_has_the_same_median():
    trips = PingStatistics()
    for each in (1, 2, 3, 100):
        trips.add(each * 1000)
    times = trips.times()
    assert times is not None and times.median == 2500
    assert PerfResult.of(1, [2000, 4000, 6000, 200_000], unidirectional=False).percentile(50) == 2.5
    assert Measurement("tcp", "µs", (1, 2, 3, 100)).median == 2.5
