"""Pinger: round trips to a remote protocol stack, by host queries or connects."""

from __future__ import annotations

import math
import secrets
import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from mxwire.frames import FrameBatch
from mxwire.host.control_frames import ControlFrameObserver, ObservedFrame, host_query
from mxwire.host.endpoint import Endpoint
from mxwire.host.host import Host
from mxwire.order_statistics import percentile
from mxwire.protocol import Peer, Status
from mxwire.protocol import Request as EngineRequest
from mxwire.wire.numbers import DEFAULT_KEY, QUERY_MAGICS
from mxwire.wire.packets import ConnectReply, ConnectRequest, HostQuery, HostReply

_LONGEST_PAUSE: Final = 3600.0


@dataclass(frozen=True, slots=True)
class PingOutcome:
    """Outcome of one ping."""

    sequence: int
    """Number of the ping, from 1."""
    nanoseconds: int | None
    """Round trip time; None without an answer."""
    refusal: str | None = None
    """Reason for which the remote host refused the ping."""
    duplicate: bool = False
    """True if an answer had arrived before."""


class PingMethod(Protocol):
    """A kind of ping. All methods are called within the host's section."""

    def send(self, sequence: int) -> None:
        """Send the ping with number ``sequence``."""

    def outcomes(self) -> list[PingOutcome]:
        """Outcomes since the last call."""

    def waiting(self) -> bool:
        """True if there are new outcomes."""

    def abandon(self, sequence: int) -> None:
        """Stop waiting for an answer."""

    def close(self) -> None:
        """Release everything."""


class HostQueryMethod:
    """Host queries with a different magic each, which the remote driver answers (R-HOST-04)."""

    def __init__(self, host: Host, peer: Peer) -> None:
        self._core = host.core
        self._peer = peer
        self._first = QUERY_MAGICS.start + secrets.randbelow(len(QUERY_MAGICS))
        self._sent: dict[int, int] = {}
        """Time of sending in ns, by magic."""
        self._done: set[int] = set()
        self._outcomes: list[PingOutcome] = []
        self._observer = ControlFrameObserver(self._core, self._observe)

    def send(self, sequence: int) -> None:
        """Send a host query."""
        own = self._core.links[0].address
        query = host_query(own, self._peer, self._magic(sequence))
        self._core.inject(FrameBatch.from_frames([query]))

    def _magic(self, sequence: int) -> int:
        return QUERY_MAGICS[(self._first - QUERY_MAGICS.start + sequence) % len(QUERY_MAGICS)]

    def outcomes(self) -> list[PingOutcome]:
        """Replies since the last call."""
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def waiting(self) -> bool:
        """True if there are new replies."""
        return bool(self._outcomes)

    def abandon(self, sequence: int) -> None:
        """Do nothing: a late reply still counts."""

    def close(self) -> None:
        """Stop observing."""
        self._observer.close()

    def _observe(self, observed: ObservedFrame) -> None:
        frame = observed.frame
        if observed.sent:
            if isinstance(frame, HostQuery) and frame.dst_mac == self._peer.address:
                self._sent.setdefault(frame.magic, observed.time_ns)
        elif isinstance(frame, HostReply) and frame.src_mac == self._peer.address:
            sequence = (frame.magic - self._first) % len(QUERY_MAGICS)
            sent = self._sent.get(frame.magic)
            # A reply with the magic of the engine may answer a query of its own.
            if sent is not None and frame.magic != self._core.node.magic:
                duplicate = sequence in self._done
                self._done.add(sequence)
                self._outcomes.append(PingOutcome(sequence, max(0, observed.time_ns - sent), duplicate=duplicate))


class ConnectMethod:
    """Connects to an endpoint, which the remote library answers while its application calls it (R-CON-03)."""

    def __init__(self, endpoint: Endpoint, peer: Peer, number: int, key: int = DEFAULT_KEY) -> None:
        self._core = endpoint.host.core
        self._engine = endpoint.engine
        self._peer = peer
        self._number = number
        self._key = key
        self._pending: dict[int, EngineRequest] = {}
        self._sent: dict[int, int] = {}
        self._took: dict[int, int] = {}
        """Round trip time in ns, by connect number modulo 256."""
        self._observer = ControlFrameObserver(self._core, self._observe)

    def send(self, sequence: int) -> None:
        """Post a connect."""
        self._pending[sequence] = self._engine.connect(self._peer, self._number, self._key)
        self._core.transmit()

    def outcomes(self) -> list[PingOutcome]:
        """Outcomes of the connects that have ended since the last call."""
        ended = [(sequence, request) for sequence, request in self._pending.items() if request.status is not None]
        for sequence, _ in ended:
            del self._pending[sequence]
        return [self._outcome(*each) for each in ended]

    def waiting(self) -> bool:
        """True if a connect has ended."""
        return any(each.status is not None for each in self._pending.values())

    def abandon(self, sequence: int) -> None:
        """Cancel the connect."""
        request = self._pending.pop(sequence, None)
        if request is not None and request.status is None:
            self._engine.cancel(request)
            self._core.transmit()

    def close(self) -> None:
        """Cancel all connects in progress."""
        self._observer.close()
        if self._engine.open:
            for sequence in list(self._pending):
                self.abandon(sequence)

    def _outcome(self, sequence: int, request: EngineRequest) -> PingOutcome:
        assert request.status is not None
        if request.status is not Status.SUCCESS:
            return PingOutcome(sequence, None, refusal=request.status.text)
        return PingOutcome(sequence, self._took.pop(getattr(request, "number", -1), None))

    def _observe(self, observed: ObservedFrame) -> None:
        frame = observed.frame
        if isinstance(frame, ConnectRequest) and observed.sent and frame.dst_mac == self._peer.address:
            # Measure from the last transmission of a request, because an earlier one was lost or not answered.
            self._sent[frame.connect_seqnum] = observed.time_ns
        elif isinstance(frame, ConnectReply) and not observed.sent and frame.src_mac == self._peer.address:
            sent = self._sent.pop(frame.connect_seqnum, None)
            if sent is not None:
                self._took[frame.connect_seqnum] = max(0, observed.time_ns - sent)


