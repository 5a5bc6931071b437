"""The card's side of an endpoint: its session, its ring, its regions and its pulls; it works without the library."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from mxwire.protocol.buffers import Segments
from mxwire.protocol.card.pull import OUT_OF_ORDER_SHARE, Pull, PullEvent, Source, is_lenient
from mxwire.protocol.card.regions import Regions
from mxwire.protocol.corridor import PullEnded, Ring
from mxwire.protocol.profile import Defect
from mxwire.protocol.status import Status

if TYPE_CHECKING:
    from mxwire.protocol.card.interface import Interface

GENERATION_FIRST: Final = 0x23
"""Generation of each handle slot when an endpoint is opened (R-PUL-03)."""
GENERATION_MASK: Final = (1 << 22) - 1
SLOT_SHIFT: Final = 22


class HandleSlots:
    """The slots that pull handles are made of: used first-in first-out, each with a generation (R-PUL-03)."""

    def __init__(self, maximum: int) -> None:
        self._free = deque(range(maximum))
        self._generations: dict[int, int] = {}

    @property
    def available(self) -> bool:
        """Whether another pull may start."""
        return bool(self._free)

    def take(self) -> int:
        """The handle of the next free slot."""
        slot = self._free.popleft()
        return (slot << SLOT_SHIFT) | self._generations.get(slot, GENERATION_FIRST)

    def give_back(self, handle: int) -> None:
        """Free the slot of a handle; the handle will not come again for 2^22 uses of the slot."""
        slot = handle >> SLOT_SHIFT
        self._generations[slot] = (handle + 1) & GENERATION_MASK
        self._free.append(slot)


class CardEndpoint:
    """What the card knows of one open endpoint."""

    def __init__(self, interface: Interface, number: int, session: int, slots: HandleSlots) -> None:
        self.interface = interface
        self.number = number
        self.session = session
        self.profile = interface.profile
        self.dialect = interface.dialect
        self.lenient = is_lenient(interface.profile.defects)
        self._disorderly = interface.profile.has(Defect.FIRST_PULLS_OUT_OF_ORDER)
        self.ring = Ring(interface.profile.ring_size, interface.profile.ring_batch)
        self.regions = Regions(interface.profile.region_maximum, interface.profile.region_first_use)
        self.slots = slots
        self.pulls: dict[int, Pull] = {}
        """The live pulls by handle."""

    def start_pull(self, source: Source, memory: Segments, total: int, context: Any, now: int) -> Pull:
        """Begin to fetch ``total`` bytes into ``memory``; the ring will tell when it has ended."""
        pull = Pull(self, self.slots.take(), source, memory, total, context)
        self.pulls[pull.handle] = pull
        pull.fire(PullEvent.START, now)
        self.interface.timers.watch(pull)
        return pull

    def late_pulls(self) -> bool:
        """Whether the first PULLs of the next transfer leave out of order, as some do on a busy host (R-MEA-15)."""
        return self._disorderly and self.interface.rng.random() < OUT_OF_ORDER_SHARE

    def pull_ended(self, pull: Pull, status: Status, transferred: int) -> None:
        """A pull has ended: its handle is dead, and the library is told."""
        self.pull_vanished(pull)
        self.ring.ended.append(PullEnded(pull.context, status, transferred))

    def pull_vanished(self, pull: Pull) -> None:
        """Forget a pull."""
        self.pulls.pop(pull.handle, None)
        self.interface.timers.forget(pull)
        self.slots.give_back(pull.handle)

    def close(self) -> None:
        """From now on nothing gets in; pulls that run go on as orphans (R-CLS-08, R-MEA-21)."""
        self.ring = Ring(0)
        for pull in list(self.pulls.values()):
            pull.fire(PullEvent.CLOSED)
        self.pulls.clear()


def slots_for(
    profile_defects: frozenset[Defect], kept: dict[int, HandleSlots], number: int, maximum: int
) -> HandleSlots:
    """The handle slots of an endpoint that is being opened: fresh ones with D-13, otherwise those of its number."""
    if Defect.HANDLES_REUSED in profile_defects:
        return HandleSlots(maximum)
    return kept.setdefault(number, HandleSlots(maximum))
