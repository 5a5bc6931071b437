"""Discovery of hosts and their names (behaviour, sections 2 and 3)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from mxwire.protocol import EventKind, Node
from mxwire.protocol.profile import OPEN_MX_0_6, OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND, Profile
from mxwire.units import SECOND
from mxwire.wire.packets import Announcement, HostQuery, HostReply, Raw

from .world import World, address, gaps


def test_hosts_find_each_other_and_learn_their_names():
    """R-DISC-01 to R-DISC-03, R-DISC-07, R-HOST-01, R-HOST-04 to R-HOST-06."""
    world = World(hosts=3, acquainted=False, announce=True)
    world.seconds(12)
    for host, node in enumerate(world.nodes):
        names = {each.name for each in node.peers}
        assert names == {f"host{each}:0" for each in range(3)}
        assert len(world.reported(EventKind.PEER_FOUND, host)) == len(world.reported(EventKind.PEER_NAMED, host)) == 2
    frame = world.sent(Announcement)[0]
    assert (frame.dst_mac, frame.dst_src_peer_index) == (b"\xff" * 6, 0)
    assert frame.nic_id_hi << 32 | frame.nic_id_lo == int.from_bytes(address(0), "big")


def test_an_announcement_is_repeated_in_series_and_then_now_and_then():
    """R-DISC-02: 8 times with an interval of a second, then every 180 s."""
    world = World(hosts=1, announce=True, acquainted=False)
    world.seconds(400)
    assert gaps(world.times(Announcement)) == [SECOND] * 7 + [180 * SECOND] * 2


def test_a_caller_that_waits_for_a_name_may_query_sooner():
    """R-HOST-02, R-HOST-04: the first query came too early for the other host, the next would come after 5 s."""
    world = World(hosts=2, acquainted=False)
    world.nodes[0].add_peer(address(1))
    world.seconds(1)
    world.nodes[1].add_peer(address(0), "host0:0")
    world.nodes[0].ask_names()
    world.seconds(1)
    assert world.nodes[0].peer(address(1)).name == "host1:0"
    assert len(world.sent(HostQuery)) == 2


def announcement(host: int, serial: int) -> Announcement:
    nic = int.from_bytes(address(host), "big")
    return Announcement(
        dst_mac=b"\xff" * 6, src_mac=b"\2\0\0\0\0\x77", nic_id_hi=nic >> 32, nic_id_lo=nic & 0xFFFFFFFF, serial=serial
    )


def test_news_start_a_new_series():
    """R-DISC-03 to R-DISC-05: a new id or serial does; the same again, or one's own, does not."""
    world = World(hosts=1, announce=True, acquainted=False)
    world.seconds(20)

    def series(frame: Announcement) -> int:
        world.clear()
        world.inject(0, frame)
        world.seconds(30)
        return len(world.sent(Announcement))

    assert series(announcement(5, 1)) == 8
    assert series(announcement(5, 1)) == 0
    assert series(announcement(5, 2)) == 8
    assert series(announcement(0, 3)) == 0
    assert [each.address for each in world.nodes[0].peers] == [address(0), address(5)]


def test_news_in_the_middle_of_a_series():
    """R-DISC-03: the series begins again."""
    world = World(hosts=1, announce=True, acquainted=False)
    world.seconds(3)
    world.inject(0, announcement(5, 1))
    world.seconds(30)
    assert len(world.sent(Announcement)) == 4 + 8


def test_raw_packets_other_than_announcements_are_ignored():
    """R-DISC-05: an id with more than 48 bits, a frame of another mapper."""
    world = World(hosts=1, announce=True, acquainted=False)
    world.inject(0, replace(announcement(5, 1), nic_id_hi=0x10000))
    world.inject(0, Raw(dst_mac=b"\xff" * 6, src_mac=address(5), opaque=bytes(100)))
    world.settle()
    assert len(world.nodes[0].peers) == 1


@pytest.mark.parametrize("nic", ["000000000000", "ffffffffffff", "01005e000001"])
def test_no_host_has_the_address_of_a_group(nic: str) -> None:
    """R-MEA-22: a real host enters it, and queries its name, which reaches all hosts of the group."""
    found = {}
    for profile in (OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND):
        world = World(hosts=1, announce=True, profile=profile)
        number = int(nic, 16)
        forged = Announcement(
            dst_mac=b"\xff" * 6, src_mac=address(1), nic_id_hi=number >> 32, nic_id_lo=number & 0xFFFFFFFF, serial=1
        )
        world.inject(0, forged)
        world.seconds(1)
        found[profile.name] = len(world.nodes[0].peers), len(world.sent(HostQuery))
    assert found == {OPEN_MX_1_5.name: (1, 0), OPEN_MX_1_5_AS_FOUND.name: (2, 1)}


