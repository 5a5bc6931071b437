"""PacketLink on real interfaces."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import select
import shutil
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mxwire.frames import FrameBatch
from mxwire.link import LinkError, LinkStatistics, MemoryLink, Mode, PacketLink, XdpLink, memory_pair
from mxwire.link.backoff import SendBackoff
from mxwire.link.bpf import XdpMode
from mxwire.link.interface import read_interface
from mxwire.link.packet_socket import SOL_PACKET, whole_sender
from mxwire.link.ring import ReceiveRing
from mxwire.link.ring_v2 import SlotRing
from mxwire.link.ring_v3 import BlockRing
from mxwire.link.sender import FEW
from mxwire.link.sendmmsg import BatchSender
from tests.link.link_frames import BROADCAST, batch, contents, frame, numbered, tagged
from tests.waiting import until

from . import bpf
from .links import LONG, AnyLink, own_cable, raw_socket, receive
from .links import opened as open_link
from .links import shared_cable as cable
from .links import shared_jumbo_cable as jumbo_cable
from .namespaces import Laboratory, Namespace, Port, as_nobody

__all__ = ["cable", "jumbo_cable", "own_cable"]

MODES = [*Mode, XdpMode.GENERIC, XdpMode.NATIVE]
Pair = tuple[AnyLink, AnyLink]


def opened(port: Port, mode: Mode | XdpMode = Mode.SLEEP, **options: object) -> AnyLink:
    if isinstance(mode, XdpMode) and (why_not := bpf.missing()):
        pytest.skip(why_not)
    return open_link(port, XdpLink if isinstance(mode, XdpMode) else PacketLink, mode=mode, **options)


def linked(cable: str, *more: str) -> Any:
    """A fixture of links of every mode at both ends of a cable; with ``memory``, also of a network in memory."""

    @pytest.fixture(params=[*MODES, *more])
    def links(request: pytest.FixtureRequest) -> Iterator[Pair]:
        if request.param == "memory":
            one, other = memory_pair()
            with one, other:
                yield one, other
            return
        ports = request.getfixturevalue(cable)
        with opened(ports[0], mode=request.param) as one, opened(ports[1], mode=request.param) as other:
            yield one, other

    return links


links = linked("cable")
jumbo_links = linked("jumbo_cable")
own_links = linked("own_cable")
links_of_every_kind = linked("cable", "memory")


def readable(link: AnyLink, wait: float = 0.0) -> bool:
    return bool(select.select([link.fileno()], [], [], wait)[0])


def test_links_know_their_interfaces(links: Pair, cable: tuple[Port, Port]) -> None:
    for link, port in zip(links, cable, strict=True):
        assert (link.name, link.address, link.mtu) == (port.interface, port.address, 1500)


def test_batches_arrive_whole_and_in_order(links: Pair) -> None:
    one, other = links
    total = 0
    for count in (1, 2, FEW - 1, FEW, 5, 16, 17, 100, 1000):
        sent = numbered(other.address, count, sender=one.address)
        assert one.send(batch(sent)) == count
        assert receive(other, count) == sent
        total += count
        assert one.statistics() == LinkStatistics(sent=total)
        assert other.statistics() == LinkStatistics(received=total)


def test_times_and_numbers_continue_from_batch_to_batch(links: Pair) -> None:
    one, other = links
    before = time.time_ns()
    times: list[int] = []
    numbers: list[int] = []
    for count in (1, 7, 100):
        one.send(batch(numbered(other.address, count)))
        left = count
        while left:
            received = other.receive(LONG)
            left -= len(received)
            times += received.timestamp_ns.tolist()
            numbers += received.number.tolist()
            assert received.length.tolist() == received.wire_length.tolist() == [60] * len(received)
    assert numbers == list(range(1, 109))
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= time.time_ns()


@pytest.mark.parametrize("seed", [1, 2])
def test_frames_of_all_lengths_arrive_whole(jumbo_links: Pair, seed: int) -> None:
    one, other = jumbo_links
    random = np.random.default_rng(seed)
    lengths = [60, 9014, 14, 1514, *random.integers(14, 9015, 150).tolist(), *[4136] * 40, *[60, 9014] * 20]
    sent = [frame(other.address, one.address, payload=random.bytes(length - 14)) for length in lengths]
    assert one.send(batch(sent)) == len(sent)
    assert receive(other, len(sent)) == sent


@pytest.mark.parametrize("count", [2, 40])
def test_frames_are_taken_from_anywhere_in_a_buffer(jumbo_links: Pair, count: int) -> None:
    one, other = jumbo_links
    sent = numbered(other.address, count, 4136)
    whole = batch(sent)
    order = np.arange(len(sent))[::-1]
    assert one.send(whole.select(order)) == count
    assert receive(other, count) == sent[::-1]
    spread = np.zeros(2 * len(whole.buffer), np.uint8)
    spread[::2] = whole.buffer
    strided = FrameBatch(spread[::2], whole.offset, whole.length, whole.length, whole.timestamp_ns, whole.number)
    assert one.send(strided) == count
    assert receive(other, count) == sent


def test_received_batches_may_be_sent_on_as_they_are(links: Pair) -> None:
    one, other = links
    sent = numbered(BROADCAST, 50)
    one.send(batch(sent))
    count = 0
    while count < 50:
        received = other.receive(LONG)
        assert other.send(received) == len(received) > 0
        count += len(received)
    assert receive(one, 50) == sent


def test_only_own_frames_are_seen(links: Pair, cable: tuple[Port, Port]) -> None:
    one, other = links
    wanted = [*numbered(other.address, 20), frame(BROADCAST)]
    foreign = [frame(b"\x02" * 6), frame(one.address), frame(b"\x01\x00\x5e\x00\x00\x01"), tagged(other.address)]
    unseen = [frame(other.address, ethertype=0x0800), frame(BROADCAST, ethertype=0x88B5)]
    with raw_socket(cable[0]) as raw:
        for each in [*foreign, *unseen, *wanted, *foreign]:
            raw.send(each)
    assert receive(other, len(wanted)) == wanted
    assert receive(other, 1, wait=0.05) == []
    assert other.statistics() == LinkStatistics(received=len(wanted), foreign=2 * len(foreign))


def test_foreign_frames_between_own_leave_no_gaps_in_the_numbers(links: Pair) -> None:
    one, other = links
    mixed = [each for own in numbered(other.address, 50) for each in (own, frame(b"\x02" * 6))]
    one.send(batch(mixed))
    numbers: list[int] = []
    while len(numbers) < 50:
        received = other.receive(LONG)
        assert len(received)
        numbers += received.number.tolist()
    assert numbers == list(range(1, 51))


def test_a_few_frames_come_and_go_by_themselves(links: Pair, cable: tuple[Port, Port]) -> None:
    """Short and long ones, for others, for no host, and too long ones: no frame is lost, cut or moved."""
    one, other = links
    assert not other.receive_few()
    foreign = [frame(b"\x02" * 6), tagged(other.address), frame(b"\x02" * 6, payload=bytes(1000))]
    wanted: list[bytes] = []
    for first, count, length in ((0, 3, 60), (3, 40, 200), (43, 2, 1514), (45, 30, 60)):
        sent = numbered(other.address, count, length, first=first)
        assert one.send_few([*sent, frame(other.address, payload=bytes(9000))]) == count
        wanted += sent
        with raw_socket(cable[0]) as raw:
            for each in foreign:
                raw.send(each)
    found: list[bytes] = []
    end = time.monotonic() + LONG
    while len(found) < len(wanted) and time.monotonic() < end:
        more = other.receive_few()
        found += contents(more) if isinstance(more, FrameBatch) else more
    assert found == wanted
    until(lambda: not other.receive_few() and other.statistics().foreign == 4 * len(foreign))
    assert other.statistics() == LinkStatistics(received=len(wanted), foreign=4 * len(foreign))
    assert one.statistics() == LinkStatistics(sent=len(wanted), refused=4)


def test_few_frames_wake_and_end_as_batches_do(links: Pair) -> None:
    one, _ = links
    one.wake()
    assert not one.receive_few() and not readable(one)
    one.close()
    assert one.send_few([b"x" * 60]) == 0
    with pytest.raises(LinkError, match="was closed"):
        one.receive_few()


def test_a_tag_for_the_priority_only_changes_nothing(links: Pair, cable: tuple[Port, Port]) -> None:
    with raw_socket(cable[0]) as raw:
        raw.send(tagged(links[1].address, vlan=0))
    assert receive(links[1], 1) == [frame(links[1].address)]


def test_own_outgoing_frames_are_not_seen(links: Pair) -> None:
    one, _ = links
    one.send(batch([frame(BROADCAST)] * 10))
    assert receive(one, 1, wait=0.05) == []


def test_another_ethertype_can_be_requested(cable: tuple[Port, Port]) -> None:
    with opened(cable[0], ethertype=0x88B5) as one, opened(cable[1], ethertype=0x88B5) as other:
        wanted = frame(other.address, ethertype=0x88B5)
        one.send(batch([frame(other.address), wanted]))
        assert receive(other, 1) == [wanted]
        assert receive(other, 1, wait=0.05) == []


@pytest.mark.parametrize("count", [2, 40])
def test_frames_that_the_wire_does_not_take_are_refused_and_the_rest_leaves(links: Pair, count: int) -> None:
    one, other = links
    sent = numbered(other.address, count, 1514)
    odd = [frame(other.address, payload=bytes(1501)), b"short", *sent, frame(other.address, payload=bytes(9000))]
    assert one.send(batch(odd)) == count
    assert receive(other, count) == sent
    assert one.statistics() == LinkStatistics(sent=count, refused=3)


def test_a_thousand_frames_leave_in_one_call(cable: tuple[Port, Port], monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    send = BatchSender._call

    def counted(self: BatchSender, first: int, end: int) -> int:
        calls.append(end - first)
        return send(self, first, end)

    monkeypatch.setattr(BatchSender, "_call", counted)
    with opened(cable[0]) as one:
        assert one.send(batch(numbered(BROADCAST, 1500))) == 1500
    assert calls == [1024, 476]


SLOW_QUEUES = {
    "short": ("rate 8mbit burst 4k limit 30k", errno.ENOBUFS, 200),
    "long": ("rate 80mbit burst 10k limit 50m", errno.EAGAIN, 10_000),
}


@pytest.mark.parametrize("queue", SLOW_QUEUES)
def test_a_full_queue_is_waited_for_a_moment(
    own_cable: tuple[Port, Port], monkeypatch: pytest.MonkeyPatch, queue: str
) -> None:
    """A queue that drops gives one error, one that holds more than the socket may have under way another."""
    options, expected, count = SLOW_QUEUES[queue]
    shaped = own_cable[0].namespace.run("tc", "qdisc", "add", "dev", "veth0", "root", "tbf", *options.split())
    if shaped.returncode:
        pytest.skip(f"no slow queues here: {shaped.stderr.strip()}")
    errors: set[int] = set()
    wait = SendBackoff.retry
    monkeypatch.setattr(SendBackoff, "retry", lambda self, error: errors.add(error) or wait(self, error))
    with opened(own_cable[0]) as one, opened(own_cable[1]) as other:
        sent = numbered(other.address, count, 1000)
        left = one.send(batch(sent))
        assert errors == {expected}
        assert 0 < left < count
        assert one.statistics() == LinkStatistics(sent=left, refused=count - left)
        assert receive(other, left) == sent[:left]


def test_no_frames_are_sent_at_no_cost(links: Pair) -> None:
    assert links[0].send(batch([])) == 0


@pytest.mark.parametrize("mode", [Mode.SLEEP, Mode.BULK])
def test_frames_dropped_at_a_full_ring_are_counted(cable: tuple[Port, Port], mode: Mode) -> None:
    with opened(cable[0]) as one, opened(cable[1], mode=mode, ring_bytes=1 << 20) as other:
        sent = numbered(other.address, 8000, 300)
        assert one.send(batch(sent)) == 8000
        received = receive(other, 8000, wait=0.1)
        assert 0 < len(received) < 8000
        assert set(received) <= set(sent)
        assert other.statistics() == LinkStatistics(received=len(received), dropped=8000 - len(received))
        one.send(batch(sent[:10]))
        assert receive(other, 10) == sent[:10]


class ShortOfMemory:
    """A packet socket whose kernel has little memory for rings."""

    def __init__(self, opened: socket.socket, most: int) -> None:
        self._opened = opened
        self._most = most
        self.fileno = opened.fileno

    def setsockopt(self, level: int, option: int, value: bytes) -> None:
        block, blocks = struct.unpack_from("II", value)
        if block * blocks > self._most:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        self._opened.setsockopt(level, option, value)


@pytest.mark.parametrize(("version", "ring"), [(1, partial(SlotRing, mtu=1500)), (2, BlockRing)])
def test_a_smaller_ring_does_where_memory_is_short(
    cable: tuple[Port, Port], version: int, ring: Callable[..., ReceiveRing]
) -> None:
    with raw_socket(cable[0]) as opened:
        opened.setsockopt(SOL_PACKET, 10, version)
        made = ring(ShortOfMemory(opened, 8 << 20))
        assert 4 << 20 < made.memory.nbytes <= 8 << 20
        made.close()
        with pytest.raises(LinkError, match="refuses a receive ring: Cannot allocate memory"):
            ring(ShortOfMemory(opened, 0))


def test_the_ring_goes_round(cable: tuple[Port, Port]) -> None:
    with opened(cable[0]) as one, opened(cable[1], ring_bytes=1 << 20) as other:
        for first in range(0, 3000, 77):
            sent = numbered(other.address, 77, first=first)
            one.send(batch(sent))
            assert receive(other, 77) == sent


def test_a_frame_longer_than_the_mtu_was_is_dropped_not_cut(own_cable: tuple[Port, Port]) -> None:
    with opened(own_cable[1]) as other:
        for port in own_cable:
            port.link("mtu", "9000")
        with opened(own_cable[0]) as one:
            one.send(batch([frame(other.address, payload=bytes(8000)), frame(other.address)]))
        assert receive(other, 1) == [frame(other.address)]
        assert other.statistics() == LinkStatistics(received=1, dropped=1)


def test_waiting_ends_when_a_frame_comes(links_of_every_kind: Pair) -> None:
    one, other = links_of_every_kind
    sent = numbered(other.address, 1)
    late = threading.Timer(0.05, one.send, [batch(sent)])
    late.start()
    assert receive(other, 1) == sent
    late.join()


@pytest.mark.parametrize("timeout", [0.0, 0.03])
def test_waiting_ends_with_its_time(links_of_every_kind: Pair, timeout: float) -> None:
    start = time.monotonic()
    assert len(links_of_every_kind[0].receive(timeout)) == 0
    assert time.monotonic() - start >= timeout


@pytest.mark.parametrize("timeout", [LONG, None])
def test_waking_ends_a_receive_in_another_thread(links_of_every_kind: Pair, timeout: float | None) -> None:
    late = threading.Timer(0.05, links_of_every_kind[0].wake)
    late.start()
    assert len(links_of_every_kind[0].receive(timeout)) == 0
    late.join()


def test_waking_before_a_receive_ends_that_one_only(links_of_every_kind: Pair) -> None:
    link, _ = links_of_every_kind
    link.wake()
    link.wake()
    assert readable(link) == isinstance(link, MemoryLink)
    assert len(link.receive(None)) == 0
    assert not readable(link)
    assert len(link.receive(0.01)) == 0


def test_the_descriptor_is_readable_when_frames_wait(links_of_every_kind: Pair) -> None:
    one, other = links_of_every_kind
    assert not readable(other)
    one.send(batch(numbered(other.address, 3)))
    assert readable(other, LONG)
    assert receive(other, 3) == numbered(other.address, 3)
    assert len(other.receive()) == 0
    assert not readable(other)


def test_foreign_frames_do_not_end_a_wait(links_of_every_kind: Pair) -> None:
    one, other = links_of_every_kind
    one.send(batch([frame(b"\x02" * 6)] * 5))
    assert len(other.receive(0.05)) == 0
    assert not readable(other)


def test_an_interface_that_goes_down_causes_no_busy_loop(own_links: Pair, own_cable: tuple[Port, Port]) -> None:
    _, link = own_links
    own_cable[1].down()
    # An AF_XDP socket reports nothing, which is as good.
    assert readable(link, LONG if isinstance(link, PacketLink) else 0) == isinstance(link, PacketLink)
    end = time.monotonic() + LONG
    while readable(link) and time.monotonic() < end:
        assert len(link.receive(0)) == 0
    assert not readable(link)


def test_an_event_loop_gets_everything_by_the_descriptor(links: Pair) -> None:
    one, other = links
    sent = numbered(other.address, 300)
    received: list[bytes] = []

    async def listen() -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def read() -> None:
            received.extend(contents(other.receive(0)))
            if len(received) == len(sent) and not done.done():
                done.set_result(None)

        loop.add_reader(other.fileno(), read)
        for first in range(0, 300, 30):
            loop.call_later(first / 10_000, one.send, batch(sent[first : first + 30]))
        await asyncio.wait_for(done, LONG)
        loop.remove_reader(other.fileno())

    asyncio.run(listen())
    assert received == sent


@pytest.mark.parametrize("count", [1, 20])
def test_an_interface_that_goes_down_and_up_continues(
    own_links: Pair, own_cable: tuple[Port, Port], count: int
) -> None:
    one, other = own_links
    own_cable[1].down()
    assert len(other.receive(0.05)) == 0
    assert other.send(batch(numbered(one.address, count))) == 0
    assert other.statistics() == LinkStatistics(refused=count)
    own_cable[1].up()
    sent = numbered(other.address, count)
    # A veth pair passes frames a moment after its end is up.
    until(lambda: one.send(batch(sent)) == len(sent))
    assert receive(other, count)[:count] == sent
    assert other.send(batch(numbered(one.address, count))) == count
    assert receive(one, count) == numbered(one.address, count)


def test_an_interface_may_be_opened_while_it_is_down(own_cable: tuple[Port, Port]) -> None:
    own_cable[1].down()
    with opened(own_cable[0]) as one, opened(own_cable[1]) as other:
        assert len(other.receive(0.05)) == 0
        own_cable[1].up()
        # A veth pair passes frames a moment after its end is up, and may take some before that it drops.
        received, end = [], time.monotonic() + LONG
        while not received and time.monotonic() < end:
            one.send(batch([frame(BROADCAST)]))
            received = receive(other, 1, 0.01)
        assert received[:1] == [frame(BROADCAST)]


@pytest.mark.parametrize("down_before", [False, True])
@pytest.mark.parametrize("timeout", [None, 0.0])
def test_a_deleted_interface_is_reported_as_gone(
    own_links: Pair, own_cable: tuple[Port, Port], down_before: bool, timeout: float | None
) -> None:
    one, _ = own_links
    if down_before:
        own_cable[0].down()
        assert len(one.receive(0.05)) == 0
    late = threading.Timer(0.05, own_cable[0].delete)
    late.start()
    end = time.monotonic() + LONG
    with pytest.raises(LinkError, match=r"^veth0: the interface is gone$"):
        while time.monotonic() < end:
            one.receive(timeout)
    late.join()
    assert one.send(batch([frame(BROADCAST)])) == 0
    assert one.send(batch([frame(BROADCAST)] * 10)) == 0


def test_an_interface_of_the_same_name_is_another(own_cable: tuple[Port, Port]) -> None:
    with opened(own_cable[0]) as one:
        own_cable[0].delete()
        own_cable[0].namespace.ip("link", "add", "veth0", "type", "veth", "peer", "name", "veth9")
        with pytest.raises(LinkError, match="gone"):
            one.receive(LONG)


def test_hosts_on_a_bridge_receive_their_frames(laboratory: Laboratory) -> None:
    links = [opened(port) for port in laboratory.bridged(3, mtu=9000)]
    first, second, third = links
    assert [each.mtu for each in links] == [9000] * 3
    announcement = frame(BROADCAST, first.address)
    # A bridge forwards nothing before its ports have learnt.
    until(lambda: _heard(first, announcement, second) and _heard(first, announcement, third))
    sent = numbered(second.address, 30, 9014, sender=first.address)
    assert first.send(batch(sent)) == 30
    received: list[bytes] = []
    while len(received) < 30:
        more = receive(second, 1)
        assert more
        received += [each for each in more if each != announcement]
    assert received == sent
    assert all(each == announcement for each in receive(third, 30, wait=0.05))
    for each in links:
        each.close()


def _heard(link: AnyLink, what: bytes, by: PacketLink) -> bool:
    link.send(batch([what]))
    return what in receive(by, 1, wait=0.1)


# Closing.


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def mappings() -> int:
    return Path("/proc/self/maps").read_text().count("socket:")


@pytest.mark.parametrize("mode", MODES)
def test_closing_gives_everything_back(cable: tuple[Port, Port], mode: Mode) -> None:
    before = descriptors(), mappings()
    for _ in range(3):
        link = opened(cable[0], mode=mode)
        link.receive(0.01)
        assert not readable(link)
        assert (descriptors(), mappings()) > before
        link.close()
        link.close()
        link.wake()
        assert (descriptors(), mappings()) == before
    assert link.fileno() == -1
    with pytest.raises(LinkError, match="veth0: the link was closed"):
        link.receive(0)
    assert link.send(batch([frame(BROADCAST)])) == 0
    assert link.statistics() == LinkStatistics()


@pytest.mark.parametrize("mode", [Mode.SLEEP, Mode.BULK])
def test_a_batch_that_is_kept_outlives_the_link(cable: tuple[Port, Port], mode: Mode) -> None:
    before = descriptors(), mappings()
    with opened(cable[0]) as one:
        other = opened(cable[1], mode=mode)
        sent = numbered(other.address, 8)
        one.send(batch(sent))
        kept = other.receive(LONG)
        other.close()
        one.send(batch(numbered(other.address, 8, first=100)))
        assert kept and contents(kept) == sent[: len(kept)], "the first of them; a block may end between two frames"
    del kept
    assert (descriptors(), mappings()) == before


def test_nothing_stays_when_opening_fails(cable: tuple[Port, Port], monkeypatch: pytest.MonkeyPatch) -> None:
    before = descriptors(), mappings()

    def fail(*_: object) -> None:
        raise LinkError("not today")

    monkeypatch.setattr("mxwire.link.packet_socket.bind", fail)
    with pytest.raises(LinkError, match="not today"):
        opened(cable[0])
    assert (descriptors(), mappings()) == before


def test_a_second_socket_that_cannot_be_opened_is_an_error_in_one_line(cable: tuple[Port, Port]) -> None:
    """The limit of descriptors is reached after the first socket."""
    before, limits = descriptors(), resource.getrlimit(resource.RLIMIT_NOFILE)
    with cable[0].namespace.inside():
        found = read_interface(cable[0].interface)
        lowest = os.dup(0)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
        try:
            with pytest.raises(LinkError, match=r"cannot open a packet socket: .*open files"):
                whole_sender(found)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        with pytest.raises(LinkError, match="the interface is gone"):
            whole_sender(replace(found, name="renamed"))
    assert descriptors() == before


# Links that cannot be opened.


def message(namespace: Namespace, name: str) -> str:
    with namespace.inside(), pytest.raises(LinkError) as caught:
        PacketLink.open(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_interface_that_is_not_there(cable: tuple[Port, Port]) -> None:
    here = cable[0].namespace
    assert message(here, "eth7").startswith("there is no interface 'eth7' here; there are")
    assert "veth0" in message(here, "eth7")
    for name in ("a-name-that-is-too-long", "", "ve\0th0", "ä"):
        assert "there is no interface" in message(here, name)


def test_loopback_is_refused_with_the_way_out(laboratory: Laboratory) -> None:
    assert "veth" in message(laboratory.machine(), "lo")


def test_a_tunnel_is_not_an_ethernet(laboratory: Laboratory) -> None:
    machine = laboratory.machine()
    made = machine.run("ip", "tuntap", "add", "tun7", "mode", "tun")
    if made.returncode:
        pytest.skip(f"no tunnels here: {made.stderr.strip()}")
    assert message(machine, "tun7").startswith("tun7: this is a tunnel (tun) interface, and MXoE needs Ethernet")


OPEN = "import sys; from mxwire.link import PacketLink; PacketLink.open('veth0').close(); print('opened')"


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="the program setpriv is not installed (util-linux)")
def test_it_needs_one_capability_and_explains_how_to_get_it(cable: tuple[Port, Port]) -> None:
    here = cable[0].namespace
    allowed = here.run(*as_nobody(OPEN, "net_raw"))
    assert allowed.stdout == "opened\n", allowed.stderr
    refused = here.run(*as_nobody(OPEN))
    output = refused.stderr.splitlines()[-1]
    assert output.startswith("mxwire.link.errors.LinkError: veth0: raw Ethernet frames need CAP_NET_RAW")
    way = output.partition("(")[2].removesuffix(")")
    assert "use sudo" in output and way.startswith("sudo setpriv ")
    # The advice works: root stands for sudo, and a program for the shell.
    followed = way.removeprefix("sudo ").replace("$USER", "nobody").replace("$(id -g)", "65534").replace("$SHELL", "")
    readable = followed.replace("+net_raw", "-all,+net_raw,+dac_read_search")
    there = here.run(*readable.split(), *as_nobody(OPEN)[-3:])
    assert there.stdout == "opened\n", there.stderr
