"""Numbers and the receive window (behaviour, sections 6 and 8)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.protocol import Counter, Defect, Status
from mxwire.protocol.library.reliability import distance, number, same_session, session_bits, successor
from mxwire.protocol.profile import OPEN_MX_1_5
from mxwire.wire.packets import Medium, Notify, Rndv, Tiny, Truc

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


def test_the_next_number_is_taken(world):
    """R-ORD-03, R-SEQ-04."""
    one, two, there, _ = world.pair()
    world.inject(0, tiny(world, one, two, 1), tiny(world, one, two, 2))
    assert (there.rx_next, one.matching.unexpected) == (3, 2)


def test_an_early_number_waits_for_the_others(world):
    """R-ORD-03, R-ORD-04, R-ORD-05: not acked, and delivered in order; without D-5 all that are there."""
    one, two, there, _ = world.pair()
    for sequence in (5, 3, 4, 3, 2):
        world.inject(0, tiny(world, one, two, sequence, match=sequence))
    assert there.rx_next == 1
    world.milliseconds(30)
    assert not world.sent(Truc)
    world.inject(0, tiny(world, one, two, 1, match=1))
    assert there.rx_next == 6
    order = []
    while one.matching.unexpected:
        buffer = bytearray(1)
        order.append(one.receive(buffer, 0, 0).match_info)
    assert order == [1, 2, 3, 4, 5]


def test_with_its_defect_two_numbers_are_taken_at_a_time():
    """R-ORD-04, D-5: exactly two for each packet that closes a gap."""
    world = World(profile=OPEN_MX_1_5.with_defects(Defect.EARLY_DRAINED_BY_ONE))
    one, two, there, _ = world.pair()
    for sequence in (2, 3, 4, 5, 6, 1):
        world.inject(0, tiny(world, one, two, sequence))
    assert there.rx_next == 3
    world.inject(0, tiny(world, one, two, 3))
    assert there.rx_next == 5


def test_the_early_window_has_255_numbers(world):
    """R-ORD-03: one more is obsolete."""
    one, two, there, _ = world.pair()
    world.inject(0, tiny(world, one, two, 1 + 255), tiny(world, one, two, 1 + 256))
    assert list(there.window.early) == [256]


def test_the_number_before_is_acked_at_once_older_ones_are_not(world):
    """R-ORD-03, R-ACK-10: an ack may have been lost."""
    one, two, there, _ = world.pair()
    for sequence in (1, 2, 3):
        world.inject(0, tiny(world, one, two, sequence))
    world.milliseconds(30)
    world.clear()
    world.inject(0, tiny(world, one, two, 2))
    world.milliseconds(30)
    assert not world.sent(Truc)
    world.inject(0, tiny(world, one, two, 3))
    world.settle()
    (ack,) = world.sent(Truc)
    assert ack.liback_lib_seqnum == there.rx_next == 4
    assert one.matching.unexpected == 3


def test_another_session_number_is_dropped(world):
    """R-SEQ-07: in the number, and in the piggyback, which drops the message itself."""
    one, two, there, _ = world.pair()
    world.inject(0, tiny(world, one, two, 0x4001), tiny(world, one, two, 1, piggyback=0x8001))
    assert there.rx_next == 1
    world.inject(0, tiny(world, one, two, 1))
    assert there.rx_next == 2


def test_nothing_passes_before_the_handshake(world):
    """R-SEQ-07, R-ORD-01: a stranger's packets are dropped without a nack."""
    one, two = world.open(0), world.open(1, 2)
    world.inject(0, tiny(world, one, two, 1))
    world.settle()
    assert world.nodes[0].counters["Recv Tiny"] == 1
    assert not world.log
    one.connect(world.nodes[1].interfaces[0].address, 2, 0)
    world.inject(0, tiny(world, one, two, 1))
    assert one.matching.unexpected == 0


def test_piggybacks_of_early_and_duplicate_packets_count(world):
    """R-ORD-02."""
    one, two, there, _ = world.pair()
    world.lose = lambda *_: True
    for _ in range(2):
        one.send(there, b"x")
    world.settle()
    world.inject(0, tiny(world, one, two, 9, piggyback=2))
    assert there.tx_una == 2
    world.inject(0, tiny(world, one, two, 9, piggyback=3))
    assert there.tx_una == 3


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


def test_numbers_wrap_around():
    """R-SEQ-01, R-SEQ-02: after 16384 messages the numbers have gone round once."""
    world = World()
    one, two, there, back = world.pair()
    there.adopt_start(0x3FF0)
    back.rx_next = back.rx_done = back.rx_acked = 0x3FF0
    buffer = bytearray(4)
    for place in range(64):
        receive = two.receive(buffer, place)
        one.send(there, place.to_bytes(4, "big"), place)
        world.settle()
        assert receive.status is Status.SUCCESS
    assert there.tx_next == back.rx_next == 0x30
    world.milliseconds(30)
    assert there.tx_una == there.tx_next


def test_the_number_of_outstanding_messages_is_limited():
    """R-SEQ-06: further sends wait, in order, and continue with the acks."""
    world = World(profile=replace(OPEN_MX_1_5, outstanding_maximum=5))
    one, two, there, _ = world.pair()
    two.progressing = False
    sends = [one.send(there, b"x", match) for match in range(12)]
    world.settle()
    assert len(world.sent(Tiny)) == 5
    assert [each.done for each in sends] == [True] * 5 + [False] * 7
    two.progressing = True
    world.seconds(1)
    assert all(each.done for each in sends)
    assert [each.match_b for each in world.sent(Tiny)[:12]][:5] == [0, 1, 2, 3, 4]
    assert two.matching.unexpected == 12


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


def test_every_numbered_type_shares_one_sequence(world):
    """R-SEQ-04: TINY, MEDIUM with one number for all fragments, NOTIFY."""
    one, two, there, _ = world.pair()
    two.receive(bytearray(50000), 3)
    for length, match in ((1, 1), (5000, 2), (50000, 3), (2, 4)):
        one.send(there, pattern(length), match)
    world.settle()
    numbers = [each.lib_seqnum for each in (*world.sent(Tiny, 0), *world.sent(Medium, 0))]
    assert numbers == [1, 4, 2, 2]
    assert [each.lib_seqnum for each in world.sent(Notify, 1)] == [1]


def test_a_lost_message_holds_up_the_later_ones(world):
    """R-ORD-05, R-RTX-02: in order, exactly once."""
    one, two, there, _ = world.pair()
    world.lose = lose_first(Tiny)
    for value in range(6):
        one.send(there, bytes([value]), 5)
    buffers = [bytearray(1) for _ in range(6)]
    for buffer in buffers:
        two.receive(buffer, 5)
    world.seconds(2)
    assert [buffer[0] for buffer in buffers] == list(range(6))
