"""PerfWaiter: waits of a measurement, on the measuring thread, that detect a partner that has gone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from mxwire.host.endpoint import Endpoint
from mxwire.host.errors import HostError
from mxwire.host.requests import HostReceive, HostRequest
from mxwire.host.stall import SLICE, StallObserver, wait_observed
from mxwire.protocol import Partner

CROWDED: Final = 5.0
"""Longest silence in seconds while another sender waits for its turn."""
_CROWDED_SHARE: Final = 0.25
"""Limit as a share of the configured silence: the waiting sender must not have abandoned its request by then."""
_POLLS: Final = 64
"""Polls between two reads of the clock."""

Result = TypeVar("Result")


class PerfWaiter:
    """Waits for requests of one endpoint.

    ``yielding`` yields the CPU between polls. ``silence`` is the number of seconds without progress after which a wait
    fails; None: without limit, as omx_perf itself.
    """

    def __init__(self, endpoint: Endpoint, *, yielding: bool = False, silence: float | None = None) -> None:
        self.endpoint = endpoint
        self.yielding = yielding
        self.silence = silence
        self.crowded: Callable[[], bool] = _alone
        """Called during silence: whether another sender waits for its turn, so that less silence is allowed."""

    def __call__(self, request: HostRequest[Result], partner: Partner, epoch: int | None = None) -> Result:
        """Wait for a request, and return its result; ``epoch`` is the partner's at the start of the measurement.

        Raises :class:`~mxwire.host.errors.HostError` if it fails, if the partner has restarted or was abandoned, and
        after too long a silence. An unmatched receive is cancelled then, so that it does not take a later message.
        """
        try:
            if self.yielding:
                return self._wait_yielding(request, partner, epoch)
            return wait_observed(self.endpoint, request, partner, self._allowed, epoch=epoch)
        except HostError:
            self.cancel_unmatched(request)
            raise

    def cancel_unmatched(self, request: HostRequest[Any]) -> None:
        """Cancel a request if it is a receive without a match."""
        if isinstance(request, HostReceive) and not request.done and not self.endpoint.closed:
            self.endpoint.cancel(request)

    def _allowed(self) -> float | None:
        if self.silence is None or not self.crowded():
            return self.silence
        return min(CROWDED, self.silence * _CROWDED_SHARE)

    def pause(self, seconds: float) -> None:
        """Run the host for ``seconds``."""
        self.endpoint.host.driver.pause(seconds)

    def _wait_yielding(self, request: HostRequest[Result], partner: Partner, epoch: int | None) -> Result:
        observer = StallObserver(self.endpoint, partner, self._allowed, epoch)
        try:
            while True:
                until = time.monotonic() + SLICE
                while time.monotonic() < until:
                    for _ in range(_POLLS):
                        if self.endpoint.test(request):
                            return request.result()
                        os.sched_yield()
                observer.check()
        finally:
            observer.close()


def _alone() -> bool:
    return False
