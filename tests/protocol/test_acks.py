"""Acknowledgements and retransmission (behaviour, sections 11 and 12)."""

from __future__ import annotations

import pytest

from mxwire.protocol.profile import NATIVE_MX
from mxwire.units import MILLISECOND
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.packets import Tiny, Truc

from .world import World, pattern


@pytest.mark.parametrize("dialect", [MXOE, omx(1500)], ids=str)
def test_an_ack_is_the_frame_that_the_codec_builds(dialect):
    """R-ACK-04: each session of the partner has its own."""
    world, acks = World(dialect=dialect), []
    one, two, there, _ = world.pair()
    for _ in range(2):
        for _ in range(2):
            one.send(there, b"x")
            world.settle()
            world.now += 50 * MILLISECOND
            batch = world.nodes[1].transmit(world.now)
            acks += [batch.frame(place) for place in range(len(batch))]
        one.close()
        one = world.open(0)
        there = world.connect(one, two, 1)
    parsed = [world.codec.parse(each) for each in acks]
    assert [type(each) for each in parsed] == [Truc] * 4
    assert [each.liback_acknum for each in parsed] == [1, 2, 1, 2]
    assert len({each.session for each in parsed}) == 2
    assert acks == [world.codec.build(each) for each in parsed]


def test_a_medium_counts_from_when_it_has_left():
    """R-RTX-02: from the second retransmission on it follows a later number."""
    world = World()
    one, _, there, _ = world.pair()
    world.lose = lambda *_: True
    one.send(there, b"x")
    world.step()
    one.send(there, pattern(5000))
    world.step()
    one.send(there, b"y")
    world.seconds(1.2)
    first = [each.frame for each in world.log if not getattr(each.frame, "frag_seqnum", 0)]
    assert [each.lib_seqnum for each in first] == [1, 2, 3, 1, 2, 3, 1, 3, 2]


def test_native_mx_progresses_in_the_background():
    """Differences, section 1: a thread of MX progresses while the application is busy."""
    world = World(profile=NATIVE_MX)
    one, two, there, _ = world.pair()
    two.progressing = False
    one.send(there, b"x")
    world.seconds(1)
    assert len(world.sent(Tiny)) == 1
    assert there.tx_una == there.tx_next
