"""Discovery as the daemon omxoed does it: RAW frames to the broadcast address (behaviour, section 2)."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from mxwire.protocol.card.interface import Interface
from mxwire.protocol.counters import Counter
from mxwire.protocol.introduction import announcement
from mxwire.protocol.machine import Machine, Row, Table
from mxwire.protocol.peers import PeerTable
from mxwire.protocol.profile import Defect, Profile
from mxwire.wire.formats import RAW, RAW_OMXOED
from mxwire.wire.layout import layout_of
from mxwire.wire.packets import Announcement, Raw

_NIC_ID: Final = layout_of(RAW_OMXOED).by_name["nic_id_hi"].offset - layout_of(RAW).header_end
"""Where the NIC id of an announcement is in the content of a RAW frame."""
_ANNOUNCED: Final = struct.Struct(">QI")
"""NIC id and serial of an announcement."""


class RawQueue:
    """The RAW frames that wait for the discovery program (R-DISC-06)."""

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self._frames: deque[Raw | Announcement] = deque()

    def __bool__(self) -> bool:
        """Whether any waits."""
        return bool(self._frames)

    @property
    def full(self) -> bool:
        """Whether another frame would be dropped."""
        return len(self._frames) >= self.maximum

    def put(self, frame: Raw | Announcement) -> bool:
        """Queue a frame; False where the queue is full."""
        if self.full:
            return False
        self._frames.append(frame)
        return True

    def take(self) -> list[Raw | Announcement]:
        """All frames that wait."""
        frames = list(self._frames)
        self._frames.clear()
        return frames


class AnnouncingState(StrEnum):
    """What a discovery program is doing."""

    SILENT = "silent"
    SERIES = "in a series"
    PAUSE = "between series"


class AnnouncingEvent(StrEnum):
    """What can happen to it."""

    START = "started"
    DUE = "announcement due"
    LAST = "last of a series due"
    NEWS = "new peer or new serial"


ANNOUNCING: Final = Table(
    "announcements",
    AnnouncingState.SILENT,
    (
        Row(AnnouncingState.SILENT, AnnouncingEvent.START, AnnouncingState.SERIES, "_begin", ("R-DISC-02",)),
        Row(AnnouncingState.SERIES, AnnouncingEvent.DUE, AnnouncingState.SERIES, "_announce", ("R-DISC-02",)),
        Row(AnnouncingState.SERIES, AnnouncingEvent.LAST, AnnouncingState.PAUSE, "_announce", ("R-DISC-02",)),
        Row(AnnouncingState.SERIES, AnnouncingEvent.NEWS, AnnouncingState.SERIES, "_again", ("R-DISC-03", "R-DISC-04")),
        Row(AnnouncingState.PAUSE, AnnouncingEvent.DUE, AnnouncingState.PAUSE, "_announce", ("R-DISC-02",)),
        Row(AnnouncingState.PAUSE, AnnouncingEvent.NEWS, AnnouncingState.SERIES, "_again", ("R-DISC-03", "R-DISC-04")),
    ),
)


class Discovery(Machine):
    """The discovery program of one interface: announces it, and enters who announces himself (R-DISC-07)."""

    __slots__ = ("_add", "_left", "_own", "_serials", "_speaks", "deadline", "interface", "peers", "profile", "serial")

    table = ANNOUNCING

    def __init__(
        self,
        interface: Interface,
        peers: PeerTable,
        profile: Profile,
        serial: int,
        add: Callable[[bytes], None],
        speaks: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__()
        self._speaks = speaks
        self.interface = interface
        self.peers = peers
        self.profile = profile
        self.serial = serial
        """Pseudo-random number of this start of the program (wire format, section 6.1)."""
        self.deadline: int | None = 0
        """When the next announcement is due, in ns."""
        self._own = int.from_bytes(interface.address, "big")
        self._serials: dict[int, int] = {}
        self._left = 0
        self._add = add

    def tick(self, now: int) -> None:
        """Announce what is due."""
        if self.state is AnnouncingState.SILENT:
            self.fire(AnnouncingEvent.START, now)
        while self.deadline is not None and self.deadline <= now:
            last = self.state == AnnouncingState.SERIES and self._left == 1
            self.fire(AnnouncingEvent.LAST if last else AnnouncingEvent.DUE, now)

    def hear(self, frame: Raw | Announcement, now: int) -> None:
        """Look at a RAW frame; only id and serial count, not the source address (R-DISC-05)."""
        if isinstance(frame, Announcement):
            nic, serial = (frame.nic_id_hi << 32) | frame.nic_id_lo, frame.serial
        elif self.profile.has(Defect.ANY_RAW_ANNOUNCES):
            nic, serial = _read_anyhow(frame.opaque)
        else:
            return
        if nic == self._own or nic >> 48 or self._serials.get(nic) == serial:
            return
        if nic not in self._serials and len(self._serials) >= self.peers.maximum:
            return
        self._serials[nic] = serial
        self._add(nic.to_bytes(6, "big"))
        if self.can(AnnouncingEvent.NEWS):
            self.fire(AnnouncingEvent.NEWS, now)

    def _begin(self, now: int) -> None:
        self._left = self.profile.announcement_count
        self.deadline = now

    def _again(self, now: int) -> None:
        """A new series, its first frame after at most an interval."""
        self._left = self.profile.announcement_count
        due = now + self.profile.announcement_interval
        self.deadline = due if self.deadline is None else min(self.deadline, due)

    def _announce(self, now: int) -> None:
        self._left = max(0, self._left - 1)
        pause = self.state == AnnouncingState.PAUSE
        self.deadline = now + (self.profile.announcement_pause if pause else self.profile.announcement_interval)
        if not self._speaks():
            return
        self.interface.send(Counter.SEND_RAW, announcement(self.interface.address, self.serial))


def _read_anyhow(content: bytes) -> tuple[int, int]:
    """NIC id and serial at their places in the content of a RAW frame, whatever it is (R-MEA-22); zeros behind it."""
    nic, serial = _ANNOUNCED.unpack(content[_NIC_ID : _NIC_ID + _ANNOUNCED.size].ljust(_ANNOUNCED.size, b"\0"))
    return nic & (1 << 48) - 1, serial
