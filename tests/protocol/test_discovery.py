"""Discovery of hosts and their names (behaviour, sections 2 and 3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mxwire.protocol import EventKind
from mxwire.protocol.profile import OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND, Profile
from mxwire.wire.packets import Announcement, HostQuery, HostReply

from .world import World, address


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


def announcement(host: int, serial: int) -> Announcement:
    nic = int.from_bytes(address(host), "big")
    return Announcement(
        dst_mac=b"\xff" * 6, src_mac=b"\2\0\0\0\0\x77", nic_id_hi=nic >> 32, nic_id_lo=nic & 0xFFFFFFFF, serial=serial
    )


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


def test_few_of_many_early_queries_are_kept():
    """The newest, and a host keeps one."""
    world = World(hosts=1, acquainted=False, profile=replace(OPEN_MX_1_5, peer_maximum=4))
    forged = HostQuery(dst_mac=address(0), src_mac=address(1), src_dst_peer_index=7, magic=5)
    world.inject(0, *[replace(forged, src_mac=address(host)) for host in range(2, 200) for _ in range(3)])
    for host in (195, 196, 199):
        world.nodes[0].add_peer(address(host))
    world.settle()
    assert [each.dst_mac for each in world.sent(HostReply)] == [address(196), address(199)]


def reply(name: bytes, **change) -> HostReply:
    values = {"dst_mac": address(0), "src_mac": address(1), "length": len(name), "src_dst_peer_index": 3}
    return HostReply(**{**values, "magic": 0x13052008, "hostname": name, **change})


@pytest.mark.parametrize("name", [b"", bytes(81), b"x" * 200])
def test_names_that_hurt_a_real_host_are_ignored(name):
    """R-HOST-08, D-9."""
    world = World()
    world.inject(0, reply(name, length=len(name) & 0xFF))
    assert world.nodes[0].peers.at(1).name == "host1:0"


def test_peers_are_found_by_all_their_handles():
    """Wire format, section 5."""
    node = World().nodes[0]
    peer = node.peers.at(1)
    assert node.peer(peer) is node.peer("host1:0") is node.peer(address(1)) is node.peer(1) is peer
    assert node.add_peer(address(1), "new:0") is peer
    assert peer.name == "new:0"
    assert len(node.peers) == 2
