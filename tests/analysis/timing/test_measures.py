"""The pieces that timing is made of, against other ways to the same numbers."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.analysis.timing import GapHistogram, Samples, TimeLine
from mxwire.analysis.timing.line import FIRST_WIDTH_NS, STEPS
from mxwire.analysis.timing.samples import FEWEST, FEWEST_P90, FEWEST_P99, SKETCH_BITS

durations = st.lists(st.integers(0, 10**12), min_size=1, max_size=200)
moments = st.integers(0, 5 * FIRST_WIDTH_NS * STEPS)


def samples_of(values, **options):
    samples = Samples(7, **options)
    for each in values:
        samples.add(each)
    return samples


@given(durations)
def test_estimates_are_those_of_numpy(values):
    found = samples_of(values).estimate()
    assert (found.count, found.least, found.most) == (len(values), min(values), max(values))
    assert found.mean == pytest.approx(np.mean(values))
    p10, median, p90, p99 = np.percentile(values, [10, 50, 90, 99]).tolist()
    some, many = len(values) >= FEWEST_P90, len(values) >= FEWEST_P99
    assert found.median == median
    assert [found.p10, found.p90, found.p99] == [p10 if some else None, p90 if some else None, p99 if many else None]
    if len(values) < FEWEST:
        assert found.median_low is None and found.median_high is None
    else:
        assert found.least <= found.median_low <= found.median_high <= found.most


def test_the_interval_is_that_of_a_bootstrap_by_drawing():
    random = Random(1)
    values = [int(random.lognormvariate(10, 1)) for _ in range(101)]
    found = samples_of(values).estimate()
    generator = np.random.default_rng(2)
    medians = np.median(generator.choice(values, (20_000, 101)), axis=1)
    low, high = np.percentile(medians, [2.5, 97.5])
    ordered = sorted(values)
    # Within one place of the ordered values: both are drawn.
    assert abs(ordered.index(int(found.median_low)) - np.searchsorted(ordered, low)) <= 1
    assert abs(ordered.index(int(found.median_high)) - np.searchsorted(ordered, high)) <= 1


def test_the_true_median_is_mostly_in_the_interval():
    random = Random(3)
    inside = 0
    for _ in range(300):
        found = samples_of([random.randrange(1_000_001) for _ in range(25)]).estimate()
        inside += found.median_low <= 500_000 <= found.median_high
    assert 0.9 <= inside / 300 <= 0.995


def test_of_very_many_the_same_are_kept_for_the_same_seed():
    values = list(range(20_000))
    one, other = samples_of(values, kept=500).estimate(), samples_of(values, kept=500).estimate()
    assert one == other
    assert (one.count, one.least, one.most, one.mean) == (20_000, 0, 19_999, 9_999.5)
    assert one.median == pytest.approx(10_000, rel=0.15)


@given(durations, st.lists(st.integers(0, 200)), st.integers(1, 50))
def test_samples_do_not_depend_on_the_parts_in_which_they_are_added(values, cuts, kept):
    one, other = samples_of(values, kept=kept), Samples(7, kept=kept)
    for part in np.split(np.array(values, np.int64), sorted(cuts)):
        other.extend(part)
    assert one.estimate() == other.estimate()
    assert one.sketch() == other.sketch()


@given(st.lists(st.integers(-(10**6), 1 << 62)))
def test_rounded_durations_keep_their_first_bits(values):
    shifts = [max(each.bit_length() - SKETCH_BITS, 0) for each in values]
    assert samples_of(values).rounded() == Counter(each >> by << by for each, by in zip(values, shifts, strict=True))


def test_nothing_measured_is_nothing():
    assert Samples(0).estimate() is None


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(moments, st.integers(0, 10**6), st.integers(1, 10**5), st.integers(1, 32)), min_size=1, max_size=20
    ),
    st.data(),
)
def test_the_line_is_the_average_of_the_bytes_in_flight(drawn, data):
    """Against the overlap of every interval with every step, whatever the order and the batches."""
    intervals = np.array([(start, start + lasts, size, frames) for start, lasts, size, frames in drawn], np.int64)
    line = TimeLine()
    line.begin(0)
    order = data.draw(st.permutations(range(len(intervals))))
    for place in order:
        line.add(intervals[[place]])
    made = line.line()
    assert made.width_ns * STEPS > intervals[:, 1].max()
    edges = made.width_ns * np.arange(len(made.in_flight) + 1)
    expected = np.zeros((2, len(made.in_flight)))
    for start, end, *weights in intervals.tolist():
        overlap = np.clip(np.minimum(edges[1:], end) - np.maximum(edges[:-1], start), 0, None)
        expected += np.outer(weights, overlap / made.width_ns)
    # pytest.approx would compare one by one.
    np.testing.assert_array_less(abs(made.in_flight - expected[0]), np.maximum(expected[0] * 1e-6, 1e-3))
    np.testing.assert_array_less(abs(made.frames - expected[1]), np.maximum(expected[1] * 1e-6, 1e-3))


@given(st.lists(moments, max_size=50))
def test_the_line_counts_every_repeat(times):
    line = TimeLine()
    line.begin(0)
    for each in times:
        line.repeat(np.array([each], np.int64))
    made = line.line()
    assert made.repeats.sum() == len(times)
    steps = [each // made.width_ns for each in times]
    assert all(made.repeats[step] >= 1 for step in steps)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10**9)), min_size=1, max_size=60), st.integers(1, 60))
def test_gaps_are_between_frames_of_one_sender(frames, size):
    frames.sort(key=lambda frame: frame[1])
    sources, times = np.array([each[0] for each in frames]), np.array([each[1] for each in frames], np.int64)
    whole, parts = GapHistogram(), GapHistogram()
    whole.observe(sources, times)
    for at in range(0, len(frames), size):
        parts.observe(sources[at : at + size], times[at : at + size])
    assert whole.total == len(frames) - len(set(sources.tolist())) == whole.counts.sum()
    assert (whole.counts == parts.counts).all()


def test_percentiles_of_gaps_are_as_exact_as_the_steps():
    histogram = GapHistogram()
    histogram.observe(np.zeros(1001, np.intp), np.arange(1001, dtype=np.int64) * 50_000)
    assert histogram.percentile(0.5) == pytest.approx(50_000, rel=0.13)
    assert histogram.percentile(0.01) == histogram.percentile(0.99)
