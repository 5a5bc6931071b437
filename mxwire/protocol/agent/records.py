"""Records between an agent and the applications that are attached to it.

Theory of operation
===================

An agent is a host whose endpoints belong to other processes. The application makes the usual calls of a host. Where its
library runs is its choice:

* ``match``: in the agent, beside the card, so that messages are matched, pulled and acked while the application
  computes. Its node (``attached.py``) has endpoints that pass each call to the agent (``attached_endpoint.py``), whose
  node has an ordinary endpoint for each (``served_endpoint.py``).
* ``card``: in the application, whose node is an ordinary one (``attached_card.py``). The card's side of its endpoints
  is in the agent (``served_card.py``): the cut is at the ring of events (``corridor.py``), the start of a pull, and the
  regions.

Between the two processes is a channel as between neighbours (``neighbours.py``): records in both directions, in order
and without loss, while both live.

========== ======================================================= ==========================================
record     from the application                                    answer
========== ======================================================= ==========================================
ATTACH     version of this protocol                                ANSWER: facts of the host; or REFUSED
OPEN       number, key and options of an endpoint                  ANSWER: its handle, number, session; slots
CLOSE      an endpoint                                             ANSWER, when its memory is not used any more
CONNECT    peer, endpoint number, key                              COMPLETED
SEND       a message, its memory, or nothing after its DATA        COMPLETED, and LOST if that was too early
RECEIVE    match information, mask, number of bytes                COMPLETED; DATA precedes a longer message
RETURN     a message that a receive has taken, for another one     none
CLAIM      identity of an unexpected message, bytes                ANSWER; COMPLETED, as for RECEIVE
PROBE      match information, mask                                 ANSWER: the message, if there is one
CANCEL     a request                                               ANSWER: whether it was cancelled
WAITING    a receive                                               ANSWER: whether it waits for a message
DISCONNECT a partner                                               ANSWER, after the requests that this ends
TIMEOUT    time of retransmissions, of an endpoint or a request    none
HANDLE     whether there is an unexpected handler                  OFFER per message, each answered by RESOLVE
SUSPEND    whether the library makes no progress                   none
FLUSH      number of calls so far                                  FLUSHED, when nothing is unacked
UNACKED    an endpoint                                             ANSWER: unacked messages per partner
ADD_PEER   address, name                                           ANSWER: index
SHARE      address and length of shared memory, passed by socket   ANSWER: whether the agent has mapped it
NAMES      whether to forget all names, and to query them          none
REGISTER   memory for other applications                           ANSWER: its token (``tokens.py``)
DEREGISTER tokens                                                  ANSWER: how many were released
PUT        token, bytes, offset in the region; data or memory      ANSWER, when the data is there
GET        token, bytes, offset in the region; memory or nothing   ANSWER, with the data unless memory was named
FRAME      (``card``) a frame of the library                       none
ANNOUNCE   (``card``) a region: number, partner, its memory        none
WITHDRAW   (``card``) a region that is released                    none
PULL       (``card``) source, bytes, time limit, memory            PULL_ENDED, after DATA if that is needed
LIMIT      (``card``) another time limit of a pull                 none
TAKEN      (``card``) number of arrivals whose slots are free      none
========== ======================================================= ==========================================

Unasked, the agent sends PEER (an entry of its peer table, before any record that refers to it), UNEXPECTED (the number
of unexpected messages of an endpoint, when it has changed), TRANSMITTED (of a connect), EVENT (a partner that has
restarted, or was lost), and ``card``: ARRIVED (a frame that the card has accepted), after FAILED (a region whose memory
could not be read) if the frame is its NOTIFY.

**Memory.** A message of up to 32 KiB is in a record. The agent reads and writes a longer one in the memory of the
application, by the addresses in the record of the call (``remote_segments.py``), so that it is copied once, as by the
card of a real host. Memory that the application has allocated for messages (SHARE) is mapped by both, other memory is
accessed through the kernel. Where a process may not access the memory of another one, and for a receive without a
buffer, DATA records carry the message.

**Order.** Each side takes the records in order, and each handles a record completely before the next. A message
therefore cannot overtake another one, however long: the data of a long message is in the channel before the record of
the next. A side whose channel is full keeps its records in a queue (:class:`RecordOutbox`), which holds views of long
messages, not copies.

**Trust.** Each side checks every number, length and handle that it receives. A record that no correct process sends
ends the channel. Addresses mean something in the application's own memory only; memory that does not exist there reads
as zeros, and the request ends as MESSAGE ABORTED. A call that the protocol does not allow, but that a correct
application may make (its peer has just left the table), ends with a status. An application can name only endpoints,
requests, partners and addresses of its own, and regions whose tokens it has been given.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Any, Final

import numpy as np

from mxwire.errors import InvalidRecordError, MxwireError
from mxwire.native import quick_struct
from mxwire.protocol.arguments import Segments
from mxwire.protocol.corridor import SHARED_THRESHOLD
from mxwire.protocol.library.endpoint import ENDPOINT_NUMBER_MAXIMUM
from mxwire.protocol.local_channel import LocalChannel
from mxwire.protocol.status import EventKind, LocalProtocolError, Status

AGENT_VERSION: Final = 3
"""Version of this protocol; both sides must have the same."""
INLINE_MAXIMUM: Final = 8 * SHARED_THRESHOLD
"""Maximum number of bytes of a message in one record."""
AGENT_HEAD: Final[Any] = quick_struct(Struct("=BBHI6Q"))
"""Kind, status, flags, handle of the endpoint, number of the request, partner, match information, mask, length, and a
further number, whose meaning depends on the kind. :func:`partner_number` and :func:`region_number` pack two numbers
into one of these."""
AGENT_HEAD_SIZE: Final[int] = AGENT_HEAD.size
_pack: Final[Callable[..., bytes]] = AGENT_HEAD.pack
_unpack: Final[Callable[..., tuple[int, int, int, int, int, int, int, int, int, int]]] = AGENT_HEAD.unpack_from
NO_PARTNER: Final = (1 << 64) - 1
_ENDPOINT_BITS: Final = 8
_USE_BITS: Final = 32
ANY_ENDPOINT: Final = 0xFFFF_FFFF
"""Number of an endpoint that the agent is to choose."""
OPEN_OPTIONS: Final = Struct("=IIQBBBB")
"""Key, interface, session (``NO_PARTNER``: a random one), context bits, context shift, acked sends, unused."""
UNACKED_ROW: Final = Struct("=QQ")
"""Partner, and number of messages that it has not acked."""
PULL_SOURCE: Final = Struct("=IBBHQ")
"""Session, region, use counter and offset of a message to pull, and the time limit of the pull in ns."""
TOKEN: Final = Struct("=Q")
SECONDS: Final = Struct("=d")
PLACE: Final = Struct("=QQ")
"""Address and length of a segment."""
FORWARDED_EVENTS: Final = (EventKind.PARTNER_CONNECTED, EventKind.PARTNER_RESTARTED, EventKind.PARTNER_LOST)
"""Events about a partner, by the number in their record."""
_STATUSES: Final = {int(each): each for each in Status}


class AgentRecord(IntEnum):
    """Kinds of records; see the table at the top of this file."""

    ATTACH = 1
    OPEN = 2
    CLOSE = 3
    CONNECT = 4
    SEND = 5
    RECEIVE = 6
    RETURN = 7
    PROBE = 8
    CANCEL = 9
    WAITING = 10
    DISCONNECT = 11
    TIMEOUT = 12
    HANDLE = 13
    RESOLVE = 14
    SUSPEND = 15
    FLUSH = 16
    UNACKED = 17
    ADD_PEER = 18
    NAMES = 19
    CLAIM = 21
    SHARE = 22
    REGISTER = 23
    DEREGISTER = 24
    PUT = 25
    GET = 26
    DATA = 20
    ANSWER = 32
    REFUSED = 33
    COMPLETED = 34
    LOST = 35
    UNEXPECTED = 36
    OFFER = 37
    FLUSHED = 38
    TRANSMITTED = 39
    PEER = 40
    EVENT = 41
    FRAME = 64
    TAKEN = 65
    PULL = 66
    LIMIT = 67
    ANNOUNCE = 68
    WITHDRAW = 69
    ARRIVED = 70
    PULL_ENDED = 71
    FAILED = 72


class RecordFlag(IntEnum):
    """Bits of the flags of a record."""

    YES = 1
    """The answer is yes: a handler is set, progress is suspended, a message was consumed, a request was cancelled, …"""
    DATA = 2
    """The record ends with the data of its message."""
    SYNCHRONOUS = 4
    """A synchronous send."""
    ONE_REQUEST = 8
    """The record concerns one request, not all of its endpoint."""
    UNLIMITED = 16
    """The default time applies."""
    HEARD = 32
    """A peer that was heard."""
    EXHAUSTED = 64
    """A connect that has ended at the resend limit."""
    STARVED = 128
    """There was no memory for the message."""
    IN_PLACE = 256
    """The record ends with addresses and lengths of the message's segments in the memory of the application."""
    CARD = 512
    """Only the card's side of an endpoint is opened: its library runs in the application."""


