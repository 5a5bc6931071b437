"""Messages between endpoints of one host, which are never on the wire (R-LOC-01, R-LOC-02)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from mxwire.protocol.arguments import Segments
from mxwire.protocol.corridor import LocalMessage
from mxwire.protocol.library.partner import ListedRequest, Partner, RequestKind
from mxwire.protocol.state_machine import TransitionTable
from mxwire.protocol.status import EventKind, Status


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
    if send.neighbour is not None:
        send.neighbour.sends.pop(send.number, None)
    if not send.done:
        send.finish(status, transferred)
        return
    send.late_status = status
    send.endpoint.report(EventKind.UNDELIVERED, send)


LOCAL_SEND: Final = TransitionTable(
    "message to the own host",
    LocalState.WAITING,
    (
        (LocalState.WAITING, LocalEvent.OFFER, LocalState.OFFERED, None, ("R-LOC-02",)),
        (LocalState.WAITING, LocalEvent.REFUSED, LocalState.DONE, _end, ("R-LOC-02",)),
        (LocalState.OFFERED, LocalEvent.RECEIVED, LocalState.DONE, _end, ("R-LOC-02", "R-MSC-01")),
        (LocalState.OFFERED, LocalEvent.REFUSED, LocalState.DONE, _end, ("R-LOC-02",)),
    ),
)
_OFFERED: Final = LocalEvent.OFFER
_LOCAL_WAITING: Final = LocalState.WAITING
_RECEIVED: Final = LOCAL_SEND.row(LocalState.OFFERED, LocalEvent.RECEIVED)
_SUCCESS: Final = Status.SUCCESS
_TRUNCATED: Final = Status.MESSAGE_TRUNCATED


class LocalSend(ListedRequest):
    """A send to an endpoint of the same host."""

    __slots__ = ("buffered", "late_status", "memory", "neighbour", "number", "session")

    kind = RequestKind.SEND
    table = LOCAL_SEND

    def __init__(self, partner: Partner, match_info: int, memory: Segments, *, synchronous: bool) -> None:
        super().__init__(LOCAL_SEND, partner.endpoint, partner, match_info, memory.length)
        self.buffered = memory.length <= self.endpoint.local_threshold(partner) and not synchronous
        """True if the send is complete as soon as it is posted."""
        self.memory = memory.kept() if self.buffered else memory
        self.late_status: Status | None = None
        """The reason if the message was lost after it had been reported complete."""
        self.neighbour: Any = None
        """The :class:`~mxwire.protocol.neighbours.Neighbour` to which a message that is not buffered was offered."""
        self.number = 0
        """The number of the offer."""
        self.session = partner.fwd
        """The session for which the message was sent; a later session, which may begin while the send waits, does not
        receive it. None: the first session of the target."""

    def offer(self) -> bool:
        """Put the message into the ring of the target; return False if there is no room now."""
        partner = self.partner
        assert partner is not None
        if self.state is not _LOCAL_WAITING:
            return True
        if self.session != partner.fwd and self.session is not None:
            self.fire(LocalEvent.REFUSED, Status.REMOTE_ENDPOINT_BAD_SESSION, 0)
            return True
        target = self.endpoint.neighbour(partner)
        if target is None:
            self._offer_elsewhere(partner)
            return True
        if target.session != partner.fwd:
            self.fire(LocalEvent.REFUSED, Status.REMOTE_ENDPOINT_BAD_SESSION, 0)
            return True
        if not target.card.offer(LocalMessage(self)):
            return False
        self._offered()
        return True

    def _offer_elsewhere(self, partner: Partner) -> None:
        """Pass the message to another node of this host; hold it while there is no room, or no session yet."""
        endpoint = self.endpoint
        neighbour = endpoint.neighbourhood.towards(partner)
        if neighbour is None:
            self.fire(LocalEvent.REFUSED, Status.REMOTE_ENDPOINT_CLOSED, 0)
        elif partner.fwd is None and not endpoint.connects_to(partner):
            self.fire(LocalEvent.REFUSED, Status.REMOTE_ENDPOINT_BAD_SESSION, 0)
        elif partner.fwd is None or not neighbour.send(self):
            endpoint.hold_send(self)
        else:
            self._offered()

    def _offered(self) -> None:
        self.fire(_OFFERED)
        if self.buffered:
            self.finish(_SUCCESS, self.length)

    def received(self, transferred: int) -> None:
        """End the send: the receiver has taken ``transferred`` bytes."""
        short = transferred < self.length
        self.follow(_RECEIVED)
        _end(self, _TRUNCATED if short else _SUCCESS, transferred)

    def dropped(self, status: Status = Status.REMOTE_ENDPOINT_CLOSED) -> None:
        """End the send: the target has closed, or has no memory for the message."""
        if self.can(LocalEvent.REFUSED):
            self.fire(LocalEvent.REFUSED, status, 0)

    def close(self) -> None:
        """End the send, since its own endpoint closes."""
        if self.can(LocalEvent.REFUSED):
            self.fire(LocalEvent.REFUSED, Status.CANCELLED, 0)
