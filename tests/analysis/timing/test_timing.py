"""Timing of captures, against what the programs printed that were recorded."""

from __future__ import annotations

from random import Random

import pytest

from mxwire.analysis.time_sequence import FrameTrace
from mxwire.analysis.timing import Timing
from mxwire.report.timing import TimedCapture
from mxwire.wire.dialect import MXOE
from tests.analysis.conversations.support import CAPTURES, decoded, read_capture, timed
from tests.analysis.conversations.test_plain_runs import ALWAYS, bounds, traffic

PRINTED = {
    "mxoe-pingpong-small-medium": {
        0: 5256.333, 1: 23494.0, 16: 5434.167, 32: 6254.833, 33: 8684.167, 128: 3306.5, 129: 1225.167, 1000: 5157.5,
        4096: 3937.833, 4097: 14302.333, 8192: 3318.333, 32768: 4719.667,
    },
    "omx1500-pingpong-small-medium": {},
}  # fmt: skip
"""Half round trips in µs as ``omx_perf`` printed them, mean of three iterations."""


@pytest.mark.parametrize("length", PRINTED["mxoe-pingpong-small-medium"])
def test_half_round_trips_agree_with_omx_perf(length):
    """It measures three iterations; of two the capture shows where the next begins, of the last where it ends.

    The capture was taken at the host that measures, so what is missing is that host's own work at the end.
    """
    timing = timed("mxoe-pingpong-small-medium")
    iterations = timing.iterations.by_length[length].estimate()
    answers = timing.answers.by_length[length].estimate()
    assert (iterations.count, answers.count) == (2, 3)
    printed = PRINTED["mxoe-pingpong-small-medium"][length]
    rest = 3 * printed - 2 * iterations.mean / 1e3
    # The remainder, for the last iteration, is at least the time of its answer on the wire, and not much longer.
    assert answers.least / 1e3 <= rest + 1
    assert printed * 0.5 <= iterations.mean / 1e3 * 2 / 3 + answers.most / 1e3 / 3
    assert 2 * iterations.mean / 1e3 <= 3 * printed


@pytest.mark.parametrize(
    "capture", ["mxoe-pingpong-small-medium", "omx9000-pingpong-sync", "mxoe-lossy-1M", "mxoe-many"]
)
@pytest.mark.parametrize("size", [3, 50])
def test_batches_do_not_matter(capture, size):
    one, other = (TimedCapture.of(capture, timed(capture, *sizes)) for sizes in ((size,), ()))
    assert one == other


@pytest.mark.parametrize("capture", ["mxoe-pingpong-small-medium", "mxoe-lossy-1M", "mxoe-many"])
def test_messages_as_rows_are_measured_like_those_of_graphs_which_are_objects(capture):
    plain, drawn = timed(capture), timed(capture, trace=FrameTrace())
    assert TimedCapture.of(capture, plain) == TimedCapture.of(capture, drawn)


def test_messages_in_flight_at_the_end_are_not_measured_as_acknowledged():
    batches, timings = decoded([traffic(Random(1), 400, 0)], MXOE), (Timing(), Timing(trace=FrameTrace()))
    with bounds(**ALWAYS):
        for timing in timings:
            for each in batches:
                timing.observe(each)
            timing.finish()
    by_rows, by_objects = (TimedCapture.of("traffic", each) for each in timings)
    assert by_rows == by_objects


@pytest.mark.parametrize("capture", CAPTURES)
def test_each_frame_counts_once(capture):
    batch, timing = read_capture(capture), timed(capture)
    times = batch.timestamp_ns
    assert (timing.frames, timing.last_ns - timing.first_ns) == (len(batch), times.max() - times[0])


@pytest.mark.rule("R-ACK-04")
def test_libacks_come_within_their_delay_and_not_at_once():
    """Delayed acks of hosts at 250 ticks per second: 4 ticks less one of granularity, if the application looks."""
    timing = timed("mxoe-pingpong-small-medium")
    assert timing.ack_delays["liback"].estimate().most < 20e6
    assert timing.ack_delays["piggyback"].count == 59


@pytest.mark.rule("R-RTX-01")
@pytest.mark.rule("R-PUL-08")
def test_repetitions_take_as_long_as_the_rules_say():
    timing = timed("mxoe-lossy-1M")
    resend, timer = timing.resend_delay.estimate(), timing.re_request_delays["timer"].estimate()
    assert 480e6 < resend.least <= resend.most < 560e6
    assert 980e6 < timer.least <= timer.most < 1050e6
    assert timing.re_request_delays["early"].estimate().most < 100e6
    assert timing.repeated_frames > 100 and timing.duplicate_frames > 10


def test_never_more_than_four_blocks_are_in_flight():
    """R-PUL-02: 4 blocks of 32768 bytes in mxoe."""
    line = timed("mxoe-lossy-1M").line.line()
    assert 32768 < line.in_flight.max() <= 4 * 32768 + 1
    assert 8 < line.frames.max() <= 4 * 8 + 0.001
    assert line.repeats.sum() == sum(
        each.count for each in (*timed("mxoe-lossy-1M").re_request_delays.values(), timed("mxoe-lossy-1M").resend_delay)
    )


@pytest.mark.parametrize("capture", CAPTURES)
def test_every_capture_can_be_measured(capture):
    timing = timed(capture)
    records = [each.record() for each in TimedCapture.of(capture, timing).results()]
    assert records[0]["frames"] == len(read_capture(capture))
    assert {each["record"] for each in records} >= {"capture", "gaps", "in_flight"}
    for each in records:
        if "median_ns" in each:
            names = ("least_ns", "p10_ns", "median_ns", "p90_ns", "p99_ns", "most_ns")
            known = [each[name] for name in names if each[name] is not None]
            assert known == sorted(known) and len(known) == 3 + 2 * (each["count"] >= 10) + (each["count"] >= 100)
