"""Nodes that share an interface, as those of several processes do: to others they are one host."""

from __future__ import annotations

from random import Random

import pytest

from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.protocol import EngineEndpoint, Node, Partner
from mxwire.protocol.counters import Counter
from mxwire.simulation.local_path import SimulatedPath
from mxwire.units import SECOND

SHARED, OTHER, THIRD = (bytes([2, 0, 0, 0, 0, each]) for each in (1, 2, 3))


class Play:
    """Two nodes on one interface, and another host."""

    def __init__(self, *, announce: bool = False) -> None:
        self.paths: list[SimulatedPath] = []
        for place in range(2):
            path = SimulatedPath(self.paths)
            path.node = Node(SHARED, "shared", rng=Random(place), sharing=path, announce=announce)
        self.one, self.two = (each.node for each in self.paths if each.node is not None)
        self.other = Node(OTHER, "other", rng=Random(9), announce=announce)
        self.now = SECOND
        self.sent: list[bytes] = []

    def later(self) -> Node:
        """A third node on the interface, which only the test runs."""
        path = SimulatedPath(self.paths)
        path.node = Node(SHARED, "shared", rng=Random(5), sharing=path)
        return path.node

    def run(self, seconds: float = 1) -> None:
        end = self.now + int(seconds * SECOND)
        while self.now < end:
            self.now += SECOND // 100
            for node in (self.one, self.two, self.other):
                batch = node.transmit(self.now)
                frames = [batch.frame(each) for each in range(len(batch))]
                self.sent += [each for each in frames if each[6:12] == SHARED]
                if frames:
                    hearing = [self.other] if node is not self.other else [self.one, self.two]
                    for each in hearing:
                        each.receive(FrameBatch.from_frames(frames), self.now)

    def talk(self, near: EngineEndpoint, number: int) -> Partner:
        request = near.connect(SHARED, number, 0)
        self.run()
        assert request.partner is not None and request.status == 0
        near.send(request.partner, bytes(100_000), number)
        self.run()
        return request.partner


def test_each_node_serves_its_endpoints_and_none_refuses_for_another():
    """R-NAK-01, R-NAK-02, R-EP-05; the index that one node has taught is right for the other as well."""
    play = Play()
    play.two.add_peer(THIRD, "third:0")
    play.two.add_peer(OTHER, "other:0")
    play.one.add_peer(OTHER, "other:0")
    play.other.add_peer(SHARED, "shared:0")
    assert play.one.peer(OTHER).index == play.two.peer(OTHER).index == 2
    ends = play.one.open_endpoint(1), play.two.open_endpoint(2)
    near = play.other.open_endpoint(0)
    for number, end in zip((1, 2), ends, strict=True):
        receive = end.receive(bytearray(100_000), number)
        partner = play.talk(near, number)
        assert receive.status == 0
    assert play.other.counters[Counter.RECV_NACK_LIB] == play.other.counters[Counter.DROP_BAD_PEER_INDEX] == 0
    refused = near.connect(SHARED, 3, 0)
    play.run()
    assert refused.status is not None and play.other.counters[Counter.RECV_NACK_LIB] == 1
    # Each fragment of a message to the endpoint 2, which is closed, is refused once, although both nodes receive it.
    ends[1].close()
    near.send(partner, bytes(3 * 4096))
    play.run()
    assert play.other.counters[Counter.RECV_NACK_LIB] == 4


def test_a_peer_that_another_node_has_entered_is_known_by_its_index():
    play = Play()
    play.one.add_peer(OTHER, "other:0")
    assert len(play.two.peers) == 1
    found = play.two.peers.at(1)
    assert found is not None and found.address == OTHER and len(play.two.peers) == 2
    assert play.two.peers.at(2) is None
    assert play.two.peers.refresh() == [found] and play.two.peers.refresh() == []


def test_a_peer_that_another_node_has_entered_is_answered():
    """R-DISC-01: for others the nodes are one host, which knows them."""
    play = Play()
    play.one.add_peer(OTHER, "other:0")
    play.other.add_peer(SHARED, "shared:0")
    play.two.open_endpoint(2)
    assert play.two.peers.by_address(THIRD) is None
    request = play.other.open_endpoint(0).connect(SHARED, 2, 0)
    play.run()
    assert request.status == 0


def test_one_node_answers_and_announces_for_all():
    """R-HOST-06, R-DISC-02."""
    play = Play(announce=True)
    play.run(12)
    assert play.other.peer(SHARED).name == "shared:0"
    assert {each.name for each in play.two.peers} == {"shared:0", "other:0"}
    assert len({frame for frame in play.sent if frame[16] == 1}) == 1, "announcements of one serial"
    replies = play.other.counters[Counter.RECV_HOST_REPLY]
    assert 1 <= replies <= play.other.counters[Counter.SEND_HOST_QUERY], "one answer to a query"


def test_a_node_may_listen_without_announcing():
    """R-DISC-03."""
    play = Play(announce=True)
    quiet = Node(THIRD, "quiet", rng=Random(3), listen=True)
    batch = play.other.transmit(play.now)
    quiet.receive(batch, play.now)
    assert quiet.peers.by_address(OTHER) is not None
    frames = quiet.transmit(play.now + SECOND)
    assert [frames.frame(each)[16] for each in range(len(frames))] == [3], "only a query"


@pytest.mark.rule("R-HOST-02")
def test_nodes_query_a_nameless_peer_as_one_and_share_its_name():
    """Also if callers of both wait for the name, which makes a node query early."""
    play = Play()
    for node in (play.one, play.two):
        node.add_peer(OTHER)
    times = []
    for _ in range(120):
        for node in (play.one, play.two):
            node.ask_names()
        before = len(play.sent)
        play.run(0.1)
        times += [play.now] * (len(play.sent) - before)
    assert len(times) >= 4 and all(end - start > 4.8 * SECOND for start, end in zip(times, times[2:], strict=False))
    play.other.add_peer(SHARED, "shared:0")
    play.run(10)
    assert {node.peer(OTHER).name for node in (play.one, play.two)} == {"other:0"}
    third = play.later()
    sent = len(play.sent)
    third.add_peer(OTHER)
    third.transmit(play.now)
    assert third.peer(OTHER).name == "other:0"
    third.forget_names()
    assert len(third.transmit(play.now + SECOND)) == 1 and third.peer(OTHER).name is None
    assert len(play.sent) == sent


def test_a_table_that_cannot_be_shared_ends_no_host():
    """It is as if the table was full: the peer is not added, and callers get the reason."""

    class Broken(SimulatedPath):
        broken = False

        def place_of(self, address: bytes) -> int:
            if self.broken:
                raise MxwireError("no memory")
            return super().place_of(address)

    path = Broken([])
    node = Node(SHARED, "shared", rng=Random(1), listen=True, sharing=path, path=path)
    path.broken = True
    other = Node(OTHER, "other", rng=Random(2), announce=True)
    node.receive(other.transmit(SECOND), SECOND)
    assert node.counters[Counter.DROP_PEERS_FULL] == 1 and len(node.peers) == 1
    with pytest.raises(MxwireError, match="no memory"):
        node.add_peer(THIRD)
    path.broken = False
    node.receive(other.transmit(3 * SECOND), 3 * SECOND)
    assert node.peers.by_address(OTHER) is not None
