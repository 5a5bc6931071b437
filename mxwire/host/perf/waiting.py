"""How a measurement waits: the thread that measures turns the host itself, and does not wait for who has gone."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Final, TypeVar

from mxwire.host.endpoint import Endpoint
from mxwire.host.errors import HostTimeoutError
from mxwire.host.pending import Pending
from mxwire.host.request import Request
from mxwire.host.watching import SLICE, Watch, wait_watching
from mxwire.protocol import Partner

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

    def __call__(self, request: Request[Result], partner: Partner) -> Result:
        """What the request gives. Raises :class:`~mxwire.host.errors.HostError` where it fails, and where the other
        side has restarted, was given up, or nothing goes on for too long."""
        if self.yielding:
            return self._yielding(request, partner)
        return wait_watching(self.endpoint, request, partner, self.silence)

    def pause(self, seconds: float) -> None:
        """Let time pass, in which the host goes on."""
        with suppress(HostTimeoutError):
            self.endpoint.host.driving.wait(_Never(), seconds)

    def _yielding(self, request: Request[Result], partner: Partner) -> Result:
        watch = Watch(self.endpoint, partner, self.silence)
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


class _Never(Pending[None]):
    """Is never over."""

    __slots__ = ()

    def ready(self) -> bool:
        """No."""
        return False
