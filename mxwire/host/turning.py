"""Turning: who turns the core in the asyncio face: the event loop, when frames come or something is due."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from mxwire.host.core import Core
from mxwire.host.pending import Pending, Waiter
from mxwire.units import SECOND

Result = TypeVar("Result")


class Turning:
    """Turns a core from the event loop that runs when it is made."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._descriptors = [each.fileno() for each in core.links]
        for each in self._descriptors:
            self._loop.add_reader(each, self._turn)
        core.after = self._schedule
        self._schedule()

    async def wait(self, pending: Pending[Result], timeout: float | None) -> Result:
        """Wait until ``pending`` is ready, at most ``timeout`` seconds (None: for ever), and let other tasks run.

        Raises as the wait of the blocking face does; a task that is cancelled gives up what it has waited for.
        """
        core = self.core
        core.must_be_open()
        if core.ready(pending):
            return pending.result()
        waiter = _Sleeper(pending, self._loop.create_future())
        core.waiters.append(waiter)
        try:
            await asyncio.wait_for(waiter.future, timeout)
        except TimeoutError:
            pass
        finally:
            core.waiters.remove(waiter)
            if not (waiter.done or waiter.look()):
                pending.abandon()
        if waiter.error is not None:
            raise waiter.error
        if not waiter.done:
            core.must_be_open()
            raise pending.late(timeout or 0)
        return pending.result()

    def close(self) -> None:
        """Leave the event loop alone."""
        self.core.after = None
        if self._timer is not None:
            self._timer.cancel()
        for each in self._descriptors:
            self._loop.remove_reader(each)
        self._descriptors = []

    def _turn(self) -> None:
        self.core.step()

    def _schedule(self) -> None:
        """Set the timer to when something is due, if nothing changes before."""
        pause = self.core.pause() if self.core.ended is None else None
        when = None if pause is None else self._loop.time() + pause / SECOND
        if self._timer is not None:
            if when is not None and not self._timer.cancelled() and self._timer.when() <= when:
                # It rings too early, and is set anew then.
                return
            self._timer.cancel()
        self._timer = None if when is None else self._loop.call_at(when, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self.core.step()
        if self._timer is None:
            self._schedule()


class _Sleeper(Waiter):
    """A task that waits."""

    __slots__ = ("future",)

    def __init__(self, pending: Pending[Any], future: asyncio.Future[None]) -> None:
        super().__init__(pending)
        self.future = future

    def wake(self) -> None:
        """There is something to look at."""
        if not self.future.done():
            self.future.set_result(None)
