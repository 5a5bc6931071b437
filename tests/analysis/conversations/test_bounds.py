"""Memory is bounded, whatever a capture holds, and dropped state is reported."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import numpy as np
import pytest

from mxwire.analysis.conversations import Follower, pulls, ranges, state
from mxwire.analysis.conversations.message import RUNS_KEPT
from mxwire.analysis.conversations.ranges import Ranges
from mxwire.analysis.conversations.streams import KEPT_BEHIND
from mxwire.frames import FrameBatch
from mxwire.wire.codec import build
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import MXOE
from mxwire.wire.numbers import OUTSTANDING_MAXIMUM
from mxwire.wire.packets import Pull, PullReply, Rndv, Tiny
from tests.analysis.test_hostile_traffic import crowd
from tests.frames import A, B, make_frame


def tiny(position: int, match: int = 0) -> Tiny:
    return make_frame(Tiny, lib_seqnum=position & 0x3FFF, match_b=match or position)


def rndv(counter: int, position: int) -> Rndv:
    return make_frame(
        Rndv,
        lib_seqnum=position & 0x3FFF,
        match_b=position,
        msg_length=0xFFFFFFFF,
        pulled_rdma_id=counter >> 8 & 0xFF,
        pulled_rdma_seqnum=counter & 0xFF,
    )


def pull(handle: int, index: int) -> Pull:
    return make_frame(
        Pull,
        dst_mac=A,
        src_mac=B,
        src_endpoint=2,
        dst_endpoint=1,
        session=9,
        total_length=0xFFFFFFFF,
        pulled_rdma_seqnum=1,
        src_pull_handle=handle,
        src_magic=0x21071982,
        block_length=32768,
        frame_index=index,
    )


def reply(handle: int, offset: int) -> PullReply:
    return make_frame(PullReply, msg_offset=offset, dst_pull_handle=handle, dst_magic=0x21071982, data=b"x")


def batches(frames: list[bytes], step_ns: int = 1000, size: int = 5000) -> Iterator[FrameBatch]:
    for at in range(0, len(frames), size):
        part = frames[at : at + size]
        times = [(at + place) * step_ns for place in range(len(part))]
        yield FrameBatch.from_frames(part, times, first_number=at + 1)


def follow(frames: list[bytes], step_ns: int = 1000):
    follower = Follower()
    messages = []
    for decoded in Decoder(MXOE).decode_all(batches(frames, step_ns)):
        messages += follower.observe(decoded)
    return follower, messages


def test_messages_without_an_ack_are_dropped():
    frames = [build(tiny(position), MXOE) for position in range(1, 3 * OUTSTANDING_MAXIMUM)]
    follower, early = follow(frames)
    kept = follower._state
    assert len(early) > 0
    assert len(kept.in_flight) <= OUTSTANDING_MAXIMUM + KEPT_BEHIND + 1
    assert len(kept.lingering) <= state.LINGERING + 1
    (conversation,) = follower.conversations
    assert len(conversation.flows[0].stream.entries) <= OUTSTANDING_MAXIMUM + KEPT_BEHIND + 1
    messages = early + follower.finish()
    assert [each.number for each in sorted(messages, key=lambda each: each.number)] == list(
        range(1, 3 * OUTSTANDING_MAXIMUM)
    )
    assert all(each.sender == "open" and each.half_seen for each in messages)


def test_too_many_messages_at_a_time_are_handed_out_unfinished(monkeypatch):
    monkeypatch.setattr(state, "IN_FLIGHT", 10)
    follower, _ = follow([build(tiny(position), MXOE) for position in range(1, 101)])
    assert follower.evicted == 90 and len(follower._state.in_flight) == 10
    messages = follower.finish()
    assert sum("no longer followed" in " ".join(each.half_seen) for each in messages) == 90


def test_conversations_are_forgotten_and_counted(monkeypatch):
    monkeypatch.setattr(state, "CONVERSATIONS", 50)
    follower = Follower()
    messages = follower.observe(Decoder().decode(crowd(400, 1))) + follower.finish()
    assert len(messages) == 400 and len([*follower.conversations]) == 50
    assert follower.forgotten_conversations == 350
    assert len(follower._state.directions) <= 2 * 51 and len(follower._state.partners) <= 51


def test_pulls_of_blocks_without_end_are_bounded(monkeypatch):
    monkeypatch.setattr(pulls, "TRANSFERS", 20)
    frames = [build(rndv(1, 1), MXOE)]
    frames += [build(pull(0x23, 8 * index), MXOE) for index in range(3 * pulls.BLOCKS)]
    frames += [build(pull(handle, 0), MXOE) for handle in range(100, 200)]
    frames += [build(reply(handle, 0), MXOE) for handle in range(1000, 1100)]
    follower, _ = follow(frames)
    transfers = follower._pulls.transfers
    assert len(transfers) <= 20
    assert all(len(each.blocks) <= pulls.BLOCKS for each in transfers.values())
    assert len(follower._pulls._of_message) <= 20 and len(follower._pulls._strays) <= 21
    assert follower.finish()


def test_bytes_with_gaps_everywhere_are_bounded(monkeypatch):
    monkeypatch.setattr(ranges, "RANGES_KEPT", 100)
    frames = [build(rndv(1, 1), MXOE), build(pull(0x23, 0), MXOE)]
    frames += [build(reply(0x23, 2 * place), MXOE) for place in range(1000)]
    follower, _ = follow(frames)
    (message,) = follower.finish()
    assert message.pull.replies == 1000 and len(message.pull.ranges) == 100


def test_frames_of_a_message_are_counted_where_they_are_not_remembered():
    """Every other frame belongs to another message, so that no two are together."""
    frames = []
    for _ in range(10_000):
        frames += [build(tiny(1, 5), MXOE), build(tiny(2, 6), MXOE)]
    _, messages = follow(frames, step_ns=10)
    follower, _ = follow(frames, step_ns=10)
    first, _second = follower.finish()
    assert messages == [] and first.frame_count == 10_000
    assert len([*first.frames]) == RUNS_KEPT + 1
    assert next(first.frames) == (1, 1)


def test_late_copies_are_counted_in_their_conversation():
    follower, _ = follow([build(tiny(1), MXOE)])
    (message,) = follower._state.in_flight.values()
    follower._state.settle(message)
    late = FrameBatch.from_frames([build(tiny(2), MXOE), build(tiny(1), MXOE)], [5 * 10**9, 5 * 10**9 + 1])
    messages = follower.observe(Decoder(MXOE).decode(late)) + follower.finish()
    assert [each.number for each in messages] == [1, 2]
    (conversation,) = follower.conversations
    assert conversation.flows[0].late == 1 and messages[0].frame_count == 1


@pytest.mark.parametrize("seed", range(3))
def test_ranges_equal_a_set_of_bytes(seed):
    generator = np.random.default_rng(seed)
    made, known = Ranges(), set()
    for _ in range(500):
        start = int(generator.integers(0, 300))
        end = start + int(generator.integers(0, 12))
        expected = set(range(start, end))
        assert made.touches(start, end) == bool(expected & known)
        assert made.holds(start, end) == (expected <= known)
        stretches = "".join(" " if each in known else "x" for each in range(start, end)).split()
        assert made.missing(start, end) == (len(expected - known), max(map(len, stretches), default=0))
        assert made.add(start, end) == len(expected - known)
        known |= expected
        assert made.total == len(known)
        assert {each for first, last in made for each in range(first, last)} == known
        assert {each for first, last in made.gaps(320) for each in range(first, last)} == set(range(320)) - known


def test_frames_are_released_once_they_are_followed():
    follower = Follower()
    decoded = Decoder().decode(crowd(5, 1))
    buffer = weakref.ref(decoded.batch.buffer)
    follower.observe(decoded)
    del decoded
    assert buffer() is None
