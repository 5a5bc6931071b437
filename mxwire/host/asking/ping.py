"""Ping: round trips that the other side's protocol stack answers by itself."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from mxwire.frames import FrameBatch
from mxwire.host.asking.listening import Heard, Listener
from mxwire.host.asking.pause import pause
from mxwire.host.asking.questions import host_query
from mxwire.host.asking.statistics import RoundTrips
from mxwire.host.endpoint import Endpoint
from mxwire.host.host import Host
from mxwire.protocol import Peer, Status
from mxwire.protocol import Request as EngineRequest
from mxwire.wire.numbers import DEFAULT_KEY
from mxwire.wire.packets import ConnectReply, ConnectRequest, HostQuery, HostReply
from mxwire.wire.probes import QUERY_MAGICS

_LONGEST_PAUSE: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a question."""

    sequence: int
    """Its number, from 1."""
    nanoseconds: int | None
    """How long the answer took; None where there was none."""
    refusal: str | None = None
    """What the other side has against it."""
    duplicate: bool = False
    """Whether it had been answered already."""


class Asker(Protocol):
    """A kind of question; all methods are called while nobody else works with the engine."""

    def ask(self, sequence: int) -> None:
        """Ask for the ``sequence``-th time."""

    def outcomes(self) -> list[Outcome]:
        """What has come back since this was last called."""

    def waiting(self) -> bool:
        """Whether there is something to come for ``outcomes``."""

    def give_up(self, sequence: int) -> None:
        """Wait for an answer no more."""

    def close(self) -> None:
        """The end."""


class Queries:
    """Host queries, each with a magic of its own, which the other side's driver answers (R-HOST-04)."""

    def __init__(self, host: Host, peer: Peer) -> None:
        self._core = host.core
        self._peer = peer
        self._first = QUERY_MAGICS.start + secrets.randbelow(len(QUERY_MAGICS))
        self._sent: dict[int, int] = {}
        """When each left, in ns, by magic."""
        self._done: set[int] = set()
        self._new: list[Outcome] = []
        self._listener = Listener(self._core, self._hear)

    def ask(self, sequence: int) -> None:
        """Send one."""
        own = self._core.links[0].address
        query = host_query(own, self._peer, self._magic(sequence))
        self._core.send(FrameBatch.from_frames([query]))

    def _magic(self, sequence: int) -> int:
        return QUERY_MAGICS[(self._first - QUERY_MAGICS.start + sequence) % len(QUERY_MAGICS)]

    def outcomes(self) -> list[Outcome]:
        """The replies."""
        new, self._new = self._new, []
        return new

    def waiting(self) -> bool:
        """Whether there are replies."""
        return bool(self._new)

    def give_up(self, sequence: int) -> None:
        """A late reply still counts."""

    def close(self) -> None:
        """Listen no more."""
        self._listener.close()

    def _hear(self, heard: Heard) -> None:
        frame = heard.frame
        if heard.sent:
            if isinstance(frame, HostQuery) and frame.dst_mac == self._peer.address:
                self._sent.setdefault(frame.magic, heard.time_ns)
        elif isinstance(frame, HostReply) and frame.src_mac == self._peer.address:
            sequence = (frame.magic - self._first) % len(QUERY_MAGICS)
            sent = self._sent.get(frame.magic)
            if sent is not None and frame.magic != self._core.node.magic:
                duplicate = sequence in self._done
                self._done.add(sequence)
                self._new.append(Outcome(sequence, max(0, heard.time_ns - sent), duplicate=duplicate))