def test_raw_frames_wait_for_a_program_and_are_limited():
    """R-DISC-06, R-MEA-10: 33 at most, of 1024 bytes at most; "queue full" is tested first."""
    world = World(hosts=1)
    small, big = (Raw(dst_mac=b"\xff" * 6, src_mac=address(5), opaque=bytes(size)) for size in (100, 2000))
    world.inject(0, big, *[small] * 34, big)
    counters = world.nodes[0].counters
    assert counters["Recv Raw"] == 33
    assert counters["Drop Raw Queue Full"] == 2
    assert counters["Drop Raw Packet Too Large"] == 1


def test_a_query_is_repeated_until_answered():
    """R-HOST-02: every 5 s, to each nameless peer."""
    world = World(hosts=1, acquainted=False)
    world.nodes[0].add_peer(address(5))
    world.seconds(21)
    assert gaps(world.times(HostQuery)) == [5 * SECOND] * 4
    assert {each.magic for each in world.sent(HostQuery)} == {0x13052008}


def test_a_query_leaves_on_every_interface():
    """R-HOST-01, R-LOC-03: with that interface's source address; reverse indexes are kept for each."""
    node = Node([address(0), address(1)], "twin", rng=Random(1))
    peer = node.add_peer(address(9))
    queries = [node.transmit(0, interface) for interface in (0, 1)]
    assert [len(each) for each in queries] == [1, 1]
    assert [each.frame(0)[6:12] for each in queries] == [address(0), address(1)]
    peer.reverse[1] = 4
    assert (peer.index_for(0), peer.index_for(1)) == (0xFFFF, 4)
    assert [each.reverse for each in node.peers][:2] == [{0: 0, 1: 1}] * 2


def test_only_queries_to_us_from_peers_are_answered():
    """R-HOST-04, R-DISC-01: not broadcasts, not strangers."""
    world = World()
    query = HostQuery(dst_mac=address(0), src_mac=address(1), src_dst_peer_index=7, magic=5)
    world.inject(0, replace(query, dst_mac=b"\xff" * 6), replace(query, src_mac=address(6)))
    world.settle()
    assert not world.sent(HostReply)
    world.inject(0, query)
    world.settle()
    (reply,) = world.sent(HostReply)
    assert (reply.magic, reply.src_dst_peer_index, reply.hostname, reply.length) == (5, 1, b"host0:0\0", 8)
    assert world.nodes[0].peers.at(1).index_for(0) == 7


@pytest.mark.rule("R-HOST-04", "R-MEA-26")
@pytest.mark.parametrize(("profile", "answers"), [(OPEN_MX_1_5, 1), (OPEN_MX_1_5_AS_FOUND, 0)])
def test_a_query_that_came_too_early_is_answered_when_its_source_is_known(profile: Profile, answers: int) -> None:
    """A real host forgets it, and so stays nameless for the 5 s until the query is repeated."""
    world = World(hosts=1, announce=True, acquainted=False, profile=profile)
    early = HostQuery(dst_mac=address(0), src_mac=address(5), src_dst_peer_index=7, magic=5)
    world.inject(0, early, replace(early, src_dst_peer_index=8, magic=6))
    world.settle()
    assert not world.sent(HostReply)
    world.inject(0, announcement(5, 1), announcement(5, 2))
    world.settle()
    assert [(each.dst_mac, each.magic) for each in world.sent(HostReply)] == [(address(5), 6)] * answers
    peer = world.nodes[0].peer(address(5))
    assert peer.index_for(0) == (8 if answers else 0xFFFF)


@pytest.mark.rule("R-HOST-02", "R-MEA-26")
def test_a_real_host_learns_the_name_of_a_new_host_with_its_first_query():
    world = World(hosts=2, profiles=(OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND), acquainted=False, announce=True)
    # It hears nothing of the real host before its query.
    world.lose = lambda host, frame: host == 1 and isinstance(frame, Announcement)
    world.seconds(0.5)
    assert len(world.sent(HostQuery, 1)) == 1 and not world.sent(HostReply, 0)
    world.lose = lambda _host, _frame: False
    world.seconds(2)
    assert world.nodes[1].peer(address(0)).name == "host0:0"
    assert len(world.sent(HostQuery, 1)) == 1


def test_few_of_many_early_queries_are_kept():
    """The newest, and a host keeps one."""
    world = World(hosts=1, acquainted=False, profile=replace(OPEN_MX_1_5, peer_maximum=4))
    forged = HostQuery(dst_mac=address(0), src_mac=address(1), src_dst_peer_index=7, magic=5)
    world.inject(0, *[replace(forged, src_mac=address(host)) for host in range(2, 200) for _ in range(3)])
    for host in (195, 196, 199):
        world.nodes[0].add_peer(address(host))
    world.settle()
    assert [each.dst_mac for each in world.sent(HostReply)] == [address(196), address(199)]


def test_an_old_release_echoes_the_index():
    """Differences, section 4.1: Open-MX 0.6.0."""
    world = World(profile=OPEN_MX_0_6)
    world.inject(0, HostQuery(dst_mac=address(0), src_mac=address(1), src_dst_peer_index=7, magic=5))
    world.settle()
    assert world.sent(HostReply)[0].src_dst_peer_index == 7


