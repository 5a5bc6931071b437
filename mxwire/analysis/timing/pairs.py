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
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Final

import numpy as np

from mxwire.analysis.conversations import Conversation, Flow
from mxwire.analysis.conversations.frame_marks import DUPLICATE, NACK, RE_REQUEST, RETRANSMISSION, FrameMarks
from mxwire.analysis.diagnosis.finding import Party
from mxwire.analysis.diagnosis.traffic import pair_at, pair_key
from mxwire.analysis.first_keys import FirstKeys
from mxwire.analysis.timing.backlog import Backlog
from mxwire.analysis.timing.line import RateLine
from mxwire.analysis.timing.measured_messages import UNKNOWN, MeasuredMessages, in_turn
from mxwire.analysis.timing.samples import Samples
from mxwire.units import SECOND
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
    rate_of: Callable[[], RateLine] = field(default=RateLine, repr=False, kw_only=True)

    @property
    def rate(self) -> RateLine:
        """Bytes on the wire over time; empty for pairs of endpoints."""
        return self.rate_of()


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
    delivery_of: Callable[[], Samples] = field(default=lambda: Samples(0, DELIVERIES_KEPT), repr=False)

    @property
    def delivery(self) -> Samples:
        """Time from the first frame of a message until its sender knew that it was received."""
        return self.delivery_of()

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


_Ends = tuple[int, int | None, int, int | None]
"""Addresses and endpoints of sender and receiver."""
_TOTALS: Final = np.dtype([(each.name, "i8") for each in fields(DirectionTotals) if each.name != "rate_of"])
_FLAGS: Final = {"retransmissions": RETRANSMISSION, "re_requests": RE_REQUEST, "duplicates": DUPLICATE}


