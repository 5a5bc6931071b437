"""A host in virtual time: an engine that acts when frames arrive, when it is called, and at its deadlines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final

from mxwire.frames import FrameBatch
from mxwire.protocol import Event, Node
from mxwire.simulation.schedule import Schedule
from mxwire.units import MILLISECOND

_ROUNDS_MAXIMUM: Final = 1000
"""Maximum number of rounds at one moment of virtual time; a host still busy after them would never become idle."""

FramesCallback = Callable[[int, Sequence[bytes] | FrameBatch], None]
"""Called with the frames that a host transmits, and the number of their interface."""


class VirtualHost:
    """A node driven by a schedule; ``transmitted`` receives its frames, ``heard`` its events, those of one moment at
    once."""

    def __init__(
        self, schedule: Schedule, transmitted: FramesCallback, heard: Callable[[Sequence[Event]], None]
    ) -> None:
        self.schedule = schedule
        self.node: Node | None = None
        """None while the host is off."""
        self._transmitted = transmitted
        self._heard = heard
        self._armed: int | None = None
        self._stepping = False

    def take_records(self) -> bool:
        """Take the records of other processes of the host; return whether there were any."""
        return False

    def start(self, node: Node) -> None:
        """Switch on, with a new node."""
        self.node = node
        self._armed = None

    def stop(self) -> None:
        """Switch off: its node and all plans are lost."""
        self.node = None
        self._armed = None

    def deliver(self, interface: int, batches: list[FrameBatch | list[bytes]]) -> None:
        """Take frames from the network, as :func:`batches_of` returns them."""
        node = self.node
        if node is None:
            return
        now = self.schedule.now
        for batch in batches:
            if isinstance(batch, FrameBatch):
                node.receive(batch, now, interface)
            else:
                node.receive_few(batch, now, interface)
        self.step()

    def step(self) -> bool:
        """Transmit frames and dispatch events until nothing more happens at this moment; return False if there is no
        end to it."""
        node, now = self.node, self.schedule.now
        if node is None or self._stepping:
            return True
        self._stepping = True
        try:
            for _ in range(_ROUNDS_MAXIMUM):
                busy = self.take_records()
                due = node.deadline()
                overdue = due is not None and due <= now
                for interface in range(len(node.interfaces) if overdue else 0):
                    frames = node.transmit_few(now, interface)
                    if len(frames):
                        busy = True
                        self._transmitted(interface, frames)
                events = node.events()
                if events:
                    busy = True
                    self._heard(events)
                if not busy:
                    break
        finally:
            self._stepping = False
        self._arm(node.deadline() if overdue or busy else due)
        return not busy

    def _arm(self, deadline: int | None) -> None:
        """Schedule the next step for the deadline of the node."""
        if deadline is None:
            return
        now = self.schedule.now
        # An overdue action needs room in the event ring of a stalled application: retry every millisecond.
        time = deadline if deadline > now else now + MILLISECOND
        if self._armed is None or time < self._armed:
            self._armed = time
            self.schedule.at(time, self._wake, time)

    def _wake(self, time: int) -> None:
        if self._armed == time:
            self._armed = None
            self.step()


def batches_of(what: list[FrameBatch | bytes], now: int) -> list[FrameBatch | list[bytes]]:
    """Return batches in the given order; consecutive single frames become one batch, but one isolated frame remains a
    list, which is faster.
    """
    if len(what) == 1:
        # The usual case.
        return [[each] if isinstance(each, bytes) else each for each in what]
    batches: list[FrameBatch | list[bytes]] = []
    for single, group in groupby(what, lambda each: isinstance(each, bytes)):
        found: list[Any] = list(group)
        if single:
            batches.append(found if len(found) == 1 else batch_of(found, now))
        else:
            batches += found
    return batches


def batch_of(frames: Sequence[bytes] | FrameBatch, now: int) -> FrameBatch:
    """Return the frames as a batch; those of a list have the time ``now`` in ns."""
    return frames if isinstance(frames, FrameBatch) else FrameBatch.from_frames(frames, [now] * len(frames))
