"""Calls that cannot be: refused at the call, with the reason, and nothing has changed afterwards."""

from __future__ import annotations

import array
import datetime
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.protocol import LocalProtocolError, Node, Status
from mxwire.protocol.profile import OPEN_MX_1_5
from mxwire.wire.packets import ConnectRequest, HostQuery

from .world import KEY, World, address, pattern, statuses

WRONG_CLASS = pytest.mark.interpreted("compiled code refuses what is of a wrong class with a TypeError")
RELEASED = memoryview(b"x")
RELEASED.release()


def refusal(call) -> LocalProtocolError:
    with pytest.raises(LocalProtocolError) as failure:
        call()
    return failure.value


@WRONG_CLASS
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"addresses": b"\2\0\0"}, "not an Ethernet address"),
        ({"addresses": "02:00:00:00:00:01"}, "not an Ethernet address"),
        ({"addresses": [address(0), address(0)]}, "two interfaces"),
        ({"addresses": []}, "no interface"),
        ({"addresses": address(0), "peers": {b"\2": "x:0"}}, "not an Ethernet address"),
    ],
    ids=str,
)
def test_hosts_that_cannot_be(options, text):
    assert text in str(refusal(lambda: Node(hostname="x", rng=Random(1), **options)))


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ((-1,), Status.BAD_ENDPOINT),
        (("1",), Status.BAD_ENDPOINT),
        ((1.0,), Status.BAD_ENDPOINT),
        ((1, -1), Status.BAD_REQUEST),
        ((1, 1 << 32), Status.BAD_REQUEST),
    ],
    ids=str,
)
def test_endpoints_that_cannot_be(arguments, status):
    world = World()
    assert refusal(lambda: world.nodes[0].open_endpoint(*arguments)).status is status
    assert not world.nodes[0].endpoints


@pytest.mark.parametrize("session", [-1, 0xFFFFFFFF, 1 << 32])
def test_sessions_that_cannot_be(session):
    """R-CON-12: the number that stands for "no session" would admit all hosts that know none."""
    world = World()
    assert "session" in str(refusal(lambda: world.open(0, session=session)))


@WRONG_CLASS
@pytest.mark.parametrize("interface", [-1, 1, None, "0"])
def test_interfaces_that_are_not_there(interface):
    node = World().nodes[0]
    calls = (
        lambda: node.open_endpoint(1, interface=interface),
        lambda: node.transmit(0, interface),
        lambda: node.receive(FrameBatch.from_frames([]), 0, interface),
    )
    assert {refusal(call).status for call in calls} == {Status.BOARD_NOT_FOUND}


@WRONG_CLASS
@pytest.mark.parametrize("peer", [None, 1.5, [], b"xyz", bytearray(5), -1, 2, "nobody:0", address(7)], ids=repr)
def test_peers_that_are_not_there(peer):
    world = World()
    one = world.open(0)
    refusal(lambda: one.connect(peer, 2, KEY))
    assert not one.partners and not one.requests


@WRONG_CLASS
def test_a_peer_of_another_host():
    world, other = World(), World(hosts=3)
    one = world.open(0)
    stranger = other.nodes[0].peer(address(1))
    assert "another host" in str(refusal(lambda: one.connect(stranger, 2, KEY)))
    assert one.connect(bytearray(address(1)), 2, KEY).partner.peer is world.nodes[0].peer(address(1))


@pytest.mark.parametrize(
    "options", [{"key": -1}, {"key": 1.5}, {"number": 256}, {"number": None}, {"resend_maximum": -1}], ids=str
)
def test_connects_that_cannot_be(options):
    world = World()
    one = world.open(0)
    refusal(lambda: one.connect(**{"peer": address(1), "number": 2, "key": KEY, **options}))
    assert not one.partners and not one.requests


@pytest.mark.parametrize(
    "options",
    [
        {"match_info": -1},
        {"match_info": 1 << 64},
        {"match_info": 1.5},
        {"match_info": "a"},
        {"resend_maximum": -1},
        {"data": None},
        {"data": "text"},
        {"data": 5},
        {"data": [b"x", 5]},
        {"data": RELEASED},
        {"data": np.array([datetime.date(2020, 1, 1)], dtype="datetime64[D]")},
        {"data": np.zeros((4, 4))[:, 1]},
        {"data": [b"x"] * 257},
    ],
)
def test_sends_that_cannot_be(options):
    world = World()
    one, _, there, _ = world.pair()
    refusal(lambda: one.send(**{"partner": there, "data": b"x", **options}))
    assert not one.requests and not world.step()
    assert one.send(there, b"x").status is None


