"""Receives: posted, matched, filled; a large one pulls its message and tells the sender (sections 9, 13, 15, 17)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from mxwire.protocol.buffers import Segments
from mxwire.protocol.card.pull import Source
from mxwire.protocol.library.delivery import Delivery
from mxwire.protocol.library.packets import NotifyPacket
from mxwire.protocol.library.request import ListedRequest, RequestKind
from mxwire.protocol.machine import Row, Table
from mxwire.protocol.profile import Defect
from mxwire.protocol.status import Status
from mxwire.wire.numbers import NO_SESSION
from mxwire.wire.packets import Rndv

if TYPE_CHECKING:
    from mxwire.protocol.library.endpoint import Endpoint
    from mxwire.protocol.library.local import LocalSend
    from mxwire.protocol.library.matching import Unexpected
    from mxwire.protocol.library.partner import Partner
    from mxwire.protocol.library.reassembly import Reassembly

_SUCCESS: Final = Status.SUCCESS
_TRUNCATED: Final = Status.MESSAGE_TRUNCATED
_NOTHING: Final = (_SUCCESS, 0)
_UNALLOCATED: Final = Segments(b"")
"""Stands for the memory of a receive that is allocated at the match."""


class ReceivingState(StrEnum):
    """How far a receive is."""

    POSTED = "posted"
    FILLING = "filling"
    PULLING = "pulling"
    NOTIFYING = "notifying"
    DONE = "done"


class ReceivingEvent(StrEnum):
    """What can happen to it."""

    MESSAGE = "whole message"
    FRAGMENT = "first fragment"
    COMPLETE = "last fragment"
    RENDEZVOUS = "rendezvous"
    EMPTY = "rendezvous with nothing to pull"
    PULLED = "pull ended"
    NOTIFIED = "notify posted"
    CANCEL = "cancelled"
    RESET = "partner reset"
    CLOSE = "endpoint closed"


RECEIVING: Final = Table(
    "receive",
    ReceivingState.POSTED,
    (
        Row(ReceivingState.POSTED, ReceivingEvent.MESSAGE, ReceivingState.DONE, "finish", ("R-MAT-02",)),
        Row(ReceivingState.POSTED, ReceivingEvent.FRAGMENT, ReceivingState.FILLING, "", ("R-MED-01",)),
        Row(ReceivingState.POSTED, ReceivingEvent.RENDEZVOUS, ReceivingState.PULLING, "_pull", ("R-RDV-04",)),
        Row(ReceivingState.POSTED, ReceivingEvent.EMPTY, ReceivingState.NOTIFYING, "_notify", ("R-RDV-04", "R-PUL-11")),
        Row(ReceivingState.POSTED, ReceivingEvent.CANCEL, ReceivingState.DONE, "finish", ("R-MSC-02",)),
        Row(ReceivingState.POSTED, ReceivingEvent.CLOSE, ReceivingState.DONE, "finish", ("R-CLS-02",)),
        Row(ReceivingState.FILLING, ReceivingEvent.COMPLETE, ReceivingState.DONE, "finish", ("R-MED-04",)),
        Row(ReceivingState.FILLING, ReceivingEvent.RESET, ReceivingState.DONE, "finish", ("R-CLS-05",)),
        Row(ReceivingState.PULLING, ReceivingEvent.PULLED, ReceivingState.NOTIFYING, "_notify", ("R-NOT-01",)),
        Row(ReceivingState.PULLING, ReceivingEvent.RESET, ReceivingState.DONE, "finish", ("R-CLS-05",)),
        Row(ReceivingState.PULLING, ReceivingEvent.CLOSE, ReceivingState.DONE, "finish", ("R-CLS-02",)),
        Row(ReceivingState.NOTIFYING, ReceivingEvent.NOTIFIED, ReceivingState.DONE, "finish", ("R-SND-06",)),
        Row(ReceivingState.NOTIFYING, ReceivingEvent.RESET, ReceivingState.DONE, "finish", ("R-CLS-05", "R-NAK-08")),
    ),
)


class Receiving(ListedRequest):
    """A receive."""

    __slots__ = ("_epoch", "_outcome", "_rendezvous", "buffer", "mask", "memory", "order", "value", "waiting")

    kind = RequestKind.RECEIVE
    table = RECEIVING

    def __init__(self, endpoint: Endpoint, memory: Segments | None, value: int, mask: int) -> None:
        super().__init__(endpoint, None, value, 0)
        self.memory = _UNALLOCATED if memory is None else memory
        """Where the message goes; None allocates memory of the message's length when the receive is matched."""
        self.buffer: bytearray | None = None
        """The memory allocated at the match."""
        self.value = value
        self.mask = mask
        """A message matches if its match information, masked, is ``value`` (R-MAT-01)."""
        self.order = 0
        self.waiting = True
        self._rendezvous: Rndv | None = None
        self._epoch = 0
        self._outcome = _NOTHING

    def _taken(self, partner: Partner, match_info: int, length: int) -> None:
        self.partner = partner
        self.match_info = match_info
        self.length = length
        if self.memory is _UNALLOCATED:
            self._allocate(length)

    def _allocate(self, length: int) -> None:
        """Allocate the memory of a matched message; without memory for it, none of it fits (R-MSC-01)."""
        try:
            self.buffer = bytearray(length)
        except MemoryError:
            # The length is the sender's word: up to 4 GiB in a single RNDV.
            self.buffer = bytearray()
        self.memory = Segments(self.buffer, writable=True)

    def _whole(self) -> tuple[Status, int]:
        """Status and length of a message that has arrived, as far as it fits (R-MSC-01)."""
        room = self.memory.length
        return (_TRUNCATED, room) if self.length > room else (_SUCCESS, self.length)

    def take_message(self, partner: Partner, match_info: int, data: bytes) -> None:
        """A TINY, a SMALL or a message from the same host."""
        self._taken(partner, match_info, len(data))
        self.memory.put_bytes(data)
        status, transferred = self._whole()
        self.fire(ReceivingEvent.MESSAGE, status, transferred)

    def take_local(self, partner: Partner, send: LocalSend) -> None:
        """A large message from the same host: its memory is there to be read, unless the sender has gone."""
        if send.done:
            self._taken(partner, send.match_info, send.length)
            self.fire(ReceivingEvent.MESSAGE, Status.REMOTE_ENDPOINT_CLOSED, 0)
            return
        self.take_message(partner, send.match_info, send.memory.copy())
        send.received(self.transferred)

    def take_fragments(self, partner: Partner, match_info: int, reassembly: Reassembly) -> None:
        """A medium whose first fragment has arrived."""
        self._taken(partner, match_info, reassembly.length)
        reassembly.memory = self.memory
        reassembly.receive = self
        self.fire(ReceivingEvent.FRAGMENT)

    def filled(self) -> None:
        """All fragments are there."""
        self.fire(ReceivingEvent.COMPLETE, *self._whole())

    def abandoned(self, status: Status) -> None:
        """The rest will not come."""
        self.fire(ReceivingEvent.RESET, status, 0)

    def take_rendezvous(self, partner: Partner, match_info: int, frame: Rndv) -> None:
        """A message that has to be pulled; with nothing to pull there is no PULL at all (R-RDV-04)."""
        self._taken(partner, match_info, frame.msg_length)
        self._rendezvous = frame
        self._epoch = partner.epoch
        nothing = not min(frame.msg_length, self.memory.length)
        if nothing:
            self.fire(ReceivingEvent.EMPTY, *self._whole())
        else:
            self.fire(ReceivingEvent.RENDEZVOUS)

    def take_unexpected(self, message: Unexpected) -> None:
        """A message that was there before the receive."""
        if message.rendezvous is not None:
            self.take_rendezvous(message.partner, message.match_info, message.rendezvous)
        elif message.reassembly is not None:
            self._taken(message.partner, message.match_info, message.length)
            self.fire(ReceivingEvent.FRAGMENT)
            message.reassembly.hand_over(self)
        elif message.local is not None:
            self.take_local(message.partner, message.local)
        else:
            assert message.data is not None
            self.take_message(message.partner, message.match_info, message.data)

    def _pull(self) -> None:
        self.endpoint.pulling[self] = None
        self.endpoint.pull_starts.append(self)

    def start(self, now: int) -> None:
        """Begin the pull (R-PUL-04)."""
        if self.state is not ReceivingState.PULLING:
            return
        frame, partner = self._rendezvous, self.partner
        assert frame is not None and partner is not None
        if partner.epoch != self._epoch:
            self.endpoint.pulling.pop(self, None)
            self.fire(ReceivingEvent.RESET, Status.REMOTE_ENDPOINT_UNREACHABLE, 0)
            return
        source = Source(
            peer=partner.peer,
            endpoint=partner.number,
            session=NO_SESSION if partner.rev is None else partner.rev,
            region=frame.pulled_rdma_id,
            use=frame.pulled_rdma_seqnum,
            offset=frame.pulled_rdma_offset,
        )
        total = min(frame.msg_length, self.memory.length)
        self.endpoint.card.start_pull(source, self.memory, total, self, now)

    def pull_ended(self, status: Status, transferred: int) -> None:
        """The card has finished with the pull; a NOTIFY tells the sender, also of a failure (R-NOT-01)."""
        self.endpoint.pulling.pop(self, None)
        if self.state is not ReceivingState.PULLING:
            return
        assert self.partner is not None
        if self.partner.epoch != self._epoch and not self._notifies_next_session(status):
            self.fire(ReceivingEvent.RESET, Status.REMOTE_ENDPOINT_UNREACHABLE, 0)
            return
        if status == Status.SUCCESS:
            status = self._whole()[0]
        self.fire(ReceivingEvent.PULLED, status, transferred)

    def _notifies_next_session(self, status: Status) -> bool:
        """Whether the NOTIFY of a failed pull goes to the session that has followed the sender's (R-MEA-14)."""
        partner = self.partner
        assert partner is not None
        connected = partner.fwd is not None
        return connected and status != _SUCCESS and self.endpoint.profile.has(Defect.NOTIFIES_NEXT_SESSION)

    def _notify(self, status: Status, transferred: int) -> None:
        assert self._rendezvous is not None and self.partner is not None
        self._outcome = (status, transferred)
        notify_later(self.partner, self._rendezvous, transferred, self)

    def posted(self) -> None:
        """The NOTIFY has been sent: the receive is complete (R-SND-06)."""
        if self.state is not ReceivingState.NOTIFYING:
            return
        status, transferred = self._outcome
        if status is _TRUNCATED and self.endpoint.profile.has(Defect.TRUNCATION_REPORTED_LATE):
            status = _SUCCESS
        self.fire(ReceivingEvent.NOTIFIED, status, transferred)

    def acked(self) -> None:
        """The sender has the NOTIFY; with R-MEA-18 an application that looks only now sees the truncation."""
        if self.status is _SUCCESS:
            self.status = self._outcome[0]

    def lost(self, status: Status) -> None:
        """The sender will not have the NOTIFY (R-NAK-08)."""
        if self.state is ReceivingState.NOTIFYING:
            self.fire(ReceivingEvent.RESET, status, 0)

    def cancel(self) -> bool:
        """Take the receive back; False where it has been matched already (R-MSC-02)."""
        if self.state is not ReceivingState.POSTED:
            return False
        self.endpoint.matching.cancel(self)
        self.fire(ReceivingEvent.CANCEL, Status.CANCELLED, 0)
        return True

    def close(self) -> None:
        """The endpoint is closed."""
        if self.state is ReceivingState.POSTED:
            self.endpoint.matching.cancel(self)
        if self.can(ReceivingEvent.CLOSE):
            self.fire(ReceivingEvent.CLOSE, Status.CANCELLED, 0)


class Unclaimed:
    """Owner of a NOTIFY that no receive stands behind."""

    def posted(self) -> None:
        """Nobody waits for it."""

    def acked(self) -> None:
        """Nobody waits for it."""

    def lost(self, status: Status) -> None:
        """Nobody waits for it."""


def notify_later(partner: Partner, frame: Rndv, transferred: int, owner: Any) -> None:
    """Let a NOTIFY leave at the end of the pass, so that its piggyback covers the RNDV (R-RDV-04, R-NOT-01)."""
    packet = NotifyPacket(frame.pulled_rdma_id, frame.pulled_rdma_seqnum, transferred)
    partner.enqueue(Delivery(partner, packet, owner, partner.endpoint.resend_maximum))
