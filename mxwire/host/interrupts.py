"""Deferral of Ctrl-C while the engine works, so that it never interrupts a half-done change.

Waits are interrupted at once, since a sleeping thread is outside of the section. Python runs signal handlers on the
main thread only.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Final
from weakref import WeakSet

Handler = Callable[[int, FrameType | None], Any]

_MAIN: Final = threading.main_thread().ident


class _InterruptState:
    """Sections and users of this process, and the deferred signal."""

    def __init__(self) -> None:
        self.locks: WeakSet[threading.RLock] = WeakSet()
        """Locks of all sections; the main thread may hold some of them."""
        self.users = 0
        """Number of open hosts."""
        self.deferred: tuple[int, FrameType | None] | None = None
        self.previous: Handler | None = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal: defer it within a section, else call the previous handler."""
        if self._inside():
            self.deferred = (number, frame)
        elif self.previous is not None:
            self.previous(number, frame)

    def _inside(self) -> bool:
        """True if the calling thread is in a section."""
        return any(each._is_owned() for each in self.locks)  # type: ignore[attr-defined]

    def deliver(self) -> None:
        """Pass on a deferred signal, if this is the main thread and it has left all sections."""
        if threading.get_ident() != _MAIN or self._inside():
            return
        deferred, self.deferred = self.deferred, None
        if deferred is not None and self.previous is not None:
            self.previous(*deferred)


_interrupts: Final = _InterruptState()


def protect() -> bool:
    """Install the handler; return whether :func:`release` must be called later.

    Returns False without effect on other threads than the main one, and for a handler that is not Python's.
    """
    if threading.get_ident() != _MAIN:
        return False
    current = signal.getsignal(signal.SIGINT)
    if not callable(current):
        return False
    _interrupts.users += 1
    if current != _interrupts.handle:
        if _interrupts.previous is not None:
            # A later handler has replaced this one, and calls it as its predecessor.
            return True
        _interrupts.previous = current
        signal.signal(signal.SIGINT, _interrupts.handle)
    return True


def release() -> None:
    """Undo one :func:`protect`; the last one restores the previous handler, unless another was installed since."""
    _interrupts.users -= 1
    if _interrupts.users or threading.get_ident() != _MAIN:
        return
    if signal.getsignal(signal.SIGINT) == _interrupts.handle:
        signal.signal(signal.SIGINT, _interrupts.previous)
        _interrupts.previous = None


class ExclusiveSection:
    """A reentrant lock that defers Ctrl-C while it is held."""

    __slots__ = ("_acquire", "_release")

    def __init__(self) -> None:
        lock = threading.RLock()
        self._acquire, self._release = lock.acquire, lock.release
        # A new set, since the handler may be iterating over the old one.
        _interrupts.locks = WeakSet([*_interrupts.locks, lock])

    def __enter__(self) -> None:
        """Acquire the lock."""
        self._acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the lock, and deliver a deferred interrupt."""
        self._release()
        if _interrupts.deferred is not None:
            _interrupts.deliver()