@WRONG_CLASS
def test_partners_of_other_endpoints():
    """The refusal names a valid value."""
    world = World()
    one, two, there, back = world.pair()
    connect = one.connect(address(1), 2, KEY)
    for wrong in (back, connect, None, there.peer, 5):
        assert "partner" in str(refusal(lambda wrong=wrong: one.send(wrong, b"x")))
        assert "partner" in str(refusal(lambda wrong=wrong: one.disconnect(wrong)))
    assert list(one.partners.values()) == [there] and list(two.partners.values()) == [back]


def test_a_partner_that_was_forgotten():
    """R-CLS-03: sends to it fail, and it cannot be forgotten once more in the place of its successor."""
    world = World()
    one, two, there, _ = world.pair()
    one.disconnect(there)
    assert one.send(there, b"x").status is Status.REMOTE_ENDPOINT_UNREACHABLE
    again = world.connect(one, two, 1)
    one.disconnect(there)
    assert list(one.partners.values()) == [again]


def test_a_partner_that_was_lost():
    """R-RTX-05: sends fail until it is connected again."""
    world = World()
    one, _, there, _ = world.pair()
    world.lose = lambda *_: True
    late = one.send(there, b"x", resend_maximum=0)
    world.seconds(2)
    assert late.late_status is Status.REMOTE_ENDPOINT_UNREACHABLE
    assert one.send(there, b"x").status is Status.REMOTE_ENDPOINT_UNREACHABLE
    assert not one.requests


@pytest.mark.parametrize("mask", [-1, 1 << 64, None, 0.5], ids=repr)
def test_masks_that_cannot_be(mask):
    world = World()
    one = world.open(0)
    refusal(lambda: one.receive(bytearray(1), 0, mask))
    refusal(lambda: one.probe(0, mask))
    assert not one.requests and not one.matching.posted


@pytest.mark.parametrize("buffer", [b"read-only", "text", 5, [bytearray(1), b"x"], memoryview(b"x")])
def test_buffers_that_cannot_be_received_into(buffer):
    world = World()
    one = world.open(0)
    refusal(lambda: one.receive(buffer))
    assert not one.requests and not one.matching.posted


def test_numbers_and_arrays_of_other_modules():
    """NumPy's integers are numbers, and every contiguous array is memory."""
    world = World()
    one, two, there, _ = world.pair()
    every = np.uint64(2**64 - 1)
    receive = two.receive(np.zeros((2, 2), np.uint16), every, every)
    one.send(there, array.array("H", [1, 2]), every)
    world.settle()
    assert (receive.status, receive.transferred) == (Status.SUCCESS, 4)


@WRONG_CLASS
def test_cancels_that_cannot_be():
    """R-MSC-02."""
    world = World()
    one, two, there, _ = world.pair()
    receive = one.receive(bytearray(1))
    for wrong in (receive, None, there):
        refusal(lambda wrong=wrong: two.cancel(wrong))
    send = one.send(there, b"x")
    assert "send" in str(refusal(lambda: one.cancel(send)))
    assert not receive.done
    assert [one.cancel(receive), one.cancel(receive)] == [True, False]


def test_a_closed_endpoint():
    """R-CLS-02: every call is refused but closing again and cancelling, which come too late."""
    world = World()
    one, _, there, _ = world.pair()
    receive = one.receive(bytearray(1))
    one.close()
    calls = (
        lambda: one.connect(address(1), 2, KEY),
        lambda: one.send(there, b"x"),
        lambda: one.receive(bytearray(1)),
        lambda: one.probe(),
        lambda: one.disconnect(there),
        lambda: one.handle_unexpected(None),
    )
    assert {refusal(call).status for call in calls} == {Status.BAD_ENDPOINT}
    assert not one.cancel(receive)
    one.close()


def test_closing_and_disconnecting_before_a_connect_has_left():
    """R-CLS-02, R-CLS-03: it ends, and nothing of it is on the wire."""
    world = World()
    one, other = world.open(0), world.open(0, 3)
    closed, forgotten = one.connect(address(1), 2, KEY), other.connect(address(1), 2, KEY)
    sends = [one.send(closed.partner, b"x"), other.send(forgotten.partner, b"x")]
    one.close()
    other.disconnect(forgotten.partner)
    ended = [Status.CANCELLED, Status.REMOTE_ENDPOINT_UNREACHABLE]
    assert statuses(closed, forgotten) == statuses(*sends) == ended
    world.seconds(2)
    assert not world.sent(ConnectRequest)
    assert not one.requests and not other.requests


