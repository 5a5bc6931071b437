"""Messages between endpoints of one host, which are never on the wire (R-LOC-01, R-LOC-02)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from mxwire.protocol.arguments import Segments
from mxwire.protocol.corridor import LocalMessage
from mxwire.protocol.library.partner import Partner
from mxwire.protocol.library.request import ListedRequest, RequestKind
from mxwire.protocol.machine import Row, Table
from mxwire.protocol.status import EventKind, Status

SHARED_THRESHOLD: Final = 4096
"""Maximum length in bytes of a buffered message between endpoints of one host (R-LOC-02)."""


class LocalState(StrEnum):
    """States of a message to the same host."""

    WAITING = "waiting"
    OFFERED = "offered"
    DONE = "done"


class LocalEvent(StrEnum):
    """Events of a message to the same host."""

    OFFER = "put into the ring"
    RECEIVED = "received"
    REFUSED = "refused"


def _end(send: LocalSend, status: Status, transferred: int) -> None:
    if not send.done:
        send.finish(status, transferred)
        return
    send.late_status = status
    send.endpoint.report(EventKind.UNDELIVERED, send)


LOCAL_SEND: Final = Table(
    "message to the own host",
    LocalState.WAITING,
    (
        Row(LocalState.WAITING, LocalEvent.OFFER, LocalState.OFFERED, None, ("R-LOC-02",)),
        Row(LocalState.WAITING, LocalEvent.REFUSED, LocalState.DONE, _end, ("R-LOC-02",)),
        Row(LocalState.OFFERED, LocalEvent.RECEIVED, LocalState.DONE, _end, ("R-LOC-02", "R-MSC-01")),
        Row(LocalState.OFFERED, LocalEvent.REFUSED, LocalState.DONE, _end, ("R-LOC-02",)),
    ),
)


class LocalSend(ListedRequest):
    """A send to an endpoint of the same host."""

    __slots__ = ("buffered", "late_status", "memory")

    kind = RequestKind.SEND
    table = LOCAL_SEND

    def __init__(self, partner: Partner, match_info: int, memory: Segments, *, synchronous: bool) -> None:
        super().__init__(partner.endpoint, partner, match_info, memory.length)
        self.buffered = memory.length <= SHARED_THRESHOLD and not synchronous
        """True if the send is complete as soon as it is posted."""
        self.memory = Segments(memory.copy()) if self.buffered else memory
        self.late_status: Status | None = None
        """The reason if the message was lost after it had been reported complete."""

    def submit(self) -> bool:
        """Put the message into the ring of the target; return False if there is no room now."""
        partner = self.partner
        assert partner is not None
        if self.state is not LocalState.WAITING:
            return True
        target = self.endpoint.neighbour(partner)
        if target is None or target.session != partner.fwd:
            closed = target is None
            self.fire(
                LocalEvent.REFUSED,
                Status.REMOTE_ENDPOINT_CLOSED if closed else Status.REMOTE_ENDPOINT_BAD_SESSION,
                0,
            )
            return True
        if not target.card.offer(LocalMessage(self)):
            return False
        self.fire(LocalEvent.OFFER)
        if self.buffered:
            self.finish(Status.SUCCESS, self.length)
        return True

    def received(self, transferred: int) -> None:
        """End the send: the receiver has taken ``transferred`` bytes."""
        short = transferred < self.length
        self.fire(LocalEvent.RECEIVED, Status.MESSAGE_TRUNCATED if short else Status.SUCCESS, transferred)

    def dropped(self, status: Status = Status.REMOTE_ENDPOINT_CLOSED) -> None:
        """End the send: the target has closed, or has no memory for the message."""
        if self.can(LocalEvent.REFUSED):
            self.fire(LocalEvent.REFUSED, status, 0)

    def close(self) -> None:
        """End the send, since its own endpoint closes."""
        if self.can(LocalEvent.REFUSED):
            self.fire(LocalEvent.REFUSED, Status.CANCELLED, 0)
