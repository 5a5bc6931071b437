"""An introduction without a complete host is known to real hosts, and finds them (behaviour, sections 2 and 3)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from mxwire.ethernet import BROADCAST
from mxwire.frames import FrameBatch
from mxwire.protocol import Node
from mxwire.protocol.discovery import announcement
from mxwire.protocol.introduction import EVERY, Introduction
from mxwire.protocol.name_search import answer, query
from mxwire.units import SECOND
from mxwire.wire.codec import codec_of, parse
from mxwire.wire.dialect import MXOE, Dialect, omx
from mxwire.wire.packets import Announcement, HostQuery, HostReply

from .world import address

OURS, ALPHA, BETA = address(9), address(0), address(1)


def introduction(**change) -> Introduction:
    return Introduction(OURS, "ours:0", **{"index": 7, "serial": 5, **change})


def node(own: bytes, name: str) -> Node:
    return Node(own, name, rng=Random(1), announce=True)


def meet(ours: Introduction, nodes: list[Node], until: int) -> list[bytes]:
    """Let them talk on an Ethernet without loss, in steps of 10 ms; returns what has left us."""
    output = []
    for now in range(0, until, SECOND // 100):
        outgoing = ours.transmit(now)
        output += outgoing
        for each in nodes:
            for_it = [raw for raw in outgoing if raw[:6] in (each.interfaces[0].address, BROADCAST)]
            if for_it:
                each.receive(FrameBatch.from_frames(for_it), now)
            batch = each.transmit(now)
            for place in range(len(batch)):
                ours.receive(batch.frame(place))
    return output


def test_hosts_without_peers_know_the_introduced_host_and_are_known():
    """R-DISC-01, R-HOST-04 to R-HOST-06."""
    ours = introduction()
    nodes = [node(ALPHA, "alpha"), node(BETA, "beta")]
    meet(ours, nodes, SECOND)
    assert ours.names == {ALPHA: "alpha:0", BETA: "beta:0"}
    for each in nodes:
        peer = each.peer(OURS)
        assert (peer.name, peer.index_for(0)) == ("ours:0", 7)
    assert ours.found("beta:0") == ours.found(BETA) == BETA
    assert ours.found(None) == ALPHA
    assert ours.found("gamma:0") is None and ours.found(address(2)) is None


def test_an_unheard_host_is_queried_at_its_known_address():
    frames = [parse(each, MXOE) for each in introduction(known=[BETA]).transmit(0)]
    assert [type(each) for each in frames] == [Announcement, HostQuery]
    assert frames[1].dst_mac == BETA


def test_everything_is_repeated_while_there_is_no_answer():
    ours = introduction()
    ours.receive(MXOE_FRAMES[0])
    output = meet(ours, [], 4 * EVERY)
    kinds = [type(parse(each, MXOE)) for each in output]
    assert kinds.count(Announcement) == 4
    assert kinds.count(HostQuery) == 5, "once when it is heard, then with each announcement"
    assert len(set(output)) == 2
    assert list(ours.heard) == [ALPHA] and not ours.names


def test_hosts_that_have_answered_are_not_queried():
    ours = introduction()
    ours.receive(codec_of(MXOE).build(answer(query(OURS, ALPHA, 7), ALPHA, 3, "alpha:0")))
    ours.transmit(0)
    assert [type(parse(each, MXOE)) for each in ours.transmit(EVERY)] == [Announcement]
    ours.receive(codec_of(MXOE).build(query(ALPHA, OURS, 3)))
    (reported,) = ours.transmit(EVERY)
    assert parse(reported, MXOE).hostname == b"ours:0\0"


@pytest.mark.parametrize("to", [BETA, BROADCAST])
def test_frames_for_others_are_neither_queries_nor_answers(to: bytes):
    """R-HOST-04: a query is for the address that it is sent to."""
    codec = codec_of(MXOE)
    ours = introduction()
    ours.transmit(0)
    ours.receive(codec.build(query(ALPHA, to, 3)))
    ours.receive(codec.build(answer(query(to, ALPHA, 3), ALPHA, 3, "alpha:0")))
    assert [type(parse(each, MXOE)) for each in ours.transmit(1)] == [HostQuery]
    assert not ours.names


def test_our_own_frames_and_broken_ones_do_no_harm():
    ours = introduction()
    ours.receive(codec_of(MXOE).build(announcement(OURS, 1)))
    assert not ours.heard
    ours.receive(OURS + ALPHA + b"\x86\xdf" + b"\xff" * 46)
    ours.receive(OURS + BETA + b"\x86\xdf")
    assert list(ours.heard) == [ALPHA, BETA]


def test_a_long_name_is_cut_and_a_strange_one_written_so_that_it_can_be_read():
    """R-HOST-08."""
    reported = answer(query(ALPHA, OURS, 3), OURS, 7, "n" * 100)
    assert reported.length == 80 and reported.hostname == b"n" * 79 + b"\0"
    assert answer(query(ALPHA, OURS, 3), OURS, 7, "é:0").hostname == "é:0".encode() + b"\0"
    ours = introduction()
    strange = HostReply(
        dst_mac=OURS, src_mac=ALPHA, length=3, src_dst_peer_index=1, magic=1, hostname=b"\x1b\xff\0"
    )  # fmt: skip
    ours.receive(codec_of(MXOE).build(strange))
    assert ours.names == {ALPHA: "\\x1b\\xff"}


MXOE_FRAMES = [
    codec_of(MXOE).build(each)
    for each in (announcement(ALPHA, 5), query(ALPHA, OURS, 3), answer(query(OURS, ALPHA, 3), ALPHA, 3, "alpha:0"))
]


@pytest.mark.parametrize("dialect", [omx(1500), omx(9000), omx(generation="N1"), omx(generation="N3")], ids=str)
def test_the_packets_are_the_same_in_all_dialects(dialect: Dialect):
    codec = codec_of(dialect)
    for raw in MXOE_FRAMES:
        assert codec.parse(raw) == parse(raw, MXOE)
        assert codec.build(parse(raw, MXOE)) == raw


def test_forged_sources_are_queried_up_to_a_limit() -> None:
    """R-HOST-02: each source is queried until it replies; known hosts are found all the same."""
    ours = introduction(known=(BETA,))
    forged = query(bytes(6), BROADCAST, 1)
    for number in range(3000):
        ours.receive(codec_of(MXOE).build(replace(forged, src_mac=b"\2\1" + number.to_bytes(4, "big"))))
    assert len(ours.heard) == 1024
    ours.receive(codec_of(MXOE).build(answer(query(OURS, ALPHA, 3), ALPHA, 3, "alpha:0")))
    assert ours.found("alpha:0") == ALPHA and len(ours.heard) == 1024, "in place of the oldest without a name"
    outgoing = ours.transmit(SECOND)
    assert len(outgoing) <= 1 + 2 * 1024 + 1
    asked = HostQuery(dst_mac=BETA, src_mac=OURS, src_dst_peer_index=3, magic=1)
    ours.receive(codec_of(MXOE).build(answer(asked, BETA, 3, "beta:0")))
    assert ours.found("beta:0") == BETA
