"""How a measurement waits: the thread that measures turns the host itself, and does not wait for who has gone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from mxwire.host.endpoint import Endpoint
from mxwire.host.errors import HostError, HostTimeoutError
from mxwire.host.pending import Pending
from mxwire.host.request import Receiving, Request
from mxwire.host.watching import SLICE, Watch, wait_watching
from mxwire.protocol import Partner

CROWDED: Final = 5.0
"""Seconds that nothing may go on at most while somebody else waits for his turn."""
_CROWDED_SHARE: Final = 0.25
"""The same as a share of the silence: the one who waits must not have given up before."""
_LOOKS: Final = 64

Result = TypeVar("Result")


class Waiting:
    """Waits for requests of one endpoint.

    ``yielding`` lets other processes run between two looks for frames. ``silence`` is for how many seconds nothing
    may go on; None: for ever, as omx_perf itself has it.
    """

    def __init__(self, endpoint: Endpoint, *, yielding: bool = False, silence: float | None = None) -> None:
        self.endpoint = endpoint
        self.yielding = yielding
        self.silence = silence
        self.crowded: Callable[[], bool] = _alone
        """Asked while nothing goes on: whether somebody else waits for his turn. Then less silence is allowed."""

    def __call__(self, request: Request[Result], partner: Partner, epoch: int | None = None) -> Result:
        """What the request gives; ``epoch`` is that of the partner when the measurement began.

        Raises :class:`~mxwire.host.errors.HostError` where it fails, and where the other side has restarted, was given
        up, or nothing goes on for too long. A receive that nothing has matched is taken back then: it must not take
        what is meant for a later one.
        """
        try:
            if self.yielding:
                return self._yielding(request, partner, epoch)
            return wait_watching(self.endpoint, request, partner, self._allowed, epoch=epoch)
        except HostError:
            self.take_back(request)
            raise

    def take_back(self, request: Request[Any]) -> None:
        """Cancel a receive, if it is one that nothing has matched."""
        if isinstance(request, Receiving) and not request.done and not self.endpoint.closed:
            self.endpoint.cancel(request)

    def _allowed(self) -> float | None:
        if self.silence is None or not self.crowded():
            return self.silence
        return min(CROWDED, self.silence * _CROWDED_SHARE)

    def pause(self, seconds: float) -> None:
        """Let time pass, in which the host goes on."""
        with suppress(HostTimeoutError):
            self.endpoint.host.driving.wait(_Never(), seconds)

    def _yielding(self, request: Request[Result], partner: Partner, epoch: int | None) -> Result:
        watch = Watch(self.endpoint, partner, self._allowed, epoch)
        try:
            while True:
                until = time.monotonic() + SLICE
                while time.monotonic() < until:
                    for _ in range(_LOOKS):
                        if self.endpoint.test(request):
                            return request.result()
                        os.sched_yield()
                watch.look()
        finally:
            watch.close()


def _alone() -> bool:
    return False


class _Never(Pending[None]):
    """Is never over."""

    __slots__ = ()

    def ready(self) -> bool:
        """No."""
        return False
