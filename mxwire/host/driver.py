"""Drivers: run a host's loop, for callers that block and for asyncio.

Theory of operation
-------------------
A core (``core.py``) does nothing by itself. Each call of :meth:`Core.step <mxwire.host.core.Core.step>` receives
waiting frames, passes them to the engine, sends the answers, and checks the pending waits. A driver decides on which
thread the next step runs, and when.

**Blocking.** A caller that waits runs the loop itself. A frame then reaches the application on the thread that needs
it, without a thread switch, which would take longer (10 to 50 µs) than all other processing of a small message. The
order is always the same:

1. Check the condition, poll once, check again. Most waits end here, without creating a waiter or making any system call
   besides those of the links.
2. Otherwise register a waiter. If no other thread is *driving*, this thread drives: it steps the core, and sleeps in
   ``poll`` on the descriptors of all links between two steps, until a frame arrives or the engine's next deadline.
   ``LONGEST`` bounds each sleep, since a call on another thread may set an earlier deadline.
3. If another thread is driving, sleep at a gate that belongs to this thread. Each step checks all waiters; a waiter
   whose condition is met has its gate set. A driving thread whose own wait is over hands the role to the first waiter
   that is not done, by waking it, and so does a thread that is about to run an unexpected handler.

**Spinning.** With ``spin`` a driving thread does not sleep while the last frame is less than that many seconds old; it
polls ``_LOOKS`` times per step, with the section held. Releasing the section less often would shut out other threads;
releasing it more often would add latency.

**Background.** While no thread waits, a daemon thread steps the core, so that acks, pull replies and retransmissions
continue while the application computes. It must not compete with driving threads: whenever another thread has stepped
the core, or is driving, the daemon thread sleeps for ``NAP`` and checks again. An application that makes calls often
therefore never competes with it, and the core of one that stops is stepped at most 10 ms later. Without ``background``
a host is silent between calls; the partner's retransmissions bridge the gap.

**Wake-ups.** Two descriptors, beside those of the links, end a sleep: one wakes the driving thread (its wait was ended
by another thread, or the host is closed), the other wakes the background thread at the end. A thread never sets the
descriptor for itself. ``wake_up`` of an endpoint ends the waits of its waiters, driving or not, as an error would.

**asyncio.** The event loop is the driver: a reader per link steps the core, a timer is set to the engine's next
deadline, and each wait is a future. All of this runs on the loop's thread, so no gates are needed.

**Interrupts.** All steps run within the section (``section.py``), which defers Ctrl-C until the engine is in a
consistent state; sleeps are outside of it, and are interrupted at once. A wait that ends without its result, by a
timeout, an interrupt or an error, abandons its condition, so that no posted receive takes a message that no caller
is waiting for.
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mxwire.host.core import Core
from mxwire.host.errors import HostTimeoutError
from mxwire.host.requests import Pending, Waiter
from mxwire.host.section import defer_interrupts, restore_interrupts
from mxwire.link.wakeup import Wakeup
from mxwire.protocol import LocalProtocolError, Status
from mxwire.units import MILLISECOND, SECOND

NAP: Final = 0.01
"""Seconds without a step after which the background thread takes over."""
LONGEST: Final = 100
"""Maximum sleep in ms, because another thread may have set an earlier deadline."""
_JOIN_TIMEOUT: Final = 5.0
_INSPECTION_TIMEOUT: Final = 1.0
"""Seconds for which an inspection waits for the event loop."""
_LOOKS: Final = 64
"""Polls per step of a spinning thread before it releases the section to other threads: some 20 µs, as long as an answer
takes."""

Result = TypeVar("Result")

if TYPE_CHECKING:
    import asyncio


class BlockingDriver:
    """Runs a core for callers that block.

    ``spin`` is the number of seconds after the last frame for which a wait polls without sleeping; True: always.
    Without ``background`` the core runs only while a caller waits.
    """

    def __init__(self, core: Core, *, spin: bool | float = False, background: bool = True) -> None:
        self.core = core
        self._spin = float("inf") if spin is True else float(spin) * SECOND
        self._looks = _LOOKS if spin else 1
        self._driving: _BlockedWaiter | None = None
        core.before_handler = self._hand_over
        # One wakeup for this driver and another for its background thread: each thread clears only its own.
        self._wakeup = Wakeup()
        self._poller = _poller(core, self._wakeup)
        self._protected = defer_interrupts()
        self._background = _BackgroundThread(self) if background else None
        if self._background is not None:
            self._background.start()

    @property
    def background(self) -> bool:
        """True if a thread runs the loop while no caller waits."""
        return self._background is not None

    @property
    def driven(self) -> bool:
        """True if a waiting thread runs the loop."""
        return self._driving is not None

    def wait(self, pending: Pending[Result], timeout: float | None, endpoint: Any = None) -> Result:
        """Wait until ``pending`` is ready, at most ``timeout`` seconds (None: without limit), and return its result.

        Raises the error of the result, :class:`~mxwire.host.errors.HostTimeoutError` after the timeout,
        :class:`~mxwire.host.errors.HostWakeupError` when ``endpoint`` is woken up, and
        :class:`~mxwire.host.errors.HostClosedError` if the host ends.
        """
        core = self.core
        waiter: _BlockedWaiter | None = None
        try:
            with core.section:
                core.must_be_open()
                if core.section.in_handler:
                    raise LocalProtocolError(Status.NOT_SUPPORTED_IN_HANDLER, "an unexpected handler may not wait")
                if core.check(pending):
                    return pending.result()
                if self._driving is None:
                    core.step(self._looks)
                    # The step may have found that the interface is gone.
                    core.must_be_open()
                    if core.check(pending):
                        return pending.result()
                # Only here, because most waits end above, without a look at the clock.
                limit = None if timeout is None else core.clock() + int(timeout * SECOND)
                waiter = _BlockedWaiter(self, pending, endpoint)
                core.waiters.append(waiter)
                # Within the section, so that two threads cannot both find that none drives.
                if self._driving is None:
                    self._driving = waiter
            self._run_until(waiter, limit)
            if not waiter.done:
                with core.section:
                    if not waiter.check():
                        core.must_be_open()
                        late = pending.late(timeout or 0)
                        # Abandon the receive before another thread runs, because it could take a message that no caller
                        # would get.
                        pending.abandon()
                        raise late
            if waiter.error is not None:
                raise waiter.error
            return pending.result()
        except BaseException:
            with core.section:
                pending.abandon()
                self._pass_on()
            raise
        finally:
            if waiter is not None and waiter in core.waiters:
                with core.section:
                    self._retire(waiter)

    def _pass_on(self) -> None:
        """Check the other waits, because one may be waiting for the message of an abandoned receive."""
        core = self.core
        if core.waiters and core.ended is None and not core.section.in_handler:
            core.transmit()

    def pause(self, seconds: float, over: Callable[[], bool] | None = None) -> None:
        """Run the host for ``seconds``, or until ``over`` returns True.

        Raises :class:`~mxwire.host.errors.HostClosedError` if the host ends.
        """
        with suppress(HostTimeoutError):
            self.wait(_PendingCondition(over), seconds)

    def poll(self) -> None:
        """Poll once without blocking, unless a waiting thread does so."""
        with self.core.section:
            self.core.must_be_open()
            if self._driving is None:
                self.core.step()

    def inspect(self, read: Callable[[], Result]) -> Result:
        """Return ``read()``, called while no thread runs the core; for any thread."""
        with self.core.section:
            return read()

    def close(self) -> None:
        """Wait until all other threads have left; the core has ended already."""
        self._wakeup.set()
        if self._background is not None:
            self._background.leave()
        # Not ``join``: these are threads of the application, which only have to leave the core. A thread that closes
        # the host in its own wait is not waited for.
        me, limit = threading.get_ident(), time.monotonic() + _JOIN_TIMEOUT
        while time.monotonic() < limit and any(getattr(each, "thread", me) != me for each in list(self.core.waiters)):
            time.sleep(0.001)
        self._wakeup.close()
        if self._protected:
            self._protected = False
            restore_interrupts()

    def _run_until(self, waiter: _BlockedWaiter, limit: int | None) -> None:
        """Run the loop, or sleep while another thread does, until the wait is over, late, or the host has ended."""
        core = self.core
        while not (waiter.done or core.ended is not None or (limit is not None and core.clock() >= limit)):
            if self._take_over(waiter):
                self._run(waiter, limit)
            else:
                waiter.sleep(None if limit is None else max(0, limit - core.clock()) / SECOND)

    def _take_over(self, waiter: _BlockedWaiter) -> bool:
        # Tested again within the section: another thread may have become the driver since.
        if not self.driven:
            with self.core.section:
                if not self.driven:
                    self._driving = waiter
        return self._driving is waiter

    def _run(self, waiter: _BlockedWaiter, limit: int | None) -> None:
        core, section, spin, looks = self.core, self.core.section, self._spin, self._looks
        while True:
            with section:
                core.step(looks)
                if waiter.done or core.ended is not None or self._driving is not waiter:
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
                # The descriptors of links are not cleared here: the next step reads their frames.
                self._wakeup.clear()

    def wake(self, waiter: _BlockedWaiter) -> None:
        """Wake a waiter; the driving thread notices by itself if it is the caller."""
        if waiter is not self._driving:
            waiter.gate.set()
        elif waiter.thread != threading.get_ident():
            self._wakeup.set()

    def _retire(self, waiter: _BlockedWaiter) -> None:
        """Remove a waiter; if it was driving, wake another one to take over."""
        self.core.waiters.remove(waiter)
        if self._driving is waiter:
            self._appoint(waiter)

    def _hand_over(self) -> None:
        """Let another thread drive while this one runs an unexpected handler."""
        driving = self._driving
        if driving is not None and driving.thread == threading.get_ident():
            self._appoint(driving)

    def _appoint(self, former: _BlockedWaiter) -> None:
        """Wake the next waiter, so that it drives instead of ``former``; one in an unexpected handler cannot."""
        # Not the chosen thread: it takes the role itself when it runs, and another may be earlier.
        self._driving = None
        busy = self.core.section.handlers
        for each in self.core.waiters:
            if each is not former and not each.done and getattr(each, "thread", None) not in busy:
                each.wake()
                break


class _BlockedWaiter(Waiter):
    """A thread that waits: it runs the loop, or sleeps at its gate while another thread does."""

    __slots__ = ("_driver", "_gate", "thread")

    def __init__(self, driver: BlockingDriver, pending: Pending[Any], endpoint: Any) -> None:
        super().__init__(pending, endpoint)
        self._driver = driver
        self.thread = threading.get_ident()
        self._gate: threading.Event | None = None

    @property
    def gate(self) -> threading.Event:
        """The event that wakes the thread, created on first use because most waits need none."""
        with self._driver.core.section:
            if self._gate is None:
                self._gate = threading.Event()
            return self._gate

    def sleep(self, timeout: float | None) -> None:
        """Sleep until the gate is set, at most ``timeout`` seconds."""
        gate = self.gate
        # Cleared only after the sleep: a wake-up that comes before it must not be lost.
        gate.wait(timeout)
        gate.clear()

    def wake(self) -> None:
        """Wake the thread."""
        self._driver.wake(self)


class _BackgroundThread(threading.Thread):
    """Runs the core while no thread waits."""

    def __init__(self, driver: BlockingDriver) -> None:
        super().__init__(name="mxwire-host", daemon=True)
        self._driver = driver
        self._core = driver.core
        self._wakeup = Wakeup()
        self._closing = threading.Event()

    def run(self) -> None:
        """Sleep until a frame arrives or a deadline passes, and step the core unless another thread does."""
        core = self._core
        poller = _poller(core, self._wakeup)
        while core.ended is None:
            pause, steps = self._step()
            # Sleep even for a pause of 0, because compiled code lets other threads run only in system calls.
            poller.poll(LONGEST if pause is None else min(LONGEST, pause / MILLISECOND))
            while self._driver.driven or self._core.steps != steps:
                steps = core.steps
                if self._closing.wait(NAP):
                    return

    def _step(self) -> tuple[int | None, int]:
        with self._core.section:
            if not self._driver.driven:
                self._core.step()
            return self._core.pause(), self._core.steps

    def leave(self) -> None:
        """End the thread, and wait for its end unless it is the caller."""
        self._closing.set()
        self._wakeup.set()
        # An event callback may close the host on this thread.
        if threading.current_thread() is not self:
            self.join(_JOIN_TIMEOUT)
            self._wakeup.close()


class _PendingCondition(Pending[None]):
    """Waits until a function returns True; without one, until the timeout."""

    __slots__ = ("_over",)

    def __init__(self, over: Callable[[], bool] | None) -> None:
        self._over = over

    def ready(self) -> bool:
        """Call the function."""
        return self._over is not None and self._over()

    def result(self) -> None:
        """Return nothing: the condition itself was waited for."""


def _poller(core: Core, wakeup: Wakeup) -> select.poll:
    """Poll object for frames on any link, and for the wakeup."""
    poller = select.poll()
    for descriptor in (*core.descriptors(), wakeup.fileno()):
        poller.register(descriptor, select.POLLIN)
    return poller


class AsyncioDriver:
    """Runs a core on the event loop that is running when the driver is created."""

    def __init__(self, core: Core) -> None:
        # Imported here because blocking hosts must start fast, and importing asyncio would take a tenth of the startup
        # time.
        import asyncio

        self.core = core
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._descriptors = core.descriptors()
        for each in self._descriptors:
            self._loop.add_reader(each, core.step)
        core.after = self._schedule
        self._schedule()

    async def wait(self, pending: Pending[Result], timeout: float | None, endpoint: Any = None) -> Result:
        """Wait until ``pending`` is ready, at most ``timeout`` seconds (None: without limit), and return its result.

        Raises the errors of :meth:`BlockingDriver.wait`. Cancelling the task abandons ``pending``.
        """
        import asyncio

        core = self.core
        waiter: _TaskWaiter | None = None
        try:
            core.must_be_open()
            if core.check(pending):
                return pending.result()
            waiter = _TaskWaiter(pending, self._loop.create_future(), endpoint)
            core.waiters.append(waiter)
            with suppress(TimeoutError):
                await asyncio.wait_for(waiter.future, timeout)
            if not waiter.done and not waiter.check():
                core.must_be_open()
                raise pending.late(timeout or 0)
            if waiter.error is not None:
                raise waiter.error
            return pending.result()
        except BaseException:
            pending.abandon()
            if core.ended is None:
                # Another task may wait for the message of this receive.
                core.transmit()
            raise
        finally:
            if waiter is not None:
                core.waiters.remove(waiter)

    def inspect(self, read: Callable[[], Result]) -> Result:
        """Return ``read()``, called by the event loop; for any thread but that of the loop.

        Raises :class:`TimeoutError` if the loop is busy for a second.
        """
        found: Future[Result] = Future()

        def call() -> None:
            try:
                found.set_result(read())
            except Exception as error:
                found.set_exception(error)

        # The core of asyncio has no lock: only the thread of its loop may touch it.
        self._loop.call_soon_threadsafe(call)
        return found.result(_INSPECTION_TIMEOUT)

    def close(self) -> None:
        """Remove the readers and the timer from the event loop."""
        self.core.after = None
        if self._timer is not None:
            self._timer.cancel()
        for each in self._descriptors:
            self._loop.remove_reader(each)
        self._descriptors = []

    def _schedule(self) -> None:
        """Set the timer to the engine's next deadline."""
        pause = self.core.pause() if self.core.ended is None else None
        when = None if pause is None else self._loop.time() + pause / SECOND
        if self._timer is not None:
            if when is not None and not self._timer.cancelled() and self._timer.when() <= when:
                # Keep the earlier timer, and set it again when it expires: that is cheaper than a new timer per step.
                return
            self._timer.cancel()
        self._timer = None if when is None else self._loop.call_at(when, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self.core.step()
        # The step has set the timer already if anything changed.
        if self._timer is None:
            self._schedule()


class _TaskWaiter(Waiter):
    """A task that waits."""

    __slots__ = ("future",)

    def __init__(self, pending: Pending[Any], future: asyncio.Future[None], endpoint: Any) -> None:
        super().__init__(pending, endpoint)
        self.future = future

    def wake(self) -> None:
        """Complete the future."""
        if not self.future.done():
            self.future.set_result(None)
