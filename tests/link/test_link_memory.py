"""The network in memory keeps the promises of a link."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mxwire.link import LinkError, LinkStatistics, MemoryLink, MemoryNetwork, memory_pair

from .link_frames import BROADCAST, batch, contents, frame, numbered, tagged

LONG = 30.0


@pytest.fixture
def pair() -> Iterator[tuple[MemoryLink, MemoryLink]]:
    one, other = memory_pair()
    with one, other:
        yield one, other


def test_frames_arrive_in_order_with_times_and_numbers(pair: tuple[MemoryLink, MemoryLink]) -> None:
    one, other = pair
    sent = numbered(other.address, 300, sender=one.address)
    before = time.time_ns()
    assert one.send(batch(sent[:100])) == 100
    assert one.send(batch(sent[100:])) == 200
    received = other.receive()
    assert contents(received) == sent
    assert received.number.tolist() == list(range(1, 301))
    assert before <= received.timestamp_ns[0] <= received.timestamp_ns[-1] <= time.time_ns()
    one.send(batch(sent[:1]))
    assert other.receive().number.tolist() == [301]
    assert len(other.receive()) == 0
    assert other.statistics() == LinkStatistics(received=301)
    assert one.statistics() == LinkStatistics(sent=301)


def test_a_link_receives_only_its_frames() -> None:
    network = MemoryNetwork()
    links = [network.attach() for _ in range(3)]
    a, b, c = links
    wanted = [frame(b.address), frame(BROADCAST)]
    a.send(batch([*wanted, frame(c.address), frame(b.address, ethertype=0x0800), tagged(b.address)]))
    assert contents(b.receive()) == wanted
    assert b.statistics() == LinkStatistics(received=2, foreign=2)
    assert contents(c.receive()) == [frame(BROADCAST), frame(c.address)]
    assert len(a.receive()) == 0
    for link in links:
        link.close()


def test_frames_that_do_not_fit_are_refused_and_the_rest_leaves(pair: tuple[MemoryLink, MemoryLink]) -> None:
    one, other = pair
    fits, too_long = frame(other.address, payload=bytes(9000)), frame(other.address, payload=bytes(9001))
    assert one.send(batch([fits, too_long, b"short", fits])) == 2
    assert contents(other.receive()) == [fits, fits]
    assert one.statistics() == LinkStatistics(sent=2, refused=2)


def test_a_host_that_does_not_read_loses_the_latest() -> None:
    one, other = memory_pair(room=10)
    sent = numbered(other.address, 25)
    assert one.send(batch(sent)) == 25
    assert contents(other.receive()) == sent[:10]
    assert other.statistics() == LinkStatistics(received=10, dropped=15)
    one.send(batch(sent[:3]))
    assert contents(other.receive()) == sent[:3]


def test_a_batch_kept_too_long_is_spoilt(pair: tuple[MemoryLink, MemoryLink]) -> None:
    one, other = pair
    one.send(batch(numbered(other.address, 1)))
    kept = other.receive()
    other.receive()
    assert set(kept.frame(0)) == {0xDD}


def test_a_link_that_is_down_refuses_and_hears_nothing(pair: tuple[MemoryLink, MemoryLink]) -> None:
    one, other = pair
    other.up = False
    assert one.send(batch(numbered(other.address, 2))) == 2
    assert other.send(batch(numbered(one.address, 3))) == 0
    assert len(other.receive()) == len(one.receive()) == 0
    assert other.statistics() == LinkStatistics(refused=3)
    other.up = True
    sent = numbered(other.address, 1)
    one.send(batch(sent))
    assert contents(other.receive()) == sent


def test_a_removed_link_ends_a_wait_with_an_error() -> None:
    network = MemoryNetwork()
    link = network.attach("left")
    late = threading.Timer(0.05, network.remove, [link])
    late.start()
    with pytest.raises(LinkError, match="left: the interface is gone"):
        link.receive(None)
    late.join()
    assert link.send(batch([frame(BROADCAST)])) == 0


def test_a_closed_link_gives_everything_back() -> None:
    network = MemoryNetwork()
    before = len(list(Path("/proc/self/fd").iterdir()))
    link, other = network.attach(), network.attach()
    for each in (link, link, other):
        each.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert link.fileno() == -1
    link.wake()
    with pytest.raises(LinkError, match="closed"):
        link.receive(0)
    with pytest.raises(LinkError, match="closed"):
        link.receive(LONG)
    assert network.attach(link.name, link.address).address == link.address


def test_names_and_addresses_are_unique() -> None:
    network = MemoryNetwork()
    first = network.attach("east")
    assert network.attach().name == "memory0"
    with pytest.raises(LinkError, match=r"east: .* name already"):
        network.attach("east")
    with pytest.raises(LinkError, match="west: another link of this network has the address 02:00:00:00:00:01"):
        network.attach("west", first.address)


def test_many_threads_lose_nothing() -> None:
    network = MemoryNetwork()
    sink = network.attach()
    sources = [network.attach() for _ in range(4)]

    def send(place: int) -> None:
        for number in range(50):
            sources[place].send(batch(numbered(sink.address, 20, sender=sources[place].address, first=number * 20)))

    threads = [threading.Thread(target=send, args=[place]) for place in range(4)]
    for each in threads:
        each.start()
    received: list[bytes] = []
    while len(received) < 4000:
        got = contents(sink.receive(LONG))
        assert got
        received += got
    for each in threads:
        each.join()
    for source in sources:
        assert [each for each in received if each[6:12] == source.address] == numbered(
            sink.address, 1000, sender=source.address
        )
