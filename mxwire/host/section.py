"""The section in which one thread at a time runs the engine, and in which an interrupt waits."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Final
from weakref import WeakSet

from mxwire.native import native
from mxwire.protocol import EngineEndpoint

Handler = Callable[[int, FrameType | None], Any]

_MAIN: Final = threading.main_thread().ident


class _InterruptState:
    """Sections and users of this process, and the deferred signal."""

    def __init__(self) -> None:
        self.locks: WeakSet[Any] = WeakSet()
        """Locks of all sections; the main thread may hold some of them."""
        self.users = 0
        """Number of open hosts."""
        self.handlers = 0
        """Unexpected handlers that run on the main thread, outside of the section of their host."""
        self.deferred: tuple[int, FrameType | None] | None = None
        self.previous: Handler | None = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal: defer it within a section, else call the previous handler."""
        if self._inside():
            self.deferred = (number, frame)
        elif self.previous is not None:
            self.previous(number, frame)

    def _inside(self) -> bool:
        """True if the main thread, which calls this, is in a section or in an unexpected handler."""
        return self.handlers > 0 or any(each._is_owned() for each in self.locks)

    def deliver(self) -> None:
        """Pass on a deferred signal, if this is the main thread and it has left all sections."""
        if threading.get_ident() != _MAIN or self._inside():
            return
        deferred, self.deferred = self.deferred, None
        if deferred is not None and self.previous is not None:
            self.previous(*deferred)


_interrupts: Final = _InterruptState()


def defer_interrupts() -> bool:
    """Install the handler; return whether :func:`restore_interrupts` must be called later.

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
            # A handler installed later has replaced this one, and calls it as its predecessor.
            return True
        _interrupts.previous = current
        signal.signal(signal.SIGINT, _interrupts.handle)
    return True


def restore_interrupts() -> None:
    """Undo one call of :func:`defer_interrupts`; the last undo restores the previous handler, unless another handler
    was installed since."""
    _interrupts.users -= 1
    # Python sets handlers on the main thread only.
    if _interrupts.users or threading.get_ident() != _MAIN:
        return
    if signal.getsignal(signal.SIGINT) == _interrupts.handle:
        signal.signal(signal.SIGINT, _interrupts.previous)
        _interrupts.previous = None


class ExclusiveSection:
    """A reentrant lock that defers Ctrl-C while it is held."""

    __slots__ = ("_acquire", "_awaited", "_condition", "_lock", "_release", "handlers")

    def __init__(self) -> None:
        lock: Any = threading.RLock() if native is None else native.Lock()
        self._acquire: Callable[[], bool] = lock.acquire
        self._release: Callable[[], None] = lock.release
        self._lock = lock
        self._condition = threading.Condition(lock)
        self._awaited = 0
        """Number of threads that wait for the end of a handler."""
        self.handlers: dict[int, EngineEndpoint] = {}
        """The endpoints whose unexpected handlers run now, by the threads that run them."""
        # A new set, since the handler may be iterating over the old one.
        _interrupts.locks = WeakSet([*_interrupts.locks, lock])

    def __enter__(self) -> None:
        """Acquire the lock."""
        self._acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the lock, and deliver a deferred interrupt."""
        # Released first, because nothing is delivered within a section.
        self._release()
        if _interrupts.deferred is not None:
            _interrupts.deliver()

    def run_handler(self, endpoint: EngineEndpoint, handler: Callable[[Any], object], message: Any) -> bool:
        """Call the unexpected handler of an endpoint with a message, without the lock, so that it may wait for threads
        that call the host.

        Ctrl-C stays deferred until the result has been passed to the engine.
        """
        # The event loop of asyncio works without the lock.
        owned, thread = self._lock._is_owned(), threading.get_ident()
        on_main = thread == _MAIN
        _interrupts.handlers += on_main
        self.handlers[thread] = endpoint
        # All levels of the lock, because the step that calls the handler may be within a call of the application.
        depth = self._lock._release_save() if owned else None
        try:
            return bool(handler(message))
        finally:
            if owned:
                self._lock._acquire_restore(depth)
            del self.handlers[thread]
            if owned and self._awaited:
                self._condition.notify_all()
            _interrupts.handlers -= on_main

    @property
    def in_handler(self) -> bool:
        """True if the calling thread runs an unexpected handler."""
        return bool(self.handlers) and threading.get_ident() in self.handlers

    def await_handlers(self, endpoint: EngineEndpoint | None = None) -> None:
        """Wait within the section until no other thread runs the unexpected handler of an endpoint; None: of any."""
        thread = threading.get_ident()
        # A thread does not wait for its own handler, which could not end.
        while any(each != thread and endpoint in (None, found) for each, found in self.handlers.items()):
            self._awaited += 1
            try:
                self._condition.wait()
            finally:
                self._awaited -= 1