def reply(name: bytes, **change) -> HostReply:
    values = {"dst_mac": address(0), "src_mac": address(1), "length": len(name), "src_dst_peer_index": 3}
    return HostReply(**{**values, "magic": 0x13052008, "hostname": name, **change})


def test_replies_are_taken_whether_requested_or_not():
    """R-HOST-07, R-HOST-03: with the current magic only; a later name replaces an earlier one."""
    world = World()
    peer = world.nodes[0].peers.at(1)
    world.inject(0, reply(b"other:0\0", magic=1))
    assert (peer.name, world.nodes[0].counters["Drop Host Reply with Bad Magic"]) == ("host1:0", 1)
    world.inject(0, reply(b"other:0\0"))
    assert (peer.name, peer.index_for(0)) == ("other:0", 3)
    world.inject(0, reply(b"third:0\0"), reply(b"x\0", src_mac=address(6)))
    assert peer.name == "third:0"


@pytest.mark.parametrize("name", [b"", bytes(81), b"x" * 200])
def test_names_that_hurt_a_real_host_are_ignored(name):
    """R-HOST-08, D-9."""
    world = World()
    world.inject(0, reply(name, length=len(name) & 0xFF))
    assert world.nodes[0].peers.at(1).name == "host1:0"


def test_forgetting_names():
    """R-HOST-03: the magic is incremented and all hosts are queried again."""
    world = World(hosts=2, acquainted=False)
    world.nodes[0].add_peer(address(1))
    world.nodes[1].add_peer(address(0))
    world.seconds(6)
    node = world.nodes[0]
    assert node.peers.at(1).name == "host1:0"
    node.forget_names()
    assert (node.magic, node.peers.at(1).name) == (0x13052009, None)
    world.settle()
    assert node.peers.at(1).name == "host1:0"
    assert world.sent(HostQuery, 0)[-1].magic == 0x13052009


def test_forgetting_names_while_asking():
    """R-HOST-02, R-HOST-03."""
    world = World(hosts=1, acquainted=False)
    world.nodes[0].add_peer(address(1))
    world.settle()
    world.nodes[0].forget_names()
    world.settle()
    assert [each.magic for each in world.sent(HostQuery)] == [0x13052008, 0x13052009]


def test_a_name_may_arrive_before_its_query():
    """R-HOST-05, R-HOST-07."""
    world = World(hosts=1, acquainted=False)
    world.nodes[0].add_peer(address(1))
    world.inject(0, reply(b"host1:0\0"))
    world.settle()
    assert not world.sent(HostQuery)


def test_no_other_host_renames_a_host():
    """R-MEA-05, D-14: only a real host lets itself be renamed by a reply from its own address."""
    for profile, name in ((OPEN_MX_1_5, "host0:0"), (OPEN_MX_1_5_AS_FOUND, "renamed:0")):
        world = World(profile=profile)
        world.inject(0, reply(b"renamed:0\0", src_mac=address(0)))
        assert world.nodes[0].interfaces[0].name == name


def test_peers_are_found_by_all_their_handles():
    """Wire format, section 5."""
    node = World().nodes[0]
    peer = node.peers.at(1)
    assert node.peer(peer) is node.peer("host1:0") is node.peer(address(1)) is node.peer(1) is peer
    assert node.add_peer(address(1), "new:0") is peer
    assert peer.name == "new:0"
    assert len(node.peers) == 2


def test_forgetting_names_that_were_entered_by_hand():
    """R-HOST-03: all names but those of the host itself."""
    world = World()
    node = world.nodes[0]
    node.forget_names()
    assert [each.name for each in node.peers] == ["host0:0", None]
    world.settle()
    assert [each.name for each in node.peers] == ["host0:0", "host1:0"]
    assert [each.magic for each in world.sent(HostQuery)] == [0x13052009]


def test_forgetting_a_name_that_was_never_queried():
    """R-HOST-03, R-HOST-07: the reply arrives before the query, and is forgotten before it as well."""
    world = World(hosts=1, acquainted=False)
    node = world.nodes[0]
    node.add_peer(address(1))
    world.inject(0, reply(b"host1:0\0"))
    node.forget_names()
    world.settle()
    assert [each.magic for each in world.sent(HostQuery)] == [0x13052009]


def test_a_peer_may_change_its_name():
    """R-HOST-07: a reply replaces any older name, requested or not."""
    world = World(hosts=2, acquainted=False)
    node = world.nodes[0]
    peer = node.add_peer(address(1))
    for name in ("one:0", "two:0"):
        world.inject(0, reply(name.encode() + b"\0"))
        assert node.peer(name) is peer
    world.seconds(6)
    assert not world.sent(HostQuery)


def test_queries_continue_in_the_order_of_their_deadlines():
    """R-HOST-02: each nameless peer every five seconds, whenever it was added."""
    world = World(hosts=1, acquainted=False)
    for host in range(1, 4):
        world.nodes[0].add_peer(address(host))
        world.seconds(1)
    world.inject(0, reply(b"two:0\0", src_mac=address(2)))
    world.clear()
    world.seconds(9.5)
    assert [each.dst_mac for each in world.sent(HostQuery)] == [address(1), address(3)] * 2
