"""Timer: a descriptor that becomes readable at a given time."""

from __future__ import annotations

import ctypes
import os
import struct
import time

_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
_ABSOLUTE = 1


class Timer:
    """A timer on the clock of ``time.monotonic_ns``. The standard library has timerfd from Python 3.13."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._check(self._libc.timerfd_create(time.CLOCK_MONOTONIC, _NONBLOCK_CLOEXEC))
        self._set_for = 0

    def set(self, when: int | None) -> None:
        """Make the descriptor readable from ``when`` on, in ns of ``time.monotonic_ns``; None: never."""
        deadline = when or 0
        if deadline == self._set_for:
            return
        self._set_for = deadline
        value = ctypes.create_string_buffer(struct.pack("4l", 0, 0, *divmod(deadline, 10**9)))
        self._check(self._libc.timerfd_settime(self._descriptor, _ABSOLUTE, value, None))

    @staticmethod
    def _check(result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def close(self) -> None:
        """Close the descriptor; closing it again does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
