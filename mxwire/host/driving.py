"""Driving: who turns the core in the blocking face.

Whoever waits turns it himself, so that no time is lost between threads; of several only one does. A thread in the
background turns it while nobody waits, so that acks, pulls and retransmissions go on while the application computes.
It keeps out of the way: where somebody else has turned the core, it leaves it alone for ``NAP``.
"""

from __future__ import annotations

import select
import threading
import time
from typing import Any, Final, TypeVar

from mxwire.host import interrupts
from mxwire.host.core import Core
from mxwire.host.pending import Pending, Waiter
from mxwire.link.wakeup import Wakeup
from mxwire.units import MILLISECOND, SECOND

NAP: Final = 0.01
"""Seconds of quiet after which the background thread takes over."""
LONGEST: Final = 100
"""Longest sleep in ms: another thread may have made something due earlier."""
_LEAVE: Final = 5.0
_LOOKS: Final = 64
"""How often one that spins looks for frames before others are let in: for as long as an answer takes, some 20 µs."""

Result = TypeVar("Result")


class Driving:
    """Turns a core for the blocking face.

    ``spin`` says for how many seconds after the last frame a wait looks again and again instead of sleeping; True:
    always. Without ``background`` nothing happens while nobody waits.
    """

    def __init__(self, core: Core, *, spin: bool | float = False, background: bool = True) -> None:
        self.core = core
        self._spin = float("inf") if spin is True else float(spin) * SECOND
        self._looks = _LOOKS if spin else 1
        self._driver: _Sleeper | None = None
        self._wakeup = Wakeup()
        self._poller = _poller(core, self._wakeup)
        self._protected = interrupts.protect()
        self._background = _Background(self) if background else None
        if self._background is not None:
            self._background.start()

    @property
    def driven(self) -> bool:
        """Whether somebody who waits turns the core."""
        return self._driver is not None

    def wait(self, pending: Pending[Result], timeout: float | None) -> Result:
        """Wait until ``pending`` is ready, at most ``timeout`` seconds (None: for ever).

        Raises what its result raises, :class:`~mxwire.host.errors.HostTimeoutError` when it takes too long and
        :class:`~mxwire.host.errors.HostClosedError` when the host ends.
        """
        core = self.core
        with core.section:
            if self._glance(pending):
                return pending.result()
        waiter = _Sleeper(self, pending)
        try:
            with core.section:
                core.must_be_open()
                if core.ready(pending):
                    return pending.result()
                limit = None if timeout is None else core.clock() + int(timeout * SECOND)
                core.waiters.append(waiter)
                if self._driver is None:
                    self._driver = waiter
            self._until(waiter, limit)
            if not waiter.done:
                with core.section:
                    if not waiter.look():
                        core.must_be_open()
                        raise pending.late(timeout or 0)
        finally:
            if waiter in core.waiters:
                with core.section:
                    if not waiter.done:
                        pending.abandon()
                    self._retire(waiter)
        if waiter.error is not None:
            raise waiter.error
        return pending.result()

    def poke(self) -> None:
        """Look for frames without waiting, if nobody else does."""
        with self.core.section:
            self.core.must_be_open()
            if self._driver is None:
                self.core.step()

    def close(self) -> None:
        """Wait until nobody is inside any more; the core has ended already."""
        self._wakeup.set()
        if self._background is not None:
            self._background.leave()
        me, limit = threading.get_ident(), time.monotonic() + _LEAVE
        while time.monotonic() < limit and any(getattr(each, "thread", me) != me for each in list(self.core.waiters)):
            time.sleep(0.001)
        self._wakeup.close()
        if self._protected:
            self._protected = False
            interrupts.release()

    # Inside.

    def _glance(self, pending: Pending[Any]) -> bool:
        """Whether what is waited for is there already, or comes while we look once: then there is nothing to wait for,
        and nobody who waits needs to be made."""
        core = self.core
        core.must_be_open()
        if core.ready(pending):
            return True
        if self._driver is not None:
            return False
        core.step(self._looks)
        return core.ended is None and core.ready(pending)

    def _until(self, waiter: _Sleeper, limit: int | None) -> None:
        """Turn the core, or let another turn it, until the wait is over one way or the other."""
        core = self.core
        while not (waiter.done or core.ended is not None or (limit is not None and core.clock() >= limit)):
            if self._take_over(waiter):
                self._drive(waiter, limit)
            else:
                waiter.sleep(None if limit is None else max(0, limit - core.clock()) / SECOND)

    def _take_over(self, waiter: _Sleeper) -> bool:
        if not self.driven:
            with self.core.section:
                if not self.driven:
                    self._driver = waiter
        return self._driver is waiter

    def _drive(self, waiter: _Sleeper, limit: int | None) -> None:
        core, section, spin, looks = self.core, self.core.section, self._spin, self._looks
        while True:
            with section:
                core.step(looks)
                if waiter.done or core.ended is not None:
                    return
                spinning = core.now - core.active < spin
                pause = None if spinning else core.pause()
            if limit is not None and core.now >= limit:
                return
            if not spinning:
                self._sleep(pause, limit)

    def _sleep(self, pause: int | None, limit: int | None) -> None:
        longest = LONGEST if pause is None else min(LONGEST, pause / MILLISECOND)
        if limit is not None:
            longest = min(longest, max(0, limit - self.core.clock()) / MILLISECOND)
        for descriptor, _ in self._poller.poll(longest):
            if descriptor == self._wakeup.fileno():
                self._wakeup.clear()

    def wake(self, waiter: _Sleeper) -> None:
        """Let a waiter look at what has happened."""
        if waiter is not self._driver:
            waiter.gate.set()
        elif waiter.thread != threading.get_ident():
            self._wakeup.set()

    def _retire(self, waiter: _Sleeper) -> None:
        """Stop waiting; somebody else who waits takes over."""
        waiters = self.core.waiters
        if waiter in waiters:
            waiters.remove(waiter)
        if self._driver is waiter:
            self._driver = None
            for each in waiters:
                if not each.done:
                    each.wake()
                    break


