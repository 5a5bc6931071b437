"""The messages of each capture are those that its applications sent, with the bytes that they sent."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from mxwire.wire.enums import PacketType
from tests.analysis.conversations.support import (
    CALLED,
    CAPTURES,
    HOSTS,
    PATTERNED,
    Sent,
    decoded,
    dialect_of,
    extracted,
    followed,
    pattern,
    read_capture,
    sent_by,
)

CUT = {each for each in CAPTURES if (read_capture(each).wire_length > read_capture(each).length).any()}
"""Captures whose frames are cut: not all bytes are there."""
ENDINGS = {
    "mxoe-connect": {("acked", "received"): 1},
    "mxoe-every-type": {("acked", "received"): 10, ("notified", "received"): 1, ("acked", "failed"): 1},
    "mxoe-early": {("acked", "received"): 13, ("open", "unknown"): 2},
    "mxoe-no-reverse-connect": {("acked", "received"): 10, ("notified", "received"): 1, ("acked", "failed"): 1},
    "mxoe-nack-lib": {("nacked", "refused"): 9},
    "mxoe-nack-mcp-closed": {("abandoned", "failed"): 1},
    "mxoe-nack-mcp-session": {("acked", "failed"): 1},
    "mxoe-resends-exhausted": {
        ("abandoned", "received"): 3,
        ("abandoned", "failed"): 1,
        ("nacked", "refused"): 1,
        ("open", "unknown"): 1,
    },
    "mxoe-stopped-receiver": {("acked", "received"): 3, ("notified", "received"): 1},
    "mxoe-truncated": {("acked", "received"): 4, ("truncated", "truncated"): 2},
    "omx9000-receiver-killed": {("abandoned", "announced"): 1, ("nacked", "refused"): 1},
}
"""Results of messages for sender and receiver, where not all were simply received: from the logs of the recordings."""
LOSSY = {"mxoe-lossy-1M", "omx9000-lossy-1M", "mxoe-nack-mcp-rdmawin", "omx9000-nack-mcp-rdmawin"}


@pytest.mark.parametrize("host", ["A", "B"])
@pytest.mark.parametrize("capture", CALLED)
def test_messages_are_those_that_the_application_sent(capture, host):
    _, messages = followed(capture)
    seen = [Sent(each.kind, each.length, each.match) for each in messages if each.flow.address == HOSTS[host]]
    assert seen == sent_by(capture, host)


@pytest.mark.parametrize("capture", CAPTURES)
def test_messages_end_as_the_logs_say(capture):
    follower, messages = followed(capture)
    ends = Counter((each.sender, each.receiver) for each in messages)
    expected = ENDINGS.get(capture) or ENDINGS.get(f"mxoe-{capture.split('-', 1)[1]}")
    if expected is not None:
        assert ends == expected
    else:
        assert set(ends) <= {("acked", "received"), ("notified", "received")}
    assert follower.evicted == follower.malformed == 0


@pytest.mark.parametrize("capture", CAPTURES)
def test_whole_captures_are_wholly_seen(capture):
    """They were begun before the programs; only what was under way at their end is half seen."""
    follower, messages = followed(capture)
    half_seen = {text for each in messages for text in each.half_seen}
    assert half_seen <= {"the capture ends first"}
    if not capture.endswith("early"):  # A hand-made peer leaves numbers out there.
        assert not any("not seen" in text for each in follower.conversations for text in each.half_seen)


@pytest.mark.parametrize("capture", [each for each in CAPTURES if each in PATTERNED and each not in CUT])
def test_payloads_equal_the_sent_data(capture):
    batches = decoded([read_capture(capture)], dialect_of(capture))
    _, messages = followed(capture)
    whole = [each for each in messages if each.sender in ("acked", "notified") and each.receiver == "received"]
    for each in whole:
        data, content, _ = extracted(batches, each.number)
        assert content.gaps(each.length) == []
        assert data == pattern(each.match, each.length)


@pytest.mark.parametrize("capture", sorted(CUT))
def test_of_cut_frames_the_bytes_that_are_there_are_right(capture):
    batches = decoded([read_capture(capture)], dialect_of(capture))
    _, messages = followed(capture)
    longest = max(messages, key=lambda message: message.length or 0)
    data, content, message = extracted(batches, longest.number)
    assert content.cut and content.gaps(message.length)
    if capture in PATTERNED:
        sent = pattern(message.match, message.length)
        assert all(data[start:end] == sent[start:end] for start, end in content.ranges)


@pytest.mark.parametrize("capture", CAPTURES)
def test_every_frame_of_a_message_belongs_to_one(capture):
    """Data, announcements, requests, replies and ends: each is counted for exactly one message, and nothing else is."""
    (batch,) = decoded([read_capture(capture)], dialect_of(capture))
    _, messages = followed(capture)
    numbers = [number for each in messages for first, last in each.frames for number in range(first, last + 1)]
    assert sum(each.frame_count for each in messages) == len(numbers) == len(set(numbers))
    types = batch.columns.packet_type
    certain = [PacketType[each] for each in ("TINY", "SMALL", "MEDIUM", "RNDV", "PULL", "PULL_REPLY", "NOTIFY")]
    nacks = [PacketType.NACK_LIB, PacketType.NACK_MCP]
    expected = set(batch.batch.number[np.isin(types, certain)].tolist())
    possible = expected | set(batch.batch.number[np.isin(types, nacks)].tolist())
    assert expected <= set(numbers) <= possible


@pytest.mark.parametrize("capture", [each for each in CAPTURES if each not in LOSSY and "pipeline" not in each])
def test_nothing_is_called_a_copy_where_the_network_makes_none(capture):
    _, messages = followed(capture)
    assert sum(each.duplicates for each in messages) == 0
    pulls = [each.pull for each in messages if each.pull is not None]
    assert sum(each.duplicate_pulls + each.duplicate_replies for each in pulls) == 0


@pytest.mark.parametrize("capture", sorted(LOSSY))
def test_duplicates_are_distinguished_from_retransmissions(capture):
    """netem doubled frames; every re-request has a cause that the rules know (R-PUL-07, R-PUL-08)."""
    _, messages = followed(capture)
    pulls = [each.pull for each in messages if each.pull is not None]
    assert sum(each.duplicate_pulls + each.duplicate_replies for each in pulls) > 0
    causes = Counter(repeat.cause for each in pulls for repeat in each.requests)
    assert set(causes) <= {"early", "timer"}
    assert all(each.after_ns > 900_000_000 for pull in pulls for each in pull.requests if each.cause == "timer")


@pytest.mark.rule("R-RTX-01")
def test_retransmissions_are_half_a_second_apart():
    for capture in ("mxoe-stopped-receiver", "omx9000-stopped-receiver", "mxoe-resends-exhausted"):
        _, messages = followed(capture)
        repeats = [each.after_ns for message in messages for each in message.resends]
        assert len(repeats) >= 15
        assert all(480e6 < each < 560e6 for each in repeats)


def test_connects_are_reported_with_their_answers():
    follower, _ = followed("mxoe-connect")
    first, second = follower.conversations
    assert [(each.number, each.status, each.requests, each.replies) for each in first.connects] == [
        (0, 0, 1, 1),
        (1, 0, 1, 1),
        (2, 11, 1, 1),
        (0, 0, 1, 1),
    ]
    assert [(each.number, each.status) for each in second.connects] == [(0, 0)]
    assert first.restarted and not second.restarted
    assert first.session(1) == second.session(1) and first.session(0) != second.session(0)


def test_unanswered_and_refused_connects():
    follower, _ = followed("mxoe-discovery-static")
    (alone,) = follower.conversations
    (connect,) = alone.connects
    assert (connect.requests, connect.replies, connect.nack) == (6, 0, None)
    assert "one direction only" in alone.half_seen
    follower, _ = followed("mxoe-nack-lib")
    connects = [each for conversation in follower.conversations for each in conversation.connects]
    assert [each.nack.reason for each in connects if each.nack] == ["ENDPT_CLOSED", "BAD_ENDPT"]


@pytest.mark.rule("R-CON-12")
def test_acks_that_name_no_session_are_not_held_for_acks():
    """The only liback of this capture goes to session 0xFFFFFFFF; the message had been acknowledged otherwise."""
    _, messages = followed("mxoe-no-reverse-connect")
    assert all(each.ack is None or each.ack.how == "piggyback" for each in messages)


def test_host_names_are_known_after_their_announcement():
    follower, _ = followed("mxoe-every-type")
    assert follower.names == {HOSTS["A"]: "vm1:0", HOSTS["B"]: "vm2:0"}