class PairTable:
    """Accumulator of the statistics of all pairs.

    Totals are columns, with a row per direction: those of pair n are 2 n and 2 n + 1.
    """

    def __init__(self) -> None:
        self._hosts: dict[tuple[int, int], int] = {}
        """Directions by source and destination."""
        self._ends: list[tuple[Party, Party]] = []
        """The hosts of each pair."""
        self._times = np.zeros((2 * PAIRS, 2), np.int64)
        """Times of the first and the last frame of each pair."""
        self._totals = np.zeros(4 * PAIRS, _TOTALS)
        self._rates: Backlog[RateLine] = Backlog(RateLine, RateLine.add)
        """By direction."""
        samples = partial(Samples, 0, DELIVERIES_KEPT)
        self._deliveries: Backlog[Samples] = Backlog(samples, Samples.extend)
        """By pair of hosts."""
        self._endpoints: dict[_Ends, int] = {}
        """Numbers of the senders and receivers of delivered messages."""
        self._endpoint_deliveries: Backlog[Samples] = Backlog(samples, Samples.extend)
        self._failed: FirstKeys[_Ends, int] = FirstKeys(PAIRS, int)
        self.forgotten = 0
        """Number of frames between pairs beyond the first :data:`PAIRS`."""

    def observe(self, decoded: DecodedBatch, marks: FrameMarks) -> None:
        """Count the frames of a batch with their marks."""
        keys, assignment, times = decoded.hosts.keys, decoded.assignment, decoded.batch.timestamp_ns
        pairs, first, which = np.unique(
            pair_key(assignment.source, assignment.destination), return_index=True, return_inverse=True
        )
        ends = map(pair_at, pairs.tolist())
        directions = np.array(
            [
                self._direction(keys[source], keys[destination], time_ns)
                for (source, destination), time_ns in zip(ends, times[first].tolist(), strict=True)
            ],
            np.int64,
        )[which]
        known = directions >= 0
        self.forgotten += len(known) - int(np.count_nonzero(known))
        directions, times, flags = directions[known], times[known], marks.flags[known]
        sizes = decoded.located.wire_length[known].astype(np.int64)
        np.maximum.at(self._times[:, 1], directions >> 1, times)
        np.add.at(self._totals["frames"], directions, 1)
        np.add.at(self._totals["bytes"], directions, sizes)
        for name, flag in _FLAGS.items():
            np.add.at(self._totals[name], directions[flags & flag != 0], 1)
        np.add.at(self._totals["nacks"], directions[marks.role[known] == NACK], 1)
        self._rates.put(directions, times, sizes)

    def take(self, messages: MeasuredMessages) -> None:
        """Count messages, as the follower reports them."""
        flows, flow, took = messages.flows, messages["flow"], messages["end_ns"] - messages["first_ns"]
        if not flows:
            return
        delivered, lost = messages["delivered"], messages["lost"]
        amounts = np.where(messages["received"] & (messages["length"] != UNKNOWN), messages["length"], 0)
        hosts = np.array([self._hosts.get((each.address, each.back.address), -1) for each in flows], np.int64)[flow]
        known = hosts >= 0
        np.add.at(self._totals["messages"], hosts[known], 1)
        np.add.at(self._totals["failed"], hosts[known & lost], 1)
        np.add.at(self._totals["message_bytes"], hosts[known], amounts[known])
        chosen = known & delivered
        self._deliveries.put(hosts[chosen] >> 1, took[chosen])
        numbers = np.full(len(flows), -1, np.int64)
        for place in in_turn(flow[delivered]):
            key = _ends_of(flows[place])
            number = self._endpoints.get(key)
            if number is None and len(self._endpoints) < PAIRS:
                number = self._endpoints[key] = len(self._endpoints)
            numbers[place] = -1 if number is None else number
        numbers = numbers[flow]
        chosen = delivered & (numbers >= 0)
        self._endpoint_deliveries.put(numbers[chosen], took[chosen])
        for place in flow[lost].tolist():
            self._failed[_ends_of(flows[place])] += 1

    def by_hosts(self) -> list[PairStatistics]:
        """Return the pairs of hosts, in order of appearance."""
        count = len(self._ends)
        totals = [
            DirectionTotals(*row, rate_of=partial(self._rates.get, at))
            for at, row in enumerate(self._totals[: 2 * count].tolist())
        ]
        columns = self._ends, self._times[:count].tolist(), totals[::2], totals[1::2], range(count)
        return [
            PairStatistics(ends, first_ns, last_ns, (one, other), partial(self._deliveries.get, at))
            for ends, (first_ns, last_ns), one, other, at in zip(*columns, strict=True)
        ]

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
                flows = [_ends_of(flow) for flow in each.flows]
                pair = pairs[key] = PairStatistics(
                    key, each.first_ns, each.last_ns, delivery_of=partial(self._delivery_of, flows)
                )
                for totals, ends_of_flow in zip(pair.totals, flows, strict=True):
                    totals.failed = self._failed.get(ends_of_flow, 0)
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

    def _delivery_of(self, flows: Iterable[_Ends]) -> Samples:
        """Return the times of delivery in both directions between endpoints."""
        merged = Samples(0, DELIVERIES_KEPT)
        for each in flows:
            if each in self._endpoints:
                merged.merge(self._endpoint_deliveries.get(self._endpoints[each]))
        return merged

    def _direction(self, source: int, destination: int, time_ns: int) -> int:
        """Return the direction between two hosts, whose first frame has this time; -1 if there are too many."""
        direction = self._hosts.get((source, destination))
        if direction is None:
            # Each pair has an entry per direction.
            if len(self._hosts) >= 2 * PAIRS:
                return -1
            pair = len(self._ends)
            self._ends.append((Party(source), Party(destination)))
            self._times[pair] = time_ns
            self._hosts[source, destination] = direction = 2 * pair
            # A host that sends to itself has one direction only.
            self._hosts.setdefault((destination, source), direction + 1)
        return direction


def _ends_of(flow: Flow) -> _Ends:
    return flow.address, flow.endpoint, flow.back.address, flow.back.endpoint
