"""``messages`` and ``verify`` follow numbered packets independently, and agree on each of them.

Both :mod:`mxwire.analysis.conversations.numbered_packets` and :mod:`mxwire.rules.state.numbered` decide for each
numbered packet whether it is new, begins another stream of numbers, continues a MEDIUM, is a retransmission, or a
duplicate.

They share the arithmetic of positions (:mod:`mxwire.rules.state.streams`) and no more, for three reasons. ``messages``
reads rows of columns in bulk, ``verify`` decoded frames, and converting either costs more than placing the packet. In
doubt they lean to opposite sides: ``verify`` must not convict a host, so a packet that fits nothing is left out, while
``messages`` must not lose a message, so it begins a stream. And ``verify`` also runs where deliveries and losses are
known. Some forty lines remain in common; this test keeps them alike.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from mxwire.analysis.conversations import Follower
from mxwire.analysis.conversations.message import REPORTED, CapturedMessage, Notice
from mxwire.analysis.conversations.numbered_packets import NumberedTracker
from mxwire.rules.judge import Judge
from mxwire.rules.state.frame import FrameStatus
from mxwire.simulation import Simulation, draw_scenario
from mxwire.wire.codec import Malformed
from mxwire.wire.decoder import DecodedBatch, Decoder
from mxwire.wire.packets import Medium, Notify, PullReply, Rndv, Small, Tiny
from tests.analysis.conversations.support import CAPTURES, decoded, dialect_of, read_capture

LEFT_OUT = {
    "mxoe-resends-exhausted": {38: ("first", "stale"), 45: ("first", "new")},
    "omx9000-resends-exhausted": {31: ("first", "stale"), 38: ("first", "new")},
}
"""Frames that ``messages`` and ``verify`` place differently, with the reasons.

The sender has abandoned its partner and numbers with the next session number, without a CONNECT that requested it: for
``messages`` the first packet begins a stream, while ``verify`` does not judge it; the next one, after a CONNECT, has
the former session number again."""
NUMBERED = (Tiny, Small, Medium, Rndv, Notify)
BY_STATUS = {
    FrameStatus.NEW: "new",
    FrameStatus.LATE: "new",
    FrameStatus.FRAGMENT: "fragment",
    FrameStatus.REPEAT: "retransmission",
    FrameStatus.DUPLICATE: "duplicate",
    FrameStatus.STALE: "stale",
}
SEEDS = 40
"""Runs of each test; 600 were compared when it was written."""
CHUNK = 10
Placed = tuple[str, int]
"""The kind of a packet, and the number of the first frame with the same position."""


class PlacingFollower(Follower):
    """A follower that records how it placed each numbered packet."""

    def __init__(self) -> None:
        super().__init__()
        self.placed: dict[int, Placed] = {}
        placing = PlacingNumbered(self._state)
        for name in ("tiny", "small", "medium", "rndv", "notify"):
            self._handlers[name] = self._recording(placing, getattr(placing, name))

    def _recording(self, placing, handler):
        def record(row):
            placing.found = None
            handler(row)
            self.placed[row[3]] = placing.placed(row[3])

        return record


class PlacingNumbered(NumberedTracker):
    """Handlers that record which entry a packet was found to repeat."""

    def __init__(self, books) -> None:
        super().__init__(books)
        self.found = None
        self.firsts: dict[tuple[object, int], int] = {}

    def _find(self, flow, sequence, content):
        before = flow.stream
        stream, position, entry = super()._find(flow, sequence, content)
        self.found = stream, position, entry, stream is not before and stream is not flow.former
        if entry is not None:
            self.before = entry.transmissions, entry.duplicates
        return stream, position, entry

    def placed(self, number: int) -> Placed:
        stream, position, entry, begins = self.found
        first = self.firsts.setdefault((stream, position), number) if entry is not None else number
        if entry is None:
            self.firsts[stream, position] = number
            return "first" if begins else "new", first
        message = entry.message if isinstance(entry, Notice) else entry
        if message.state == REPORTED:
            return "late", first
        if entry.transmissions > self.before[0]:
            return "retransmission", first
        if entry.duplicates > self.before[1]:
            return "duplicate", first
        assert isinstance(entry, CapturedMessage) and entry.kind == "MEDIUM"
        return "fragment", first


def placed_by_judge(batches: Iterable[DecodedBatch], dialect) -> dict[int, Placed]:
    """The place that the judge of ``verify`` gives each numbered packet."""
    judge, placed = Judge(dialect), {}
    for batch in batches:
        codecs = batch.codecs()
        for place in range(len(batch)):
            raw, number = batch.located.frame(place), int(batch.batch.number[place])
            length = int(batch.located.wire_length[place])
            frame = codecs[place].parse(raw, length)
            if isinstance(frame, (Malformed, PullReply)):
                continue
            judge.observe(int(batch.batch.timestamp_ns[place]), frame, raw, number, wire_length=length)
            if isinstance(frame, NUMBERED):
                seen = judge._seen
                kind = "first" if seen.starts else BY_STATUS[seen.status]
                placed[number] = kind, number if seen.message is None else seen.message.first_number
    return placed


def disagreements(batches: list[DecodedBatch], dialect) -> dict[int, tuple[Placed, Placed]]:
    """The frames that ``messages`` and ``verify`` place differently, by number."""
    follower = PlacingFollower()
    for each in batches:
        follower.observe(each)
    judged = placed_by_judge(batches, dialect)
    assert set(follower.placed) == set(judged)
    return {
        number: (one, other)
        for number, one in follower.placed.items()
        if one != (other := judged[number]) and not repeats_a_finished_message(one, other)
    }


def repeats_a_finished_message(one: Placed, other: Placed) -> bool:
    """True if a packet repeats a message that ``messages`` has reported as done, to bound its memory: the packet then
    counts as late in the conversation, whatever it is."""
    return one[0] == "late" and other[0] in ("retransmission", "fragment", "duplicate", "stale") and one[1] == other[1]


@pytest.mark.parametrize("capture", CAPTURES)
def test_captures(capture):
    found = disagreements(decoded([read_capture(capture)], dialect_of(capture)), dialect_of(capture))
    kinds = {number: (one[0], other[0]) for number, (one, other) in found.items()}
    assert kinds == LEFT_OUT.get(capture, {})


def simulated(seed: int) -> tuple[list[DecodedBatch], object]:
    scenario = draw_scenario(seed)
    decoder, batches = Decoder(scenario.dialect), []
    Simulation(scenario, lambda batch: batches.append(decoder.decode(batch))).run()
    return batches, scenario.dialect


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_simulated_runs(first):
    """Loss, duplicates, reordering, restarts, power failures, partitions: drawn by the seed."""
    found = {seed: disagreements(*simulated(seed)) for seed in range(first, first + CHUNK)}
    assert not {seed: each for seed, each in found.items() if each}


def test_a_difference_is_found(monkeypatch):
    """A follower that takes each duplicate for a retransmission is noticed."""
    monkeypatch.setattr("mxwire.analysis.conversations.numbered_packets.RESEND_NS", 0)
    assert any(disagreements(*simulated(seed)) for seed in range(CHUNK))
