"""Statistics, messages and findings of traffic without an end."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.analysis.conversations import Follower
from mxwire.analysis.diagnosis import Examination
from mxwire.analysis.follow_budget import SLOT_NS, FollowBudget
from mxwire.analysis.inventory import Inventory
from mxwire.analysis.marks import FrameMarker, flag_bit
from mxwire.analysis.observer import HOSTS, TrafficObserver
from mxwire.analysis.pair_counters import IDLE_NS, OTHERS, PairCounters
from mxwire.analysis.snapshot import TrafficSnapshot
from mxwire.capture import open_capture
from mxwire.frames import FrameBatch
from mxwire.units import SECOND
from mxwire.wire.decoder import Decoder
from mxwire.wire.enums import PacketType
from tests.cli.support import CAPTURES

CAPTURE_FILES = sorted(CAPTURES.glob("*.pcap*"))
LOSSY = CAPTURES / "mxoe-lossy-1M.pcap"


class Clock:
    """A clock that a test sets; each reading advances it by ``cost``."""

    def __init__(self, cost: int = 0) -> None:
        self.now = SECOND
        self.cost = cost

    def __call__(self) -> int:
        self.now += self.cost
        return self.now


def observer(
    share: float | None = None, *, cost: int = 0, clock: Clock | None = None, pairs: int = 64
) -> TrafficObserver:
    return TrafficObserver(Decoder, clock=clock or Clock(), processor_time=Clock(cost), share=share, pairs=pairs)


def batches(path: object) -> list[FrameBatch]:
    with open_capture(str(path)) as reader:
        return list(reader)


def snapshot_of(path: object, cut: int | None = None) -> TrafficSnapshot:
    found = observer()
    for batch in batches(path):
        step = cut or len(batch)
        for first in range(0, len(batch), step):
            found.observe(batch.part(first, first + step))
    found.settle()
    return found.snapshot()


@pytest.mark.parametrize("path", CAPTURE_FILES, ids=lambda each: each.name)
def test_counts_are_those_of_info_and_of_the_marks(path):
    found = snapshot_of(path, 40)
    inventory, decoder, marker = Inventory(messages=False), Decoder(), FrameMarker()
    repeated = 0
    for batch in batches(path):
        for first in range(0, len(batch), 40):
            decoded = decoder.decode(batch.part(first, first + 40))
            inventory.observe(decoded)
            flags = marker.observe(decoded).flags
            repeated += int((flags & flag_bit("retransmission") != 0).sum())
    assert found.frames == inventory.frames and found.bytes == inventory.bytes
    assert found.types == {name: (each.frames, each.bytes) for name, each in inventory.types.items()}
    assert sum(found.nacks.values()) == sum(inventory.nacks.values())
    assert sum(found.faults.values()) == sum(each.frames for each in inventory.faults.values())
    assert sum(each.both.frames for each in found.pairs) + found.others == inventory.frames
    assert sum(each.both.bytes for each in found.pairs) == inventory.bytes
    sent = {each.address: each.sent.frames for each in found.hosts}
    assert sent == {address: each.sent for address, each in inventory.hosts.items() if address in sent}
    assert sum(each.retransmissions for each in found.pairs) == repeated


@pytest.mark.parametrize("path", CAPTURE_FILES, ids=lambda each: each.name)
def test_messages_and_unfinished_ones_are_those_of_the_follower(path):
    found = snapshot_of(path)
    decoder, follower = Decoder(), Follower()
    finished = []
    for batch in batches(path):
        finished += follower.observe(decoder.decode(batch))
    unfinished = len(follower.unfinished)
    finished += follower.finish()
    assert sum(each.in_flight or 0 for each in found.pairs) == unfinished
    assert sum(each.messages for each in found.pairs) == len(finished) - unfinished
    assert sum(found.outcomes.values()) == len(finished) - unfinished
    counts = [sum(each.counts) for each in found.lengths.values()]
    assert sum(counts) <= len(finished)
    assert all((each.oldest_ns is None) == (not each.in_flight) for each in found.pairs)


def test_findings_are_those_of_diagnose_and_close_when_they_are_not_reported_again():
    found = observer()
    examination = Examination(Decoder())
    for batch in batches(LOSSY):
        found.observe(batch)
        examination.observe(examination.facts.decoder.decode(batch))
    expected = {each.id for each in examination.findings()} - {"capture-frames-cut"}
    assert {each.finding.id for each in found.snapshot().findings} == expected
    first = found.now_ns
    assert {each.first_ns for each in found.snapshot().findings} == {first}
    found.wait_until(first + 10 * SECOND)
    ages = {each.finding.id: (each.first_ns, each.last_ns) for each in found.snapshot().findings}
    assert ages["late-reverse-connect"] == (first, first + 10 * SECOND)
    # Examinations begin again after five minutes, and a minute later what they no longer report is closed.
    quiet = batches(CAPTURES / "mxoe-many.pcap")[0].part(0, 1)
    for seconds in (301, 602, 700):
        later = FrameBatch(**{name: getattr(quiet, name) for name in FrameBatch.__slots__} | {
            "timestamp_ns": np.array([first + seconds * SECOND])
        })  # fmt: skip
        found.observe(later)
        closing = found.snapshot()
    assert "late-reverse-connect" in expected and closing.findings == ()


def test_rates_are_those_of_the_last_seconds():
    found = observer()
    (batch,) = batches(CAPTURES / "mxoe-many.pcap")[:1]
    times = np.arange(len(batch)) * (10 * SECOND // len(batch))
    slow = FrameBatch(batch.buffer, batch.offset, batch.length, batch.wire_length, times, batch.number)
    rates = []
    for second in range(10):
        found.observe(slow.select(np.flatnonzero(times // SECOND == second)))
        found.wait_until((second + 1) * SECOND)
        rates.append(found.snapshot().pairs[0].both.frame_rate)
    assert all(abs(each - len(batch) / 10) < 0.05 * len(batch) for each in rates)
    for second in range(11, 16):
        found.wait_until(second * SECOND)
        last = found.snapshot()
    assert last.pairs[0].both.frame_rate == 0 and last.pairs[0].both.frames == len(batch)


# Fast traffic


@cache
def tiny_frame() -> bytes:
    decoded = Decoder().decode(batches(CAPTURES / "mxoe-every-type.pcap")[0])
    return decoded.batch.frame(int(np.flatnonzero(decoded.columns.packet_type == PacketType.TINY)[0]))


def between(pairs: Iterable[tuple[int, int]], frames: int, start: int) -> FrameBatch:
    """Frames of TINY messages between pairs of hosts with small addresses, one millisecond apart."""
    frame = tiny_frame()
    made = []
    for _ in range(frames):
        for one, other in pairs:
            made.append(one.to_bytes(6, "big") + other.to_bytes(6, "big") + frame[12:])
    return FrameBatch.from_frames(made, [start + place * 1000 for place in range(len(made))])


def test_following_is_reduced_to_a_part_of_the_pairs_and_restored():
    clock = Clock()
    found = observer(0.5, cost=SLOT_NS // 16, clock=clock)
    pairs = [(2 * each + 2, 2 * each + 3) for each in range(8)]
    shares, parts, last = [], [], set()
    for step in range(200):
        found.observe(between(pairs, 1, step * SECOND // 10))
        clock.now += SLOT_NS // 20
        if step % 20 == 19:
            snapshot = found.snapshot()
            shares.append(snapshot.followed_share)
            parts.append(found._budget.parts)
            last |= {each.hosts for each in snapshot.pairs if each.in_flight is not None}
    assert 0.05 < shares[-1] < 0.9 and snapshot.is_sampled and max(parts) >= 2
    assert last == set(pairs), "each pair gets its turn"
    assert snapshot.frames == 200 * 8 and all(each.both.frames == 200 for each in snapshot.pairs)
    assert any(each.message_rate is None or each.in_flight is None for each in snapshot.pairs)
    found._budget._processor_time.cost = 0
    for step in range(200, 400):
        found.observe(between(pairs, 1, step * SECOND // 10))
        clock.now += SLOT_NS // 20
    snapshot = found.snapshot()
    assert found._budget.parts == 1
    for step in range(400, 440):
        found.observe(between(pairs, 1, step * SECOND // 10))
        found.snapshot()
    assert found.snapshot().followed_share == 1 and not found.snapshot().is_sampled


def test_a_single_pair_is_followed_at_the_beginning_of_each_slot():
    clock = Clock()
    budget = FollowBudget(0.5, clock, Clock(SLOT_NS // 5))
    for _ in range(5):
        clock.now += SLOT_NS
        budget.begins(restart=False)
        assert not budget.paused
        while not budget.paused:
            budget.spend(budget.started(), np.array([1]))
        assert budget.parts == 1


def test_following_pauses_when_frames_are_late_or_lost():
    for disturb in (lambda each: each.hurry(SECOND), lambda each: each.lose(1)):
        clock = Clock()
        found = observer(0.5, clock=clock)
        found.observe(between([(2, 3)], 6000, 0))
        disturb(found)
        found.observe(between([(2, 3)], 100, SECOND))
        assert found.snapshot().followed_share < 1 and found.snapshot().frames == 6100
        clock.now += SLOT_NS
        found.observe(between([(2, 3)], 100, 20 * SECOND))
        for second in range(21, 24):
            found.wait_until(second * SECOND)
            found.snapshot()
        found.observe(between([(2, 3)], 100, 24 * SECOND))
        assert found.snapshot().followed_share == 1
    late = observer(0.5)
    late.hurry(SECOND)
    late.observe(between([(2, 3)], 10, 0))
    assert late.snapshot().followed_share == 1, "few frames are always followed"


def test_a_flood_of_forged_addresses_is_bounded_and_other_pairs_get_rows_again():
    clock = Clock()
    found = observer(0.5, clock=clock, pairs=32)
    flood = np.random.default_rng(5)
    for step in range(30):
        pairs = [tuple(map(int, each)) for each in flood.integers(100, 1 << 40, (1000, 2))]
        found.observe(between(pairs, 1, step * SECOND // 10))  # type: ignore[arg-type]
        clock.now += SLOT_NS // 10
    snapshot = found.snapshot()
    assert len(snapshot.pairs) == 32 and snapshot.others == 30_000 - 32 and len(snapshot.hosts) <= 64
    assert len(found.decoder.hosts) < HOSTS + 2 * 10 * 1000
    found.observe(between([(2, 3)], 5, 100 * SECOND))
    after = found.snapshot()
    assert [each.hosts for each in after.pairs if each.both.frames == 5] == [(2, 3)]
    assert after.frames == 30_005


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(0, 30)), min_size=1, max_size=60))
def test_rows_are_reused_without_mixing_pairs(frames):
    counters, decoder = PairCounters(3), Decoder()
    now, expected = 0, {}
    for one, other, pause in frames:
        now += pause * SECOND
        decoded = decoder.decode(between([(one, other)], 1, now))
        rows = counters.rows_of(decoded)
        counters.count(decoded, rows)
        (row,) = rows.tolist()
        pair = (min(one, other), max(one, other))
        assert row == OTHERS or counters.rows[pair] == row
        assert len(counters.rows) <= 3 and len(set(counters.rows.values())) == len(counters.rows)
        expected = {each: count for each, count in expected.items() if each in counters.rows}
        if row != OTHERS:
            expected[pair] = expected.get(pair, 0) + 1
            assert counters.values[row, :2].sum() == expected[pair]
    assert IDLE_NS > SECOND


def test_a_snapshot_does_not_change():
    found = observer()
    (batch,) = batches(LOSSY)[:1]
    found.observe(batch.part(0, 300))
    snapshot = found.snapshot()
    before = repr(snapshot)
    found.observe(batch.part(300, len(batch)))
    found.settle()
    found.snapshot()
    assert repr(snapshot) == before


def test_the_conversation_of_a_pair_has_its_endpoints_and_messages():
    found = observer()
    for batch in batches(LOSSY):
        found.observe(batch)
    found.settle()
    assert found.snapshot().conversation is None
    found.watched = found.snapshot().pairs[0].hosts
    conversation = found.snapshot().conversation
    assert conversation is not None
    assert [(each.kind, each.length, each.outcome) for each in conversation.messages] == [
        ("RNDV", 1048576, "notified"),
        ("RNDV", 1048576, "notified"),
    ]
    assert {end for each in conversation.endpoints for _, end in each.ends} == {3, 5}
    found.watched = (1, 2)
    assert found.snapshot().conversation.messages == ()
