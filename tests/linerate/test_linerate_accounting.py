"""Accounting of sequence numbers, compared with a slow and obvious one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.latency_histogram import LATENCY_MAXIMUM, LatencyHistogram
from mxwire.linerate.accounting import StreamAccount, StreamCounts


def slow_counts(numbers: list[int]) -> StreamCounts:
    """Counts of one stream by sets: RFC 4737 for reordering."""
    counts, seen, highest = StreamCounts(), set(), -1
    for number in numbers:
        if number in seen:
            counts.duplicates += 1
            continue
        seen.add(number)
        counts.received += 1
        if number < highest:
            counts.reordered += 1
            counts.depth = max(counts.depth, highest - number)
        highest = max(highest, number)
    counts.lost = highest + 1 - len(seen)
    return counts


def account(streams: int, frames: list[tuple[int, int]], cuts: list[int]) -> StreamAccount:
    """Add (stream, sequence) in batches that end at ``cuts``."""
    made = StreamAccount(streams)
    bounds = [0, *sorted(each % (len(frames) + 1) for each in cuts), len(frames)]
    for first, end in pairwise(bounds):
        part = np.array(frames[first:end], np.int64).reshape(-1, 2)
        made.add(part[:, 0], part[:, 1])
    return made


@st.composite
def disturbed_runs(draw):
    """A run of some streams in turn, with frames lost, repeated and moved."""
    streams = draw(st.integers(1, 4))
    frames = [(each % streams, each // streams) for each in range(draw(st.integers(0, 60)))]
    for _ in range(draw(st.integers(0, 8))):
        if not frames:
            break
        place = draw(st.integers(0, len(frames) - 1))
        match draw(st.sampled_from(["lose", "repeat", "move"])):
            case "lose":
                del frames[place]
            case "repeat":
                frames.insert(draw(st.integers(place, len(frames))), frames[place])
            case "move":
                frames.insert(draw(st.integers(0, len(frames) - 1)), frames.pop(place))
    return streams, frames, draw(st.lists(st.integers(0, 100), max_size=6))


@settings(max_examples=400)
@given(disturbed_runs())
def test_counts_are_those_of_the_slow_account(run):
    streams, frames, cuts = run
    found = account(streams, frames, cuts)
    expected = [slow_counts([number for stream, number in frames if stream == each]) for each in range(streams)]
    assert [found.counts(each) for each in range(streams)] == expected
    total = found.counts()
    assert (total.received, total.lost) == (sum(e.received for e in expected), sum(e.lost for e in expected))
    assert total.depth == max(each.depth for each in expected)


@pytest.mark.parametrize("streams", [1, 8])
def test_an_undisturbed_run_needs_no_look_at_single_frames(streams):
    made = StreamAccount(streams)
    made._disturbed = None  # type: ignore[assignment,method-assign]
    order = np.arange(10_000)
    for part in np.split(order, 100):
        made.add(part % streams, part // streams)
    assert made.counts() == StreamCounts(received=10_000)


def test_a_run_returns_to_the_fast_path_after_a_loss():
    made = StreamAccount(4)
    order = np.array([each for each in range(400) if each not in (13, 14)])
    made.add(order % 4, order // 4)
    made._disturbed = None  # type: ignore[assignment,method-assign]
    more = np.arange(400, 800)
    made.add(more % 4, more // 4)
    assert made.counts() == StreamCounts(received=798, lost=2)
    assert [made.counts(each).lost for each in range(4)] == [0, 1, 1, 0]


def test_a_large_gap_needs_bounded_memory():
    made = StreamAccount(1)
    made.add(np.zeros(2, np.int64), np.array([0, 1 << 43]))
    assert made.counts() == StreamCounts(received=2, lost=(1 << 43) - 1)
    made.add(np.zeros(2, np.int64), np.array([(1 << 43) - 5, 7]))
    counts = made.counts()
    assert (counts.reordered, counts.depth, counts.stale, counts.duplicates) == (1, 5, 1, 0)


@given(st.lists(st.integers(0, LATENCY_MAXIMUM), min_size=1, max_size=300), st.floats(1, 100))
def test_percentiles_are_exact_to_three_percent(latencies, percent):
    histogram = LatencyHistogram()
    histogram.add(np.array(latencies))
    exact = sorted(latencies)[max(int(np.ceil(len(latencies) * percent / 100)) - 1, 0)]
    found = histogram.percentile_ns(percent)
    assert found is not None
    assert exact * 0.999 - 1 <= found <= exact * (1 + 1 / 32) + 2
    assert (histogram.minimum_ns, histogram.maximum_ns) == (min(latencies), max(latencies))
    assert sum(count for _, count in histogram.buckets()) == histogram.count == len(latencies)


def test_impossible_latencies_are_counted_apart():
    histogram = LatencyHistogram()
    histogram.add(np.array([-1, 5, LATENCY_MAXIMUM + 1, -(1 << 62)]))
    record = histogram.record()
    assert (record["count"], record["impossible"], record["max_ns"]) == (1, 3, 5)
    assert LatencyHistogram().record()["p99_ns"] is None


def test_many_latencies_are_folded_without_loss():
    histogram = LatencyHistogram()
    histogram.add(np.arange(200_000))
    histogram.add(np.arange(200_000))
    assert histogram.count == 400_000