@dataclass(frozen=True, slots=True)
class PingTimes:
    """Summary of round trip times, in nanoseconds."""

    minimum: int
    average: float
    maximum: int
    deviation: float
    """Standard deviation, which ping(8) calls mdev."""
    median: int
    percentile_99: int
    """The 99th percentile, as :func:`~mxwire.order_statistics.percentile` defines it, like the median."""


class PingStatistics:
    """Numbers and times of pings."""

    def __init__(self) -> None:
        self.sent = 0
        self.answered = 0
        self.duplicates = 0
        """Further answers to a ping that was answered before."""
        self.refused = 0
        """Pings answered by a refusal."""
        self._times = array("q")

    def add(self, nanoseconds: int) -> None:
        """Count an answer and its time."""
        self.answered += 1
        self._times.append(nanoseconds)

    @property
    def loss(self) -> float:
        """Share of pings without any answer, 0 to 1."""
        return 1 - (self.answered + self.refused) / self.sent if self.sent else 0.0

    def times(self) -> PingTimes | None:
        """Summary of the times; None without answers."""
        if not self._times:
            return None
        ordered = sorted(self._times)
        average = sum(ordered) / len(ordered)
        return PingTimes(
            minimum=ordered[0],
            average=average,
            maximum=ordered[-1],
            deviation=math.sqrt(sum((each - average) ** 2 for each in ordered) / len(ordered)),
            median=round(percentile(ordered, 50)),
            percentile_99=round(percentile(ordered, 99)),
        )


class Pinger:
    """Sends pings at an interval, and keeps ``statistics``."""

    def __init__(self, host: Host, method: PingMethod) -> None:
        self._host = host
        self._method = method
        self._waiting: dict[int, float] = {}
        """The time until which each answer is awaited."""
        self.statistics = PingStatistics()

    def run(self, count: int | None, interval: float, patience: float) -> Iterator[PingOutcome]:
        """Send ``count`` pings (None: without limit), one every ``interval`` seconds, and yield their outcomes.

        With an interval of 0 each ping follows the answer to the previous one. A ping without an answer for
        ``patience`` seconds is abandoned; a late answer still counts while the run continues.
        """
        due = time.monotonic()
        while True:
            now = time.monotonic()
            left = count is None or self.statistics.sent < count
            if left and now >= due and (interval > 0 or not self._waiting):
                self._send(now + patience)
                due = max(due + interval, now)
            elif not self._waiting and not left:
                return
            ends = [*self._waiting.values(), *([due] if left and (interval > 0 or not self._waiting) else [])]
            self._host.driver.pause(max(0.0, min([*ends, now + _LONGEST_PAUSE]) - now), self._method.waiting)
            yield from self._settle()

    def close(self) -> None:
        """Stop the method."""
        with self._host.core.section:
            self._method.close()

    def _send(self, until: float) -> None:
        core = self._host.core
        with core.section:
            core.must_be_open()
            self.statistics.sent += 1
            self._waiting[self.statistics.sent] = until
            self._method.send(self.statistics.sent)

    def _settle(self) -> Iterator[PingOutcome]:
        """Yield new outcomes, and those of pings that have timed out."""
        with self._host.core.section:
            new = self._method.outcomes()
        for each in new:
            self._waiting.pop(each.sequence, None)
            self._count(each)
            yield each
        now = time.monotonic()
        for sequence in [sequence for sequence, until in self._waiting.items() if until <= now]:
            del self._waiting[sequence]
            with self._host.core.section:
                self._method.abandon(sequence)
            yield PingOutcome(sequence, None)

    def _count(self, outcome: PingOutcome) -> None:
        statistics = self.statistics
        if outcome.duplicate:
            statistics.duplicates += 1
        elif outcome.refusal is not None:
            statistics.refused += 1
        elif outcome.nanoseconds is not None:
            statistics.add(outcome.nanoseconds)
