"""The peer table when it is full, as after a flood of forged announcements, and queries to hosts that never answer."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from random import Random

import pytest

from mxwire.protocol import EventKind, LocalProtocolError, Node
from mxwire.protocol.counters import Counter
from mxwire.protocol.peers import query_is_due
from mxwire.protocol.profile import OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND
from mxwire.units import SECOND
from mxwire.wire.packets import Announcement, ConnectReply, ConnectRequest, HostQuery, HostReply, Tiny
from tests.frames import make_frame

from .world import KEY, World, address, frame_to, gaps

FEW = replace(OPEN_MX_1_5, peer_maximum=4)
FLOOD = 33
"""Announcements that are taken at once (R-DISC-06)."""


def forged(number: int, serial: int = 1) -> Announcement:
    return Announcement(
        dst_mac=b"\xff" * 6, src_mac=address(1), nic_id_hi=0x0600, nic_id_lo=number & 0xFFFF_FFFF, serial=serial
    )


def flood(world: World, host: int, numbers: range) -> None:
    for first in numbers[::FLOOD]:
        world.inject(host, *[forged(each) for each in range(first, min(first + FLOOD, numbers.stop))])
        world.nodes[host].transmit(world.now)
        world.happened[host] += [each for each in world.nodes[host].events() if each.kind is not EventKind.PEER_FOUND]


def known(node: Node) -> list[bytes]:
    return [each.address for each in node.peers]


def place(number: int) -> bytes:
    """The address in a forged announcement."""
    return (0x0600 << 32 | number).to_bytes(6, "big")


def connect(number: int) -> ConnectRequest:
    """A connect of a forged host to endpoint 1."""
    return make_frame(
        ConnectRequest,
        dst_mac=address(0),
        src_mac=place(number),
        dst_src_peer_index=0,
        dst_endpoint=1,
        src_endpoint=2,
        app_key=KEY,
    )


@pytest.mark.rule("R-DISC-03", "R-DISC-05")
def test_a_flood_of_announcements_neither_hides_new_hosts_nor_hurts_partners():
    world = World(hosts=3, announce=True, acquainted=False)
    late = world.nodes.pop()
    world.seconds(2)
    one, two = world.nodes[0].open_endpoint(1, KEY), world.nodes[1].open_endpoint(2, KEY)
    request = one.connect(address(1), 2, KEY)
    world.settle()
    partner = request.partner
    assert partner is not None and len(world.nodes[0].peers) == 2
    indexes = {each.address: each.index for each in world.nodes[0].peers}

    flood(world, 0, range(13_000))
    tracemalloc.start()
    flood(world, 0, range(13_000, 15_000))
    before = tracemalloc.get_traced_memory()[0]
    flood(world, 0, range(15_000, 20_000))
    assert tracemalloc.get_traced_memory()[0] - before < 100_000, "less than 20 bytes per announcement"
    tracemalloc.stop()

    node = world.nodes[0]
    assert len(node.peers) == node.peers.maximum == 1024
    assert sorted(each.index for each in node.peers) == list(range(1024))
    assert node.counters[Counter.PEER_REPLACED] == 20_000 - 1022
    assert len(world.reported(EventKind.PEERS_FULL)) == 1, "reported once"
    assert {each.address: each.index for each in node.peers if each.address in indexes} == indexes

    receive = two.receive(bytearray(100_000))
    send = one.send(partner, bytes(100_000))
    world.settle()
    assert send.status == receive.status == 0

    world.nodes.append(late)
    world.happened.append([])
    world.seconds(3)
    assert node.peer("host2:0").address == address(2) and late.peer("host0:0").address == address(0)
    reply = node.open_endpoint(3, KEY).connect(address(2), 0, KEY)
    world.settle()
    assert reply.status is not None, "the new host has refused it"


def test_the_oldest_host_that_never_answered_gives_way():
    """R-DISC-05: then the oldest that has answered, but none that a caller has entered, or that is a partner."""
    world = World(hosts=1, announce=True, acquainted=False, profile=FEW)
    node = world.nodes[0]
    for number in (5, 6, 7):
        world.inject(0, forged(number))
        world.settle()
    answered = HostReply(
        dst_mac=address(0), src_mac=place(5), length=3, src_dst_peer_index=0, magic=node.magic, hostname=b"a:0\0"
    )
    world.inject(0, answered, forged(8))
    assert known(node) == [address(0), place(5), place(8), place(7)]
    world.inject(0, replace(answered, src_mac=place(8)), forged(9))
    assert known(node) == [address(0), place(5), place(8), place(9)]
    kept = node.add_peer(place(5))
    assert kept.name == "a:0"
    world.inject(0, replace(answered, src_mac=place(9)), forged(10))
    assert known(node) == [address(0), place(5), place(10), place(9)]
    node.add_peer(place(9))
    node.add_peer(place(11))
    assert known(node) == [address(0), place(5), place(11), place(9)]
    with pytest.raises(LocalProtocolError, match=r"the peer table is full \(4 entries, all in use\): 06:"):
        node.add_peer(place(12))
    assert not node.counters[Counter.DROP_PEERS_FULL]
    world.inject(0, forged(12))
    assert node.counters[Counter.DROP_PEERS_FULL] == 1 and place(12) not in known(node)


def test_the_partners_of_an_endpoint_stay_until_it_closes():
    world = World(hosts=1, announce=True, acquainted=False, profile=FEW)
    node = world.nodes[0]
    endpoint = node.open_endpoint(1, KEY)
    for number in (5, 6, 7):
        world.inject(0, forged(number), forged(number, serial=2))
        world.inject(0, connect(number))
    world.settle()
    assert len(world.sent(ConnectReply)) == 3
    world.inject(0, forged(8))
    assert known(node) == [address(0), place(5), place(6), place(7)]
    endpoint.disconnect(endpoint.partner(node.peer(place(6)), 2))
    world.inject(0, forged(8))
    assert known(node) == [address(0), place(5), place(8), place(7)]
    named = HostReply(
        dst_mac=address(0), src_mac=place(8), length=3, src_dst_peer_index=0, magic=node.magic, hostname=b"a:0\0"
    )
    endpoint.close()
    world.inject(0, named, forged(9))
    assert known(node) == [address(0), place(5), place(9), place(7)], "the only one that was never a partner"
    world.inject(0, replace(named, src_mac=place(9)), forged(10), replace(named, src_mac=place(10)))
    node.add_peer(place(10))
    world.inject(0, forged(11))
    assert known(node) == [address(0), place(11), place(10), place(7)], "the oldest of those that were"


def test_frames_of_a_host_that_was_replaced_reach_no_partner_of_its_successor():
    """R-DISC-05: the library takes them only after another host has got the index."""
    world = World(hosts=1, announce=True, acquainted=False, profile=FEW)
    node = world.nodes[0]
    endpoint = node.open_endpoint(1, KEY)
    endpoint.suspended = True
    world.inject(0, forged(5))
    former = node.peer(place(5))
    message = frame_to(endpoint, Tiny, src_mac=former.address, dst_src_peer_index=former.index, data=b"x")
    world.inject(0, message, connect(5), replace(message, data=b"y"))
    node.add_peer(place(20))
    node.add_peer(place(21))
    world.inject(0, forged(6))
    successor = node.peer(place(6))
    assert former.removed and successor.index == former.index
    with pytest.raises(LocalProtocolError, match="06:00:00:00:00:05 is no peer any more"):
        node.peer(former)
    partner = endpoint.partner(successor, 2)
    assert partner is not None and successor.partners == 1
    partner.rx_next = partner.rx_done = partner.tx_next = partner.tx_una = message.lib_seqnum
    endpoint.suspended = False
    world.settle()
    assert (endpoint.matching.unexpected, partner.rev, len(endpoint.partners)) == (0, None, 1)
    assert not world.sent(ConnectReply)
    world.inject(0, replace(message, data=b"z"))
    assert node.counters[Counter.DROP_BAD_PEER_INDEX] == 1


def test_a_host_that_was_replaced_is_found_again():
    """R-DISC-03: by the same announcement as before."""
    world = World(hosts=1, announce=True, acquainted=False, profile=FEW)
    flood(world, 0, range(5, 10))
    assert place(5) not in known(world.nodes[0])
    world.inject(0, forged(5))
    assert place(5) in known(world.nodes[0])
    world.settle()
    assert [each.dst_mac for each in world.sent(HostQuery)].count(place(5)) >= 1


def test_the_table_of_a_real_host_keeps_those_that_came_first():
    world = World(hosts=1, announce=True, acquainted=False, profile=replace(OPEN_MX_1_5_AS_FOUND, peer_maximum=4))
    flood(world, 0, range(5, 20))
    node = world.nodes[0]
    assert known(node) == [address(0), place(5), place(6), place(7)]
    assert (node.counters[Counter.PEER_REPLACED], node.counters[Counter.DROP_PEERS_FULL]) == (0, 12)
    with pytest.raises(LocalProtocolError, match="full"):
        node.add_peer(place(9))


@pytest.mark.rule("R-HOST-02")
def test_queries_to_a_host_that_never_answers_become_rare():
    world = World(hosts=1, acquainted=False)
    world.nodes[0].add_peer(address(5))
    world.seconds(3600)
    intervals = gaps(world.times(HostQuery))
    assert intervals[:18] == [5 * SECOND] * 11 + [(5 << doublings) * SECOND for doublings in (0, 1, 2, 3, 4, 5, 6)]
    assert set(intervals[18:]) == {320 * SECOND}


@pytest.mark.rule("R-HOST-02")
def test_a_real_host_queries_without_end():
    world = World(hosts=1, acquainted=False, profile=OPEN_MX_1_5_AS_FOUND)
    world.nodes[0].add_peer(address(5))
    world.seconds(600)
    assert set(gaps(world.times(HostQuery))) == {5 * SECOND}


def _announces_again(world: World) -> None:
    world.inject(0, forged(5, serial=2))


def _queries(world: World) -> None:
    world.inject(0, HostQuery(dst_mac=address(0), src_mac=place(5), src_dst_peer_index=1, magic=7))


@pytest.mark.rule("R-HOST-02")
@pytest.mark.parametrize("shows_itself", [_announces_again, _queries])
def test_a_host_that_shows_itself_is_queried_at_once(shows_itself):
    """A host that was down, and starts again."""
    world = World(hosts=1, announce=True, acquainted=False)
    world.inject(0, forged(5))
    world.seconds(1000)
    world.clear()
    shows_itself(world)
    world.settle()
    assert [each.dst_mac for each in world.sent(HostQuery)] == [place(5)]
    world.seconds(21)
    assert gaps(world.times(HostQuery)) == [5 * SECOND] * 4


def test_a_replaced_host_is_queried_no_more():
    world = World(hosts=1, announce=True, acquainted=False, profile=FEW)
    flood(world, 0, range(5, 12))
    world.clear()
    world.seconds(11)
    asked = [each.dst_mac for each in world.sent(HostQuery)]
    assert set(asked) == set(known(world.nodes[0])) - {address(0)}
    assert world.nodes[0].deadline() is not None


def test_hosts_come_and_go_at_random():
    """The lists of the table agree with its entries, whatever happens; no index belongs to two hosts."""
    rng = Random(1)
    world = World(hosts=1, announce=True, acquainted=False, profile=replace(OPEN_MX_1_5, peer_maximum=8))
    node = world.nodes[0]
    for _ in range(3000):
        number = rng.randrange(5, 30)
        chosen = rng.randrange(4)
        if chosen == 0:
            world.inject(0, HostQuery(dst_mac=address(0), src_mac=place(number), src_dst_peer_index=1, magic=7))
        elif chosen == 1:
            world.seconds(rng.random())
        else:
            world.inject(0, forged(number, rng.randrange(3)))
        peers = list(node.peers)
        assert [each.index for each in peers] == list(range(len(peers))) and len(peers) <= 8
        assert all(node.peers.by_address(each.address) is each is node.peers.at(each.index) for each in peers)
        assert not any(each.removed for each in peers)
        assert set(node._names._searches) <= set(peers)


def test_of_two_queries_in_a_row_one_may_be_early():
    """R-HOST-02: the one before must be a whole interval old."""
    assert query_is_due(0, 20, 25, 10) and query_is_due(10, 20, 25, 10) and query_is_due(11, 20, 30, 10)
    assert not query_is_due(11, 20, 25, 10) and not query_is_due(20, 20, 29, 10)


def test_hosts_that_announce_themselves_are_heard():
    """R-DISC-03."""
    world = World(announce=True, acquainted=False)
    world.lose = lambda _host, frame: type(frame) is not Announcement
    world.seconds(2)
    assert all(each.heard for node in world.nodes for each in node.peers if each.own is None)
