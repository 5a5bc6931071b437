"""Recordings of both ends come together again as what passed between them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.analysis.conversations import Follower
from mxwire.analysis.merging import MergeError
from mxwire.analysis.merging.clocks import OUTLIER_NS
from mxwire.analysis.merging.matching import _nearest
from mxwire.frames import LINKTYPE_LINUX_SLL, FrameBatch
from mxwire.wire.decoder import Decoder
from tests.captures import records_of

from .splitting import FIRST_HOST, Way, batches, planned, split, together

EVERY_TYPE, LOSSY, MANY = "mxoe-every-type.pcap", "mxoe-lossy-1M.pcap", "omx9000-many.pcap"
HOUR = 3600 * 10**9
PERIODIC = tuple((second * 10**9, records_of(EVERY_TYPE)[0][1], 60) for second in range(20))
FIRST = int.from_bytes(FIRST_HOST, "big")


def messages(batch: FrameBatch) -> list[tuple[object, ...]]:
    """The frames sent and the fate of each, without times."""
    follower, decoder = Follower(), Decoder()
    found = [each for decoded in decoder.decode_all([batch]) for each in follower.observe(decoded)]
    found += follower.finish()
    return sorted(
        (each.number, each.kind, each.length, each.match, each.frame_count, each.sender, each.receiver)
        for each in found
    )


def original(name: str) -> FrameBatch:
    frames = list(records_of(name))
    (batch,) = batches(frames, len(frames))
    return batch


ways = st.builds(
    Way,
    offset=st.integers(-(10**15), 10**15),
    drift=st.floats(-2e-4, 2e-4),
    delay=st.tuples(st.integers(0, 50_000), st.integers(0, 50_000)),
    jitter=st.integers(0, 20_000),
    loss=st.floats(0, 0.3),
    seed=st.integers(0, 100),
)


@pytest.mark.parametrize("name", [EVERY_TYPE, LOSSY, MANY])
@settings(max_examples=12, deadline=None)
@given(way=ways)
def test_all_frames_come_together_in_order_and_once(name, way):
    """With any clocks, delays and losses: each frame once, those of each sender in the order of sending, and no frame
    before the one it answers."""
    frames = records_of(name)
    made, merge = together(split(frames, way))
    known = sorted(data for _, data, _ in frames)
    assert sorted(merge.batch.frame(place) for place in range(len(merge.batch))) == known
    for sender in {data[6:12] for _, data, _ in frames}:
        sent = [data for _, data, _ in frames if data[6:12] == sender]
        shown = [data for data in map(merge.batch.frame, range(len(merge.batch))) if data[6:12] == sender]
        assert shown == sent
    assert made.alignment.acausal == 0
    assert made.first.only + made.both + made.second.only == len(frames)


@pytest.mark.parametrize("name", [EVERY_TYPE, LOSSY, MANY])
@settings(max_examples=8, deadline=None)
@given(way=ways)
def test_the_messages_are_those_of_the_capture_that_was_split(name, way):
    way = replace(way, delay=(0, 0), jitter=0)
    _, merge = together(split(records_of(name), way))
    assert messages(merge.batch) == messages(original(name))


@pytest.mark.parametrize("name", [EVERY_TYPE, MANY])
@settings(max_examples=20, deadline=None)
@given(way=ways)
def test_the_error_of_the_offset_is_within_its_bound(name, way):
    """However the least delays of both directions differ, the reported maximum holds, apart from rounding and the
    drift in between."""
    frames = records_of(name)
    way = replace(way, loss=min(way.loss, 0.1))
    alignment = planned(split(frames, way)).alignment
    start, end = frames[0][0], frames[-1][0]
    assert alignment.uncertainty_ns is not None
    times = np.array([way.second_clock(time, start) for time in (start, (start + end) // 2, end)])
    real = times - np.array([start, (start + end) // 2, end])
    spread = alignment.drift_uncertainty + (0 if alignment.drift_seen else abs(way.drift))
    allowed = alignment.uncertainty_ns + 100 + spread * 1.1 * (end - start)
    assert np.abs(alignment.clock.ahead_ns(times) - real).max() <= allowed


def test_equal_delays_give_the_offset_and_the_delay():
    way = Way(offset=5_000_000_123, delay=(30_000, 30_000))
    made = planned(split(records_of(LOSSY), way))
    assert made.alignment.clock.offset_ns == pytest.approx(way.offset, abs=2)
    assert made.alignment.uncertainty_ns == pytest.approx(30_000, abs=2)
    assert [each.least_ns for each in made.delays.values()] == pytest.approx([30_000, 30_000], abs=2)
    assert made.alignment.sides[FIRST] == "first" and len(made.alignment.sides) == 2


@pytest.mark.parametrize("drift", [4e-5, -4e-5])
def test_a_drift_is_found_where_there_is_time_to_see_it(drift):
    way = Way(offset=-HOUR, drift=drift, delay=(10_000, 10_000), jitter=5_000)
    alignment = planned(split(records_of(EVERY_TYPE), way)).alignment
    assert alignment.drift_seen and alignment.drift_uncertainty < 1e-6
    assert alignment.clock.drift == pytest.approx(drift, abs=alignment.drift_uncertainty + 1e-8)


def test_no_drift_is_made_up_where_there_is_no_time_to_see_it():
    alignment = planned(split(records_of("mxoe-many-small.pcap"), Way(delay=(10_000, 12_000), jitter=9_000))).alignment
    assert not alignment.drift_seen and alignment.clock.drift == 0


def test_lost_frames_are_kept_and_counted():
    way = Way(offset=77, delay=(20_000, 20_000), loss=0.2)
    frames = records_of(LOSSY)
    ends = split(frames, way)
    made, merge = together(ends)
    lost = [len(frames) - len(ends[1]), len(frames) - len(ends[0])]
    assert [made.first.only, made.second.only] == lost
    # Retransmissions of the same moment look like doubles; nothing else is taken for what it is not.
    assert [made.first.sent + made.first.duplicates, made.second.sent + made.second.duplicates] == lost
    assert (merge.origin == 0).sum() == sum(data[6:12] == FIRST_HOST for _, data, _ in frames)


def test_both_copies_are_kept_on_request():
    ends = split(records_of(MANY), Way(offset=-5, delay=(9_000, 9_000), loss=0.1))
    _, merge = together(ends, keep_both=True)
    assert len(merge.batch) == len(ends[0]) + len(ends[1])
    assert (merge.origin == 1).sum() == len(ends[1])


def test_doubled_frames_of_a_mirror_port_are_known_as_such():
    first, second = split(records_of(LOSSY), Way(offset=10**12, delay=(8_000, 8_000)))
    doubled = sorted([*first, *((time + 700, data, length) for time, data, length in first)], key=lambda each: each[0])
    made = planned((doubled, second))
    assert made.both == len(second)
    # The last copies come when the other recording has ended.
    assert made.first.duplicates + made.first.outside == len(first) and made.first.outside < 3
    assert made.first.sent == made.first.arrived == 0


def test_recordings_that_overlap_in_part_say_how_much_is_outside():
    first, second = split(records_of(LOSSY), Way(delay=(8_000, 8_000)))
    made = planned((first[:600], second[300:]))
    assert made.first.outside > 250 and made.second.outside > 200
    # Frames that were on their way when the one began or the other ended look lost.
    assert made.first.sent + made.second.sent < 5


def test_tags_and_cut_frames_make_no_difference():
    first, second = split(records_of(LOSSY), Way(offset=3, delay=(5_000, 5_000)))
    tagged = [(time, data[:12] + b"\x81\x00\x00\x05" + data[12:], length + 4) for time, data, length in first]
    cut = [(time, data[:96], length) for time, data, length in second]
    assert planned((tagged, cut)).both == len(first)


def test_one_direction_alone_gives_a_warning_not_a_guess():
    frames = tuple(each for each in records_of(LOSSY) if each[1][6:12] == FIRST_HOST)
    alignment = planned(split(frames, Way(offset=10**9, delay=(40_000, 0)))).alignment
    assert alignment.uncertainty_ns is None
    assert alignment.clock.offset_ns == pytest.approx(10**9 + 40_000, abs=5_000)


def test_a_clock_set_during_the_capture_is_noticed():
    first, second = split(records_of(LOSSY), Way(delay=(5_000, 5_000)))
    half = len(second) // 2
    stepped = [(time + (2_000_000 if place >= half else 0), *rest) for place, (time, *rest) in enumerate(second)]
    assert planned((first, stepped)).alignment.acausal > 10


@pytest.mark.parametrize(
    ("first", "second", "complaint"),
    [
        (records_of(MANY), records_of(LOSSY), "none is the same in both"),
        (records_of(MANY), (), "of .* and 0 frames none is"),
        ((), (), "of 0 and 0 frames"),
        (records_of(MANY)[:3], records_of(MANY)[:3], "only 3 can be identified as the same"),
        (PERIODIC, PERIODIC, "repeats itself"),
        (PERIODIC * 10, PERIODIC * 10, "repeats itself"),
        (tuple((time, data[:60], length) for time, data, length in records_of(LOSSY)), records_of(LOSSY), "cut to 60"),
    ],
)
def test_captures_that_do_not_fit_are_refused_in_one_line(first, second, complaint):
    with pytest.raises(MergeError, match=complaint) as refused:
        planned((list(first), list(second)))
    assert "\n" not in str(refused.value)


def test_frames_without_a_destination_are_refused():
    from mxwire.analysis.merging import Fingerprints

    batch = replace(batches(list(records_of(MANY)[:5]))[0], link_type=LINKTYPE_LINUX_SLL)
    with pytest.raises(MergeError, match="not captured on an Ethernet interface"):
        Fingerprints("A").add(batch)


@pytest.mark.parametrize(("slack", "chosen"), [(5.0, 0), (4.9, 1)])
def test_a_frame_may_seem_to_arrive_early_by_the_uncertainty_of_the_clocks(slack, chosen):
    """Otherwise a frame that arrives much later is taken for the same one."""
    assert _nearest([5], [0, 5 + OUTLIER_NS * 3 // 4], 1, slack) == [(0, chosen)]
