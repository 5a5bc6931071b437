"""Intervals of a measurement."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mxwire.host.perf.intervals import PerfInterval, PerfIntervals
from mxwire.protocol.counters import Counter

pytestmark = pytest.mark.interpreted("compiled code refuses an object of another class")


def test_intervals_have_all_iterations_and_the_retransmissions_since_the_one_before() -> None:
    endpoint: Any = SimpleNamespace(
        engine=SimpleNamespace(resends=SimpleNamespace(due=7)),
        host=SimpleNamespace(core=SimpleNamespace(node=SimpleNamespace(counters=dict.fromkeys(Counter, 0)))),
    )
    found: list[PerfInterval] = []
    intervals = PerfIntervals(endpoint, 1e-6, found.append)
    assert intervals.begin(5_000) == 6_000
    endpoint.engine.resends.due = 9
    endpoint.host.core.node.counters[Counter.PULL_TIMEOUT_FIRST_BLOCK] = 1
    intervals.end(100, [600, 600], 6_200, unidirectional=True)
    intervals.end(100, [600, 600, 300], 6_500, unidirectional=True, last=True)
    assert [(each.start_ns, each.end_ns, len(each.result.times), each.retransmissions) for each in found] == [
        (0, 1_200, 2, 3),
        (1_200, 1_500, 1, 0),
    ]
    assert found[1].record()["megabytes_per_second"] == 333.33


def test_a_length_within_its_first_interval_has_none() -> None:
    engine = SimpleNamespace(resends=SimpleNamespace(due=0))
    node = SimpleNamespace(counters=dict.fromkeys(Counter, 0))
    endpoint: Any = SimpleNamespace(engine=engine, host=SimpleNamespace(core=SimpleNamespace(node=node)))
    found: list[PerfInterval] = []
    intervals = PerfIntervals(endpoint, 1.0, found.append)
    intervals.begin(0)
    intervals.end(8, [1, 2], 3, unidirectional=False, last=True)
    assert not found
