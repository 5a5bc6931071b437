"""Readiness of an endpoint as a descriptor, for applications with a loop of their own."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING

from mxwire.link.timer import Timer
from mxwire.link.wakeup import Wakeup

if TYPE_CHECKING:
    from mxwire.host.core import Core
    from mxwire.protocol import EngineEndpoint


class Readiness:
    """Keeps a descriptor readable while an endpoint has completed requests or unexpected messages, or has ended.

    ``driven``: another thread or an event loop runs the host. Otherwise the descriptor is also readable when a step has
    something to do: a frame, or a timer.
    """

    def __init__(self, core: Core, engine: EngineEndpoint, driven: bool) -> None:
        self._core = core
        self._engine = engine
        self._wakeup = Wakeup()
        self._timer: Timer | None = None
        self._both: select.epoll | None = None
        if not driven:
            self._timer, self._both = Timer(), select.epoll()
            for each in (self._wakeup.fileno(), self._timer.fileno(), *core.descriptors()):
                self._both.register(each, select.EPOLLIN)
        core.readiness.append(self)
        self.update()

    def fileno(self) -> int:
        """The descriptor."""
        return self._wakeup.fileno() if self._both is None else self._both.fileno()

    def update(self) -> None:
        """Set or clear the descriptor; within the section, after each change."""
        engine, core = self._engine, self._core
        completed = 0 if engine.completions is None else len(engine.completions)
        if core.ended is not None or not engine.open or completed or engine.matching.unexpected:
            self._wakeup.set()
        else:
            self._wakeup.clear()
        if self._timer is not None:
            # This also requests wake-ups from other processes of this machine.
            pause = core.pause() if core.ended is None else None
            self._timer.set(None if pause is None else core.clock() + pause)

    def close(self) -> None:
        """Close the descriptor; within the section."""
        self._core.readiness.remove(self)
        if self._timer is not None and self._both is not None:
            self._both.close()
            self._timer.close()
        self._wakeup.close()
