"""Sections 7 and 8 of the worked examples, step by step: the engine has to do what the tables say."""

from __future__ import annotations

from typing import Any

import pytest

from mxwire.wire.dialect import dialect_by_name

from .independent import frames
from .independent.partner import Message
from .independent.peer import MATCH, Peer, Settings, messages
from .node_testbed import KEY, NODE_ENDPOINT, NODE_MAC, PEER_ENDPOINT, PEER_MAC, Echo, NodeTransport, node

TIMER_MS = 1000
TICK_MS = 4


class Testbed:
    """A peer that is connected with an endpoint of a node; times are milliseconds since then."""

    def __init__(self, dialect: str, application: Any = None, **settings: Any) -> None:
        spoken = frames.dialect(dialect)
        self.node = node(dialect_by_name(dialect))
        self.endpoint = self.node.open_endpoint(NODE_ENDPOINT, KEY)
        self.application = Echo(self.endpoint) if application is None else application(self.endpoint)
        self.transport = NodeTransport(self.node, self.application)
        self.codec = frames.Codec(spoken)
        self.peer = Peer(
            self.transport, Settings("beta:0", PEER_MAC, spoken, endpoint=PEER_ENDPOINT, **settings), lambda entry: None
        )
        host = self.peer.discover("alpha:0")
        self.peer.connect(host, NODE_ENDPOINT, KEY)
        self.peer.run_until(lambda: False, 1.0)
        self.started = self.transport.now()
        self.transport.watched.clear()

    def until(self, milliseconds: float) -> None:
        self.peer.run_until(lambda: False, self.started + milliseconds / 1000 - self.transport.now())

    def tiny(self) -> None:
        self.peer.endpoint.send(Message(MATCH, b"hello"))

    def sent(self, kind: str) -> list[tuple[float, frames.Frame]]:
        """The frames of a type that the node has sent, with their times."""
        found = []
        for time_ns, raw in self.transport.watched:
            frame = self.codec.read(raw)
            if frame.kind == kind and frame["src_mac"] == NODE_MAC:
                found.append((time_ns / 1e6 - self.started * 1000, frame))
        return found

    def number_of(self, raw: bytes, kind: str) -> int | None:
        """The frame number of a PULL_REPLY, or the number of another packet; None for another type."""
        frame = self.codec.read(raw)
        if frame.kind != kind:
            return None
        return int(frame["frame_seqnum"] if kind == "PULL_REPLY" else frame["lib_seqnum"])


@pytest.mark.parametrize(
    "dialect, offset, lost, pulled, by_timer",
    [
        pytest.param("mxoe", 0, {3}, [(0, 0, 32768)], False, id="7.1"),
        pytest.param("mxoe", 0, {24}, [(24, 0, 1696)], True, id="7.2"),
        pytest.param("mxoe", 0, {3, 10}, [(0, 0, 32768), (8, 0, 32768)], False, id="7.3"),
        pytest.param("mxoe", 291, {0}, [(0, 291, 32477)], False, id="7.4"),
        pytest.param("omx:1500", 0, {10}, [(0, 0, 46976)], False, id="7.5"),
        pytest.param("omx:9000", 0, {5}, [(0, 0, 100000)], True, id="7.6"),
    ],
)
def test_lost_replies_are_pulled_again_as_in_the_tables(dialect, offset, lost, pulled, by_timer):
    testbed = Testbed(dialect, region_offset=offset)
    left = set(lost)

    def lose(raw: bytes) -> bool:
        number = testbed.number_of(raw, "PULL_REPLY")
        if number not in left or raw[:6] != NODE_MAC:
            return False
        left.discard(number)
        return True

    testbed.transport.lose = lose
    testbed.peer.send(messages()["large"], echo=True)
    pulls = testbed.sent("PULL")
    first = len(pulls) - len(pulled)
    blocks = [(each["frame_index"], each["first_frame_offset"], each["block_length"]) for _, each in pulls]
    assert blocks[first:] == pulled
    assert len(set(blocks[:first])) == first
    silence = pulls[first][0] - pulls[first - 1][0]
    assert TIMER_MS - TICK_MS < silence < TIMER_MS + 10 * TICK_MS if by_timer else silence < TICK_MS
    assert testbed.peer.journal.deviations == []


def test_acks_are_sent_at_the_times_in_the_table():
    """Section 8, whose host has 250 ticks per second."""
    testbed = Testbed("mxoe", lambda endpoint: lambda events: None)
    for at in (0, 5, 10):
        testbed.until(at)
        testbed.tiny()
    testbed.until(100)
    with testbed.transport.together():
        for _ in range(4):
            testbed.tiny()
    testbed.until(200)
    with testbed.transport.together():
        for _ in range(10):
            testbed.tiny()
    testbed.until(300)
    testbed.tiny()
    testbed.until(305)
    [partner] = testbed.endpoint.partners.values()
    testbed.endpoint.send(partner, b"answer")
    testbed.until(400)
    testbed.tiny()
    testbed.transport.lose = lambda raw: testbed.number_of(raw, "TRUC") is not None
    testbed.until(500)
    testbed.transport.lose = lambda raw: False
    testbed.until(1000)
    assert [(each["acknum"], each["lib_seqnum"]) for _, each in testbed.sent("TRUC")] == [
        (1, 4),
        (2, 8),
        (3, 18),
        (4, 20),
        (5, 20),
    ]
    delayed, at_once, once_for_all, lost, repaired = (at for at, _ in testbed.sent("TRUC"))
    assert 16 - TICK_MS <= delayed <= 16
    assert 100 <= at_once < 101
    assert 200 <= once_for_all < 201
    assert 416 - TICK_MS <= lost <= 416
    assert 900 <= repaired < 905
    [(at, answer)] = testbed.sent("TINY")
    assert (305 <= at < 320, answer["lib_seqnum"], answer["lib_piggyack"]) == (True, 1, 19)


def test_an_early_number_waits_for_the_one_that_was_lost():
    """The end of section 8, with the numbers 1, 2 (lost) and 3."""
    testbed = Testbed("mxoe", lambda endpoint: lambda events: None)
    testbed.tiny()
    testbed.until(50)
    testbed.transport.lose = lambda raw: testbed.number_of(raw, "TINY") == 2
    testbed.tiny()
    testbed.transport.lose = lambda raw: False
    testbed.tiny()
    testbed.until(540)
    assert [(each["acknum"], each["lib_seqnum"]) for _, each in testbed.sent("TRUC")] == [(1, 2)]
    testbed.until(600)
    # Number 2 is delivered, then the stored 3; the repetition of 3 makes the pending ack immediate.
    assert [(each["acknum"], each["lib_seqnum"]) for _, each in testbed.sent("TRUC")][1:] == [(2, 4)]
    at = testbed.sent("TRUC")[-1][0]
    assert 550 <= at < 556