class AgentEndedError(MxwireError):
    """The agent has ended, or was left, so that all endpoints of the host are closed."""


class AgentRefusalError(LocalProtocolError):
    """A call that the agent has refused."""


def partner_number(index: int, endpoint: int) -> int:
    """The number of a partner: its index in the agent's peer table, and its endpoint number."""
    return index << _ENDPOINT_BITS | endpoint


def split_partner(number: int) -> tuple[int, int]:
    """Index and endpoint number of a partner's number."""
    return number >> _ENDPOINT_BITS, number & ENDPOINT_NUMBER_MAXIMUM


def region_number(region: int, use: int = 0) -> int:
    """The number of a region in the place of the mask: its id on the wire, and its use counter."""
    return region << _USE_BITS | use


class AgentHead:
    """The head of a record, decoded."""

    __slots__ = ("extra", "flags", "handle", "kind", "length", "mask", "match_info", "number", "partner", "status")

    def __init__(self, record: bytes | memoryview) -> None:
        """Decode ``record``; raise :class:`~mxwire.errors.InvalidRecordError` if it is too short, or has an unknown
        status."""
        if len(record) < AGENT_HEAD_SIZE:
            raise InvalidRecordError("a record without a whole head")
        fields = _unpack(record)
        self.kind: int = fields[0]
        status = _STATUSES.get(fields[1])
        if status is None:
            raise InvalidRecordError("an unknown status")
        self.status: Status = status
        self.flags: int = fields[2]
        self.handle: int = fields[3]
        self.number: int = fields[4]
        self.partner: int = fields[5]
        self.match_info: int = fields[6]
        self.mask: int = fields[7]
        self.length: int = fields[8]
        self.extra: int = fields[9]

    @property
    def peer_index(self) -> int:
        """The index of the partner in the agent's peer table."""
        return split_partner(self.partner)[0]

    @property
    def endpoint(self) -> int:
        """The endpoint number of the partner."""
        return split_partner(self.partner)[1]

    @property
    def region(self) -> int:
        """The id of a region, which may be too high."""
        return self.mask >> _USE_BITS

    @property
    def use(self) -> int:
        """The use counter of a region, which may be too high."""
        return self.mask & (1 << _USE_BITS) - 1

    @property
    def address(self) -> bytes:
        """The Ethernet address in the place of the partner, of records about a peer or a region."""
        return self.partner.to_bytes(8, "big")[2:]


