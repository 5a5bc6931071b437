"""Statistics per pair of hosts and per pair of endpoints, batch by batch, in bounded memory.

::

    table = PairTable()
    for decoded in decoder.decode_all(capture):
        messages = follower.observe(decoded)  # Follower(marks=True)
        table.observe(decoded, follower.take_marks(decoded))
        table.take(messages)
    sorted(table.by_hosts(), key=SORT_KEYS["bytes"], reverse=True)

Frames are counted per pair of hosts. The totals per pair of endpoints come from the follower's conversations, since not
every packet contains its endpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np

from mxwire.analysis.conversations import Conversation
from mxwire.analysis.conversations.frame_marks import DUPLICATE, NACK, RE_REQUEST, RETRANSMISSION, FrameMarks
from mxwire.analysis.diagnosis.finding import Party
from mxwire.analysis.diagnosis.traffic import pairs_of
from mxwire.analysis.first_keys import FirstKeys
from mxwire.analysis.timing.line import RateLine
from mxwire.analysis.timing.measured_messages import UNKNOWN, MeasuredMessages
from mxwire.analysis.timing.samples import Samples
from mxwire.units import SECOND
from mxwire.wire.codes import groups_of
from mxwire.wire.decoder import DecodedBatch

PAIRS: Final = 4096
"""Maximum number of pairs of hosts, and of endpoints; a capture with more has forged addresses."""
DELIVERIES_KEPT: Final = 1000
"""Maximum number of delivery times kept per pair; of more, a random sample."""


@dataclass(slots=True)
class DirectionTotals:
    """Totals of the frames and messages in one direction."""

    frames: int = 0
    bytes: int = 0
    """Bytes on the wire."""
    messages: int = 0
    message_bytes: int = 0
    """Bytes of the messages that were received."""
    failed: int = 0
    """Messages that were truncated, refused or abandoned."""
    retransmissions: int = 0
    re_requests: int = 0
    duplicates: int = 0
    nacks: int = 0
    rate: RateLine = field(default_factory=RateLine, repr=False)
    """Bytes on the wire over time; empty for pairs of endpoints."""


@dataclass(slots=True)
class PairStatistics:
    """Statistics of two hosts, or of two endpoints."""

    ends: tuple[Party, Party]
    """The two ends, in the order of their first frames."""
    first_ns: int
    last_ns: int
    totals: tuple[DirectionTotals, DirectionTotals] = field(
        default_factory=lambda: (DirectionTotals(), DirectionTotals())
    )
    """From the first end to the second, and back."""
    delivery: Samples = field(default_factory=lambda: Samples(0, DELIVERIES_KEPT))
    """Time from the first frame of a message until its sender knew that it was received."""

    @property
    def duration_ns(self) -> int:
        """Time from the first frame to the last, in nanoseconds."""
        return self.last_ns - self.first_ns

    def total(self, name: str) -> int:
        """Return the sum of a field of :class:`DirectionTotals` over both directions."""
        return sum(int(getattr(each, name)) for each in self.totals)

    def bytes_per_second(self, direction: int) -> float | None:
        """Return the mean rate on the wire of direction 0 or 1; None for a pair with frames at one time only."""
        return self.totals[direction].bytes / self.duration_ns * SECOND if self.duration_ns else None


def _median(pair: PairStatistics) -> float:
    estimate = pair.delivery.estimate()
    return 0.0 if estimate is None else estimate.median


def _total_of(name: str) -> Callable[[PairStatistics], float]:
    return lambda pair: pair.total(name)


SORT_KEYS: Final[dict[str, Callable[[PairStatistics], float]]] = {
    "bytes": _total_of("bytes"),
    "frames": _total_of("frames"),
    "messages": _total_of("messages"),
    "rate": lambda pair: sum(pair.bytes_per_second(each) or 0.0 for each in (0, 1)),
    "retransmits": lambda pair: pair.total("retransmissions") + pair.total("re_requests"),
    "duplicates": _total_of("duplicates"),
    "failed": _total_of("failed"),
    "delivery": _median,
}
"""Functions that give the value by which pairs are sorted, the greatest first."""


class PairTable:
    """Accumulator of the statistics of all pairs."""

    def __init__(self) -> None:
        self._hosts: dict[tuple[int, int], tuple[PairStatistics, int]] = {}
        """By source and destination: the pair, and the direction."""
        self._deliveries: FirstKeys[tuple[Party, Party], Samples]
        self._deliveries = FirstKeys(PAIRS, partial(Samples, 0, DELIVERIES_KEPT))
        """Of endpoints, by sender and receiver."""
        self._failed: FirstKeys[tuple[Party, Party], int] = FirstKeys(PAIRS, int)
        self.forgotten = 0
        """Number of frames between pairs beyond the first :data:`PAIRS`."""

    def observe(self, decoded: DecodedBatch, marks: FrameMarks) -> None:
        """Count the frames of a batch with their marks."""
        keys, assignment, batch = decoded.hosts.keys, decoded.assignment, decoded.batch
        length = decoded.located.wire_length
        for source, destination, members in pairs_of(assignment.source, assignment.destination):
            times = batch.timestamp_ns[members]
            direction = self._direction(keys[source], keys[destination], int(times[0]))
            if direction is None:
                self.forgotten += len(members)
                continue
            pair, side = direction
            pair.last_ns = max(pair.last_ns, int(times.max()))
            totals, sizes = pair.totals[side], length[members].astype(np.int64)
            totals.frames += len(members)
            totals.bytes += int(sizes.sum())
            totals.rate.add(times, sizes)
            flags = marks.flags[members]
            if flags.any():
                totals.retransmissions += int(np.count_nonzero(flags & RETRANSMISSION))
                totals.re_requests += int(np.count_nonzero(flags & RE_REQUEST))
                totals.duplicates += int(np.count_nonzero(flags & DUPLICATE))
            totals.nacks += int(np.count_nonzero(marks.role[members] == NACK))

    def take(self, messages: MeasuredMessages) -> None:
        """Count messages, as the follower reports them."""
        flows, took = messages.flows, messages["end_ns"] - messages["first_ns"]
        delivered, lost = messages["delivered"], messages["lost"]
        amounts = np.where(messages["received"] & (messages["length"] != UNKNOWN), messages["length"], 0)
        hosts = [self._hosts.get((each.address, each.back.address)) for each in flows]
        for place, members in groups_of(messages["flow"]):
            direction = hosts[place]
            if direction is not None:
                totals = direction[0].totals[direction[1]]
                totals.messages += len(members)
                totals.failed += int(np.count_nonzero(lost[members]))
                totals.message_bytes += int(amounts[members].sum())
        deliveries = [each[0].delivery if each is not None else None for each in hosts]
        for samples, members in messages.groups(deliveries, delivered):
            if samples is not None:
                samples.extend(took[members])
        endpoints = [
            (Party(each.address, each.endpoint), Party(each.back.address, each.back.endpoint)) for each in flows
        ]
        for key, members in messages.groups(endpoints, delivered):
            self._deliveries[key].extend(took[members])
        for key, members in messages.groups(endpoints, lost):
            self._failed[key] += len(members)

    def by_hosts(self) -> list[PairStatistics]:
        """Return the pairs of hosts, in order of appearance."""
        return [pair for pair, side in self._hosts.values() if not side]

    def by_endpoints(self, conversations: Iterable[Conversation]) -> list[PairStatistics]:
        """Return the pairs of endpoints of all ``conversations`` of the follower, in order of appearance.

        Reopened endpoints with the same number count as one.
        """
        pairs: dict[tuple[Party, Party], PairStatistics] = {}
        for each in conversations:
            ends = tuple(Party(flow.address, flow.endpoint) for flow in each.flows)
            key = ends[0], ends[1]
            back = ends[1], ends[0]
            turned = back in pairs
            pair = pairs.get(back if turned else key)
            if pair is None:
                pair = pairs[key] = PairStatistics(key, each.first_ns, each.last_ns)
                for direction in (key, back):
                    if direction in self._deliveries:
                        pair.delivery.merge(self._deliveries[direction])
                    pair.totals[direction is back].failed = self._failed.get(direction, 0)
            pair.last_ns = max(pair.last_ns, each.last_ns)
            for flow, totals in zip(each.flows, reversed(pair.totals) if turned else pair.totals, strict=True):
                totals.frames += flow.frames
                totals.bytes += flow.bytes
                totals.messages += flow.messages.total()
                totals.message_bytes += flow.message_bytes
                totals.retransmissions += flow.retransmissions
                totals.re_requests += flow.re_requests
                totals.duplicates += flow.duplicates
                totals.nacks += flow.nacks
        return list(pairs.values())

    def _direction(self, source: int, destination: int, time_ns: int) -> tuple[PairStatistics, int] | None:
        key = source, destination
        direction = self._hosts.get(key)
        if direction is None:
            # Each pair has an entry per direction.
            if len(self._hosts) >= 2 * PAIRS:
                return None
            pair = PairStatistics((Party(source), Party(destination)), time_ns, time_ns)
            self._hosts[key] = direction = pair, 0
            # A host that sends to itself has one direction only.
            self._hosts.setdefault((destination, source), (pair, 1))
        return direction
