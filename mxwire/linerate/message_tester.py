"""Messages at an offered rate: the rate at which retransmissions begin, and latency under load.

One endpoint sends messages of one length to an endpoint of a real host (``mxwire serve``, Open-MX, MX) as a token
bucket allows, with a limited number in flight. Retransmissions are the frames counted by the local driver minus those
that the messages need, so nothing on the path has to be observed. With a partner that echoes, the round trip of every
message is measured.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from mxwire.host import Endpoint, Host, HostTimeoutError
from mxwire.latency_histogram import LatencyHistogram
from mxwire.linerate.pacing import TokenBucket
from mxwire.linerate.search import decide, search_rate
from mxwire.protocol import Counter, Partner
from mxwire.units import MILLISECOND, SECOND
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD, SMALL_MAXIMUM
from mxwire.words import count_of

_CARRIED: Final = 0.98
"""Share of the offered rate that must be delivered for it to count as carried."""
_CATCH_UP_NS: Final = 100 * MILLISECOND
"""Time for which messages are sent at once after a delay: the sender shares its CPU with the engine."""
_DRAIN: Final = 10.0
"""Seconds to wait for the last messages."""
MESSAGE_COUNTERS: Final = (
    *(Counter.SEND_TINY, Counter.SEND_SMALL, Counter.SEND_MEDIUM_SQ_FRAG, Counter.SEND_RNDV),
    Counter.SEND_PULL_REPLY,
)
"""Counters of the frames that carry messages; others (acks, notifies) vary with the timing."""


def frames_needed(length: int, dialect: Dialect) -> int:
    """Frames that the sender of one message transmits if none is lost, without acks."""
    if length <= SMALL_MAXIMUM:
        return 1
    if length <= RENDEZVOUS_THRESHOLD:
        return -(-length // dialect.fragment_payload)
    return 1 + -(-length // dialect.reply_payload)


@dataclass(frozen=True, slots=True)
class MessageOptions:
    """Settings of a message test. Times are in seconds."""

    trial: float = 1.0
    resolution: float = 0.05
    repetitions: int = 1
    window: int = 64
    """Maximum number of messages in flight."""
    echo: bool = True
    """True if the partner returns every message; then round trips are measured."""


@dataclass
class MessageTrial:
    """Messages of one length at one offered rate."""

    length: int
    offered: float | None
    """Messages per second; None for the maximum that the window allows."""
    messages: int = 0
    """Messages delivered."""
    duration_ns: int = 0
    forgone: int = 0
    """Messages that were due and not sent, because the window was full for too long."""
    retransmitted: int = 0
    """Frames transmitted beyond those that the messages need."""
    round_trip: LatencyHistogram = field(default_factory=LatencyHistogram)

    @property
    def rate(self) -> float:
        """Messages delivered per second."""
        return self.messages * SECOND / self.duration_ns if self.duration_ns else 0.0

    @property
    def carried(self) -> bool:
        """True if the offered rate was delivered without retransmissions."""
        return not self.retransmitted and (self.offered is None or self.rate >= _CARRIED * self.offered)

    def record(self) -> dict[str, Any]:
        """The trial as an object for JSON."""
        times = self.round_trip.record()
        return {
            "offered_per_second": None if self.offered is None else round(self.offered, 1),
            "messages": self.messages,
            "messages_per_second": round(self.rate, 1),
            "bits_per_second": round(self.rate * 8 * self.length, 1),
            "forgone": self.forgone,
            "retransmitted": self.retransmitted,
            "round_trip": times if times["count"] else None,
        }


class MessageTester:
    """Sends messages to a partner at offered rates. ``progress`` is called with a line about each trial before it."""

    def __init__(
        self,
        host: Host,
        endpoint: Endpoint,
        partner: Partner,
        dialect: Dialect,
        options: MessageOptions,
        progress: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._host = host
        self._endpoint = endpoint
        self._partner = partner
        self._dialect = dialect
        self._options = options
        self._progress = progress

    def measure(self, length: int) -> dict[str, Any]:
        """Find the highest rate that is delivered without retransmissions, and measure latencies below it.

        The limit is first measured without a pace: with ``window`` messages in flight. Raises
        :class:`~mxwire.host.HostError` if the partner is lost.
        """
        options = self._options
        top = self._trial(length, None)
        trials = [top]

        def carries(rate: float) -> bool:
            trials.append(self._trial(length, rate))
            return trials[-1].carried

        found = decide(search_rate(max(top.rate, 1.0), options.resolution, options.repetitions), carries)
        # A rate that was delivered without retransmissions counts, even if the trial did not reach its offered rate.
        knee = max(float(found.value), *(each.rate for each in trials if not each.retransmitted), 0.0)
        lossy = [each.rate for each in trials if each.retransmitted]
        # Below the knee, since above it round trips are the time that messages wait in the window.
        loads = [self._trial(length, knee * share) for share in (0.1, 0.5, 0.9) if knee]
        return {
            "test": "messages",
            "size": length,
            "messages_per_second": round(knee, 1),
            "bits_per_second": round(knee * 8 * length, 1),
            "frames_per_second": round(knee * frames_needed(length, self._dialect), 1),
            "top": top.record(),
            "retransmits_from": round(min(lossy), 1) if lossy else None,
            "limited_by": "retransmissions" if lossy else "window or host",
            "p99_ns": loads[-1].round_trip.percentile_ns(99) if loads else None,
            "loads": [each.record() for each in loads],
            "trials": [each.record() for each in trials],
            "settled": found.settled,
        }

    def _trial(self, length: int, rate: float | None) -> MessageTrial:
        self._progress(f"{length} bytes: {'as fast as possible' if rate is None else f'{rate:,.0f} messages/s'}")
        before = self._sent_frames()
        flow = _MessageFlow(self._host, self._endpoint, self._partner, self._options, length)
        trial = flow.run(rate)
        needed = trial.messages * frames_needed(length, self._dialect)
        trial.retransmitted = max(self._sent_frames() - before - needed, 0)
        return trial

    def _sent_frames(self) -> int:
        counters = self._host.core.node.counters
        return sum(counters[each] for each in MESSAGE_COUNTERS)


class _MessageFlow:
    """Messages in flight to one partner, and their echoes."""

    def __init__(self, host: Host, endpoint: Endpoint, partner: Partner, options: MessageOptions, length: int) -> None:
        self._host = host
        self._endpoint = endpoint
        self._partner = partner
        self._options = options
        self._length = length
        self._data = np.resize(np.arange(251, dtype=np.uint8), length).tobytes()
        self._sends: deque[Any] = deque()
        self._echoes: deque[Any] = deque()
        self._times: dict[int, int] = {}
        self._number = 0

    def run(self, rate: float | None) -> MessageTrial:
        """Send for the duration of a trial, and wait for the last message."""
        options, trial = self._options, MessageTrial(self._length, rate)
        begun = now = time.monotonic_ns()
        bucket = None if rate is None else TokenBucket(rate, begun, depth_ns=_CATCH_UP_NS)
        end = begun + int(options.trial * SECOND)
        while now < end:
            free = options.window - (len(self._echoes) if self._options.echo else len(self._sends))
            count = free if bucket is None else bucket.take(now, free) if free > 0 else 0
            for _ in range(max(count, 0)):
                self._send(now)
            self._host.poll()
            now = time.monotonic_ns()
            self._harvest(trial, now)
        trial.forgone = bucket.forgone if bucket is not None else 0
        self._drain(trial)
        trial.duration_ns = time.monotonic_ns() - begun
        return trial

    def _send(self, now: int) -> None:
        if self._options.echo:
            self._echoes.append(self._endpoint.ireceive(self._number, maximum=max(self._length, 1)))
            self._times[self._number] = now
        self._sends.append(self._endpoint.isend(self._partner, self._data, self._number))
        self._number += 1

    def _harvest(self, trial: MessageTrial, now: int) -> None:
        """Count the messages that were delivered."""
        sends, echoes = self._sends, self._echoes
        while sends and sends[0].done:
            sends.popleft().result()
            trial.messages += not self._options.echo
        times = []
        while echoes and echoes[0].done:
            message = echoes.popleft().result()
            times.append(now - self._times.pop(message.match_info))
            trial.messages += 1
        if times:
            trial.round_trip.add(np.array(times, np.int64))

    def _drain(self, trial: MessageTrial) -> None:
        """Wait for the messages in flight. Raises HostError if they do not arrive."""
        end = time.monotonic_ns() + int(_DRAIN * SECOND)
        while self._sends or self._echoes:
            self._host.poll()
            now = time.monotonic_ns()
            self._harvest(trial, now)
            if now > end:
                count = count_of(len(self._sends) + len(self._echoes), "message")
                raise HostTimeoutError(f"the partner did not take {count} within {_DRAIN:g} s, or did not echo them")
        self._endpoint.flush(_DRAIN)
