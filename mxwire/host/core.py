"""Core: the links, the engine and the clock of a host, run by a driver; it is independent of threads and event loops.

Theory of operation
-------------------
A *step* receives the waiting frames of all links, hands them to the engine, transmits the answers, and notifies the
waiters whose condition is met. A call of an application hands its request to the engine, and *transmits* the frames
that the engine has queued. Both are methods of ``Core``, and both run within its ``section``, a lock of the host.

**Interrupts.** The section also defers Ctrl-C while the engine works, so that it never interrupts a half-done change.
Waits are interrupted at once, since a sleeping thread is outside of the section. Python runs signal handlers on the
main thread only.

**Unexpected handlers** are called between two passes of the engine, and without the lock: a program may take its own
lock both in its handler and around its calls, so two threads could otherwise block each other. While a handler runs,
its endpoint makes no progress, so that its messages stay in order. Other threads may make all calls and step, and the
other endpoints continue. Calls that close or suspend the endpoint wait for the end of the handler.

A **consumer**, which only libmyriexpress.so has, is called with whole messages before the handler, in the middle of a
pass. This saves the cost of a handler: leaving the section and the pass, and settling the message afterwards. In
return, it may neither wait for a lock nor call the host.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.host.collection import HostExemption
from mxwire.host.errors import HostClosedError
from mxwire.host.readiness import Readiness
from mxwire.host.requests import HostRequest, Pending, Waiter
from mxwire.host.section import ExclusiveSection
from mxwire.link import FewLink, Link, RoomLink
from mxwire.link.errors import LinkError
from mxwire.link.local import SharedMemoryChannel, SharedMemoryPath
from mxwire.protocol import EngineEndpoint, Event, Node, Status
from mxwire.protocol.agent.records import AgentEndedError
from mxwire.protocol.card.outgoing import FEW, Outgoing
from mxwire.units import MILLISECOND

_ROUNDS: Final = 4
"""Rounds of transmitting and notifying before the links are polled again.

