"""The cost of findings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.analysis.diagnosis.finding import seconds, standstill

from .plays import SHOWS
from .scene import diagnosed

MILLISECOND = 1_000_000
WAITS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)).map(lambda each: (each[0], each[0] + each[1])))


@given(WAITS)
def test_waits_at_the_same_time_count_once(waits):
    covered = {at for start, end in waits for at in range(start, end)}
    assert (standstill(waits) or 0) == len(covered)


@pytest.mark.parametrize(
    ("name", "least_ms", "most_ms"),
    [
        ("tail-loss", 1000, 1010),
        ("frames-lost", 1008, 1020),  # two messages, each repeated after 504 ms and a little
        ("receiver-not-progressing", 2500, 3300),
        ("mute-peer", 3000, 3100),  # six repetitions
        ("latency-after-idle", 1.8, 1.9),  # 20 pauses, after which a round trip takes 95 us longer
    ],
)
def test_cost_is_the_time_that_transfers_stood_still(name, least_ms, most_ms):
    (finding,) = [each for each in diagnosed(SHOWS[name].scene().batch()) if each.id == name]
    assert finding.cost.ns is not None
    assert least_ms * MILLISECOND <= finding.cost.ns <= most_ms * MILLISECOND


def test_frames_that_came_late_cost_little_and_copies_only_frames():
    (late,) = [each for each in diagnosed(SHOWS["frames-out-of-order"].scene().batch()) if each.id != "frames-lost"]
    assert late.cost.ns is not None and late.cost.ns < 10 * MILLISECOND
    (copies,) = diagnosed(SHOWS["frames-duplicated"].scene().batch())
    assert copies.cost.ns is None and copies.cost.frames == 3


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (1, "0.0 ms"),
        (999_949_999, "999.9 ms"),
        (999_950_000, "1.0 s"),
        (1_000_000_000, "1.0 s"),
        (2_549_999_999, "2.5 s"),
    ],
)
def test_a_duration_is_rounded_before_its_unit_is_chosen(nanoseconds: int, text: str):
    assert seconds(nanoseconds) == text
