"""Backoff: retries of sends while the queue of an interface is full."""

from __future__ import annotations

import errno
import select
import socket
import time
from collections.abc import Callable
from typing import Final

BACKOFF_NS: Final = 10_000_000
"""Maximum time for which a call of ``send`` waits for a full queue."""
_PAUSE = 50e-6
"""Seconds between two tries while the queue of the interface is full: some frames at 10 Gb/s."""
_THIS_FRAME = frozenset({errno.EMSGSIZE, errno.EINVAL})
"""Errors of a single frame: longer than the MTU, or shorter than a header."""
_FULL = frozenset({errno.EAGAIN, errno.ENOBUFS})

Some = Callable[[int, int], int]
"""Sends the frames from one index up to another and returns the number sent; raises OSError if the first frame was not
sent."""


class SendBackoff:
    """Decides after each error of one call of ``send`` whether to retry or to drop the remaining frames."""

    def __init__(self, through: socket.socket) -> None:
        self._socket = through
        self._until = 0
        self._was_down = False
        self.ended = False

    def retry(self, error: int) -> bool:
        """Wait if the error may pass, and return whether to retry."""
        if error in _FULL:
            self.ended = not self._wait(error)
        elif error == errno.ENETDOWN and not self._was_down:
            # The kernel reports once that the interface was down, even if it is up again.
            self._was_down = True
        else:
            self.ended = True
        return not self.ended

    def _wait(self, error: int) -> bool:
        now = time.monotonic_ns()
        self._until = self._until or now + BACKOFF_NS
        if now >= self._until:
            return False
        if error == errno.EAGAIN:
            poll = select.poll()
            poll.register(self._socket, select.POLLOUT)
            poll.poll((self._until - now) / 1e6)
        else:
            # The queue of the interface is full, and the kernel does not report when it has room again.
            time.sleep(_PAUSE)
        return True


def send_all(some: Some, count: int, backoff: SendBackoff) -> int:
    """Send frames until all have been tried or the backoff ends; return the number sent."""
    done = sent = 0
    while done < count:
        try:
            accepted = some(done, count)
        except OSError as error:
            if error.errno in _THIS_FRAME:
                done += 1
            elif not backoff.retry(error.errno or 0):
                break
        else:
            done += accepted
            sent += accepted
    return sent