class _Sleeper(Waiter):
    """A thread that waits: it drives, or sleeps at its gate while another does."""

    __slots__ = ("_driving", "_gate", "thread")

    def __init__(self, driving: Driving, pending: Pending[Any]) -> None:
        super().__init__(pending)
        self._driving = driving
        self.thread = threading.get_ident()
        self._gate: threading.Event | None = None

    @property
    def gate(self) -> threading.Event:
        """Set when there is something to look at; most waits never need one."""
        with self._driving.core.section:
            if self._gate is None:
                self._gate = threading.Event()
            return self._gate

    def sleep(self, timeout: float | None) -> None:
        """Sleep until the gate is set, at most ``timeout`` seconds."""
        gate = self.gate
        gate.wait(timeout)
        gate.clear()

    def wake(self) -> None:
        """There is something to look at."""
        self._driving.wake(self)


class _Background(threading.Thread):
    """Turns the core while nobody waits."""

    def __init__(self, driving: Driving) -> None:
        super().__init__(name="mxwire-host", daemon=True)
        self._driving = driving
        self._core = driving.core
        self._wakeup = Wakeup()
        self._closing = threading.Event()

    def run(self) -> None:
        """Sleep until a frame comes or something is due, and see to it unless another does."""
        core = self._core
        poller = _poller(core, self._wakeup)
        while core.ended is None:
            pause, steps = self._turn()
            if pause == 0:
                continue
            poller.poll(LONGEST if pause is None else min(LONGEST, pause / MILLISECOND))
            while self._others_turn(steps):
                steps = core.steps
                if self._closing.wait(NAP):
                    return

    def _turn(self) -> tuple[int | None, int]:
        with self._core.section:
            if not self._driving.driven:
                self._core.step()
            return self._core.pause(), self._core.steps

    def _others_turn(self, steps: int) -> bool:
        return self._driving.driven or self._core.steps != steps

    def leave(self) -> None:
        """End the thread; called by it, only let it end."""
        self._closing.set()
        self._wakeup.set()
        if threading.current_thread() is not self:
            self.join(_LEAVE)
            self._wakeup.close()


def _poller(core: Core, wakeup: Wakeup) -> select.poll:
    """Waits for frames on any link, and for the wakeup."""
    poller = select.poll()
    for descriptor in (*(each.fileno() for each in core.links), wakeup.fileno()):
        poller.register(descriptor, select.POLLIN)
    return poller