class Connects:
    """Connects to an endpoint, which the library of the application that has it answers (R-CON-03)."""

    def __init__(self, endpoint: Endpoint, peer: Peer, number: int, key: int = DEFAULT_KEY) -> None:
        self._core = endpoint.host.core
        self._engine = endpoint.engine
        self._peer = peer
        self._number = number
        self._key = key
        self._pending: dict[int, EngineRequest] = {}
        self._sent: dict[int, int] = {}
        self._took: dict[int, int] = {}
        """Nanoseconds by connect number, which counts modulo 256."""
        self._listener = Listener(self._core, self._hear)

    def ask(self, sequence: int) -> None:
        """Begin to connect."""
        self._pending[sequence] = self._engine.connect(self._peer, self._number, self._key)
        self._core.flush()

    def outcomes(self) -> list[Outcome]:
        """The connects that have ended."""
        ended = [(sequence, request) for sequence, request in self._pending.items() if request.status is not None]
        for sequence, _ in ended:
            del self._pending[sequence]
        return [self._outcome(*each) for each in ended]

    def waiting(self) -> bool:
        """Whether one has ended."""
        return any(each.status is not None for each in self._pending.values())

    def give_up(self, sequence: int) -> None:
        """Stop connecting."""
        request = self._pending.pop(sequence, None)
        if request is not None and request.status is None:
            self._engine.cancel(request)
            self._core.flush()

    def close(self) -> None:
        """Give up all that is left."""
        self._listener.close()
        if self._engine.open:
            for sequence in list(self._pending):
                self.give_up(sequence)

    def _outcome(self, sequence: int, request: EngineRequest) -> Outcome:
        assert request.status is not None
        if request.status is not Status.SUCCESS:
            return Outcome(sequence, None, refusal=request.status.text)
        return Outcome(sequence, self._took.pop(getattr(request, "number", -1), None))

    def _hear(self, heard: Heard) -> None:
        frame = heard.frame
        if isinstance(frame, ConnectRequest) and heard.sent and frame.dst_mac == self._peer.address:
            # Of one that had to be repeated, the last: ours was lost, or not answered.
            self._sent[frame.connect_seqnum] = heard.time_ns
        elif isinstance(frame, ConnectReply) and not heard.sent and frame.src_mac == self._peer.address:
            sent = self._sent.pop(frame.connect_seqnum, None)
            if sent is not None:
                self._took[frame.connect_seqnum] = max(0, heard.time_ns - sent)


class Pinging:
    """Asks again and again; ``statistics`` are at any time those of what has happened so far."""

    def __init__(self, host: Host, asker: Asker) -> None:
        self._host = host
        self._asker = asker
        self._waiting: dict[int, float] = {}
        """Until when each answer is waited for."""
        self.statistics = RoundTrips()

    def run(self, count: int | None, interval: float, patience: float) -> Iterator[Outcome]:
        """Ask ``count`` times (None: for ever), every ``interval`` seconds, and give what becomes of it.

        With an interval of 0 each question follows the answer to the one before. An answer that takes longer than
        ``patience`` seconds is given up, but still counts if it comes while we go on.
        """
        due = time.monotonic()
        while True:
            now = time.monotonic()
            left = count is None or self.statistics.sent < count
            if left and now >= due and (interval > 0 or not self._waiting):
                self._ask(now + patience)
                due = max(due + interval, now)
            elif not self._waiting and not left:
                return
            ends = [*self._waiting.values(), *([due] if left and (interval > 0 or not self._waiting) else [])]
            pause(self._host, max(0.0, min([*ends, now + _LONGEST_PAUSE]) - now), self._asker.waiting)
            yield from self._settle()

    def close(self) -> None:
        """Ask no more."""
        with self._host.core.section:
            self._asker.close()

    def _ask(self, until: float) -> None:
        core = self._host.core
        with core.section:
            core.must_be_open()
            self.statistics.sent += 1
            self._waiting[self.statistics.sent] = until
            self._asker.ask(self.statistics.sent)

    def _settle(self) -> Iterator[Outcome]:
        """What has come back, and what will not come back any more."""
        with self._host.core.section:
            new = self._asker.outcomes()
        for each in new:
            self._waiting.pop(each.sequence, None)
            self._count(each)
            yield each
        now = time.monotonic()
        for sequence in [sequence for sequence, until in self._waiting.items() if until <= now]:
            del self._waiting[sequence]
            with self._host.core.section:
                self._asker.give_up(sequence)
            yield Outcome(sequence, None)

    def _count(self, outcome: Outcome) -> None:
        statistics = self.statistics
        if outcome.duplicate:
            statistics.duplicates += 1
        elif outcome.refusal is not None:
            statistics.refused += 1
        elif outcome.nanoseconds is not None:
            statistics.add(outcome.nanoseconds)
