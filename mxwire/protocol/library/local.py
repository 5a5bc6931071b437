"""Messages between endpoints of one host: they never are on the wire (R-LOC-01, R-LOC-02)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from mxwire.protocol.buffers import Segments
from mxwire.protocol.corridor import LocalMessage
from mxwire.protocol.event import Event, EventKind
from mxwire.protocol.library.request import ListedRequest, RequestKind
from mxwire.protocol.machine import Row, Table
from mxwire.protocol.status import Status

if TYPE_CHECKING:
    from mxwire.protocol.library.endpoint import Endpoint
    from mxwire.protocol.library.partner import Partner

SHARED_THRESHOLD: Final = 4096
"""Longest message between endpoints of one host that is buffered (R-LOC-02)."""


class LocalState(StrEnum):
    """How far a message to our own host is."""

    WAITING = "waiting"
    OFFERED = "offered"
    DONE = "done"


class LocalEvent(StrEnum):
    """What can happen to it."""

    OFFER = "put into the ring"
    RECEIVED = "received"
    REFUSED = "refused"


LOCAL_SEND: Final = Table(
    "message to the own host",
    LocalState.WAITING,
    (
        Row(LocalState.WAITING, LocalEvent.OFFER, LocalState.OFFERED, "", ("R-LOC-02",)),
        Row(LocalState.WAITING, LocalEvent.REFUSED, LocalState.DONE, "_end", ("R-LOC-02",)),
        Row(LocalState.OFFERED, LocalEvent.RECEIVED, LocalState.DONE, "_end", ("R-LOC-02", "R-MSC-01")),
        Row(LocalState.OFFERED, LocalEvent.REFUSED, LocalState.DONE, "_end", ("R-LOC-02",)),
    ),
)


class LocalSend(ListedRequest):
    """A message to an endpoint of our own host."""

    __slots__ = ("buffered", "late_status", "memory")

    kind = RequestKind.SEND
    table = LOCAL_SEND

    def __init__(self, partner: Partner, match_info: int, memory: Segments, *, synchronous: bool) -> None:
        super().__init__(partner.endpoint, partner, match_info, memory.length)
        self.buffered = memory.length <= SHARED_THRESHOLD and not synchronous
        """Whether it is complete as soon as it is posted."""
        self.memory = Segments(memory.copy()) if self.buffered else memory
        self.late_status: Status | None = None
        """Why it was lost after it had been reported complete, if it was."""

    def submit(self) -> bool:
        """Put it into the other endpoint's ring; False where there is no room now."""
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
        if not target.card.ring.push(LocalMessage(self)):
            return False
        self.fire(LocalEvent.OFFER)
        target.card.interface.ready[target.card] = None
        if self.buffered:
            self.finish(Status.SUCCESS, self.length)
        return True

    def received(self, transferred: int) -> None:
        """The other side has taken it."""
        short = transferred < self.length
        self.fire(LocalEvent.RECEIVED, Status.MESSAGE_TRUNCATED if short else Status.SUCCESS, transferred)

    def dropped(self, status: Status = Status.REMOTE_ENDPOINT_CLOSED) -> None:
        """The other side has gone, or has no memory for it."""
        if self.can(LocalEvent.REFUSED):
            self.fire(LocalEvent.REFUSED, status, 0)

    def close(self) -> None:
        """Our own endpoint is closed."""
        if self.can(LocalEvent.REFUSED):
            self.fire(LocalEvent.REFUSED, Status.CANCELLED, 0)

    def _end(self, status: Status, transferred: int) -> None:
        if not self.done:
            self.finish(status, transferred)
            return
        self.late_status = status
        self.endpoint.tell(Event(EventKind.UNDELIVERED, self))


def arrive(endpoint: Endpoint, message: LocalMessage) -> None:
    """Take a message from the same host out of the ring."""
    send: LocalSend = message.source
    if send.state is not LocalState.OFFERED:
        return
    source = endpoint.partner(send.endpoint.own_peer, send.endpoint.number)
    assert source is not None
    source.fwd = source.rev = send.endpoint.session
    endpoint.deliver_local(source, send)
