"""Signals of frames: a host that makes progress while its application works and makes no call.

While the application works, the descriptors of the host have O_ASYNC: the kernel raises SIGIO for each frame that
arrives, and its handler, which Python runs on the main thread between two instructions of the work, polls the host.
Within calls there are no signals, since the host runs there anyway. Timers of the engine raise none: they wait for the
next frame or call.
"""

from __future__ import annotations

import fcntl
import os
import signal
from types import FrameType

from mxwire.host import Host


class HostSignals:
    """Raises signals for the frames of a host within its ``with`` block, on the main thread."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._descriptors = host.core.descriptors()
        self.raised = 0
        """Number of calls of the handler."""
        self._polling = self._again = False
        for each in self._descriptors:
            fcntl.fcntl(each, fcntl.F_SETOWN, os.getpid())

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.raised += 1
        self._poll()

    def _poll(self) -> None:
        """Poll the host; a signal that arrives within a poll, which is not reentrant, has it polled once more."""
        self._again = True
        while self._again and not self._polling:
            self._polling, self._again = True, False
            try:
                self._host.poll()
            finally:
                self._polling = False

    def _change(self, asynchronous: bool) -> None:
        for each in self._descriptors:
            flags = fcntl.fcntl(each, fcntl.F_GETFL)
            wanted = flags | os.O_ASYNC if asynchronous else flags & ~os.O_ASYNC
            fcntl.fcntl(each, fcntl.F_SETFL, wanted)

    def __enter__(self) -> None:
        """Ask for signals, and handle the frames that have arrived before."""
        signal.signal(signal.SIGIO, self._handle)
        self._change(True)
        self._poll()

    def __exit__(self, *_: object) -> None:
        """Raise no more signals."""
        self._change(False)
        signal.signal(signal.SIGIO, signal.SIG_IGN)
