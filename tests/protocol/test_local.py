"""Messages within one host, which are never on the wire (behaviour, section 19)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from mxwire.protocol import EventKind, Node, Status
from mxwire.protocol.profile import OPEN_MX_1_5
from mxwire.wire.packets import ConnectRequest

from .world import KEY, World, address, frame_to, pattern, statuses


def test_between_two_interfaces():
    """R-LOC-02, R-LOC-03, R-EP-05: whatever interfaces they use; the same number may be open on each."""
    node = Node([address(0), address(1)], "twin", rng=Random(1))
    one, two = node.open_endpoint(1, KEY), node.open_endpoint(1, KEY, interface=1)
    request = one.connect(address(1), 1, KEY)
    node.transmit(0)
    buffer = bytearray(3)
    receive = two.receive(buffer, 1)
    one.send(request.partner, b"abc", 1)
    assert not len(node.transmit(0))
    assert (receive.status, bytes(buffer)) == (Status.SUCCESS, b"abc")
    assert one.session != two.session


def test_the_other_endpoint_closes():
    """R-CLS-02, R-EP-02: before, while the message waits in the ring, while it waits for a receive, and reopened."""
    world = World(hosts=1)
    one, two = world.open(0), world.open(0, 2)
    there = world.connect(one, two, 0)
    kept = one.send(there, pattern(9000))
    world.settle()
    two.progressing = False
    waiting = one.send(there, pattern(9000))
    world.settle()
    two.close()
    late = one.send(there, b"x")
    world.settle()
    world.open(0, 2)
    wrong = one.send(there, b"x")
    world.settle()
    assert statuses(kept, waiting, late) == [Status.REMOTE_ENDPOINT_CLOSED] * 3
    assert wrong.status is Status.REMOTE_ENDPOINT_BAD_SESSION


def test_the_own_endpoint_closes():
    """R-CLS-02: what waits is gone, also from the other side's ring."""
    world = World(hosts=1, profile=replace(OPEN_MX_1_5, ring_size=1))
    one, two = world.open(0), world.open(0, 2)
    there = world.connect(one, two, 0)
    two.progressing = False
    sends = [one.send(there, pattern(9000)) for _ in range(2)]
    world.step()
    one.close()
    assert statuses(*sends) == [Status.CANCELLED] * 2
    two.progressing = True
    world.settle()
    assert two.matching.unexpected == 0


def test_no_memory_for_a_message_of_the_own_host():
    """R-MAT-05: it is refused, since nothing would send it again."""
    world = World(hosts=1, profile=replace(OPEN_MX_1_5, unexpected_maximum=0))
    one, two = world.open(0), world.open(0, 2)
    there = world.connect(one, two, 0)
    send = one.send(there, pattern(9000))
    world.settle()
    assert send.status is Status.NO_RESOURCES


@pytest.mark.parametrize("closed", [False, True])
def test_a_short_message_that_is_lost_after_all(closed):
    """R-SND-06: it was complete when it was posted; its sender is notified that it will not be received."""
    world = World(hosts=1, profile=replace(OPEN_MX_1_5, unexpected_maximum=0))
    one, two = world.open(0), world.open(0, 2)
    there = world.connect(one, two, 0)
    two.progressing = not closed
    send = one.send(there, b"x")
    world.settle()
    two.close()
    assert send.status is Status.SUCCESS
    assert send.late_status is (Status.REMOTE_ENDPOINT_CLOSED if closed else Status.NO_RESOURCES)
    world.step()
    assert [each.request for each in world.reported(EventKind.UNDELIVERED)] == [send]


def test_no_host_on_the_wire_is_a_neighbour():
    """R-LOC-02, R-MEA-02: a CONNECT from our own address in the name of an endpoint that lives here changes nothing."""
    world = World()
    one, two = world.open(0), world.open(0, 2)
    there = world.connect(one, two, 0)
    request = frame_to(one, ConnectRequest, src_mac=address(0), src_dst_peer_index=0, src_session_id=9, app_key=KEY)
    receive = two.receive(bytearray(1))
    world.inject(0, request)
    one.send(there, b"x")
    world.settle()
    assert receive.status is Status.SUCCESS
    assert there.fwd == two.session