def test_sending_before_a_connect_is_refused():
    """R-CON-04: it ends with the connect, since no other endpoint knows the key."""
    world = World()
    one = world.nodes[0].open_endpoint(1, KEY + 1)
    world.open(1, 2)
    connect = one.connect(address(1), 2, KEY + 1)
    sends = [one.send(connect.partner, pattern(length)) for length in (1, 9000, 40000)]
    world.seconds(5)
    assert connect.status is Status.REMOTE_ENDPOINT_BAD_CONNECTION_KEY
    assert statuses(*sends) == [Status.REMOTE_ENDPOINT_UNREACHABLE] * 3
    assert not one.requests


@WRONG_CLASS
def test_arguments_that_are_not_a_batch():
    world = World()
    assert "FrameBatch" in str(refusal(lambda: world.nodes[0].receive([b"frame"], 0)))


@pytest.mark.parametrize("hz", [0, -1, 2_000_000_000])
def test_clocks_that_do_not_tick(hz):
    with pytest.raises(MxwireError, match="ticks per second"):
        replace(OPEN_MX_1_5, hz=hz)


def test_a_handler_must_be_callable():
    world = World()
    two = world.open(1, 2)
    assert "called" in str(refusal(lambda: two.handle_unexpected(5)))


@pytest.mark.parametrize("length", [1, 9000, 40000])
def test_a_handler_that_fails(length):
    """The caller that drives the node gets the exception; the message counts as not consumed, and nothing is lost."""
    world = World()
    one, two, there, _ = world.pair()

    def handler(_message):
        raise RuntimeError("the application has failed")

    two.handle_unexpected(handler)
    sends = [one.send(there, pattern(length), number) for number in range(2)]
    for _ in sends:
        with pytest.raises(RuntimeError, match="the application has failed"):
            world.settle()
    receives = [two.receive(bytearray(length), number) for number in range(2)]
    world.settle()
    assert statuses(*sends, *receives) == [Status.SUCCESS] * 4


def test_a_handler_that_is_killed():
    """Data behind the message with which it was called does not refer to the batch any more."""
    world = World()
    one, two, there, _ = world.pair()

    def handler(_message):
        raise KeyboardInterrupt

    two.handle_unexpected(handler)
    one.send(there, b"x", 1)
    one.send(there, pattern(30000), 2)
    batch = world.nodes[0].transmit(world.now)
    buffer = batch.buffer.copy()
    frames = FrameBatch(buffer, batch.offset, batch.length, batch.wire_length, batch.timestamp_ns, batch.number)
    with pytest.raises(KeyboardInterrupt):
        world.nodes[1].receive(frames, world.now)
    buffer[:] = 0xEE
    two.handle_unexpected(None)
    data = bytearray(30000)
    receives = [two.receive(bytearray(1), 1), two.receive(data, 2)]
    world.seconds(2)
    assert statuses(*receives) == [Status.SUCCESS] * 2
    assert bytes(data) == pattern(30000)


def test_a_handler_that_lets_the_node_work():
    """The library makes no pass within a pass: packets that arrive in it wait."""
    world = World()
    one, two, there, _ = world.pair()
    node, seen = world.nodes[1], []
    one.send(there, b"x", 1)
    one.send(there, pattern(20000), 2)
    first, *others = _frames(world.nodes[0].transmit(world.now))

    def handler(message):
        seen.append(message.match_info)
        if len(seen) == 1:
            batch = FrameBatch.from_frames(others)
            buffer = batch.buffer.copy()
            node.receive(
                FrameBatch(buffer, batch.offset, batch.length, batch.wire_length, batch.timestamp_ns, batch.number),
                world.now,
            )
            buffer[:] = 0xEE
            node.transmit(world.now + 10**9)
            assert seen == [1]
        return False

    two.handle_unexpected(handler)
    node.receive(FrameBatch.from_frames([first]), world.now)
    world.settle()
    data = bytearray(20000)
    two.receive(data, 2)
    assert seen == [1, 2]
    assert bytes(data) == pattern(20000)


def test_a_handler_may_not_close_another_endpoint():
    """Section 20: error 96."""
    world = World()
    one, two, there, _ = world.pair()
    three = world.open(1, 7)
    two.handle_unexpected(lambda _message: three.close())
    one.send(there, b"x")
    assert refusal(world.settle).status is Status.NOT_SUPPORTED_IN_HANDLER
    assert three.open
    assert two.matching.unexpected == 1


def test_a_peer_that_is_named_by_hand_is_not_asked_any_more():
    """R-HOST-02: only as long as it has no name."""
    world = World(hosts=1, acquainted=False)
    node = world.nodes[0]
    node.add_peer(address(7))
    world.settle()
    node.add_peer(address(7), "seven:0")
    world.seconds(20)
    assert len(world.sent(HostQuery)) == 1
    assert node.deadline() is None


def _frames(batch: FrameBatch) -> list[bytes]:
    return [batch.frame(place) for place in range(len(batch))]
