"""Sends: buffered ones of up to 32 KiB, and large or synchronous ones that the receiver pulls (sections 7 and 13)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from mxwire.protocol.event import Event, EventKind
from mxwire.protocol.library.packets import RndvPacket
from mxwire.protocol.library.request import Request, RequestKind
from mxwire.protocol.machine import Row, Table
from mxwire.protocol.status import Status

if TYPE_CHECKING:
    from mxwire.protocol.library.endpoint import Endpoint
    from mxwire.protocol.library.partner import Partner

_SUCCESS: Final = Status.SUCCESS


class SendState(StrEnum):
    """How far a buffered send is, as its application sees it."""

    WAITING = "waiting"
    POSTED = "posted"
    DONE = "done"


class SendEvent(StrEnum):
    """What can happen to it."""

    POSTED = "posted"
    ACK = "acked"
    LOST = "lost"


BUFFERED_SEND: Final = Table(
    "buffered send",
    SendState.WAITING,
    (
        Row(SendState.WAITING, SendEvent.POSTED, SendState.POSTED, "_complete", ("R-SND-06",)),
        Row(SendState.WAITING, SendEvent.LOST, SendState.DONE, "_failed", ("R-CLS-05",)),
        Row(SendState.POSTED, SendEvent.ACK, SendState.DONE, "", ("R-ACK-05",)),
        Row(SendState.POSTED, SendEvent.LOST, SendState.DONE, "_undelivered", ("R-CLS-02", "R-NAK-05")),
    ),
)


class BufferedSend(Request):
    """A TINY, SMALL or MEDIUM: complete for its application as soon as it is posted (R-SND-06)."""

    __slots__ = ("late_status",)

    kind = RequestKind.SEND
    table = BUFFERED_SEND

    def __init__(self, endpoint: Endpoint, partner: Partner, match_info: int, length: int) -> None:
        super().__init__(endpoint, partner, match_info, length)
        self.late_status: Status | None = None
        """Why it was lost after it had been reported complete, if it was."""

    def posted(self) -> None:
        """It has been sent for the first time."""
        self.fire(SendEvent.POSTED)

    def acked(self) -> None:
        """The partner has it."""
        self.fire(SendEvent.ACK)

    def lost(self, status: Status) -> None:
        """The partner will not have it."""
        self.fire(SendEvent.LOST, status)

    def _complete(self) -> None:
        self.finish(_SUCCESS, self.length)

    def _failed(self, status: Status) -> None:
        self.finish(status)

    def _undelivered(self, status: Status) -> None:
        self.late_status = status
        self.endpoint.tell(Event(EventKind.UNDELIVERED, self))


class LargeSendState(StrEnum):
    """How far a large send is."""

    WAITING = "waiting"
    ANNOUNCED = "announced"
    PULLABLE = "acked, waits for notify"
    NOTIFIED = "notified, not acked"
    DONE = "done"


class LargeSendEvent(StrEnum):
    """What can happen to it."""

    POSTED = "rndv posted"
    ACK = "rndv acked"
    NOTIFY = "notify"
    LOST = "rndv lost"
    RESET = "partner reset"


LARGE_SEND: Final = Table(
    "large send",
    LargeSendState.WAITING,
    (
        Row(LargeSendState.WAITING, LargeSendEvent.POSTED, LargeSendState.ANNOUNCED, "", ("R-RDV-01",)),
        Row(LargeSendState.WAITING, LargeSendEvent.LOST, LargeSendState.DONE, "_failed", ("R-CLS-05",)),
        Row(LargeSendState.ANNOUNCED, LargeSendEvent.ACK, LargeSendState.PULLABLE, "", ("R-RTX-02",)),
        Row(LargeSendState.ANNOUNCED, LargeSendEvent.NOTIFY, LargeSendState.NOTIFIED, "", ("R-NOT-03",)),
        Row(LargeSendState.ANNOUNCED, LargeSendEvent.LOST, LargeSendState.DONE, "_failed", ("R-NAK-05", "R-CLS-05")),
        Row(LargeSendState.PULLABLE, LargeSendEvent.NOTIFY, LargeSendState.DONE, "_complete", ("R-NOT-02",)),
        Row(LargeSendState.PULLABLE, LargeSendEvent.RESET, LargeSendState.DONE, "_failed", ("R-CLS-05",)),
        Row(LargeSendState.NOTIFIED, LargeSendEvent.ACK, LargeSendState.DONE, "_complete", ("R-NOT-03",)),
        Row(LargeSendState.NOTIFIED, LargeSendEvent.LOST, LargeSendState.DONE, "_complete", ("R-NOT-03",)),
    ),
)


class LargeSend(Request):
    """A RNDV: complete when the receiver has told what it has taken."""

    __slots__ = ("_told", "packet")

    kind = RequestKind.SEND
    table = LARGE_SEND

    def __init__(self, endpoint: Endpoint, partner: Partner, packet: RndvPacket) -> None:
        super().__init__(endpoint, partner, packet.match_info, packet.memory.length)
        self.packet = packet
        self._told = 0

    def posted(self) -> None:
        """The RNDV has been sent for the first time."""
        self.fire(LargeSendEvent.POSTED)

    def acked(self) -> None:
        """The partner has the RNDV; from now on only its NOTIFY is waited for (R-RTX-02)."""
        self.fire(LargeSendEvent.ACK)

    def lost(self, status: Status) -> None:
        """The partner will not have the RNDV."""
        self.fire(LargeSendEvent.LOST, status)

    def notified(self, transferred: int) -> None:
        """The partner has pulled what it wanted (R-NOT-02)."""
        if self.can(LargeSendEvent.NOTIFY):
            self._told = min(transferred, self.length)
            self._release()
            self.fire(LargeSendEvent.NOTIFY)

    def reset(self, status: Status) -> None:
        """The partner was reset while its NOTIFY was waited for."""
        if self.can(LargeSendEvent.RESET):
            self.fire(LargeSendEvent.RESET, status)

    def provide_region(self) -> None:
        """Get a region for the message (R-RDV-01)."""
        endpoint, partner = self.endpoint, self.partner
        assert partner is not None
        region = endpoint.card.regions.register(self.packet.memory, endpoint.profile.region_offset)
        self.packet.region = region
        endpoint.rendezvous += 1
        partner.large_sends[region.number, region.use] = self

    def _release(self) -> None:
        """Give the region back; the packet remembers it, since it may have to be sent once more."""
        region, partner = self.packet.region, self.partner
        assert partner is not None
        if region is not None and partner.large_sends.pop((region.number, region.use), None) is not None:
            self.endpoint.card.regions.release(region)
            self.endpoint.rendezvous -= 1

    def _complete(self, _status: Status = Status.SUCCESS) -> None:
        short = self._told < self.length
        self.finish(Status.MESSAGE_TRUNCATED if short else Status.SUCCESS, self._told)

    def _failed(self, status: Status) -> None:
        self._release()
        self.finish(status)
