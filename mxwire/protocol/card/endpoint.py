"""The card's side of an endpoint: session, ring, regions and pulls. It works without the library."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any, Final

from mxwire.protocol.arguments import Segments
from mxwire.protocol.card.outgoing import Port
from mxwire.protocol.card.pull import OUT_OF_ORDER_SHARE, PullEvent, PullSource, PullTimers, PullTransfer
from mxwire.protocol.card.replies import RegionTable
from mxwire.protocol.corridor import LocalMessage, PullEnded, Ring
from mxwire.protocol.profile import Defect
from mxwire.protocol.state_machine import Queue
from mxwire.protocol.status import Status

GENERATION_FIRST: Final = 0x23
"""Generation of each handle slot when an endpoint is opened (R-PUL-03)."""
GENERATION_MASK: Final = (1 << 22) - 1
SLOT_SHIFT: Final = 22


class HandleSlots:
    """The slots of pull handles, used first-in first-out, each with a generation (R-PUL-03)."""

    def __init__(self, maximum: int) -> None:
        self._free = deque(range(maximum))
        self._generations: dict[int, int] = {}

    @property
    def available(self) -> bool:
        """True if a slot is free, so that another pull may start."""
        return bool(self._free)

    def take(self) -> int:
        """Take the next free slot, and return its handle."""
        slot = self._free.popleft()
        return (slot << SLOT_SHIFT) | self._generations.get(slot, GENERATION_FIRST)

    def give_back(self, handle: int) -> None:
        """Free the slot of a handle; the handle recurs only after 2^22 uses of the slot."""
        slot = handle >> SLOT_SHIFT
        self._generations[slot] = (handle + 1) & GENERATION_MASK
        self._free.append(slot)


class CardEndpoint:
    """The card's state of one open endpoint.

    ``timers`` and ``ready`` belong to its interface: the timers of all pulls there, and the endpoints with new events.
    """

    def __init__(
        self,
        port: Port,
        number: int,
        session: int,
        slots: HandleSlots,
        timers: PullTimers,
        ready: Queue[CardEndpoint],
        rng: Random,
    ) -> None:
        self.port = port
        self.number = number
        self.session = session
        self.profile = port.profile
        self.dialect = port.dialect
        self.lenient = port.profile.has(Defect.REPLY_LENGTH_UNCHECKED)
        """True if a reply of an unexpected length counts as complete (D-10)."""
        self._disorderly = port.profile.has(Defect.FIRST_PULLS_OUT_OF_ORDER)
        self.timers = timers
        """The timers of all pulls of the interface, orphans included."""
        self._ready = ready
        self.ready = False
        """True if the interface lists this endpoint as having new events."""
        self._rng = rng
        self.ring = Ring(port.profile.ring_size, port.profile.ring_batch)
        self.regions = RegionTable(port.profile.region_maximum, port.profile.region_first_use)
        self.slots = slots
        self.pull_limit = port.profile.pull_limit
        """Time in ns after which pulls that start now fail without a useful frame (R-PUL-09)."""
        self.pulls: dict[int, PullTransfer] = {}
        """The live pulls by handle."""

    def start_pull(self, source: PullSource, memory: Segments, total: int, context: Any, now: int) -> PullTransfer:
        """Start a pull of ``total`` bytes into ``memory``; its end puts an event with ``context`` into the ring."""
        pull = PullTransfer(self, self.slots.take(), source, memory, total, context)
        self.pulls[pull.handle] = pull
        pull.fire(PullEvent.START, now)
        # After START, which sets the deadline that the timer reads.
        self.timers.watch(pull)
        return pull

    def late_pulls(self) -> bool:
        """True if the first PULLs of a transfer are transmitted out of order, as some are on a busy host (R-MEA-15)."""
        return self._disorderly and self._rng.random() < OUT_OF_ORDER_SHARE

    def pull_ended(self, pull: PullTransfer, status: Status, transferred: int) -> None:
        """End a pull: invalidate its handle, and put an event into the ring."""
        self.pull_vanished(pull)
        self.ring.ended.append(PullEnded(pull.context, status, transferred))

    def pull_vanished(self, pull: PullTransfer) -> None:
        """Forget a pull, and free its handle."""
        self.pulls.pop(pull.handle, None)
        self.timers.forget(pull)
        self.slots.give_back(pull.handle)

    def offer(self, message: LocalMessage) -> bool:
        """Put a message from the same host into the ring; return False if there is no room."""
        if not self.ring.push(message):
            return False
        self.announce()
        return True

    def announce(self) -> None:
        """Note that the ring has new events."""
        if not self.ready:
            self.ready = True
            self._ready.append(self)

    def close(self) -> None:
        """Accept no more events; running pulls continue as orphans (R-CLS-08, R-MEA-21)."""
        self.ring = Ring(0)
        for pull in list(self.pulls.values()):
            pull.fire(PullEvent.CLOSED)
        self.pulls.clear()
