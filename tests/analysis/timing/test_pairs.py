"""Statistics per pair, against the conversations of the follower and against plain sums over the frames."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.analysis.timing import PairTable, RateLine, Samples, Timing
from mxwire.analysis.timing.line import RATE_STEPS, common_rates
from mxwire.analysis.timing.pairs import PAIRS
from mxwire.analysis.timing.samples import FEWEST_P90, FEWEST_P99
from mxwire.frames import FrameBatch
from mxwire.wire.decoder import Decoder
from tests.analysis.conversations.support import CAPTURES, decoded, dialect_of, read_capture, timed


@pytest.mark.parametrize("capture", CAPTURES)
def test_pairs_of_hosts_have_all_frames_and_bytes(capture):
    expected: Counter[tuple[int, int]] = Counter()
    sizes: Counter[tuple[int, int]] = Counter()
    for each in decoded([read_capture(capture)], dialect_of(capture)):
        located = each.located
        keys = [*zip(located.source.tolist(), located.destination.tolist(), strict=True)]
        expected.update(keys)
        for key, size in zip(keys, located.wire_length.tolist(), strict=True):
            sizes[key] += size
    frames: Counter[tuple[int, int]] = Counter()
    bytes_: Counter[tuple[int, int]] = Counter()
    for pair in timed(capture).pairs.by_hosts():
        one, other = (each.address for each in pair.ends)
        for key, totals in zip(((one, other), (other, one)), pair.totals, strict=True):
            frames[key] += totals.frames
            bytes_[key] += totals.bytes
            assert totals.rate.line()[1].sum() == totals.bytes
        assert pair.first_ns <= pair.last_ns
    assert +frames == expected and +bytes_ == sizes


@pytest.mark.parametrize("capture", CAPTURES)
def test_the_repetitions_of_endpoints_are_those_of_their_hosts(capture):
    timing = timed(capture)
    names = ("messages", "failed", "retransmissions", "re_requests", "duplicates")
    hosts = [sum(each.total(name) for each in timing.pairs.by_hosts()) for name in names]
    ends = [
        sum(each.total(name) for each in timing.pairs.by_endpoints(timing.follower.conversations)) for name in names
    ]
    assert hosts == ends
    deliveries = sum(each.delivery.count for each in timing.pairs.by_hosts())
    of_ends = timing.pairs.by_endpoints(timing.follower.conversations)
    assert deliveries == sum(each.delivery.count for each in of_ends)


@pytest.mark.parametrize("capture", ["mxoe-lossy-1M", "mxoe-many", "mxoe-every-type"])
def test_batches_do_not_matter(capture):
    def shown(timing: Timing) -> list[object]:
        found = timing.pairs.by_hosts()
        return [(each.ends, each.totals, each.first_ns, each.last_ns, each.delivery.estimate()) for each in found]

    assert repr(shown(timed(capture, 7))) == repr(shown(timed(capture)))


def test_forged_addresses_are_counted_within_bounds():
    frame = bytearray(64)
    frame[12:15] = bytes.fromhex("86df00")
    frames = []
    for number in range(2 * PAIRS + 100):
        frame[6:12] = (2 << 40 | number).to_bytes(6, "big")
        frames.append(bytes(frame))
    timing = Timing()
    timing.observe(Decoder().decode(FrameBatch.from_frames(frames)))
    timing.finish()
    found = timing.pairs.by_hosts()
    assert len(found) <= 2 * PAIRS
    assert sum(each.total("frames") for each in found) + timing.pairs.forgotten == len(frames)


def test_percentiles_need_samples():
    samples = Samples(0)
    for count in range(1, FEWEST_P99 + 1):
        samples.add(count)
        found = samples.estimate()
        assert found is not None
        assert (found.p90 is not None) == (found.p10 is not None) == (count >= FEWEST_P90)
        assert (found.p99 is not None) == (count >= FEWEST_P99)


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 10**12), st.integers(1, 9000)), min_size=1, max_size=9),
        min_size=1,
        max_size=9,
    )
)
def test_a_rate_line_keeps_every_byte_within_its_steps(batches):
    line = RateLine()
    everything = []
    for batch in batches:
        times, amounts = (np.array(each, np.int64) for each in zip(*batch, strict=True))
        line.add(times, amounts)
        everything += batch
    start, steps = line.line()
    assert steps.sum() == sum(amount for _, amount in everything) and len(steps) <= RATE_STEPS
    for time, _ in everything:
        assert steps[(time - start) // line.width_ns] > 0
    other = RateLine()
    other.add(np.array([5 * 10**12], np.int64), np.array([7], np.int64))
    at, width, both = common_rates([line, other])
    assert both.sum(axis=1).tolist() == [steps.sum(), 7]
    assert at <= start and at + width * both.shape[1] > 5 * 10**12


def test_an_empty_table():
    assert PairTable().by_hosts() == [] == PairTable().by_endpoints([])
    assert common_rates([RateLine()])[2].size == 0
