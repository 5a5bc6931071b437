"""FaultyLink applies its faults, counts them, and is a link in all else."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.link import Faults, FaultyLink, Link, LinkError, LinkStatistics, memory_pair
from mxwire.link.faults import FaultyPath

from .link_frames import STRANGER, batch, contents, numbered

LONG = 30.0
COUNT = 2000


def collect(link: Link) -> list[bytes]:
    """All received frames."""
    received: list[bytes] = []
    while more := contents(link.receive(0)):
        received += more
    return received


def _by_sending(seed: int, faults: Faults) -> tuple[FaultyLink, list[bytes], list[bytes]]:
    """The numbered frames that arrive through a faulty link."""
    one, other = memory_pair()
    faulty = FaultyLink(one, seed=seed, sending=faults)
    sent = numbered(other.address, COUNT)
    for first in range(0, COUNT, 100):
        assert faulty.send(batch(sent[first : first + 100])) == 100
    while faulty.in_flight:
        faulty.receive(0.01)
    received = collect(other)
    faulty.close()
    other.close()
    return faulty, sent, received


def _by_receiving(seed: int, faults: Faults) -> tuple[FaultyLink, list[bytes], list[bytes]]:
    """The numbered frames that a faulty link returns of those that arrive at it."""
    one, other = memory_pair()
    faulty = FaultyLink(other, seed=seed, receiving=faults)
    sent = numbered(other.address, COUNT)
    one.send(batch(sent))
    received = contents(faulty.receive(0))
    while faulty.in_flight:
        received += contents(faulty.receive(0.01))
    assert faulty.statistics() == LinkStatistics(received=len(received))
    faulty.close()
    one.close()
    return faulty, sent, received


Way = Callable[[int, Faults], tuple[FaultyLink, list[bytes], list[bytes]]]
both_ways = pytest.mark.parametrize("way", [_by_sending, _by_receiving])


@both_ways
def test_without_faults_all_arrives_in_order(way: Way) -> None:
    _, sent, received = way(1, Faults())
    assert received == sent


@both_ways
def test_lost_frames_are_counted_and_determined_by_the_seed(way: Way) -> None:
    faulty, sent, received = way(1, Faults(loss=0.1))
    counts = faulty.faults_sending if way is _by_sending else faulty.faults_receiving
    assert 100 < counts.lost < 300
    assert counts.frames == COUNT and len(received) == COUNT - counts.lost
    assert received == [each for each in sent if each in set(received)]
    assert way(1, Faults(loss=0.1))[2] == received
    assert way(2, Faults(loss=0.1))[2] != received


@both_ways
def test_duplicates_come_one_behind_the_other(way: Way) -> None:
    faulty, sent, received = way(1, Faults(duplicate=0.1))
    counts = faulty.faults_sending if way is _by_sending else faulty.faults_receiving
    assert 100 < counts.duplicated < 300
    assert len(received) == COUNT + counts.duplicated
    assert list(dict.fromkeys(received)) == sent


@both_ways
def test_reordered_frames_are_late_but_arrive(way: Way) -> None:
    faulty, sent, received = way(1, Faults(reorder=0.1))
    counts = faulty.faults_sending if way is _by_sending else faulty.faults_receiving
    assert 100 < counts.reordered < 300
    assert received != sent
    assert sorted(received) == sorted(sent)


@both_ways
def test_corrupt_frames_differ_by_one_bit_behind_the_header(way: Way) -> None:
    faulty, sent, received = way(1, Faults(corrupt=0.1))
    counts = faulty.faults_sending if way is _by_sending else faulty.faults_receiving
    differing = [(a, b) for a, b in zip(sent, received, strict=True) if a != b]
    assert len(differing) == counts.corrupted > 100
    for before, after in differing:
        assert before[:14] == after[:14]
        assert (int.from_bytes(before, "big") ^ int.from_bytes(after, "big")).bit_count() == 1


@both_ways
def test_delayed_frames_keep_their_order(way: Way) -> None:
    before = time.monotonic()
    _, sent, received = way(1, Faults(delay=0.03))
    assert received == sent
    assert time.monotonic() - before >= 0.03


@given(st.integers(0, 2**32), *[st.sampled_from([0.0, 0.01, 0.5, 1.0])] * 4)
def test_everything_at_once_is_accounted_for(seed: int, loss: float, twice: float, late: float, spoilt: float) -> None:
    way = FaultyPath(Faults(loss, twice, late, spoilt, delay=0.001), Random(seed))
    for number, each in enumerate(numbered(STRANGER, 50)):
        way.put(each, number)
    assert way.take(10**6 - 1) == []
    out = way.take(10**6 + 49) + way.take(10**9)
    assert way.due() is None
    assert [due for due, _ in out] == sorted(due for due, _ in out)
    assert len(out) == way.counts.frames - way.counts.lost + way.counts.duplicated
    assert way.counts.frames == 50


def test_faults_may_begin_and_end() -> None:
    one, other = memory_pair()
    with FaultyLink(one, seed=1) as faulty, other:
        sent = numbered(other.address, 20)
        faulty.send(batch(sent))
        faulty.change(sending=Faults(loss=1))
        assert faulty.send(batch(sent)) == 20
        faulty.change(sending=Faults())
        faulty.send(batch(sent))
        assert collect(other) == sent * 2
        assert faulty.faults_sending.lost == 20


def test_a_frame_that_is_held_back_ends_the_wait_for_it() -> None:
    one, other = memory_pair()
    with FaultyLink(other, seed=1, receiving=Faults(delay=0.05)) as faulty, one:
        sent = numbered(other.address, 3)
        one.send(batch(sent))
        received = faulty.receive(LONG)
        assert contents(received) == sent
        assert received.number.tolist() == [1, 2, 3]
        assert abs(int(received.timestamp_ns[0]) - time.time_ns()) < LONG * 10**9


def test_the_descriptor_is_readable_when_a_frame_is_due() -> None:
    one, other = memory_pair()
    with FaultyLink(one, seed=1, sending=Faults(delay=0.05)) as faulty, other:
        faulty.send(batch(numbered(other.address, 1)))
        assert collect(other) == []
        assert select.select([faulty.fileno()], [], [], LONG)[0]
        assert len(faulty.receive(0)) == 0
        assert collect(other) == numbered(other.address, 1)
        assert not select.select([faulty.fileno()], [], [], 0)[0]


@pytest.mark.parametrize("timeout", [LONG, None])
def test_waking_ends_a_receive_in_another_thread(timeout: float | None) -> None:
    one, other = memory_pair()
    with FaultyLink(one, seed=1) as faulty, other:
        late = threading.Timer(0.05, faulty.wake)
        late.start()
        assert len(faulty.receive(timeout)) == 0
        late.join()
        faulty.wake()
        assert len(faulty.receive(None)) == 0
        assert not select.select([faulty.fileno()], [], [], 0)[0]


def test_it_is_the_link_behind_it_in_all_else() -> None:
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    one, other = memory_pair(mtu=1500)
    faulty = FaultyLink(one, seed=1)
    assert (faulty.name, faulty.address, faulty.mtu) == (one.name, one.address, 1500)
    assert faulty.send(batch(numbered(other.address, 2, 1600))) == 0
    assert faulty.statistics() == LinkStatistics(refused=2)
    faulty.close()
    faulty.close()
    assert faulty.fileno() == -1
    assert faulty.send(batch(numbered(other.address, 2))) == 0
    with pytest.raises(LinkError, match="closed"):
        faulty.receive(0)
    other.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors


@pytest.mark.parametrize("wrong", [{"loss": 1.1}, {"reorder": -0.1}, {"delay": -1.0}, {"delay": float("inf")}])
def test_nonsense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Faults(**wrong)
