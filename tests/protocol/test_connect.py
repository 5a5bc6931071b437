"""Connecting (behaviour, section 5)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mxwire.protocol import Counter, LocalProtocolError, Status
from mxwire.protocol.profile import OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND
from mxwire.wire.packets import ConnectRequest, NackLib, Notify, Truc

from .world import KEY, World, address


def test_more_connects_than_numbers_end_the_oldest():
    """R-CON-06: each pending connect has its own number, of which there are 256."""
    world = World(lose=lambda *_: True)
    one = world.open(0)
    requests = [one.connect(address(1), 2, KEY) for _ in range(257)]
    world.settle()
    assert requests[0].status is Status.NO_RESOURCES
    assert not any(each.done for each in requests[1:])


def test_a_connect_can_be_cancelled():
    """R-MSC-02, R-CON-02: before it has left, and while it waits for an answer; then it is forgotten."""
    world = World(lose=lambda *_: True)
    one = world.open(0)
    early, late = one.connect(address(1), 2, KEY), one.connect(address(1), 2, KEY)
    assert one.cancel(early)
    world.settle()
    assert one.cancel(late)
    assert not one.cancel(late)
    assert {early.status, late.status} == {Status.CANCELLED}
    world.seconds(2)
    assert len(world.sent(ConnectRequest)) == 1
    assert not one.requests


def test_without_connecting_back_a_real_host_cannot_take_large_messages():
    """R-CON-12, R-CON-13, D-1: libacks, PULLs and NOTIFYs carry session 0xFFFFFFFF, and are refused."""
    world = World(profile=OPEN_MX_1_5_AS_FOUND)
    one, two = world.open(0), world.open(1, 2)
    world.connect(one, two, 1)
    receive = one.receive(bytearray(50000), 7)
    send = two.send(two.partners[1, 1], bytes(50000), 7)
    world.seconds(0.1)
    assert receive.status is Status.REMOTE_ENDPOINT_BAD_SESSION
    assert world.sent(Notify, 0)[0].session == 0xFFFFFFFF
    assert world.sent(NackLib, 1)[0].nack_type == 3
    assert not send.done
    small = one.receive(bytearray(8), 8)
    two.send(two.partners[1, 1], b"12345678", 8)
    world.seconds(0.1)
    assert small.status is Status.SUCCESS
    assert world.sent(Truc, 0)[0].session == 0xFFFFFFFF
    assert world.nodes[1].counters["Drop Bad Session"] >= 3


def test_a_late_connect_back_resets_the_numbers_of_a_real_host():
    """R-CON-10, R-CON-12, D-1: what was delivered already is delivered a second time."""
    world = World(profile=OPEN_MX_1_5_AS_FOUND)
    one, two = world.open(0), world.open(1, 2)
    world.connect(one, two, 1)
    back = two.partners[1, 1]
    first, second = one.receive(bytearray(1), 7), one.receive(bytearray(1), 7)
    two.send(back, b"x", 7)
    world.settle()
    assert first.status is Status.SUCCESS
    two.connect(address(0), 1, KEY)
    world.seconds(1)
    assert second.status is Status.SUCCESS


def test_wrong_arguments():
    """R-EP-01 and section 20: each with its status."""
    world = World()
    one = world.open(0)
    for peer, status in ((b"\2\0\0\0\0\7", 36), ("nobody:0", 28), (99, 28)):
        with pytest.raises(LocalProtocolError) as failure:
            one.connect(peer, 1, KEY)
        assert failure.value.status == status
    with pytest.raises(LocalProtocolError, match="endpoint number 256"):
        one.connect(address(1), 256, KEY)
    with pytest.raises(LocalProtocolError, match="key"):
        one.connect(address(1), 1, 1 << 32)


def test_the_number_of_partners_is_limited():
    """Section 18 of the profile's limits: a request of one more is not answered."""
    world = World(profile=replace(OPEN_MX_1_5, partner_maximum=1))
    one, two = world.open(0), world.open(1, 2)
    other = world.open(0, 3)
    world.connect(one, two, 1)
    request = other.connect(address(1), 2, KEY)
    world.seconds(1)
    assert not request.done
    assert world.nodes[1].counters[Counter.DROP_PARTNERS_FULL] > 0
    with pytest.raises(LocalProtocolError, match="partners"):
        one.connect(address(1), 9, KEY)
