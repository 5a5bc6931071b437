"""Receives: posted, matched and filled; a large one is pulled, and its sender notified (sections 9, 13, 15, 17)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from mxwire.protocol.arguments import Segments
from mxwire.protocol.card.pull import PullSource
from mxwire.protocol.corridor import RndvArrival
from mxwire.protocol.library.inbound import Reassembly, Unexpected
from mxwire.protocol.library.local_send import LocalSend
from mxwire.protocol.library.matching import Posting
from mxwire.protocol.library.outbound import NotifyPacket
from mxwire.protocol.library.partner import LibraryEndpoint, MessageTarget, Partner, Request, RequestKind
from mxwire.protocol.library.reliability import Delivery
from mxwire.protocol.profile import Defect
from mxwire.protocol.state_machine import TransitionTable
from mxwire.protocol.status import Status
from mxwire.wire.numbers import NO_SESSION

_SUCCESS: Final = Status.SUCCESS
_TRUNCATED: Final = Status.MESSAGE_TRUNCATED
_NOTHING: Final = (_SUCCESS, 0)
_UNALLOCATED: Final = Segments(b"")
"""Placeholder for the memory of a receive that is allocated at the match."""


class ReceiveState(StrEnum):
    """States of a receive."""

    POSTED = "posted"
    FILLING = "filling"
    PULLING = "pulling"
    NOTIFYING = "notifying"
    DONE = "done"


class ReceiveEvent(StrEnum):
    """Events of a receive."""

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


def _pull(receive: Receive) -> None:
    receive.endpoint.pulling[receive] = None
    receive.endpoint.pull_starts.append(receive)


def _notify(receive: Receive, status: Status, transferred: int) -> None:
    assert receive.rendezvous is not None and receive.partner is not None
    receive.outcome = (status, transferred)
    enqueue_notify(receive.partner, receive.rendezvous, transferred, receive)


RECEIVE: Final = TransitionTable(
    "receive",
    ReceiveState.POSTED,
    (
        (ReceiveState.POSTED, ReceiveEvent.MESSAGE, ReceiveState.DONE, Request.finish, ("R-MAT-02",)),
        (ReceiveState.POSTED, ReceiveEvent.FRAGMENT, ReceiveState.FILLING, None, ("R-MED-01",)),
        (ReceiveState.POSTED, ReceiveEvent.RENDEZVOUS, ReceiveState.PULLING, _pull, ("R-RDV-04",)),
        (ReceiveState.POSTED, ReceiveEvent.EMPTY, ReceiveState.NOTIFYING, _notify, ("R-RDV-04", "R-PUL-11")),
        (ReceiveState.POSTED, ReceiveEvent.CANCEL, ReceiveState.DONE, Request.finish, ("R-MSC-02",)),
        (ReceiveState.POSTED, ReceiveEvent.CLOSE, ReceiveState.DONE, Request.finish, ("R-CLS-02",)),
        (ReceiveState.FILLING, ReceiveEvent.COMPLETE, ReceiveState.DONE, Request.finish, ("R-MED-04",)),
        (ReceiveState.FILLING, ReceiveEvent.RESET, ReceiveState.DONE, Request.finish, ("R-CLS-05",)),
        (ReceiveState.PULLING, ReceiveEvent.PULLED, ReceiveState.NOTIFYING, _notify, ("R-NOT-01",)),
        (ReceiveState.PULLING, ReceiveEvent.RESET, ReceiveState.DONE, Request.finish, ("R-CLS-05",)),
        (ReceiveState.PULLING, ReceiveEvent.CLOSE, ReceiveState.DONE, Request.finish, ("R-CLS-02",)),
        (ReceiveState.NOTIFYING, ReceiveEvent.NOTIFIED, ReceiveState.DONE, Request.finish, ("R-SND-06",)),
        (ReceiveState.NOTIFYING, ReceiveEvent.RESET, ReceiveState.DONE, Request.finish, ("R-CLS-05", "R-NAK-08")),
    ),
)


_MESSAGE: Final = RECEIVE.row(ReceiveState.POSTED, ReceiveEvent.MESSAGE)


class Receive(MessageTarget):
    """A posted receive, until its message is complete in its memory."""

    __slots__ = (
        "_epoch",
        "_maximum",
        "_pull_limit",
        "buffer",
        "mask",
        "outcome",
        "position",
        "posting",
        "rendezvous",
        "value",
    )

    kind = RequestKind.RECEIVE
    table = RECEIVE

    def __init__(self, endpoint: LibraryEndpoint, memory: Segments | None, value: int, mask: int, maximum: int) -> None:
        super().__init__(RECEIVE, endpoint, None, value, 0)
        self.memory = _UNALLOCATED if memory is None else memory
        """Destination of the message; None allocates memory of the message's length when the receive is matched."""
        self.buffer: bytearray | None = None
        """The memory allocated at the match."""
        self._maximum = maximum
        """Maximum number of bytes to allocate."""
        self.value = value
        self.mask = mask
        """A message matches if its masked match information is ``value`` (R-MAT-01)."""
        self.posting: Posting[MessageTarget] | None = None
        """Its place among the posted receives; None if it has matched an unexpected message."""
        self.rendezvous: RndvArrival | None = None
        """The RNDV of a message to pull."""
        self._epoch = 0
        self._pull_limit: int | None = None
        self.position = 0
        """The order of the newest unexpected message at the match."""
        self.outcome = _NOTHING
        """Status and number of bytes of a finished pull, until the NOTIFY is transmitted."""

    @property
    def waiting(self) -> bool:
        """True while it waits for a message."""
        return self.posting is not None and self.posting.receive is not None

    def is_matched(self) -> bool:
        """Return whether it has taken a message, which may still be in transfer."""
        return not self.waiting

    def _taken(
        self, partner: Partner, match_info: int, length: int, data: bytes | memoryview | None = None, start: int = 0
    ) -> None:
        """Note the message that was matched, and allocate memory for it if there is none.

        If all of the message, which is ``data`` from ``start``, fits, a copy becomes the ``buffer``, and no other
        memory is needed.
        """
        self.partner = partner
        self.match_info = match_info
        self.length = length
        self.position = self.endpoint.matching.arrivals
        if self.memory is _UNALLOCATED:
            try:
                if data is not None and length <= self._maximum:
                    end = start + length
                    # Compiled code slices ``bytes`` directly; a slice of a view copies nothing.
                    part = data[start:end] if isinstance(data, bytes) else memoryview(data)[start:end]
                    self.buffer = bytearray(part)
                    return
                self.buffer = bytearray(min(length, self._maximum))
            except MemoryError:
                # The sender chooses the length, up to 4 GiB in a single RNDV. Without memory, the message is truncated
                # to 0 bytes (R-MSC-01).
                self.buffer = bytearray()
            self.memory = Segments(self.buffer, writable=True)

    @property
    def starved(self) -> bool:
        """True if there was no memory for the message that the receive has matched."""
        return self.buffer is not None and len(self.buffer) < min(self.length, self._maximum)

    def give_back(self) -> bool:
        """Return the message of a receive that has ended to the queue of unexpected messages, at its former position.

        Use this if the application will not see the result of the receive. If a receive posted since matches the
        message, it takes the message. A truncated message stays truncated. Return False if the receive has failed.
        """
        partner = self.partner
        if self.status not in (_SUCCESS, _TRUNCATED) or partner is None:
            return False
        data = bytes(self.buffer) if self.buffer is not None else self.memory.copy()
        data = data[: self.transferred]
        message = Unexpected(partner, self.match_info, self.length, data=data)
        self.endpoint.take_back(message, self.position)
        self.status = Status.CANCELLED
        return True

    def _whole(self) -> tuple[Status, int]:
        """Status and number of bytes of a complete message, truncated to the memory (R-MSC-01)."""
        room = self.memory.length
        return (_TRUNCATED, room) if self.length > room else (_SUCCESS, self.length)

    def _end_whole(self) -> None:
        """End the receive, since its memory has the message."""
        self.follow(_MESSAGE)
        status, transferred = self._whole()
        self.finish(status, transferred)

    def take_message(
        self, partner: Partner, match_info: int, data: bytes | memoryview, start: int = 0, size: int = -1
    ) -> None:
        """Take a message of one packet, or from the same host: ``size`` bytes of ``data`` from ``start``."""
        if size < 0:
            size = len(data)
        self._taken(partner, match_info, size, data, start)
        if self.memory is _UNALLOCATED:
            self.follow(_MESSAGE)
            self.finish(_SUCCESS, size)
            return
        self.memory.put(0, data, start, size)
        self._end_whole()

    # Any: the type of a neighbour's message would close a circle of imports.
    def take_local(self, partner: Partner, send: Any) -> None:
        """Take a large message from the memory of a sender on the same host, unless that endpoint has closed."""
        if send.done:
            self._taken(partner, send.match_info, send.length)
            self.fire(ReceiveEvent.MESSAGE, Status.REMOTE_ENDPOINT_CLOSED, 0)
            return
        if isinstance(send, LocalSend):
            data = send.memory.part(0, send.length)
            self.take_message(partner, send.match_info, send.memory.copy() if data is None else data)
        else:
            self._taken(partner, send.match_info, send.length)
            if not send.fetch(self, min(self.length, self.memory.length)):
                self.fire(ReceiveEvent.FRAGMENT)
                return
            self._end_whole()
        send.received(self.transferred)

    def take_fragments(self, partner: Partner, match_info: int, reassembly: Reassembly) -> None:
        """Take a MEDIUM whose first fragment has arrived."""
        self._taken(partner, match_info, reassembly.length)
        reassembly.memory = self.memory
        reassembly.receive = self
        self.fire(ReceiveEvent.FRAGMENT)

    def filled(self) -> None:
        """End the receive, since all fragments have arrived."""
        self.fire(ReceiveEvent.COMPLETE, *self._whole())

    def abandoned(self, status: Status) -> None:
        """End the receive, since the missing fragments will not arrive."""
        self.fire(ReceiveEvent.RESET, status, 0)

    def take_rendezvous(self, partner: Partner, arrival: RndvArrival) -> None:
        """Take a message that must be pulled; without bytes to pull, no PULL is sent (R-RDV-04)."""
        self._taken(partner, arrival.match_info, arrival.length)
        self.rendezvous = arrival
        self._epoch = partner.epoch
        nothing = not min(arrival.length, self.memory.length)
        if nothing:
            self.fire(ReceiveEvent.EMPTY, *self._whole())
        else:
            self.fire(ReceiveEvent.RENDEZVOUS)

    def take_unexpected(self, message: Unexpected) -> None:
        """Take an unexpected message that was received before this receive was posted."""
        if message.rendezvous is not None:
            self.take_rendezvous(message.partner, message.rendezvous)
        elif message.reassembly is not None:
            self._taken(message.partner, message.match_info, message.length)
            self.fire(ReceiveEvent.FRAGMENT)
            message.reassembly.hand_over(self)
        elif message.local is not None:
            self.take_local(message.partner, message.local)
        else:
            assert message.data is not None
            if message.length == len(message.data):
                self.take_message(message.partner, message.match_info, message.data)
                return
            # Another receive has truncated the message and returned it.
            self._taken(message.partner, message.match_info, message.length)
            self.memory.put(0, message.data)
            self.fire(ReceiveEvent.MESSAGE, _TRUNCATED, min(len(message.data), self.memory.length))

    def start(self, now: int) -> None:
        """Begin the pull (R-PUL-04)."""
        # The receive may have ended while it waited for a handle.
        if self.state is not ReceiveState.PULLING:
            return
        announced, partner = self.rendezvous, self.partner
        assert announced is not None and partner is not None
        # The announced region belongs to a session of the sender that has ended.
        if partner.epoch != self._epoch:
            self.endpoint.pulling.pop(self, None)
            self.fire(ReceiveEvent.RESET, Status.REMOTE_ENDPOINT_UNREACHABLE, 0)
            return
        source = PullSource(
            partner.peer,
            partner.number,
            NO_SESSION if partner.rev is None else partner.rev,
            announced.region,
            announced.use,
            announced.offset,
        )
        total = min(announced.length, self.memory.length)
        pull = self.endpoint.card.start_pull(source, self.memory, total, self, now)
        if self._pull_limit is not None:
            pull.limit = self._pull_limit

    def limit_pull(self, limit: int) -> None:
        """Set the time in ns after which the pull fails without a useful frame, now or once it runs (R-PUL-09)."""
        self._pull_limit = limit
        for pull in self.endpoint.card.pulls.values():
            if pull.context is self:
                pull.limit = limit

    def pull_ended(self, status: Status, transferred: int) -> None:
        """Notify the sender of the end of the pull, even if it failed (R-NOT-01)."""
        self.endpoint.pulling.pop(self, None)
        if self.state is not ReceiveState.PULLING:
            return
        assert self.partner is not None
        if self.partner.epoch != self._epoch and not self._notifies_next_session(status):
            self.fire(ReceiveEvent.RESET, Status.REMOTE_ENDPOINT_UNREACHABLE, 0)
            return
        if status == Status.SUCCESS:
            status = self._whole()[0]
        self.fire(ReceiveEvent.PULLED, status, transferred)

    def _notifies_next_session(self, status: Status) -> bool:
        """Return whether the NOTIFY of a failed pull goes to the session that follows the sender's (R-MEA-14)."""
        partner = self.partner
        assert partner is not None
        connected = partner.fwd is not None
        return connected and status != _SUCCESS and self.endpoint.profile.has(Defect.NOTIFIES_NEXT_SESSION)

    def posted(self) -> None:
        """Complete the receive, since the NOTIFY has been transmitted (R-SND-06)."""
        if self.state is not ReceiveState.NOTIFYING:
            return
        status, transferred = self.outcome
        if status is _TRUNCATED and self.endpoint.profile.has(Defect.TRUNCATION_REPORTED_LATE):
            status = _SUCCESS
        self.fire(ReceiveEvent.NOTIFIED, status, transferred)

    def acked(self) -> None:
        """Note that the sender has the NOTIFY; with R-MEA-18, the truncation becomes visible only now."""
        if self.status is _SUCCESS:
            self.status = self.outcome[0]

    def lost(self, status: Status) -> None:
        """Note that the sender will not have the NOTIFY (R-NAK-08)."""
        if self.state is ReceiveState.NOTIFYING:
            self.fire(ReceiveEvent.RESET, status, 0)

    def cancel(self) -> bool:
        """Cancel the receive; return False if it is matched already (R-MSC-02)."""
        if not self.waiting:
            return False
        self._withdraw()
        self.fire(ReceiveEvent.CANCEL, Status.CANCELLED, 0)
        return True

    def close(self, status: Status = Status.CANCELLED) -> None:
        """End the receive, since its endpoint closes."""
        if self.waiting:
            self._withdraw()
        if self.can(ReceiveEvent.CLOSE):
            self.fire(ReceiveEvent.CLOSE, status, 0)

    def _withdraw(self) -> None:
        """Remove the receive from the posted receives."""
        assert self.posting is not None
        self.endpoint.matching.cancel(self.posting)


def enqueue_notify(partner: Partner, announced: RndvArrival, transferred: int, owner: Receive | None) -> None:
    """Enqueue a NOTIFY for the end of the pass, so that its piggyback covers the RNDV (R-RDV-04, R-NOT-01)."""
    packet = NotifyPacket(announced.region, announced.use, transferred)
    # A NOTIFY carries the session of the reverse direction.
    partner.enqueue(Delivery(partner, packet, owner, partner.endpoint.resend_maximum, True))
