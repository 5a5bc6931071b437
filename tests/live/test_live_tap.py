"""Tap sees what passes a real interface."""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest

from mxwire.link import LinkError, LinkStatistics, Tap
from tests.link.link_frames import BROADCAST, batch, contents, frame, numbered, tagged

from .links import LONG, opened, own_cable, raw_socket, receive
from .links import shared_cable as cable
from .namespaces import Port

__all__ = ["cable", "own_cable"]

Cable = tuple[Port, Port]


tap = partial(opened, kind=Tap)


def send_raw(port: Port, *frames: bytes) -> None:
    with raw_socket(port) as made:
        for each in frames:
            made.send(each)


def test_both_directions_are_seen_with_times_in_order(cable: Cable) -> None:
    with tap(cable[0]) as here, opened(cable[0]) as one, opened(cable[1]) as other:
        before = time.time_ns()
        question, answer = frame(other.address, one.address), frame(one.address, other.address)
        times: list[int] = []
        for _ in range(3):
            one.send(batch([question]))
            assert len(other.receive(LONG)) == 1
            other.send(batch([answer]))
            assert len(one.receive(LONG)) == 1
        received: list[bytes] = []
        while len(received) < 6:
            got = here.receive(LONG)
            received += contents(got)
            times += got.timestamp_ns.tolist()
        assert received == [question, answer] * 3
        assert before <= times[0] and times == sorted(times) and times[-1] <= time.time_ns()


def test_frames_for_others_are_seen_and_other_ethertypes_are_not(cable: Cable) -> None:
    with tap(cable[1]) as here:
        wanted = [frame(b"\x02" * 6), frame(b"\x01\x00\x5e\x00\x00\x01"), frame(BROADCAST)]
        send_raw(cable[0], frame(BROADCAST, ethertype=0x88B5), *wanted, frame(BROADCAST, ethertype=0x0800))
        assert receive(here, 3) == wanted
        assert receive(here, 1, wait=0.05) == []
        assert here.statistics() == LinkStatistics(received=3)


@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("vlan", [0, 5, 0xEFFF])
def test_tags_are_where_they_were(cable: Cable, end: int, vlan: int) -> None:
    """At the receiving end the kernel has taken the tag out, at the sending end it has not."""
    with tap(cable[end]) as here:
        sent = [frame(BROADCAST), tagged(BROADCAST, vlan=vlan, payload=b"\1" * 60), frame(BROADCAST)]
        send_raw(cable[0], *sent)
        assert receive(here, 3) == sent


def test_a_service_tag_keeps_its_own_protocol(cable: Cable) -> None:
    service = BROADCAST + bytes(6) + b"\x88\xa8\x00\x07\x86\xdf" + bytes(50)
    double = BROADCAST + bytes(6) + b"\x88\xa8\x00\x07\x81\x00\x00\x05\x86\xdf" + bytes(50)
    with tap(cable[1]) as here:
        send_raw(cable[0], service, double, frame(BROADCAST))
        assert receive(here, 3) == [service, double, frame(BROADCAST)]


def test_all_ethertypes_on_demand(cable: Cable) -> None:
    with tap(cable[1], ethertype=None) as here:
        wanted = [frame(BROADCAST, ethertype=0x88B5), frame(BROADCAST), tagged(BROADCAST)]
        send_raw(cable[0], *wanted)
        received: list[bytes] = []
        while not set(wanted) <= set(received):
            more = contents(here.receive(LONG))
            assert more
            received += more
        assert [each for each in received if each in wanted] == wanted


def test_a_link_beside_a_tap_hears_the_same(cable: Cable) -> None:
    with tap(cable[1]) as here, opened(cable[1]) as other, opened(cable[0]) as one:
        sent = numbered(other.address, 500, 1514)
        assert one.send(batch(sent)) == 500
        assert receive(here, 500) == sent
        assert contents(other.receive(LONG)) == sent


@pytest.mark.parametrize("promiscuous", [True, False])
def test_the_interface_is_promiscuous_while_it_is_tapped(cable: Cable, promiscuous: bool) -> None:
    def is_promiscuous() -> bool:
        output = cable[0].namespace.ip("-d", "link", "show", "dev", cable[0].interface)
        return "promiscuity 0" not in output

    assert not is_promiscuous()
    with tap(cable[0], promiscuous=promiscuous):
        assert is_promiscuous() == promiscuous
    assert not is_promiscuous()


def test_frames_without_room_are_counted(cable: Cable) -> None:
    with tap(cable[1], ring_bytes=1 << 20) as here, opened(cable[0]) as one:
        assert one.send(batch(numbered(BROADCAST, 3000, 1500))) == 3000
        received = receive(here, 3000, wait=0.1)
        assert here.statistics() == LinkStatistics(received=len(received), dropped=3000 - len(received))
        assert 0 < len(received) < 3000


def test_a_tap_wakes_and_reports_that_its_interface_has_gone(own_cable: Cable) -> None:
    with tap(own_cable[0]) as here:
        late = threading.Timer(0.05, here.wake)
        late.start()
        assert len(here.receive(None)) == 0
        late.join()
        own_cable[0].delete()
        with pytest.raises(LinkError, match="veth0: the interface is gone"):
            here.receive(LONG)
