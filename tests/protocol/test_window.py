"""Numbers and the receive window (behaviour, sections 6 and 8)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.protocol import Counter
from mxwire.protocol.library.reliability import distance, number, same_session, session_bits, successor
from mxwire.protocol.profile import OPEN_MX_1_5
from mxwire.wire.packets import Rndv, Tiny

from .world import World, frame_to, lose_first, pattern

VALUES = st.integers(0, 0xFFFF)


@given(VALUES)
def test_the_successor_keeps_the_session_number(value):
    """R-SEQ-01: zero follows 0x3FFF, and nothing is carried."""
    after = successor(value)
    assert session_bits(after) == session_bits(value)
    assert same_session(after, value)
    assert number(after) == (number(value) + 1) % 0x4000


@given(VALUES, VALUES)
def test_differences_are_taken_modulo_the_numbers(one, other):
    """R-SEQ-02."""
    assert distance(one, other) == (number(one) - number(other)) % 0x4000
    assert (distance(one, other) + distance(other, one)) % 0x4000 == 0


def tiny(world, one, two, sequence, data=b"x", piggyback=1, match=0) -> Tiny:
    """A TINY from the second host's endpoint to the first's, as that would send it."""
    return frame_to(one, Tiny, lib_seqnum=sequence, lib_piggyack=piggyback, match_b=match, data=data)


@pytest.fixture
def world() -> World:
    return World()


def test_no_memory_is_as_if_it_had_been_lost():
    """R-ORD-03, R-MAT-05: the message comes again."""
    world = World(profile=replace(OPEN_MX_1_5, unexpected_maximum=2, unexpected_bytes_maximum=6000))
    one, two, there, back = world.pair()
    for match in range(3):
        one.send(there, b"x", match)
    world.settle()
    assert (two.matching.unexpected, back.rx_next) == (2, 3)
    assert world.nodes[1].counters[Counter.DROP_UNEXPECTED_FULL] == 1
    for _ in range(2):
        two.receive(bytearray(1), 0, 0)
    world.seconds(1)
    assert (two.matching.unexpected, back.rx_next) == (1, 4)
    one.send(there, pattern(5999))
    one.send(there, pattern(4000))
    world.seconds(1)
    assert back.rx_next == 5


def test_large_messages_of_a_partner_that_acks_no_notify_are_bounded():
    """R-ORD-03, R-NOT-01: each RNDV that is received needs a NOTIFY, which is kept until it is acked."""
    world = World(profile=replace(OPEN_MX_1_5, outstanding_maximum=4))
    _, two, there, back = world.pair()
    world.lose = lambda host, frame: host == 1
    rndv = frame_to(two, Rndv, source=1, host=1)
    receives = [two.receive(bytearray(1)) for _ in range(20)]
    for sequence in range(1, 21):
        world.inject(1, replace(rndv, lib_seqnum=sequence))
        world.settle()
    assert (len(back.deliveries), len(back.notifies)) == (4, 4)
    assert back.rx_next == 9 and sum(each.done for each in receives) == 4
    assert world.nodes[1].counters[Counter.DROP_NOTIFIES_FULL] == 1
    assert there.fwd == two.session


def test_a_full_ring_drops_and_retransmission_repairs():
    """R-GEN-01, section 21: the card of a busy application keeps taking frames until the ring is full."""
    world = World(profile=replace(OPEN_MX_1_5, ring_size=3))
    one, two, there, _ = world.pair()
    two.progressing = False
    for match in range(5):
        one.send(there, b"x", match)
    world.settle()
    counters = world.nodes[1].counters
    assert (counters["Recv Tiny"], counters["Unexpected Event Queue Full"]) == (3, 2)
    two.progressing = True
    world.seconds(2)
    assert two.matching.unexpected == 5
    two.progressing = False
    for _ in range(4):
        one.connect(world.nodes[1].interfaces[0].address, 2, 0)
    world.settle()
    assert counters["Unexpected Event Queue Full"] == 3
    assert two.card.ring.room == 0


def test_a_reset_releases_the_memory_of_early_packets():
    """R-CLS-05, R-ORD-03."""
    world = World()
    one, two, there, _ = world.pair()
    world.lose = lose_first(Tiny)
    one.send(there, b"x")
    one.send(there, pattern(100))
    world.settle()
    assert two.early_bytes >= 100
    one.close()
    world.connect(world.open(0, one.number), two, 1)
    assert two.early_bytes == 0
