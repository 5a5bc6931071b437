"""Marks of frames agree with the messages to which the frames belong, and do not depend on batches."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from mxwire.analysis.conversations import Follower, numbered_packets
from mxwire.analysis.marks import FLAGS, ROLES, FrameMarker, flag_bit, flag_names
from mxwire.frames import FrameBatch
from mxwire.wire.enums import NackType
from mxwire.wire.numbers import NO_SESSION, QUERY_MAGICS
from mxwire.wire.probes import NO_ENDPOINT, is_probe
from tests.analysis.conversations.support import CAPTURES, decoded, dialect_of, follow, read_capture, split
from tests.analysis.diagnosis.scene import Scene

Mark = tuple[int, int, int, int, int]


def marks_of(batches) -> dict[int, Mark]:
    """Message, role, flags, repetition and acknowledged message by frame number."""
    marker, found = FrameMarker(), {}
    for each in batches:
        marks = marker.observe(each)
        columns = (marks.message, marks.role, marks.flags, marks.repeat, marks.acknowledges)
        assert all(len(column) == len(each) for column in columns)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        found.update(zip(each.batch.number.tolist(), rows, strict=True))
    return found


def flagged(marks: dict[int, Mark], name: str) -> list[int]:
    return [number for number, mark in marks.items() if mark[2] & flag_bit(name)]


@pytest.mark.parametrize("capture", CAPTURES)
def test_counts_of_messages_are_sums_of_marks(capture):
    batches = decoded([read_capture(capture)], dialect_of(capture))
    marks = marks_of(batches)
    follower = Follower()
    messages = [message for each in batches for message in follower.observe(each)] + follower.finish()
    by_message: dict[int, Counter[tuple[str, str]]] = {}
    frames: Counter[int] = Counter()
    for message, role, flags, _, _ in marks.values():
        counts = by_message.setdefault(message, Counter())
        counts.update((ROLES[role], name) for name in flag_names(flags))
        frames[message] += ROLES[role] not in (None, "ack")
    late = sum(flow.late for each in follower.conversations for flow in each.flows)
    for message in messages:
        counts, pull = by_message[message.number], message.pull
        assert message.frame_count <= frames[message.number] <= message.frame_count + late
        if message.kind != "MEDIUM" and not late:
            own = "data" if pull is None else "rndv"
            assert counts[own, "retransmission"] == max(message.transmissions - 1, 0)
            assert counts[own, "duplicate"] == message.duplicates
        if pull is not None and not late:
            assert counts["pull", "re_request"] == pull.re_requests
            assert counts["pull", "duplicate"] == pull.duplicate_pulls
            assert counts["pull", "early_re_request"] == sum(each.cause == "early" for each in pull.requests)
            assert counts["reply", "retransmission"] == pull.repeated_replies
            assert counts["reply", "duplicate"] == pull.duplicate_replies


@pytest.mark.parametrize("capture", ["mxoe-lossy-1M", "mxoe-early", "mxoe-pingpong-small-medium", "mxoe-every-type"])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_marks_do_not_depend_on_batches(capture, size):
    whole = read_capture(capture)
    dialect = dialect_of(capture)
    assert marks_of(decoded(split(whole, size), dialect)) == marks_of(decoded([whole], dialect))


def test_retransmissions_are_numbered():
    marks = marks_of(decoded([read_capture("mxoe-stopped-receiver")]))
    repeats: dict[tuple[int, int], dict[int, None]] = {}
    for number in flagged(marks, "retransmission"):
        message, role, _, repeat, _ = marks[number]
        repeats.setdefault((message, role), {})[repeat] = None
    assert repeats and all([*each] == [*range(1, len(each) + 1)] for each in repeats.values())


def test_acks_name_the_newest_message():
    batches = decoded([read_capture("mxoe-burst")])
    marks = marks_of(batches)
    follower = Follower()
    messages = [message for each in batches for message in follower.observe(each)] + follower.finish()
    newest: dict[int, int] = {}
    for message in messages:
        if message.ack is not None:
            newest[message.ack.frame] = max(message.number, newest.get(message.ack.frame, 0))
    assert newest.items() <= {number: mark[4] for number, mark in marks.items()}.items()
    assert all(mark[0] == mark[4] for mark in marks.values() if ROLES[mark[1]] == "ack")


def test_a_lost_reply_leaves_a_gap():
    marks = marks_of(decoded([read_capture("mxoe-lossy-1M")]))
    gaps = [number for number in flagged(marks, "gap") if ROLES[marks[number][1]] == "reply"]
    assert gaps and not set(gaps) & {*flagged(marks, "retransmission"), *flagged(marks, "duplicate")}


def marked(scene: Scene) -> list[tuple[str, ...]]:
    """The names of the flags of each frame of a scene."""
    (batch,) = decoded([scene.batch()], scene.dialect)
    return [tuple(flag_names(flags)) for flags in FrameMarker().observe(batch).flags.tolist()]


def test_probes_are_those_of_the_rules():
    scene = Scene()
    for magic in (QUERY_MAGICS.start - 1, QUERY_MAGICS.start, QUERY_MAGICS.stop - 1, QUERY_MAGICS.stop):
        scene.send(scene.a.query(magic=magic))
    for ends in ((3, 4), (3, NO_ENDPOINT), (NO_ENDPOINT, NO_ENDPOINT), (31, 32), (32, 32)):
        scene.send(scene.a.pull(4096, src_endpoint=ends[0], dst_endpoint=ends[1]))
    (batch,) = decoded([scene.batch()], scene.dialect)
    expected = [is_probe(batch.frame(place)) for place in range(len(batch))]
    assert ["probe" in flags for flags in marked(scene)] == expected and {*expected} == {True, False}


def connected() -> Scene:
    scene = Scene()
    scene.connect()
    return scene


def test_repetitions_are_distinguished_by_time_and_ack():
    scene = connected()
    message = scene.a.tiny()
    before = len(scene.frames)
    scene.send(message)
    scene.send(message, after_ms=0.1)
    scene.send(message, after_ms=510)
    scene.send(scene.b.liback())
    scene.send(message, after_ms=510)
    assert marked(scene)[before:] == [(), ("duplicate",), ("retransmission",), (), ("retransmission", "obsolete")]


def test_a_missing_message_leaves_a_gap_and_later_ones_are_early():
    scene = connected()
    one, two, three, four = (scene.a.tiny(bytes([each])) for each in range(4))
    before = len(scene.frames)
    scene.send(one, three, four, two)
    scene.send(scene.a.tiny(b"next"))
    assert marked(scene)[before:] == [(), ("early", "gap"), ("early",), ("out_of_order",), ()]


def test_fragments_of_a_second_transmission_are_retransmissions_even_if_not_seen_before():
    scene = connected()
    first, second = (scene.a.medium(5000, fragment) for fragment in range(2))
    before = len(scene.frames)
    scene.send(first)
    scene.send(first, second, after_ms=510)
    assert marked(scene)[before:] == [(), ("retransmission",), ("retransmission",)]


def test_the_facts_of_a_message_remain_after_its_end():
    """A selection by kind or by match information needs them for the frames behind it."""
    scene = connected()
    scene.send(scene.a.tiny(), scene.b.liback())
    (batch,), follower = decoded([scene.batch()], scene.dialect), Follower(marks=True, facts=True)
    (message, *_) = [*follower.observe(batch), *follower.finish()]
    facts = follower.take_marks(batch).facts(message.number)
    assert facts is not None and (facts.kind, facts.match, facts.address) == (
        "TINY",
        message.match,
        message.flow.address,
    )


def test_a_retransmission_after_a_nack_is_marked():
    scene = connected()
    message = scene.a.tiny()
    before = len(scene.frames)
    scene.send(message, scene.b.nack(NackType.BAD_SESSION, message.lib_seqnum))
    scene.send(message, after_ms=510)
    assert marked(scene)[before:] == [(), (), ("retransmission", "nacked")]


def test_an_ack_without_a_session_is_refused():
    scene = connected()
    scene.send(scene.a.tiny(), scene.b.liback(session=NO_SESSION, liback_session_id=NO_SESSION))
    assert marked(scene)[-1] == ("refused",)
    _, (message,) = follow(decoded([scene.batch()], scene.dialect))
    assert (message.receiver, message.ack) == ("received", None) and message.refused_ack is not None


def test_a_sender_with_all_numbers_outstanding_is_throttled(monkeypatch):
    monkeypatch.setattr(numbered_packets, "OUTSTANDING_MAXIMUM", 3)
    scene = connected()
    before = len(scene.frames)
    scene.send(*(scene.a.tiny(bytes([each])) for each in range(4)))
    assert marked(scene)[before:] == [(), (), ("throttled",), ("throttled",)]


def test_replies_in_disorder_and_after_a_re_request():
    total = 3 * 4096
    scene = connected()
    scene.send(scene.a.rndv(total))
    request = scene.b.pull(total)
    replies = [scene.a.data(total, place) for place in range(3)]
    before = len(scene.frames)
    scene.send(request, replies[0], replies[2], replies[1], replies[1])
    scene.send(request, after_ms=1010)
    scene.send(*replies)
    assert marked(scene)[before:] == [
        (),
        (),
        ("gap",),
        ("out_of_order",),
        ("duplicate",),
        ("re_request",),
        ("retransmission",),
        ("retransmission",),
        ("retransmission",),
    ]


def test_texts_are_short_and_name_the_message():
    texts = set()
    for capture in ("mxoe-lossy-1M", "mxoe-stopped-receiver", "mxoe-early", "mxoe-nack-lib"):
        marker = FrameMarker()
        for each in decoded([read_capture(capture)]):
            marks = marker.observe(each)
            texts |= {marks.text(place) for place in range(len(each))}
    assert "" in texts
    for start in ("retransmission 1 of message ", "early re-request 1 of message ", "acknowledges message "):
        assert any(text.startswith(start) for text in texts), start


def test_names_of_flags_are_identifiers():
    assert [*FLAGS] == flag_names(-1) and all(name.isidentifier() for name in FLAGS)
    assert [flag_bit(name) for name in FLAGS] == [1 << place for place in range(len(FLAGS))]
    with pytest.raises(KeyError):
        flag_bit("nothing")


@pytest.mark.parametrize("capture", ["mxoe-lossy-1M", "mxoe-every-type", "omx9000-receiver-killed"])
@pytest.mark.parametrize("seed", range(4))
def test_damaged_frames_are_marked_without_errors(capture, seed):
    random = Random(seed)
    whole = read_capture(capture)
    frames = [bytearray(whole.frame(place)) for place in range(len(whole))]
    for frame in random.choices(frames, k=len(frames)):
        frame[random.randrange(14, min(len(frame), 70))] = random.choice((0, 1, 128, 255, random.randrange(256)))
    times = [int(time) for time in whole.timestamp_ns]
    for batch in decoded([FrameBatch.from_frames([*map(bytes, frames)], times)], dialect_of(capture)):
        marks = FrameMarker().observe(batch)
        texts = {place: marks.text(place) for place in range(len(batch))}
        assert marks.texts(np.arange(len(batch))) == {place: text for place, text in texts.items() if text}
        assert all(type(text) is str for text in texts.values())


def test_a_repeated_connect_that_requests_the_missing_message_restarts_nothing():
    """The message fills the gap, and the later ones are still known: they are retransmitted, not new."""
    scene = connected()
    one, two, three = (scene.a.tiny(bytes([each])) for each in range(3))
    scene.send(one, three)
    scene.send(scene.b.request(connect_seqnum=1, target_recv_seqnum_start=two.lib_seqnum), after_ms=510)
    before = len(scene.frames)
    scene.send(two, three)
    (batch,) = decoded([scene.batch()], scene.dialect)
    messages = [mark[0] for mark in marks_of([batch]).values()][before:]
    assert messages == [3, 2] and marked(scene)[before:] == [("out_of_order",), ("retransmission",)]
