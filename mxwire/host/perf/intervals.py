"""Results of the parts of a measurement: one per interval, while a length takes longer than that."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mxwire.host.endpoint import Endpoint
from mxwire.host.perf.parameters import PerfResult
from mxwire.protocol.counters import PULL_TIMEOUTS
from mxwire.units import SECOND
from mxwire.words import count_of


@dataclass(frozen=True, slots=True)
class PerfInterval:
    """The iterations of one length in a part of the time."""

    start_ns: int
    """Since the first measured iteration, as the end."""
    end_ns: int
    result: PerfResult
    retransmissions: int
    """Retransmissions and re-requests by this side."""

    def line(self) -> str:
        """Line of text; the summary of the length begins with its length instead."""
        return (
            f"{self.start_ns / SECOND:8.2f}-{self.end_ns / SECOND:<8.2f} s {self.result.line()}\t"
            f"{count_of(len(self.result.times), 'message', grouped=True)}\t"
            f"{count_of(self.retransmissions, 'retransmission', grouped=True)}"
        )

    def record(self) -> dict[str, Any]:
        """Record for JSON output."""
        return {
            "from_ns": self.start_ns,
            "to_ns": self.end_ns,
            **self.result.record(),
            "retransmissions": self.retransmissions,
        }


class PerfIntervals:
    """Divides the iterations of each length into intervals of ``seconds``, and calls ``report`` at the end of each.

    A length that ends within its first interval has none; of another one, the last interval is shorter.
    """

    def __init__(self, endpoint: Endpoint, seconds: float, report: Callable[[PerfInterval], object]) -> None:
        self._endpoint = endpoint
        self._every = round(seconds * SECOND)
        self._report = report
        self._origin: int | None = None
        self._start = self._done = self._retransmitted = 0

    def begin(self, now: int) -> int:
        """Begin a length at ``now``, and return the end of its first interval; both by ``time.perf_counter_ns``."""
        if self._origin is None:
            self._origin = now
        self._start, self._done = now, 0
        self._retransmitted = self._retransmissions()
        return now + self._every

    def end(self, length: int, times: Sequence[int], now: int, *, unidirectional: bool, last: bool = False) -> int:
        """End an interval at ``now``, given the times of all iterations of the length; return the end of the next one.

        The ``last`` interval of a length is reported only if it has earlier ones and iterations.
        """
        part, retransmitted = times[self._done :], self._retransmissions()
        if part and (self._done or not last):
            assert self._origin is not None
            self._report(
                PerfInterval(
                    self._start - self._origin,
                    now - self._origin,
                    PerfResult.of(length, part, unidirectional=unidirectional),
                    retransmitted - self._retransmitted,
                )
            )
        self._start, self._done, self._retransmitted = now, len(times), retransmitted
        return time.perf_counter_ns() + self._every

    def _retransmissions(self) -> int:
        counters = self._endpoint.host.core.node.counters
        return self._endpoint.engine.resends.due + sum(counters[each] for each in PULL_TIMEOUTS)
