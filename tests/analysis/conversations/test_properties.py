"""Whatever a capture does to the frames: no exception, nothing guessed, the same answer however it is read."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mxwire.analysis.conversations import CapturedMessage
from mxwire.analysis.conversations.message import MessageSorter
from mxwire.analysis.message_table import message_fields
from mxwire.ethernet import mac_text
from mxwire.frames import FrameBatch
from mxwire.report.conversations import ConversationSummary
from mxwire.report.messages import message_layout, message_record
from tests.analysis.conversations.support import (
    CAPTURES,
    HOSTS,
    decoded,
    dialect_of,
    follow,
    followed,
    read_capture,
    split,
)

SHORT = [each for each in CAPTURES if len(read_capture(each)) < 500]
VARIED = [
    "mxoe-every-type",
    "mxoe-lossy-1M",
    "omx9000-resends-exhausted",
    "mxoe-nack-lib",
    "omx9000-many",
    "mxoe-connect",
]
captures = st.sampled_from(VARIED)


def reported(messages: list[CapturedMessage]) -> list[dict[str, object]]:
    """Everything reported of messages; each of them must be printable too."""
    for each in messages:
        for width in (None, 80, 120):
            list(message_layout(width).lines(each, 0, width))
        message_record(each, {})
    return [message_fields(each, {}) for each in messages]


def read(capture: str, batch: FrameBatch) -> tuple[object, list[CapturedMessage]]:
    follower, messages = follow(decoded([batch], dialect_of(capture)))
    for each in follower.conversations:
        ConversationSummary.of(each, follower).record()
    return follower, messages


def numbers(message: CapturedMessage) -> list[int]:
    return [number for first, last in message.frames for number in range(first, last + 1)]


@cache
def known(capture: str) -> list[dict[str, object]]:
    return reported(followed(capture)[1])


@pytest.mark.parametrize("size", [1, 7, 64])
@pytest.mark.parametrize("capture", SHORT + VARIED)
def test_batches_do_not_matter(capture, size):
    batches = decoded(split(read_capture(capture), size), dialect_of(capture))
    assert reported(follow(batches)[1]) == known(capture)


@settings(max_examples=60, deadline=None)
@given(captures, st.floats(0, 1), st.floats(0, 1))
@example("mxoe-nack-lib", 1.0, 0.375)
def test_a_capture_may_be_cut_anywhere(capture, one, other):
    """Messages seen whole are reported as they were; others are reported as half seen, and never as complete."""
    batch = read_capture(capture)
    first, last = sorted((int(one * len(batch)), int(other * len(batch))))
    _, messages = read(capture, batch.select(np.arange(first, last)))
    reported(messages)
    origin = {number: each for each in followed(capture)[1] for number in numbers(each)}
    for message in messages:
        whole = {origin[number].number: origin[number] for number in numbers(message)}
        assert len(whole) == 1
        (before,) = whole.values()
        assert message.length in (None, before.length) and message.match in (None, before.match)
        if not message.half_seen:
            assert (message.kind, message.length, message.match) == (before.kind, before.length, before.match)
            # The first frame seen may have been a retransmission.
            assert (message.complete_ns or 0) >= (before.complete_ns or 0)


@settings(max_examples=40, deadline=None)
@given(captures, st.randoms(use_true_random=False), st.integers(1, 5))
def test_a_capture_card_may_reorder(capture, random, far):
    """Frames that are some places too early or too late change neither which messages there are nor what they say."""
    batch = read_capture(capture)
    keys = np.arange(len(batch)) + np.array([random.uniform(0, far) for _ in range(len(batch))])
    order = np.argsort(keys, kind="stable")
    _, messages = read(capture, batch.select(order))
    output = {(each.kind, each.length, each.match) for each in messages if each.position >= 0}
    assert output == {(each["kind"], each["length"], each["match"]) for each in known(capture)}


@settings(max_examples=20, deadline=None)
@given(captures, st.integers(0, 3))
def test_a_mirror_port_may_double_every_frame(capture, later):
    """The same messages, each frame once more as a duplicate, and no false retransmission."""
    batch = read_capture(capture)
    order = np.argsort(np.concatenate([np.arange(len(batch)), np.arange(len(batch)) + later + 0.5]), kind="stable")
    doubled = batch.select(np.concatenate([np.arange(len(batch))] * 2)[order])
    _, messages = read(capture, doubled)
    assert [(each.kind, each.length, each.match, each.transmissions) for each in messages] == [
        (each["kind"], each["length"], each["match"], each["transmissions"]) for each in known(capture)
    ]
    assert all(each.duplicates or each.kind == "RNDV" for each in messages)


@pytest.mark.parametrize("capture", VARIED)
@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_one_direction_alone_is_reported_as_half_seen(capture, host):
    batch = read_capture(capture)
    (whole,) = decoded([batch], dialect_of(capture))
    follower, messages = read(capture, batch.select(whole.located.source == np.uint64(host)))
    assert all("the other direction was not seen" in each.half_seen for each in messages)
    assert all("one direction only" in each.half_seen for each in follower.conversations)
    assert not any(each.sender in ("acked", "notified") and each.flow.address == host for each in messages)
    sent = [each for each in messages if each.flow.address == host and each.position >= 0]
    assert [(each.kind, each.length, each.match) for each in sent] == [
        (each["kind"], each["length"], each["match"]) for each in known(capture) if each["source"] == mac_text(host)
    ]


@settings(max_examples=150, deadline=None)
@given(captures, st.lists(st.tuples(st.integers(0, 10**6), st.integers(14, 63), st.integers(0, 255)), max_size=40))
def test_broken_frames_break_nothing(capture, changes):
    batch = read_capture(capture)
    buffer = batch.buffer.copy()
    for frame, place, value in changes:
        at = frame % len(batch)
        if place < batch.length[at]:
            buffer[batch.offset[at] + place] = value
    changed = FrameBatch(
        buffer, batch.offset, batch.length, batch.wire_length, batch.timestamp_ns, batch.number, batch.link_type
    )
    _, messages = read(capture, changed)
    reported(messages)
    assert len({each.number for each in messages}) == len(messages)


@settings(max_examples=20, deadline=None)
@given(captures, st.data())
def test_times_may_be_nonsense(capture, data):
    batch = read_capture(capture)
    times = data.draw(st.lists(st.integers(-(2**62), 2**62), min_size=len(batch), max_size=len(batch)))
    changed = FrameBatch(
        batch.buffer, batch.offset, batch.length, batch.wire_length, np.array(times, np.int64), batch.number
    )
    reported(read(capture, changed)[1])


@given(st.permutations(range(1, 40)), st.integers(1, 50))
def test_messages_come_in_order_as_far_as_they_may_wait(numbers, limit):
    class NumberedTracker:
        def __init__(self, number: int) -> None:
            self.number = number

    order = MessageSorter(limit)
    out: list[int] = []
    for place, number in enumerate(numbers, 1):
        out += [each.number for each in order.put([NumberedTracker(number)])]  # type: ignore[list-item]
        assert place - len(out) <= limit
    out += [each.number for each in order.rest()]
    assert sorted(out) == list(range(1, 40))
    if limit >= 40:
        assert out == list(range(1, 40))