class RecordOutbox:
    """The records of one side that are not in the channel yet, in order; data is held by views."""

    __slots__ = ("_queue", "channel")

    def __init__(self, channel: LocalChannel) -> None:
        self.channel = channel
        self._queue: deque[tuple[int, bytes, Any]] = deque()
        """Handle, head and data."""

    def __len__(self) -> int:
        """The number of records that wait for room."""
        return len(self._queue)

    def put(
        self,
        kind: AgentRecord,
        *,
        status: int = 0,
        flags: int = 0,
        handle: int = 0,
        number: int = 0,
        partner: int = NO_PARTNER,
        match_info: int = 0,
        mask: int = 0,
        length: int = 0,
        extra: int = 0,
        data: Any = b"",
    ) -> None:
        """Append a record, whose ``data`` must not change until it is in the channel; to an ended channel, none."""
        head = _pack(int(kind), status, flags, handle, number, partner, match_info, mask, length, extra)
        if (self._queue or not self.channel.put(head, data)) and not self.channel.ended:
            self._queue.append((handle, head, data))

    def put_data(self, handle: int, number: int, memory: Segments, length: int) -> None:
        """Append ``length`` bytes of a message as DATA; each record has the offset and the length of the whole."""
        for offset in range(0, length, INLINE_MAXIMUM):
            count = min(INLINE_MAXIMUM, length - offset)
            data: Any = memory.part(offset, count)
            if data is None:
                data = np.empty(count, np.uint8)
                memory.take(offset, data)
            self.put(AgentRecord.DATA, handle=handle, number=number, extra=offset, length=length, data=data)

    def flush(self) -> None:
        """Move records into the channel while there is room."""
        queue, channel = self._queue, self.channel
        while queue and channel.put(queue[0][1], queue[0][2]):
            queue.popleft()

    def drop(self, handle: int) -> None:
        """Drop the records of an endpoint that wait, since it closes."""
        self._queue = deque(each for each in self._queue if each[0] != handle)

    def clear(self) -> None:
        """Drop the records that wait."""
        self._queue.clear()
