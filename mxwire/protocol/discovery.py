"""Discovery as the daemon omxoed implements it: RAW frames to the broadcast address (behaviour, section 2)."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from mxwire.protocol.card.outgoing import Port
from mxwire.protocol.counters import Counter
from mxwire.protocol.introduction import announcement
from mxwire.protocol.machine import Machine, Row, Table
from mxwire.protocol.peers import PeerTable
from mxwire.protocol.profile import Defect, Profile
from mxwire.wire.formats import RAW, RAW_OMXOED
from mxwire.wire.layout import layout_of
from mxwire.wire.packets import Announcement, Raw

_NIC_ID: Final = layout_of(RAW_OMXOED).by_name["nic_id_hi"].offset - layout_of(RAW).header_end
"""Offset of the NIC id of an announcement in the content of a RAW frame."""
_ANNOUNCED: Final = struct.Struct(">QI")
"""Packer of NIC id and serial of an announcement."""


class RawQueue:
    """The RAW frames that wait for the discovery program (R-DISC-06)."""

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self._frames: deque[Raw | Announcement] = deque()

    def __bool__(self) -> bool:
        """Return whether a frame waits."""
        return bool(self._frames)

    @property
    def full(self) -> bool:
        """True if another frame would be dropped."""
        return len(self._frames) >= self.maximum

    def put(self, frame: Raw | Announcement) -> bool:
        """Queue a frame; return False if the queue is full."""
        if self.full:
            return False
        self._frames.append(frame)
        return True

    def take(self) -> list[Raw | Announcement]:
        """Take all frames."""
        frames = list(self._frames)
        self._frames.clear()
        return frames


class AnnouncementState(StrEnum):
    """States of a discovery program."""

    SILENT = "silent"
    SERIES = "in a series"
    PAUSE = "between series"


class AnnouncementEvent(StrEnum):
    """Events of a discovery program."""

    START = "started"
    DUE = "announcement due"
    LAST = "last of a series due"
    NEWS = "new peer or new serial"


def _begin(discovery: Discovery, now: int) -> None:
    discovery.left = discovery.profile.announcement_count
    discovery.deadline = now


def _restart(discovery: Discovery, now: int) -> None:
    """Start another series, whose first frame leaves within one interval."""
    discovery.left = discovery.profile.announcement_count
    due = now + discovery.profile.announcement_interval
    discovery.deadline = due if discovery.deadline is None else min(discovery.deadline, due)


def _announce(discovery: Discovery, now: int) -> None:
    profile, pause = discovery.profile, discovery.state == AnnouncementState.PAUSE
    discovery.left = max(0, discovery.left - 1)
    discovery.deadline = now + (profile.announcement_pause if pause else profile.announcement_interval)
    if discovery.speaks():
        discovery.port.emit(Counter.SEND_RAW, announcement(discovery.port.address, discovery.serial))


ANNOUNCEMENTS: Final = Table(
    "announcements",
    AnnouncementState.SILENT,
    (
        Row(AnnouncementState.SILENT, AnnouncementEvent.START, AnnouncementState.SERIES, _begin, ("R-DISC-02",)),
        Row(AnnouncementState.SERIES, AnnouncementEvent.DUE, AnnouncementState.SERIES, _announce, ("R-DISC-02",)),
        Row(AnnouncementState.SERIES, AnnouncementEvent.LAST, AnnouncementState.PAUSE, _announce, ("R-DISC-02",)),
        Row(
            AnnouncementState.SERIES,
            AnnouncementEvent.NEWS,
            AnnouncementState.SERIES,
            _restart,
            ("R-DISC-03", "R-DISC-04"),
        ),
        Row(AnnouncementState.PAUSE, AnnouncementEvent.DUE, AnnouncementState.PAUSE, _announce, ("R-DISC-02",)),
        Row(
            AnnouncementState.PAUSE,
            AnnouncementEvent.NEWS,
            AnnouncementState.SERIES,
            _restart,
            ("R-DISC-03", "R-DISC-04"),
        ),
    ),
)


class Discovery(Machine):
    """The discovery program of one interface: announces it, and adds announced hosts as peers (R-DISC-07)."""

    __slots__ = ("_add", "_own", "_serials", "deadline", "left", "peers", "port", "profile", "serial", "speaks")

    table = ANNOUNCEMENTS

    def __init__(
        self,
        port: Port,
        peers: PeerTable,
        profile: Profile,
        serial: int,
        add: Callable[[bytes], None],
        speaks: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__()
        self.speaks = speaks
        self.port = port
        self.peers = peers
        self.profile = profile
        self.serial = serial
        """Pseudo-random number of this start of the program (wire format, section 6.1)."""
        self.deadline: int | None = 0
        """Time of the next announcement, in ns."""
        self._own = int.from_bytes(port.address, "big")
        self._serials: dict[int, int] = {}
        self.left = 0
        """Announcements left in the current series."""
        self._add = add

    def tick(self, now: int) -> None:
        """Send the announcements that are due."""
        if self.state is AnnouncementState.SILENT:
            self.fire(AnnouncementEvent.START, now)
        while self.deadline is not None and self.deadline <= now:
            last = self.state == AnnouncementState.SERIES and self.left == 1
            self.fire(AnnouncementEvent.LAST if last else AnnouncementEvent.DUE, now)

    def hear(self, frame: Raw | Announcement, now: int) -> None:
        """Take a RAW frame; only id and serial count, not the source address (R-DISC-05)."""
        if isinstance(frame, Announcement):
            nic, serial = (frame.nic_id_hi << 32) | frame.nic_id_lo, frame.serial
        elif self.profile.has(Defect.ANY_RAW_ANNOUNCES):
            nic, serial = _read_unchecked(frame.opaque)
        else:
            return
        if nic == self._own or nic >> 48 or self._serials.get(nic) == serial:
            return
        if nic not in self._serials and len(self._serials) >= self.peers.maximum:
            return
        self._serials[nic] = serial
        self._add(nic.to_bytes(6, "big"))
        if self.can(AnnouncementEvent.NEWS):
            self.fire(AnnouncementEvent.NEWS, now)


def _read_unchecked(content: bytes) -> tuple[int, int]:
    """NIC id and serial at their offsets in the content of any RAW frame, padded with zeros (R-MEA-22)."""
    nic, serial = _ANNOUNCED.unpack(content[_NIC_ID : _NIC_ID + _ANNOUNCED.size].ljust(_ANNOUNCED.size, b"\0"))
    return nic & (1 << 48) - 1, serial
