"""Acknowledgements and retransmission (behaviour, sections 11 and 12)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mxwire.protocol import Status
from mxwire.protocol.profile import NATIVE_MX, OPEN_MX_1_5
from mxwire.units import MILLISECOND, SECOND
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.packets import Medium, NackLib, Notify, Rndv, Tiny, Truc

from .world import World, gaps, lose_first, pattern


@pytest.mark.parametrize(("hz", "delay"), [(1000, 16), (250, 16), (100, 20)])
def test_a_delayed_ack(hz, delay):
    """R-ACK-02, R-ACK-04, R-GEN-03: (HZ + 64) / 64 ticks, minus up to a tick."""
    world = World(profile=replace(OPEN_MX_1_5, hz=hz))
    one, two, there, _ = world.pair()
    one.send(there, b"x")
    world.settle()
    start = world.now
    world.milliseconds(40)
    (ack,) = world.sent(Truc)
    waited = world.times(Truc)[0] - start
    assert (delay - 1000 / hz - 0.01) * MILLISECOND <= waited <= delay * MILLISECOND
    assert (ack.session, ack.liback_session_id) == (one.session, one.session)
    assert (ack.liback_acknum, ack.liback_lib_seqnum, ack.liback_send_seq, ack.liback_resent) == (1, 2, 2, 0)
    assert there.tx_una == there.tx_next
    assert two.number == ack.src_endpoint


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


def test_acks_are_counted():
    """R-ACK-04, R-ACK-06: 1, 2, 3 and so on."""
    world = World()
    one, _, there, _ = world.pair()
    for _ in range(3):
        one.send(there, b"x")
        world.milliseconds(30)
    assert [each.liback_acknum for each in world.sent(Truc)] == [1, 2, 3]


def test_four_unacked_numbers_are_acked_at_once():
    """R-ACK-01, R-ACK-02, R-ACK-04: the next expected number, at the end of the pass."""
    world = World()
    one, _, there, _ = world.pair()
    for _ in range(4):
        one.send(there, b"x")
        world.step()
    assert not world.sent(Truc) or world.now
    world.settle()
    assert [each.liback_lib_seqnum for each in world.sent(Truc)] == [5]


def test_many_packets_of_one_pass_are_acked_once():
    """R-GEN-02: answers to many packets are merged."""
    world = World()
    one, _, there, _ = world.pair()
    for _ in range(20):
        one.send(there, b"x")
    world.settle()
    assert [each.liback_lib_seqnum for each in world.sent(Truc)] == [21]


def test_the_threshold_is_the_hosts_own_choice():
    """R-ACK-07: 1 acks every message at once."""
    world = World(profile=replace(OPEN_MX_1_5, ack_threshold=1))
    one, _, there, _ = world.pair()
    for _ in range(3):
        one.send(there, b"x")
        world.settle()
    assert [each.liback_lib_seqnum for each in world.sent(Truc)] == [2, 3, 4]


def test_a_piggyback_takes_the_place_of_an_ack():
    """R-ACK-03: every numbered packet carries one, and cancels what is owed."""
    world = World()
    one, two, there, back = world.pair()
    one.send(there, b"x")
    world.settle()
    two.send(back, b"y")
    world.settle()
    assert world.sent(Tiny, 1)[0].lib_piggyack == 2
    assert there.tx_una == 2
    world.milliseconds(10)
    assert not world.sent(Truc, 1)


def test_nothing_incomplete_is_acked():
    """R-ACK-01, R-MED-05: acks stop at the oldest medium that misses fragments."""
    world = World()
    one, _, there, back = world.pair()
    lost = []

    def lose(_host, frame):
        if type(frame) is Medium and frame.frag_seqnum == 1 and not lost:
            lost.append(frame)
            return True
        return False

    world.lose = lose
    one.send(there, pattern(9000))
    for _ in range(6):
        one.send(there, b"x")
    world.milliseconds(100)
    assert not world.sent(Truc)
    assert (back.rx_done, back.rx_next) == (1, 8)
    world.seconds(1)
    assert there.tx_una == there.tx_next == 8


@pytest.mark.parametrize(("dialect", "at_once"), [("mxoe", True), ("omx", False)])
def test_a_notify_is_acked_at_once_in_one_dialect(dialect, at_once):
    """R-ACK-08."""
    world = World() if dialect == "mxoe" else World(dialect=omx(9000))
    one, two, there, _ = world.pair()
    two.receive(bytearray(40000))
    one.send(there, pattern(40000))
    world.settle()
    assert bool(world.sent(Truc, 0)) is at_once
    world.milliseconds(30)
    assert len(world.sent(Truc, 0)) == 1


def test_a_notify_is_not_acked_at_once_behind_an_incomplete_medium():
    """R-ACK-08."""
    world = World()
    one, two, there, back = world.pair()
    one.receive(bytearray(40000))
    world.lose = lambda host, frame: host == 0 and type(frame) is Medium and frame.frag_seqnum == 1
    one.send(there, pattern(9000))
    world.settle()
    two.receive(bytearray(40000), 9)
    world.lose = lambda host, frame: host == 1 and type(frame) is Medium and frame.frag_seqnum == 1
    two.send(back, pattern(9000))
    one.send(there, pattern(40000), 9)
    world.settle()
    assert world.sent(Notify, 1)
    assert not world.sent(Truc, 0)


@pytest.mark.parametrize(
    "change",
    [{"liback_acknum": 0}, {"liback_acknum": 1}, {"liback_lib_seqnum": 0x4003}, {"liback_lib_seqnum": 9}],
    ids=str,
)
def test_libacks_that_do_not_count(change):
    """R-ACK-05, R-ACK-06: old ones, those of another session number, those of what was never sent."""
    world = World()
    one, _, there, _ = world.pair()
    one.send(there, b"x")
    world.milliseconds(30)
    (ack,) = world.sent(Truc)
    world.lose = lambda *_: True
    one.send(there, b"y")
    world.settle()
    fitting = replace(ack, liback_acknum=2, liback_lib_seqnum=3)
    world.inject(0, replace(fitting, **change))
    assert there.tx_una == 2
    world.inject(0, replace(fitting, liback_acknum=5))
    assert there.tx_una == 3
    assert not world.sent(NackLib)


def test_libacks_from_strangers_are_ignored():
    """R-ORD-01."""
    world = World()
    one, _, there, _ = world.pair()
    one.send(there, b"x")
    world.milliseconds(30)
    world.inject(0, replace(world.sent(Truc)[0], src_endpoint=9))
    assert len(one.partners) == 1


def test_a_lost_liback_is_repaired():
    """R-ACK-10: by the retransmission of the message, whose number is the one just before."""
    world = World(lose=lose_first(Truc))
    one, _, there, _ = world.pair()
    world.lose = lose_first(Truc)
    one.send(there, b"x")
    world.seconds(1)
    assert len(world.sent(Tiny)) == 2
    assert there.tx_una == there.tx_next


@pytest.mark.parametrize(("hz", "delay"), [(1000, 501), (250, 504), (100, 510)])
def test_the_resend_delay(hz, delay):
    """R-RTX-01, R-RTX-02: (HZ + 2) / 2 ticks from the last transmission, no back-off, minus up to a tick."""
    world = World(profile=replace(OPEN_MX_1_5, hz=hz))
    one, _, there, _ = world.pair()
    world.lose = lambda *_: True
    one.send(there, b"x")
    world.seconds(3)
    times = world.times(Tiny)
    assert len(times) >= 5
    assert all((delay - 1000 / hz) * MILLISECOND <= gap <= delay * MILLISECOND for gap in gaps(times))


def test_all_types_are_resent_alike():
    """R-RTX-02, R-RTX-04, R-ACK-03: the same packet, all fragments, with a piggyback of now."""
    world = World()
    one, two, there, back = world.pair()
    world.lose = lambda host, _frame: host == 0
    for data in (b"x", pattern(100), pattern(9000), pattern(40000)):
        one.send(there, data)
    world.settle()
    first = [each.frame for each in world.log]
    assert [type(each).__name__ for each in first] == ["Tiny", "Small", "Medium", "Medium", "Medium", "Rndv"]
    two.send(back, b"y")
    world.milliseconds(490)
    world.clear()
    world.milliseconds(20)
    again = [each.frame for each in world.log if each.host == 0 and type(each.frame) is not Truc]
    assert sorted(again, key=str) == sorted((replace(each, lib_piggyack=2) for each in first), key=str)
    assert len(one.resends) == 4


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


def test_a_rndv_is_not_resent_once_acked():
    """R-RTX-02: after that only the NOTIFY is waited for, without time limit."""
    world = World()
    one, _, there, _ = world.pair()
    large = one.send(there, pattern(40000))
    world.seconds(30)
    assert len(world.sent(Rndv)) == 1
    assert not large.done
    assert there.tx_una == there.tx_next


def test_a_notify_is_resent_until_acked():
    """R-NOT-01, R-RTX-02, R-NOT-02: and completes nothing a second time."""
    world = World()
    one, two, there, _ = world.pair()
    world.lose = lose_first(Notify)
    receive = two.receive(bytearray(40000))
    large = one.send(there, pattern(40000))
    world.settle()
    assert receive.status is Status.SUCCESS
    assert not large.done
    world.seconds(1)
    assert large.status is Status.SUCCESS
    notifies = world.sent(Notify)
    assert len(notifies) == 2
    assert replace(notifies[0], lib_piggyack=0) == replace(notifies[1], lib_piggyack=0)


def test_a_host_that_does_not_progress_is_waited_for():
    """R-GEN-01: acks may be arbitrarily late; the card takes the packets all the same."""
    world = World()
    one, two, there, back = world.pair()
    two.progressing = False
    one.send(there, b"x")
    world.seconds(5)
    assert 9 <= len(world.sent(Tiny)) <= 11
    assert back.rx_next == 1
    two.progressing = True
    world.seconds(1)
    assert there.tx_una == there.tx_next
    assert two.matching.unexpected == 1


def test_native_mx_progresses_in_the_background():
    """Differences, section 1: a thread of MX progresses while the application is busy."""
    world = World(profile=NATIVE_MX)
    one, two, there, _ = world.pair()
    two.progressing = False
    one.send(there, b"x")
    world.seconds(1)
    assert len(world.sent(Tiny)) == 1
    assert there.tx_una == there.tx_next


def test_the_limit_can_be_set_for_each_request():
    """R-RTX-03."""
    world = World()
    one, _, there, _ = world.pair()
    world.lose = lambda *_: True
    one.send(there, b"x", resend_maximum=2)
    one.send(there, b"y")
    world.seconds(2)
    assert len(world.sent(Tiny)) == 6
    assert there.fwd is None
    assert world.now > SECOND
