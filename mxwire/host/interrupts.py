"""Ctrl-C never falls into the middle of the engine's work: there it waits until the work is done.

A wait is interrupted at once, since nothing is touched while one sleeps. Only the main thread ever gets the signal.
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


class _Interrupts:
    """What the main thread is doing, and the signal that came meanwhile."""

    def __init__(self) -> None:
        self.locks: WeakSet[threading.RLock] = WeakSet()
        """Those of all sections; the main thread may be in some of them."""
        self.users = 0
        """Open hosts."""
        self.waiting: tuple[int, FrameType | None] | None = None
        self.previous: Handler | None = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """The signal has come."""
        if self._inside():
            self.waiting = (number, frame)
        elif self.previous is not None:
            self.previous(number, frame)

    def _inside(self) -> bool:
        """Whether the thread that asks is in a section."""
        return any(each._is_owned() for each in self.locks)  # type: ignore[attr-defined]

    def deliver(self) -> None:
        """Hand on the signal that had to wait, if this is the main thread and it is in no section any more."""
        if threading.get_ident() != _MAIN or self._inside():
            return
        waiting, self.waiting = self.waiting, None
        if waiting is not None and self.previous is not None:
            self.previous(*waiting)


_interrupts: Final = _Interrupts()


def protect() -> bool:
    """Mind interrupts from now on; False where that is not possible: not in the main thread, or a handler that is not
    Python's. What is true must be given back with :func:`release`."""
    if threading.get_ident() != _MAIN:
        return False
    current = signal.getsignal(signal.SIGINT)
    if not callable(current):
        return False
    _interrupts.users += 1
    if current != _interrupts.handle:
        if _interrupts.previous is not None:
            # Somebody has put a handler above ours, which will call us as its predecessor.
            return True
        _interrupts.previous = current
        signal.signal(signal.SIGINT, _interrupts.handle)
    return True


def release() -> None:
    """The end of one :func:`protect`: with the last one, the former handler is put back if ours is still there."""
    _interrupts.users -= 1
    if _interrupts.users or threading.get_ident() != _MAIN:
        return
    if signal.getsignal(signal.SIGINT) == _interrupts.handle:
        signal.signal(signal.SIGINT, _interrupts.previous)
        _interrupts.previous = None


class Section:
    """Work that only one thread does at a time, and that Ctrl-C does not cut in two. May be nested."""

    __slots__ = ("_acquire", "_release")

    def __init__(self) -> None:
        lock = threading.RLock()
        self._acquire, self._release = lock.acquire, lock.release
        # A new set, since the signal may come while the old one is looked through.
        _interrupts.locks = WeakSet([*_interrupts.locks, lock])

    def __enter__(self) -> None:
        """Keep others out."""
        self._acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let others in; an interrupt that came meanwhile is raised now."""
        self._release()
        if _interrupts.waiting is not None:
            _interrupts.deliver()
