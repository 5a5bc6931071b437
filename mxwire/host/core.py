"""Core: links, the engine and the clock, turned by hand; it knows neither threads nor event loops.

Everything here is called within ``section``, by whoever has something to do.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.host.errors import HostClosedError
from mxwire.host.interrupts import Section
from mxwire.host.pending import Pending, Waiter
from mxwire.link import FewLink, Link
from mxwire.link.errors import LinkError
from mxwire.protocol import Event, Node, Status
from mxwire.units import MILLISECOND

NOTICES_KEPT: Final = 256
_ROUNDS: Final = 4
"""How often waiters may answer what they see with new calls before frames are looked at again."""
_log = logging.getLogger(__name__)


class Core:
    """A node and its links; ``clock`` gives nanoseconds that never run backwards."""

    def __init__(
        self,
        links: Sequence[Link],
        node: Node,
        *,
        clock: Callable[[], int] = time.monotonic_ns,
        on_event: Callable[[Event], object] | None = None,
    ) -> None:
        self.links = tuple(links)
        self.node = node
        node.tells_completed = False
        self.clock = clock
        self.on_event = on_event
        self.section = Section()
        self.waiters: list[Waiter] = []
        """Who waits; looked through whenever something has happened."""
        self.ended: MxwireError | None = None
        """Why nothing works any more, if so."""
        self.notices: deque[Event] = deque(maxlen=NOTICES_KEPT)
        """What has happened besides requests that completed, the newest last."""
        self.after: Callable[[], None] | None = None
        """Called after each time that something may have changed."""
        self.watchers: list[Callable[[FrameBatch, bool], None]] = []
        """Shown all frames that arrive, and (True) all that leave, just before they do; must not keep a batch."""
        self.now = clock()
        """The time of the last step."""
        self.active = self.now
        """When something happened last."""
        self.steps = 0
        """How often somebody looked for frames."""
        self._numbered = tuple(
            (number, each, each if isinstance(each, FewLink) else None) for number, each in enumerate(self.links)
        )
        self._due: int | None = None
        self._due_known = False
        self._looked = self.now
        """When it was last looked whether something is due."""

    # What the faces turn.

    def step(self, looks: int = 1) -> None:
        """Take the frames that have arrived, and let leave what is to leave now; never waits.

        Where nothing has arrived it looks again, ``looks`` times in all.
        """
        if self.ended is not None:
            return
        self.steps += 1
        try:
            for _ in range(looks):
                self.now = now = self.clock()
                if self._hear(now):
                    self.active = now
                    self._answer(now)
                    return
                if self._overdue(now):
                    self.active = now
                    self._transmit(now, True)
                    return
        except LinkError as error:
            self.end(HostClosedError(Status.NO_DEVICE, str(error)))
        except Exception as error:
            self._broken(error)

    def flush(self) -> None:
        """Let leave what an application's call has made ready."""
        self.now = now = self.clock()
        try:
            self._transmit(now, False)
        except LinkError as error:
            self.end(HostClosedError(Status.NO_DEVICE, str(error)))
        except Exception as error:
            self._broken(error)

    def send(self, batch: FrameBatch, interface: int = 0) -> None:
        """Send frames that are not the engine's, after what it has made ready."""
        self.flush()
        if self.ended is None:
            self._send(self.links[interface], batch)

    def ready(self, pending: Pending[Any]) -> bool:
        """Check whether a wait is over, and transmit what the check has queued."""
        done = pending.ready()
        if not done and self.node.eager():
            self.flush()
            done = pending.ready()
        return done

    def pause(self) -> int | None:
        """How many ns nothing needs to be done unless a frame comes; None: no end."""
        if not self._due_known:
            self._due, self._due_known = self.node.deadline(), True
        return None if self._due is None else max(0, self._due - self.clock())

    def end(self, why: MxwireError) -> None:
        """Nothing works any more: everybody who waits is told."""
        if self.ended is None:
            self.ended = why
            for each in self.waiters:
                each.wake()
            if self.after is not None:
                self.after()

    def must_be_open(self) -> None:
        """Raises :class:`~mxwire.host.errors.HostClosedError` where nothing works any more."""
        if self.ended is not None:
            status = self.ended.status if isinstance(self.ended, HostClosedError) else Status.BAD_ERROR
            raise HostClosedError(status, str(self.ended)) from self.ended

    # Inside.

    def _hear(self, now: int) -> bool:
        """Take the frames that have arrived; whether there were any."""
        heard = False
        for number, link, few in self._numbered:
            found = link.receive(0.0) if few is None or self.watchers else few.receive_few()
            if not found:
                continue
            heard, self._due_known = True, False
            if isinstance(found, FrameBatch):
                for watch in tuple(self.watchers):
                    watch(found, False)
                self.node.receive(found, now, number)
            else:
                self.node.receive_few(found, now, number)
        return heard

    def _answer(self, now: int) -> None:
        """Let leave what frames have made ready. What is due by the clock is looked for when none has come, and
        otherwise now and then: to look for it takes a while, and an application waits."""
        if now - self._looked >= MILLISECOND and self._overdue(now):
            self._transmit(now, True)
        elif self.node.eager():
            self._transmit(now, False)
        else:
            self._settle(now)

    def _overdue(self, now: int) -> bool:
        self._looked = now
        if not self._due_known:
            self._due, self._due_known = self.node.deadline(), True
        return self._due is not None and self._due <= now

    def _transmit(self, now: int, timely: bool) -> None:
        """Let leave what is ready and, if that is wanted, what is due by the clock."""
        for _ in range(_ROUNDS):
            for number, link, few in self._numbered:
                if few is None or self.watchers:
                    self._send(link, self.node.transmit(now, number))
                elif frames := self.node.transmit_few(now, number, timely):
                    if isinstance(frames, FrameBatch):
                        link.send(frames)
                    else:
                        few.send_few(frames)
            self._due_known = False
            self._tell()
            if not self.node.eager():
                break
        if self.after is not None:
            self.after()

    def _settle(self, now: int) -> None:
        """Tell what frames have changed that want no answer yet."""
        self._tell()
        if self.node.eager():
            self._transmit(now, False)
        elif self.after is not None:
            self.after()

    def _send(self, link: Link, batch: FrameBatch) -> None:
        if len(batch):
            for watch in tuple(self.watchers):
                watch(batch, True)
            link.send(batch)

    def _tell(self) -> None:
        for event in self.node.events():
            self._notice(event)
        for waiter in self.waiters:
            if not waiter.done and waiter.look():
                waiter.wake()

    def _notice(self, event: Event) -> None:
        self.notices.append(event)
        if self.on_event is not None:
            try:
                self.on_event(event)
            except Exception:
                _log.exception("the function that is told of events has failed")

    def _broken(self, error: Exception) -> None:
        _log.error("the engine has failed", exc_info=error)
        why = HostClosedError(Status.BAD_ERROR, f"the engine has failed, which is a defect of mxwire: {error!r}")
        why.__cause__ = error
        self.end(why)
