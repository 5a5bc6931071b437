"""Sending until the kernel has taken all, and how long one waits where it takes no more."""

from __future__ import annotations

import errno
import select
import socket
import time
from collections.abc import Callable
from typing import Final

PATIENCE_NS: Final = 10_000_000
"""How long a full queue is waited for in one call of ``send``."""
_PAUSE = 50e-6
_THIS_FRAME = frozenset({errno.EMSGSIZE, errno.EINVAL})
"""Errors that are about one frame: longer than the MTU, or shorter than a header."""
_FULL = frozenset({errno.EAGAIN, errno.ENOBUFS})

Some = Callable[[int, int], int]
"""Sends frames from one place up to another, returns how many of them left; OSError when the first did not."""


class Patience:
    """What a call of ``send`` bears before it gives the rest of its frames up."""

    def __init__(self, through: socket.socket) -> None:
        self._socket = through
        self._until = 0
        self._was_down = False
        self.ended = False

    def again(self, error: int) -> bool:
        """Whether to try again after an error, having waited where that may help."""
        if error in _FULL:
            self.ended = not self._wait(error)
        elif error == errno.ENETDOWN and not self._was_down:
            # The kernel tells once that the interface was down, also when it is up again.
            self._was_down = True
        else:
            self.ended = True
        return not self.ended

    def _wait(self, error: int) -> bool:
        now = time.monotonic_ns()
        self._until = self._until or now + PATIENCE_NS
        if now >= self._until:
            return False
        if error == errno.EAGAIN:
            leaving = select.poll()
            leaving.register(self._socket, select.POLLOUT)
            leaving.poll((self._until - now) / 1e6)
        else:
            # The queue of the interface is full, and nothing tells when it is not any more.
            time.sleep(_PAUSE)
        return True


def send_all(some: Some, count: int, patience: Patience) -> int:
    """Send frames until all have been tried, or nothing goes any more; returns how many left."""
    done = sent = 0
    while done < count:
        try:
            left = some(done, count)
        except OSError as error:
            if error.errno in _THIS_FRAME:
                done += 1
            elif not patience.again(error.errno or 0):
                break
        else:
            done += left
            sent += left
    return sent