A notified waiter may call the engine again, for example to answer. Two rounds serve one such call; the bound keeps a
service that always has frames to transmit from starving the receive side.
"""
_LOCAL_STEPS: Final = 4
"""Number of steps of a host that spins, of which one polls the links while records of neighbours keep arriving."""
_HEAP: Final = 4 << 20
"""Bytes of frames and copies of messages of a window, the largest block that a host keeps from being returned to the
kernel."""
_log = logging.getLogger(__name__)


def _keep_heap() -> None:
    """Let the C library keep memory that is freed, up to twice ``_HEAP``.

    glibc otherwise returns the end of the heap to the kernel as soon as 128 KiB there are free, so that a window of
    messages causes a page fault per page. Its limit follows the largest block that was mapped on its own and freed: one
    is enough, whose memory is not used.
    """
    bytes(_HEAP)


class _NumberedLink:
    """A link with its number. It holds the bound methods that each message needs, because looking them up takes
    longer."""

    __slots__ = ("link", "number", "outgoing", "receive_few", "send_few")

    def __init__(self, number: int, link: Link, outgoing: Outgoing) -> None:
        self.number = number
        self.link = link
        self.outgoing = outgoing
        """The frames that wait for it."""
        self.receive_few: Callable[[], list[bytes] | FrameBatch] | None = None
        self.send_few: Callable[[list[bytes]], int] | None = None
        if isinstance(link, FewLink):
            self.receive_few, self.send_few = link.receive_few, link.send_few


class Core:
    """A node and its links. ``clock`` returns nanoseconds and never goes backwards."""

    def __init__(
        self,
        links: Sequence[Link],
        node: Node,
        exemption: HostExemption,
        *,
        clock: Callable[[], int] = time.monotonic_ns,
        on_event: Callable[[Event], object] | None = None,
        local: SharedMemoryPath | None = None,
    ) -> None:
        _keep_heap()
        self._exemption = exemption
        self.links = tuple(links)
        self.local = local
        """Channels to other processes of this machine on the same interfaces."""
        self.node = node
        self.clock = clock
        self.on_event = on_event
        self.section = ExclusiveSection()
        node.handler_calls.deferred = True
        self.waiters: list[Waiter] = []
        """Pending waits, checked after each step that may have changed something."""
        self.readiness: list[Readiness] = []
        """Descriptors of endpoints, updated after each step that may have changed something."""
        self.ended: MxwireError | None = None
        """The reason why the host has stopped; None while it runs."""
        self.before_handler: Callable[[], None] | None = None
        """Called before each call of an unexpected handler, within the section."""
        self.after: Callable[[], None] | None = None
        """Called after each step that may have changed something."""
        self.observers: list[Callable[[FrameBatch, bool], None]] = []
        """Called with each batch received, and (with True) each batch about to be sent; must not keep a batch."""
        self.samplers: list[Callable[[FrameBatch | list[bytes], bool], None]] = []
        """Like ``observers``, but for single frames called with a list, so that the host need not make a batch of
        them."""
        self.now = clock()
        """Time of the last step."""
        self.active = self.now
        """Time of the last step that received frames or had work to do."""
        self.steps = 0
        """Number of steps so far."""
        self._numbered: list[_NumberedLink] = []
        for number, each in enumerate(self.links):
            outgoing = node.interfaces[number].outgoing
            outgoing.gathers = getattr(each, "gathers", False)
            if isinstance(each, RoomLink):
                outgoing.room = each.room
            self._numbered.append(_NumberedLink(number, each, outgoing))
        self._due: int | None = None
        self._due_known = False
        self._deadline_checked = self.now

    # Called by drivers.

    def step(self, looks: int = 1) -> None:
        """Receive waiting frames and transmit frames that are due; never block.

        Without frames or expired timers the links are polled up to ``looks`` times.
        """
        # A handler that calls the host must not start another pass within its own.
        if self.ended is not None or (self.section.handlers and self.section.in_handler):
            return
        self.steps += 1
        local = self.local
        try:
            for left in range(looks, 0, -1):
                self.now = now = self.clock()
                received = False
                if local is not None:
                    channels = local.poll(now)
                    if channels:
                        self._due_known = False
                        self.node.receive_local(channels, now)
                        received = self._has_news(channels) or self.node.eager()
                # A host that spins answers a neighbour first: a poll of a link takes a third as long as the record.
                if not received or looks == 1 or self.steps % _LOCAL_STEPS == 0:
                    for each in self._numbered:
                        receive_few = each.receive_few
                        found = each.link.receive(0.0) if receive_few is None or self.observers else receive_few()
                        if not found:
                            continue
                        received, self._due_known = True, False
                        if self.observers or self.samplers:
                            self._show(found, False)
                        if isinstance(found, list):
                            self.node.receive_few(found, now, each.number)
                        else:
                            self.node.receive(found, now, each.number)
                # Computing a deadline takes as long as several polls, so it may wait for the last one.
                if received or ((left == 1 or self._due_known) and self._overdue()):
                    self.active = now
                    self._respond(received)
                    return
        except Exception as error:
            self._fail(error)

    def transmit(self, timely: bool = False) -> None:
        """Transmit queued frames and notify waiters until nothing is queued; if ``timely``, also run expired timers."""
        try:
            while True:
                self.now = now = self.clock()
                for _ in range(_ROUNDS):
                    for each in self._numbered:
                        send_few = each.send_few
                        # Observers receive batches, so single frames cannot be transmitted without one.
                        limit = 0 if send_few is None or self.observers else FEW
                        while True:
                            frames = self.node.transmit_few(now, each.number, timely, limit)
                            if not isinstance(frames, list):
                                self._show_and_send(each.link, frames)
                            elif frames and send_few is not None:
                                if self.samplers:
                                    # Not by a loop: compiled code refuses a gathered frame as an item.
                                    self._show(list(map(bytes, frames)), True)
                                send_few(frames)
                            if not (frames and each.outgoing.frames):
                                break
                    self._due_known = False
                    self._notify()
                    if not self.node.eager():
                        break
                else:
                    # The next poll does the rest.
                    self._due, self._due_known = 0, True
                if not self.node.offering or self.section.in_handler:
                    break
                self._call_handler(next(iter(self.node.offering)))
                timely = False
            if self.after is not None:
                self.after()
        except Exception as error:
            self._fail(error)

    def _call_handler(self, endpoint: EngineEndpoint) -> None:
        """Call the unexpected handler of an endpoint for its next message."""
        message = endpoint.next_offer()
        handler = endpoint.matching.handler
        if message is None or handler is None:
            return
        if endpoint.answers_later:
            handler(message)
            return
        if self.before_handler is not None:
            self.before_handler()
        consumed = False
        try:
            consumed = self.section.run_handler(endpoint, handler, message)
        finally:
            endpoint.resolve(message, consumed)
            self._due_known = False

    def inject(self, batch: FrameBatch, interface: int = 0) -> None:
        """Send frames that are not the engine's, after those that it has queued."""
        self.transmit()
        if self.ended is None:
            self._show_and_send(self.links[interface], batch)

    def check(self, pending: Pending[Any]) -> bool:
        """Return whether a wait is over, after transmitting any frames that the check has queued."""
        done = pending.ready()
        # The check of a request queues nothing.
        if not done and not isinstance(pending, HostRequest) and self.node.eager():
            self.transmit()
            done = pending.ready()
        return done

    def pause(self) -> int | None:
        """Nanoseconds until the engine is due if no frame arrives; None: no timer is set.

        The caller is about to sleep until then, so this requests wake-ups from other processes.
        """
        if self.local is not None and (channels := self.local.arm()) and self._has_news(channels):
            return 0
        if not self._due_known:
            self._due, self._due_known = self.node.deadline(), True
        return None if self._due is None else max(0, self._due - self.clock())

    def check_deadline(self) -> None:
        """Read the engine's deadline again at the next step, since a call may have changed it."""
        self._due_known = False

    def _has_news(self, channels: Sequence[SharedMemoryChannel]) -> bool:
        """Return False if the channels contain only records that their endpoints cannot take now."""
        neighbourhood = self.node.neighbourhood
        return not neighbourhood.refusals or not all(neighbourhood.stuck(each) for each in channels)

    def end(self, why: MxwireError) -> None:
        """Stop the host, and wake all waiters."""
        if self.ended is None:
            self.ended = why
            self._exemption.end()
            for each in self.waiters:
                each.wake()
            self.update_readiness()
            if self.after is not None:
                self.after()

    def descriptors(self) -> list[int]:
        """Descriptors that are readable when a step has something to do."""
        descriptors = [each.fileno() for each in self.links]
        return descriptors if self.local is None else [*descriptors, self.local.fileno()]

    def must_be_open(self) -> None:
        """Raise :class:`~mxwire.host.errors.HostClosedError` if the host has stopped."""
        if self.ended is not None:
            status = self.ended.status if isinstance(self.ended, HostClosedError) else Status.BAD_ERROR
            raise HostClosedError(status, str(self.ended)) from self.ended

    def update_readiness(self) -> None:
        """Update the descriptors of endpoints; within the section."""
        for each in self.readiness:
            each.update()

    # Internal.

    def _respond(self, received: bool) -> None:
        """Transmit what received frames or expired timers have queued, and notify waiters."""
        # Timers are checked when no frame arrives. Under load, once per millisecond is enough: a check takes several
        # microseconds, which delay a waiting application.
        if not received or (self.now - self._deadline_checked >= MILLISECOND and self._overdue()):
            self.transmit(timely=True)
            return
        node = self.node
        # Most messages for a handler leave nothing to transmit, for which each look costs as much as the handler.
        while node.offering and not node.busy() and not self.section.in_handler:
            self._call_handler(next(iter(node.offering)))
        if node.eager():
            self.transmit()
        else:
            # Only a waiter or a callback can create new work, by calling the engine.
            if self._notify() and node.eager():
                self.transmit()
            elif self.after is not None:
                self.after()

    def _overdue(self) -> bool:
        self._deadline_checked = self.now
        if not self._due_known:
            self._due, self._due_known = self.node.deadline(), True
        return self._due is not None and self._due <= self.now

    def _show(self, frames: FrameBatch | list[bytes], sent: bool) -> None:
        # Copies, because an observer may close itself.
        if isinstance(frames, FrameBatch):
            for observe in tuple(self.observers):
                observe(frames, sent)
        for sample in tuple(self.samplers):
            sample(frames, sent)

    def _show_and_send(self, link: Link, batch: FrameBatch) -> None:
        if len(batch):
            self._show(batch, True)
            link.send(batch)

    def _notify(self) -> bool:
        """Report events and check the waiters; return False if there are neither."""
        reported = len(self.node.reported) > 0
        if reported:
            events = self.node.events()
            if self.on_event is not None:
                for event in events:
                    try:
                        self.on_event(event)
                    except Exception:
                        _log.exception("on_event has failed")
        for waiter in self.waiters:
            if not waiter.done and waiter.check():
                waiter.wake()
        self.update_readiness()
        return reported or bool(self.waiters)

    def _fail(self, error: Exception) -> None:
        if isinstance(error, HostClosedError):
            self.end(error)
            return
        if isinstance(error, LinkError):
            self.end(HostClosedError(Status.NO_DEVICE, str(error)))
            return
        if isinstance(error, AgentEndedError):
            self.end(HostClosedError(Status.REMOTE_ENDPOINT_CLOSED, str(error)))
            return
        _log.error("the engine has failed", exc_info=error)
        why = HostClosedError(Status.BAD_ERROR, f"the engine has failed, which is a defect of mxwire: {error!r}")
        why.__cause__ = error
        self.end(why)


class FrameObserver:
    """Calls ``observe`` with all frames that a host receives or (``sent``) is about to send, until it is closed.

    ``observe`` must not keep the batch. With ``single`` it is one of the ``samplers`` of the core.
    """

    def __init__(self, core: Core, observe: Callable[[Any, bool], None], *, single: bool = False) -> None:
        self._core = core
        self._observe = observe
        self._among: list[Any] = core.samplers if single else core.observers
        with core.section:
            self._among.append(observe)

    def close(self) -> None:
        """Stop observing; closing again does nothing."""
        with self._core.section:
            if self._observe in self._among:
                self._among.remove(self._observe)
