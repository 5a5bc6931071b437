"""A window: memory of the other side that this side puts into and gets out of, between fences or under a lock.

Active: both sides fence before and after the accesses. Passive: the initiator locks the window, and the target does
nothing. The lock is that of a file, ``flock``: Python has no compare-exchange.

With a mechanism whose both sides act, the target of a passive access has a part: a :class:`ServedWindow` sends it a
request, which a thread of the target polls for, or which a signal announces.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from mxwire.bench.intranode.mechanism import Direction, Mechanism, Piece, Pool

_REQUEST: Final = struct.Struct("=QQ")
_GET, _PUT, _END = range(3)
_SIGNAL: Final = signal.SIGUSR1


class WindowMechanism(Protocol):
    """A mechanism that accesses memory of the other side without a part of that side."""

    def offer(self, piece: Piece) -> memoryview:
        """Announce memory with the content of a piece, and return it."""

    def offered(self) -> int:
        """The number of the other side's memory."""

    def access(self, direction: Direction, piece: Piece, address: int) -> None:
        """Put or get a piece."""

    def report_moved(self) -> None:
        """Report the end of the accesses."""

    def await_moved(self) -> None:
        """Wait until the other side reports the end of its accesses."""


class AccessWindow:
    """A side of a window over a one-sided mechanism, with the content of ``own``. ``fence`` is the barrier of both
    sides."""

    def __init__(self, mechanism: WindowMechanism, own: Piece, fence: Callable[[], None], lock_file: int) -> None:
        self._mechanism, self.fence = mechanism, fence
        # A descriptor of its own per side: those inherited share one lock.
        self._lock = os.open(f"/proc/self/fd/{lock_file}", os.O_RDWR)
        self.memory = mechanism.offer(own)
        """The memory of this side's window."""
        self._address = mechanism.offered()

    def access(self, direction: Direction, piece: Piece) -> None:
        """Put the piece into the other side's memory or get it."""
        self._mechanism.access(direction, piece, self._address)

    def lock(self) -> None:
        """Wait until the other side has unlocked the window, and lock it."""
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def unlock(self) -> None:
        """Let others have the window."""
        fcntl.flock(self._lock, fcntl.LOCK_UN)

    def close(self) -> None:
        """End the use of the window on both sides."""
        self._mechanism.report_moved()
        self._mechanism.await_moved()
        os.close(self._lock)


class ServedWindow:
    """A side of a window over a mechanism whose both sides act. The target serves requests; the initiator waits for it.

    ``by_signal``: each request is announced by a signal, whose handler interrupts the target. Otherwise a thread of the
    target takes requests, and polls for them as the mechanism does.
    """

    def __init__(self, mechanism: Mechanism, own: Piece, *, by_signal: bool) -> None:
        self._mechanism, self._own, self._by_signal = mechanism, own, by_signal
        self._request = Pool(_REQUEST.size, full=False).piece(0, _REQUEST.size)
        self.ended = False
        """True at the target when the initiator has ended the use of the window."""

    def get(self, piece: Piece) -> None:
        """Get the target's memory into a piece."""
        self._ask(_GET, piece.size)
        self._mechanism.take(piece)

    def put(self, piece: Piece) -> None:
        """Put a piece into the target's memory, and return when it is there."""
        self._ask(_PUT, piece.size)
        self._mechanism.give(piece)
        self._mechanism.take(self._request)

    def end(self) -> None:
        """End the use of the window."""
        self._ask(_END, 0)

    def _ask(self, kind: int, size: int) -> None:
        _REQUEST.pack_into(self._request.view, 0, kind, size)
        self._mechanism.give(self._request)
        if self._by_signal:
            os.kill(self._mechanism.partner, _SIGNAL)

    @contextmanager
    def service(self) -> Iterator[None]:
        """Serve requests at the target, until one ends the use of the window."""
        if self._by_signal:
            before = signal.signal(_SIGNAL, lambda *_: self._serve())
            try:
                yield
            finally:
                signal.signal(_SIGNAL, before)
        else:
            # Its errors end the process, as those of the other thread do; it must not outlive that.
            thread = threading.Thread(target=self._serve_all, daemon=True)
            thread.start()
            yield
            thread.join()

    def _serve_all(self) -> None:
        while not self.ended:
            self._serve()

    def _serve(self) -> None:
        self._mechanism.take(self._request)
        kind, size = _REQUEST.unpack_from(self._request.view)
        part = Piece(self._own.view[:size], self._own.address)
        if kind == _END:
            self.ended = True
        elif kind == _GET:
            self._mechanism.give(part)
        else:
            self._mechanism.take(part)
            self._mechanism.give(self._request)
