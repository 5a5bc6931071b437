"""Wakeup: a descriptor that one thread makes readable to wake another."""

from __future__ import annotations

import os
import select
from threading import Lock


class Wakeup:
    """An event with a descriptor. ``set`` may be called from any thread, even after it was closed."""

    def __init__(self) -> None:
        self._descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        # Without the lock a late ``set`` could write to another file that has reused the number of the descriptor.
        self._lock = Lock()
        self.is_set = False
        """True if it is set; reading it needs no system call."""

    def set(self) -> None:
        """Make the descriptor readable until it is cleared."""
        with self._lock:
            if self._descriptor >= 0 and not self.is_set:
                self.is_set = True
                os.eventfd_write(self._descriptor, 1)

    def clear(self) -> None:
        """Make the descriptor unreadable."""
        with self._lock:
            if self._descriptor >= 0 and self.is_set:
                self.is_set = False
                os.eventfd_read(self._descriptor)

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def close(self) -> None:
        """Close the descriptor; closing it again does nothing."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def wait_readable(descriptor: int, timeout: float | None) -> bool:
    """Wait up to ``timeout`` seconds (None: without limit; rounded up to ms) until a descriptor is readable."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(None if timeout is None else max(timeout, 0.0) * 1000))
