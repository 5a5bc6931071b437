"""Messages of every size, and how they are cut up (behaviour, sections 7, 9, 10, 13 to 15 and 17)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from mxwire.frames import FrameBatch
from mxwire.protocol import EventKind, LocalProtocolError, Status
from mxwire.protocol.profile import OPEN_MX_1_5
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.packets import Medium, Notify, Pull, PullReply, Rndv, Small, Tiny

from .world import World, address, frame_to, pattern, statuses

DIALECTS = [MXOE, omx(1500), omx(9000)]
OLDER = [omx(9000, "N1"), omx(1500, "N2"), omx(9000, "N3")]


def edges(dialect) -> list[int]:
    fragment, payload, block = dialect.fragment_payload, dialect.reply_payload, dialect.block_length
    around = [32, 128, fragment, 2 * fragment, 32768, payload * 10, block, 4 * block, 5 * block]
    return sorted({0, 1, *(each + delta for each in around for delta in (-1, 0, 1))})


@pytest.mark.parametrize("synchronous", [False, True])
@pytest.mark.parametrize("expected", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS + OLDER, ids=str)
def test_every_size(dialect, expected, synchronous):
    """R-SND-01, R-SND-03, R-MED-02, R-MED-04, R-RDV-01, R-RDV-04, R-PUL-01, R-PUL-10, R-PUL-13, R-NOT-01, R-MAT-05."""
    world = World(dialect=dialect)
    one, two, there, _ = world.pair()
    for length in edges(dialect):
        world.clear()
        data, buffer = pattern(length), bytearray(length)
        receive = two.receive(buffer, length) if expected else None
        send = one.send(there, data, length, synchronous=synchronous)
        world.settle()
        receive = receive or two.receive(buffer, length)
        world.settle()
        assert statuses(send, receive) == [Status.SUCCESS] * 2, length
        assert (receive.length, receive.transferred, bytes(buffer)) == (length, length, data)
        kind = Tiny if length <= 32 else Small if length <= 128 else Medium if length <= 32768 else Rndv
        assert world.sent(Rndv if synchronous else kind, 0)
        fragments = world.sent(Medium)
        assert all(each.frag_length == dialect.fragment_payload for each in fragments[:-1])
        assert [each.frag_seqnum for each in fragments] == list(range(len(fragments)))
    assert not one.card.regions
    assert not world.nodes[1].interfaces[0].timers


@pytest.mark.parametrize("length", [0, 8, 9000, 100_000])
def test_views_that_are_released_before_the_message_is_transferred(length):
    """R-SND-07: a request has a view of its own."""
    world = World()
    one, two, there, _ = world.pair()
    data, buffer = bytearray(pattern(length)), bytearray(length)
    with memoryview(buffer) as view:
        receive = two.receive(view)
    with memoryview(data) as view:
        send = one.send(there, view)
    world.settle()
    assert statuses(send, receive) == [Status.SUCCESS] * 2
    assert buffer == data


@pytest.mark.parametrize("length", [8, 50_000])
def test_a_receive_that_is_posted_while_the_memory_of_another_is_released(length):
    """It shares nothing with the other one, also where the compiler reuses the memory of objects."""
    world = World()
    one, two, there, _ = world.pair()
    buffer, receives = bytearray(length), []

    class Memory(bytearray):
        def __del__(self):
            receives.append(two.receive(buffer, 7))

    two.receive(Memory(100), 6)
    one.send(there, b"first", 6)
    world.settle()
    world.happened[1].clear()
    assert len(receives) == 1
    send = one.send(there, pattern(length), 7)
    world.settle()
    assert statuses(send, *receives) == [Status.SUCCESS] * 2
    assert bytes(buffer) == pattern(length)


@pytest.mark.parametrize("synchronous", [False, True])
@pytest.mark.parametrize("expected", [True, False])
def test_memory_that_is_allocated_at_the_match(expected, synchronous):
    """R-MAT-01, R-MAT-02: as many bytes as the message has, whether it comes before or after the receive."""
    world = World(dialect=MXOE)
    one, two, there, _ = world.pair()
    for target, partner in ((two, there), (one, world.connect(one, one, 0))):
        for length in edges(MXOE):
            receive = target.receive(None, length) if expected else None
            assert receive is None or receive.buffer is None
            send = one.send(partner, pattern(length), length, synchronous=synchronous)
            world.settle()
            receive = receive or target.receive(None, length)
            world.settle()
            assert statuses(send, receive) == [Status.SUCCESS] * 2, length
            assert (receive.length, receive.transferred, receive.buffer) == (length, length, pattern(length))


@pytest.mark.interpreted("it replaces a built-in of the module")
def test_a_message_for_which_no_memory_can_be_allocated(monkeypatch):
    """R-MSC-01: none of it fits, and the receive ends as truncated."""
    world = World(dialect=MXOE)
    one, two, there, _ = world.pair()

    def no_memory(length: int = 0) -> bytearray:
        if length:
            raise MemoryError
        return bytearray()

    monkeypatch.setattr("mxwire.protocol.library.receive.bytearray", no_memory, raising=False)
    for length in (5, 100_000):
        receive = two.receive(None, length)
        send = one.send(there, pattern(length), length)
        world.settle()
        assert (receive.status, receive.length, receive.transferred) == (Status.MESSAGE_TRUNCATED, length, 0)
        assert send.done


def test_a_cancelled_receive_allocates_nothing():
    world = World(dialect=MXOE)
    _, two, _, _ = world.pair()
    receive = two.receive(None, 1)
    assert two.cancel(receive)
    assert (receive.status, receive.buffer) == (Status.CANCELLED, None)


@pytest.mark.parametrize("dialect", DIALECTS, ids=str)
@pytest.mark.parametrize("length", [0, 30, 100, 20000, 200000])
def test_scattered_and_gathered(dialect, length):
    """R-SND-07, R-MSC-03: pieces are invisible on the wire."""
    world = World(dialect=dialect)
    one, two, there, _ = world.pair()
    data = pattern(length)
    cuts = [0, *sorted(length * each // 7 for each in range(1, 7)), length]
    pieces = [data[start:end] for start, end in pairwise(cuts)]
    into = [bytearray(1000 if place % 2 else 3) for place in range(200)] + [bytearray(length)]
    for expected in (True, False):
        receive = two.receive(into, 5) if expected else None
        send = one.send(there, pieces, 5)
        world.settle()
        receive = receive or two.receive(into, 5)
        world.settle()
        assert statuses(send, receive) == [Status.SUCCESS] * 2
        assert b"".join(into)[:length] == data


@pytest.mark.parametrize("pipeline", range(7, 13))
def test_fragments_of_another_size(pipeline):
    """R-MED-02, R-SND-02, R-SND-04: placed by the pipeline that the sender names."""
    world = World(profiles=(replace(OPEN_MX_1_5, fragment_pipeline=pipeline), OPEN_MX_1_5))
    one, two, there, _ = world.pair()
    length = min(8 << pipeline, 32768) - 5
    buffer = bytearray(length)
    receive = two.receive(buffer)
    one.send(there, pattern(length))
    world.settle()
    assert (receive.status, bytes(buffer)) == (Status.SUCCESS, pattern(length))


def shuffled_medium(world, one, two, length=9000, **change) -> list[Medium]:
    """The fragments of a medium from the second host's endpoint to the first's."""
    data = pattern(length)
    return [
        frame_to(
            one,
            Medium,
            source=two.number,
            **{"length": length} | change,
            frag_seqnum=at // 4096,
            frag_pipeline=12,
            data=data[at : at + 4096],
        )
        for at in range(0, length, 4096)
    ]


def test_missing_fragments_leave_the_memory_of_a_receive_unchanged():
    """R-MAT-05, R-MED-01: programs post several receives into one buffer, which may hold another message by then."""
    world = World()
    one, two, _, _ = world.pair()
    a, b, c = shuffled_medium(world, one, two)
    world.inject(0, b)
    buffer = bytearray(b"x" * 9000)
    receive = one.receive(buffer)
    (start,) = [each for each in range(0, 9000, 4096) if pattern(9000)[each : each + 4096] == b.data]
    assert bytes(buffer) == b"x" * start + b.data + b"x" * (9000 - start - len(b.data))
    world.inject(0, c, a)
    assert (receive.status, bytes(buffer)) == (Status.SUCCESS, pattern(9000))


def test_early_fragments_of_one_number_are_limited():
    """R-ORD-03: no more are kept than there are fragment numbers."""
    world = World()
    one, two, there, _ = world.pair()
    (frame,) = shuffled_medium(world, one, two, length=10, lib_seqnum=2)
    for number in [*range(256), *range(256)]:
        world.inject(0, replace(frame, frag_seqnum=number))
    assert sum(len(each) for each in there.window.early.values()) == 256


@pytest.mark.parametrize("number", [0, 32, 255])
def test_a_single_fragment_with_any_number(number):
    """R-MEA-13, R-MED-03; and a medium of no bytes is complete at once."""
    world = World()
    one, two, there, _ = world.pair()
    (frame,) = shuffled_medium(world, one, two, length=100)
    empty = replace(frame, length=0, frag_length=0, data=b"", frag_seqnum=number, lib_seqnum=2)
    world.inject(0, replace(frame, frag_seqnum=number), empty)
    assert there.rx_done == 3


def test_an_impossible_medium_is_treated_as_lost():
    """R-ORD-03: a length that no fragments can fill would cost memory for nothing."""
    world = World(dialect=omx(1500))
    one, two, there, _ = world.pair()
    (frame,) = shuffled_medium(world, one, two, length=100)
    for length in (world.dialect.fragment_payload * 256 + 1, 1 << 30):
        world.inject(0, replace(frame, length=length, frag_pipeline=None))
        assert there.rx_next == 1
        assert not one.matching.unexpected


def test_pulls_wait_for_a_handle():
    """R-PUL-03: 1024 slots, here 1."""
    world = World(profile=replace(OPEN_MX_1_5, pull_maximum=1))
    one, two, there, _ = world.pair()
    receives = [two.receive(bytearray(40000), number) for number in range(3)]
    for number in range(3):
        one.send(there, pattern(40000), number)
    world.settle()
    assert statuses(*receives) == [Status.SUCCESS] * 3
    assert [each.src_pull_handle for each in world.sent(Pull)][::2] == [0x23, 0x24, 0x25]


def test_a_notified_send_whose_partner_is_lost():
    """R-NOT-03, R-RTX-05: what was transferred counts."""
    world = World()
    one, two, there, _ = world.pair()
    one.resend_maximum = 1
    world.lose = lambda *_: True
    send = one.send(there, pattern(40000))
    world.settle()
    there.large_sends[0, 23].notified(40000)
    world.seconds(2)
    assert (send.status, send.transferred) == (Status.SUCCESS, 40000)
    assert world.reported(EventKind.PARTNER_LOST, 0)
    assert two.open


def test_receives_wait_for_their_notify():
    """R-SND-06, R-CLS-05: a large receive is complete when its NOTIFY is posted; a reset ends it before that."""
    world = World(profile=replace(OPEN_MX_1_5, outstanding_maximum=1))
    one, two, there, back = world.pair()
    world.lose = lambda host, frame: host == 1 and type(frame) is Tiny
    two.send(back, b"x")
    receive = two.receive(bytearray(40000))
    one.send(there, pattern(40000))
    world.settle()
    assert not receive.done
    back.restart()
    assert receive.status is Status.REMOTE_ENDPOINT_UNREACHABLE


@pytest.mark.parametrize("started", [True, False])
def test_a_reset_while_pulling(started):
    """R-CLS-05: running pulls are left to their own fate; the receive ends with the pull, without a NOTIFY."""
    world = World(profile=replace(OPEN_MX_1_5, pull_maximum=1))
    one, two, there, back = world.pair()
    world.lose = lambda _host, frame: type(frame) is PullReply
    receives = [two.receive(bytearray(40000), number) for number in (1, 2)]
    for number in (1, 2):
        one.send(there, pattern(40000), number)
    world.settle()
    back.restart()
    assert not receives[0].done
    if started:
        world.lose = lambda *_: False
    world.seconds(600)
    assert statuses(*receives) == [Status.REMOTE_ENDPOINT_UNREACHABLE] * 2
    assert not world.sent(Notify)


def test_wrong_arguments():
    """Section 20: each with its status."""
    world = World()
    one, two, there, back = world.pair()
    wrong = [
        (lambda: one.send(back, b"x"), 13),
        (lambda: one.send(there, b"x", 1 << 64), 13),
        (lambda: one.send(there, [b"x"] * 257), 12),
        (lambda: one.send(there, 5), 13),
        (lambda: one.send(there, np.zeros((4, 4), np.uint8)[:, ::2]), 13),
        (lambda: one.receive(b"x"), 13),
        (lambda: one.receive(bytearray(1), 2, 1), 14),
        (lambda: one.receive(bytearray(1), -1), 13),
        (lambda: one.cancel(one.send(there, b"x")), 13),
        (lambda: world.nodes[0].open_endpoint(1), 20),
        (lambda: world.nodes[0].open_endpoint(32), 9),
        (lambda: world.nodes[0].open_endpoint(2, interface=1), 8),
        (lambda: world.nodes[0].open_endpoint(2, context_bits=17), 26),
    ]
    for call, status in wrong:
        with pytest.raises(LocalProtocolError) as failure:
            call()
        assert failure.value.status == status
    two.close()
    for call in (lambda: two.send(back, b""), lambda: two.receive(bytearray(1)), lambda: two.probe()):
        with pytest.raises(LocalProtocolError, match="closed"):
            call()


def test_a_message_that_is_too_long():
    """Wire format, section 7: 32 bits of length."""
    world = World()
    one, _, there, _ = world.pair()
    page = bytes(1 << 25)
    with pytest.raises(LocalProtocolError, match="exceed the maximum length of a message"):
        one.send(there, [page] * 128)


def test_fragments_wait_for_a_busy_application():
    """R-GEN-01: in the ring, and no longer in the batch that they came in."""
    world = World()
    one, two, there, _ = world.pair()
    two.progressing = False
    raw = [world.codec.build(each) for each in shuffled_medium(world, two, one, length=20000)]
    raw = [address(1) + address(0) + each[12:] for each in raw]
    batch = FrameBatch.from_frames(raw)
    buffer = batch.buffer.copy()
    world.nodes[1].receive(replace(batch, buffer=buffer), world.now)
    buffer[:] = 0
    two.progressing = True
    into = bytearray(20000)
    receive = two.receive(into)
    world.settle()
    assert (receive.status, bytes(into)) == (Status.SUCCESS, pattern(20000))
    assert there.fwd == two.session


def test_closing_while_a_pull_waits_for_a_handle():
    """R-CLS-02, R-CLS-08."""
    world = World(profile=replace(OPEN_MX_1_5, pull_maximum=1))
    one, two, there, _ = world.pair()
    world.lose = lambda _host, frame: type(frame) is PullReply
    receives = [two.receive(bytearray(40000), match) for match in (1, 2)]
    for match in (1, 2):
        one.send(there, pattern(40000), match)
    world.settle()
    two.close()
    assert statuses(*receives) == [Status.CANCELLED] * 2
    world.seconds(600)
    assert not world.nodes[1].interfaces[0].timers


def test_partners_get_regions_in_turn():
    """R-RDV-05: the message that has waited longest gets the next region, and one that was reset delays none."""
    world = World(hosts=4, profile=replace(OPEN_MX_1_5, rendezvous_maximum=1))
    one = world.open(0)
    others = [world.open(host, 2) for host in range(1, 4)]
    partners = [world.connect(one, other, host) for host, other in enumerate(others, 1)]
    world.clear()
    sends = [[one.send(partner, pattern(40000, turn)) for partner in partners] for turn in range(3)]
    world.settle()
    assert [each.dst_mac for each in world.sent(Rndv)] == [address(1)]
    one.disconnect(partners[1])
    for other in others:
        for _ in range(3):
            other.receive(bytearray(40000))
    world.seconds(1)
    assert [each.dst_mac for each in world.sent(Rndv)] == [address(host) for host in (1, 1, 3, 1, 3, 3)]
    lost = Status.REMOTE_ENDPOINT_UNREACHABLE
    assert [statuses(*turn) for turn in sends] == [[Status.SUCCESS, lost, Status.SUCCESS]] * 3
    assert not one.starving and one.rendezvous == 0
