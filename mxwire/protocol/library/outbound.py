"""Transmission: the sends of an application, and the packets that carry messages and NOTIFYs.

A send is *buffered* up to 32 KiB: its data is copied into a TINY, SMALL or MEDIUM packet, and the request ends when the
packet is first transmitted. A larger or synchronous send is announced by a RNDV, and ends when its receiver has pulled
the message and sent a NOTIFY (behaviour, sections 7 and 13).

Each kind of packet builds its own frames when it is emitted, and again when it is retransmitted, since the piggyback
differs. A message to an endpoint of the same host has no packet (``local_send.py``).
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Final

from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.protocol.arguments import Segments
from mxwire.protocol.card.replies import Region
from mxwire.protocol.counters import Counter
from mxwire.protocol.library.partner import LibraryEndpoint, Partner, Request, RequestKind
from mxwire.protocol.library.reliability import Delivery, NumberedPacket
from mxwire.protocol.profile import Profile
from mxwire.protocol.state_machine import TransitionTable
from mxwire.protocol.status import EventKind, Status
from mxwire.wire.dialect import Dialect
from mxwire.wire.enums import PacketType
from mxwire.wire.formats import MEDIUM_MXOE
from mxwire.wire.numbers import NO_PEER_INDEX, RNDV_LENGTH, TINY_MAXIMUM

_LOW: Final = 0xFFFF_FFFF

# Packets.

# Looking up a member of an enumeration takes as long as packing a number, and these are used for each message.
_TINY: Final = int(PacketType.TINY)
_SMALL: Final = int(PacketType.SMALL)
_MEDIUM: Final = int(PacketType.MEDIUM)
_RNDV: Final = int(PacketType.RNDV)
_NOTIFY: Final = int(PacketType.NOTIFY)
_SUCCESS: Final = Status.SUCCESS


def fragment_pipeline(profile: Profile, dialect: Dialect) -> int | None:
    """Base-2 logarithm of the length of a full MEDIUM fragment; None if the format has no field for it."""
    if dialect.medium_format is not MEDIUM_MXOE:
        return None
    return profile.fragment_pipeline or dialect.fragment_payload.bit_length() - 1


def fragment_length(profile: Profile, dialect: Dialect) -> int:
    """Length in bytes of a full MEDIUM fragment (R-SND-03)."""
    pipeline = fragment_pipeline(profile, dialect)
    return dialect.fragment_payload if pipeline is None else 1 << pipeline


def medium_threshold(profile: Profile, dialect: Dialect) -> int:
    """Maximum length in bytes of a message that is sent as MEDIUM (R-SND-01)."""
    return min(profile.medium_threshold, fragment_length(profile, dialect) * dialect.fragments_maximum)


class EagerDelivery(Delivery):
    """A message of up to 128 bytes in one frame: TINY or SMALL (R-SND-01). It is also its own packet, because a second
    object per message would cost time."""

    __slots__ = ("data", "match_info")

    def __init__(self, partner: Partner, match_info: int, data: bytes, owner: BufferedSend, maximum: int) -> None:
        super().__init__(partner, None, owner, maximum)
        self.match_info = match_info
        self.data = data

    def release(self) -> None:
        """Release the data."""
        self.data = b""

    def emit(self, piggyback: int) -> bool:
        """Build the frame, and queue it at the port."""
        partner = self.partner
        port = partner.port
        length = len(self.data)
        index = partner.peer.reverse.get(port.number, NO_PEER_INDEX)
        if index != partner.eager_index:
            _pack_heads(partner, index)
        if length <= TINY_MAXIMUM:
            head, header = partner.tiny_head, port.tiny
        else:
            head, header = partner.small_head, port.small
        header.sent.count += 1
        frame = header.pack(
            head,
            # The checksum, in bits 32 to 47, is 0 as in a release build (wire format, section 8).
            length << 48 | self.sequence << 16 | piggyback,
            self.match_info,
            self.session,
            self.data,
        )
        if length > header.room:
            frame += self.data[header.room :]
        port.outgoing.put(frame)
        return False


def _pack_heads(partner: Partner, index: int) -> None:
    """Pack the part of the headers that all messages to a partner of one type share; ``index`` is the peer index in
    it."""
    port = partner.port
    first = (partner.peer.address, port.address, ETHERTYPE_MXOE, index)
    last = (partner.number, partner.endpoint.number)
    partner.eager_index = index
    partner.tiny_head, partner.small_head = port.tiny.head(*first, _TINY, *last), port.small.head(*first, _SMALL, *last)
    partner.medium_head = port.tiny.head(*first, _MEDIUM, *last)


class MediumDelivery(EagerDelivery):
    """A message in fragments of ``fragment`` bytes, which are always transmitted together (R-SND-03, R-RTX-02)."""

    __slots__ = ("_fragment", "_pipeline")

    def __init__(
        self,
        partner: Partner,
        match_info: int,
        data: bytes,
        owner: BufferedSend,
        maximum: int,
        fragment: int,
        pipeline: int | None,
    ) -> None:
        super().__init__(partner, match_info, data, owner, maximum)
        self._fragment = fragment
        self._pipeline = 0 if pipeline is None else pipeline

    def emit(self, piggyback: int) -> bool:
        """Build all fragments, and queue them at the port."""
        partner = self.partner
        port = partner.port
        data, fragment = self.data, self._fragment
        length = len(data)
        index = partner.peer.reverse.get(port.number, NO_PEER_INDEX)
        if index != partner.eager_index:
            _pack_heads(partner, index)
        # The checksum is 0 as in a release build (wire format, section 8).
        head: bytes = port.medium.pack(
            partner.medium_head,
            length,
            self.sequence << 16 | piggyback,
            self.match_info,
            self.session,
            min(fragment, length) << 16 | self._pipeline,
        )
        shortest = port.medium_shortest
        if length <= fragment:
            frame = head + data
            port.outgoing.put(frame if len(frame) >= shortest else frame + bytes(shortest - len(frame)))
            port.medium_sent.count += 1
            return True
        count = -(-length // fragment)
        port.medium_sent.count += count
        if port.outgoing.gathers:
            lengths = [fragment] * (count - 1) + [length - (count - 1) * fragment]
            port.outgoing.put_gathered(port.fragments.gather(head, data, 0, 0, lengths))
            return True
        at, place = port.fragment_place
        before, behind = head[:at], head[at + place.size :]
        for number in range(count):
            part = data[number * fragment : (number + 1) * fragment]
            frame = before + place.pack(len(part), number) + behind + part
            port.outgoing.put(frame if len(frame) >= shortest else frame + bytes(shortest - len(frame)))
        return True


class RndvPacket(NumberedPacket):
    """The announcement of a message that may be pulled (R-RDV-01)."""

    __slots__ = ("match_info", "memory", "region")

    def __init__(self, match_info: int, memory: Segments) -> None:
        self.match_info = match_info
        self.memory = memory
        self.region: Region | None = None
        """The region of the message, set before the first transmission."""

    def emit(self, delivery: Delivery, piggyback: int) -> bool:
        """Build the frame, and queue it at the port."""
        region, partner = self.region, delivery.partner
        assert region is not None
        port = partner.port
        port.counters[Counter.SEND_RNDV] += 1
        port.outgoing.put(
            port.rndv.pack(
                partner.peer.address,
                port.address,
                ETHERTYPE_MXOE,
                partner.peer.index_for(port.number),
                _RNDV,
                partner.number,
                partner.endpoint.number,
                RNDV_LENGTH,
                # The checksum is 0 as in a release build (wire format, section 8).
                0,
                delivery.sequence,
                piggyback,
                self.match_info >> 32,
                self.match_info & _LOW,
                delivery.session,
                self.memory.length,
                region.number,
                region.use,
                region.offset,
            )
        )
        return False


class NotifyPacket(NumberedPacket):
    """The announcement to the sender that its message was pulled (R-NOT-01)."""

    __slots__ = ("region", "transferred", "use")

    def __init__(self, region: int, use: int, transferred: int) -> None:
        self.region = region
        self.use = use
        self.transferred = transferred
        """Number of bytes pulled, 0 if the pull failed."""

    def emit(self, delivery: Delivery, piggyback: int) -> bool:
        """Build the frame, and queue it at the port."""
        partner = delivery.partner
        port = partner.port
        port.counters[Counter.SEND_NOTIFY] += 1
        port.outgoing.put(
            port.notify.pack(
                partner.peer.address,
                port.address,
                ETHERTYPE_MXOE,
                partner.peer.index_for(port.number),
                _NOTIFY,
                partner.number,
                partner.endpoint.number,
                delivery.session,
                self.transferred,
                self.region,
                self.use,
                delivery.sequence,
                piggyback,
            )
        )
        return False


# Sends.


class SendState(StrEnum):
    """States of a buffered send, as the application sees it."""

    WAITING = "waiting"
    POSTED = "posted"
    DONE = "done"


class SendEvent(StrEnum):
    """Events of a buffered send."""

    POSTED = "posted"
    ACK = "acked"
    LOST = "lost"


def _report_undelivered(send: BufferedSend, status: Status) -> None:
    send.late_status = status
    send.endpoint.report(EventKind.UNDELIVERED, send)


BUFFERED_SEND: Final = TransitionTable(
    "buffered send",
    SendState.WAITING,
    (
        (SendState.WAITING, SendEvent.POSTED, SendState.POSTED, Request.finish, ("R-SND-06",)),
        (SendState.WAITING, SendEvent.LOST, SendState.DONE, Request.finish, ("R-CLS-05",)),
        (SendState.POSTED, SendEvent.ACK, SendState.DONE, None, ("R-ACK-05",)),
        (SendState.POSTED, SendEvent.LOST, SendState.DONE, _report_undelivered, ("R-CLS-02", "R-NAK-05")),
    ),
)


_POSTED: Final = BUFFERED_SEND.row(SendState.WAITING, SendEvent.POSTED)
_ACKED: Final = BUFFERED_SEND.row(SendState.POSTED, SendEvent.ACK)

ACKED_SEND: Final = TransitionTable(
    "send that is complete when acked",
    SendState.WAITING,
    (
        (SendState.WAITING, SendEvent.POSTED, SendState.POSTED, None, ("R-SND-06",)),
        (SendState.WAITING, SendEvent.LOST, SendState.DONE, Request.finish, ("R-CLS-05",)),
        (SendState.POSTED, SendEvent.ACK, SendState.DONE, Request.finish, ("R-ACK-05",)),
        (SendState.POSTED, SendEvent.LOST, SendState.DONE, Request.finish, ("R-CLS-02", "R-NAK-05")),
    ),
)


class BufferedSend(Request):
    """A send of a TINY, SMALL or MEDIUM: complete for the application as soon as it is posted (R-SND-06)."""

    __slots__ = ("late_status",)

    kind = RequestKind.SEND
    table = BUFFERED_SEND
    buffered: ClassVar[bool] = True

    def __init__(
        self,
        endpoint: LibraryEndpoint,
        partner: Partner | None,
        match_info: int,
        length: int,
        table: TransitionTable = BUFFERED_SEND,
    ) -> None:
        super().__init__(table, endpoint, partner, match_info, length)
        self.late_status: Status | None = None
        """The reason if the message was lost after it had been reported complete."""

    def posted(self) -> None:
        """Complete the send for the application, since its packet has been transmitted."""
        self.follow(_POSTED)
        self.finish(_SUCCESS, self.length)

    def acked(self) -> None:
        """Note that the partner has the message."""
        self.follow(_ACKED)

    def lost(self, status: Status) -> None:
        """Note that the partner will not have the message."""
        self.fire(SendEvent.LOST, status)


class AckedSend(BufferedSend):
    """A send of a TINY, SMALL or MEDIUM that is complete for the application when the partner has acked it."""

    __slots__ = ()

    table = ACKED_SEND

    def __init__(self, endpoint: LibraryEndpoint, partner: Partner | None, match_info: int, length: int) -> None:
        super().__init__(endpoint, partner, match_info, length, ACKED_SEND)

    def posted(self) -> None:
        """Note that the packet has been transmitted."""
        self.fire(SendEvent.POSTED)

    def acked(self) -> None:
        """Complete the send."""
        self.fire(SendEvent.ACK, Status.SUCCESS, self.length)


class LargeSendState(StrEnum):
    """States of a large send."""

    WAITING = "waiting"
    ANNOUNCED = "announced"
    PULLABLE = "acked, waits for notify"
    NOTIFIED = "notified, not acked"
    DONE = "done"


class LargeSendEvent(StrEnum):
    """Events of a large send."""

    POSTED = "rndv posted"
    ACK = "rndv acked"
    NOTIFY = "notify"
    LOST = "rndv lost"
    RESET = "partner reset"


def _complete_large(send: LargeSend, _status: Status = Status.SUCCESS) -> None:
    region = send.packet.region
    if region is not None and region.failed:
        status = Status.MESSAGE_ABORTED
    else:
        status = Status.MESSAGE_TRUNCATED if send.pulled < send.length else Status.SUCCESS
    send.finish(status, send.pulled)


def _fail_large(send: LargeSend, status: Status) -> None:
    send.release_region()
    send.finish(status)


LARGE_SEND: Final = TransitionTable(
    "large send",
    LargeSendState.WAITING,
    (
        (LargeSendState.WAITING, LargeSendEvent.POSTED, LargeSendState.ANNOUNCED, None, ("R-RDV-01",)),
        (LargeSendState.WAITING, LargeSendEvent.LOST, LargeSendState.DONE, _fail_large, ("R-CLS-05",)),
        (LargeSendState.ANNOUNCED, LargeSendEvent.ACK, LargeSendState.PULLABLE, None, ("R-RTX-02",)),
        (LargeSendState.ANNOUNCED, LargeSendEvent.NOTIFY, LargeSendState.NOTIFIED, None, ("R-NOT-03",)),
        (LargeSendState.ANNOUNCED, LargeSendEvent.LOST, LargeSendState.DONE, _fail_large, ("R-NAK-05", "R-CLS-05")),
        (LargeSendState.PULLABLE, LargeSendEvent.NOTIFY, LargeSendState.DONE, _complete_large, ("R-NOT-02",)),
        (LargeSendState.PULLABLE, LargeSendEvent.RESET, LargeSendState.DONE, _fail_large, ("R-CLS-05",)),
        (LargeSendState.NOTIFIED, LargeSendEvent.ACK, LargeSendState.DONE, _complete_large, ("R-NOT-03",)),
        # The receiver has announced its success, so the loss of the RNDV's ack changes nothing.
        (LargeSendState.NOTIFIED, LargeSendEvent.LOST, LargeSendState.DONE, _complete_large, ("R-NOT-03",)),
    ),
)


class LargeSend(Request):
    """A send of a RNDV: complete when the receiver's NOTIFY has announced the number of bytes pulled."""

    __slots__ = ("packet", "pulled")

    kind = RequestKind.SEND
    table = LARGE_SEND
    buffered: ClassVar[bool] = False

    def __init__(self, endpoint: LibraryEndpoint, partner: Partner, packet: RndvPacket) -> None:
        super().__init__(LARGE_SEND, endpoint, partner, packet.match_info, packet.memory.length)
        self.packet = packet
        self.pulled = 0
        """Number of bytes in the NOTIFY."""

    @property
    def requested(self) -> int:
        """Number of bytes requested by the receiver."""
        return 0 if self.packet.region is None else self.packet.region.requested

    def posted(self) -> None:
        """Note the first transmission of the RNDV."""
        self.fire(LargeSendEvent.POSTED)

    def acked(self) -> None:
        """Note that the partner has the RNDV, which is not retransmitted from now on (R-RTX-02)."""
        self.fire(LargeSendEvent.ACK)

    def lost(self, status: Status) -> None:
        """Note that the partner will not have the RNDV."""
        self.fire(LargeSendEvent.LOST, status)

    def notified(self, transferred: int) -> None:
        """Note that the partner has pulled ``transferred`` bytes (R-NOT-02)."""
        if self.can(LargeSendEvent.NOTIFY):
            self.pulled = min(transferred, self.length)
            self.release_region()
            self.fire(LargeSendEvent.NOTIFY)

    def reset(self, status: Status) -> None:
        """End the send, if it waits for its NOTIFY, since the partner was reset."""
        if self.can(LargeSendEvent.RESET):
            self.fire(LargeSendEvent.RESET, status)

    def provide_region(self) -> None:
        """Register the message as a region (R-RDV-01)."""
        endpoint, partner = self.endpoint, self.partner
        assert partner is not None
        region = endpoint.card.regions.register(
            self.packet.memory, endpoint.profile.region_offset, partner.peer.address
        )
        self.packet.region = region
        endpoint.rendezvous += 1
        partner.large_sends[region.number, region.use] = self

    def release_region(self) -> None:
        """Release the region; the packet keeps its numbers, since the RNDV may be retransmitted."""
        region, partner = self.packet.region, self.partner
        assert partner is not None
        if region is not None and partner.large_sends.pop((region.number, region.use), None) is not None:
            self.endpoint.card.regions.release(region)
            self.endpoint.rendezvous -= 1
