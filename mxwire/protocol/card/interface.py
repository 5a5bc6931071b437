"""The card's side of an interface: checks each frame in the order of the real driver, and answers for the card.

Packets for the library and those of discovery are taken here, transfers by the base class (``transfers.py``).

Dropped frames are counted under the driver's own names (behaviour, sections 21 and 25). Sequence numbers and match
information are read by the library only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from struct import Struct
from typing import Any, Final

from mxwire.native import quick_struct
from mxwire.protocol.card.endpoint import CardEndpoint, HandleSlots
from mxwire.protocol.card.outgoing import EAGER_NUMBERS, fragment_struct
from mxwire.protocol.card.pull import PullTimers
from mxwire.protocol.card.replies import REPLY_FORM
from mxwire.protocol.card.transfers import DESTINATION_END, ETHERTYPE_BYTES, TYPE_END, TYPE_START, TransferPort
from mxwire.protocol.corridor import (
    Arrival,
    EagerArrival,
    Fragment,
    LibackArrival,
    NotifyArrival,
    RndvArrival,
    fragment_of,
    notify_of,
    rndv_of,
)
from mxwire.protocol.counters import Counter, Tally
from mxwire.protocol.discovery import RawQueue
from mxwire.protocol.name_search import Names
from mxwire.protocol.peers import Peer, PeerTable
from mxwire.protocol.profile import Defect, Profile
from mxwire.protocol.state_machine import Queue
from mxwire.wire.checks import Reason
from mxwire.wire.codec import Codec, Malformed
from mxwire.wire.dialect import Dialect
from mxwire.wire.enums import NackType, PacketType, TrucType
from mxwire.wire.layout import TYPE_OFFSET
from mxwire.wire.numbers import LIBACK_LENGTH, RNDV_LENGTH, SMALL_MAXIMUM, TINY_MAXIMUM
from mxwire.wire.packets import (
    Announcement,
    ConnectReply,
    ConnectRequest,
    Frame,
    HostQuery,
    HostReply,
    Medium,
    NackLib,
    NackMcp,
    Notify,
    Pull,
    PullReply,
    Raw,
    Rndv,
    Small,
    Tiny,
    Truc,
)

_REASONS: Final = {
    Reason.BAD_HEADER_LENGTH: Counter.DROP_BAD_HEADER_LENGTH,
    Reason.CUT_BY_CAPTURE: Counter.DROP_BAD_HEADER_LENGTH,
    Reason.INVALID_TYPE: Counter.DROP_INVALID_TYPE,
    Reason.UNKNOWN_TYPE: Counter.DROP_UNKNOWN_TYPE,
    Reason.BAD_DATA_LENGTH: Counter.DROP_BAD_DATA_LENGTH,
    Reason.BAD_FRAME_LENGTH: Counter.DROP_BAD_FRAME_LENGTH,
    Reason.RAW_TOO_LARGE: Counter.DROP_RAW_TOO_LARGE,
}
_RECEIVED: Final[dict[type[Frame], Counter]] = {
    Tiny: Counter.RECV_TINY,
    Small: Counter.RECV_SMALL,
    Medium: Counter.RECV_MEDIUM_FRAG,
    Rndv: Counter.RECV_RNDV,
    Notify: Counter.RECV_NOTIFY,
    ConnectRequest: Counter.RECV_CONNECT_REQUEST,
    ConnectReply: Counter.RECV_CONNECT_REPLY,
    Truc: Counter.RECV_LIBACK,
    NackLib: Counter.RECV_NACK_LIB,
}
_LONG_QUERY: Final = 1500
"""Minimum length in bytes of a HOST_QUERY whose magic the real driver loses (R-MEA-07)."""
_HEAD_FIELDS: Final = ("src_mac", "dst_src_peer_index", "dst_endpoint", "src_endpoint")
_LIBACK_FIELDS: Final = (
    "length",
    "session",
    "liback.type",
    "liback.lib_seqnum",
    "liback.session_id",
    "liback.acknum",
)
_RNDV_FIELDS: Final = (
    "length",
    "lib_seqnum",
    "lib_piggyack",
    "match_a",
    "match_b",
    "session",
    "msg_length",
    "pulled_rdma_id",
    "pulled_rdma_seqnum",
    "pulled_rdma_offset",
)
_NOTIFY_FIELDS: Final = (
    "session",
    "total_length",
    "pulled_rdma_id",
    "pulled_rdma_seqnum",
    "lib_seqnum",
    "lib_piggyack",
)
_KNOWN_MAXIMUM: Final = 1024
"""Maximum number of entries for senders and packet types: more than the usual number of partners."""
_NEVER: Final = 1 << 32
# Compiled code looks up a number of an interpreted module by its name.
_TYPE_OFFSET: Final[int] = TYPE_OFFSET
_PULL: Final = int(PacketType.PULL)
_PULL_REPLY: Final = int(PacketType.PULL_REPLY)
_ACK_TYPE: Final = int(TrucType.ACK)
_VLAN_TAGS: Final = (b"\x81\x00", b"\x88\xa8")


class HeaderReader:
    """A reader of the header fields that decide whether a packet for the library is accepted: a TINY, SMALL, MEDIUM,
    RNDV, NOTIFY or TRUC."""

    __slots__ = ("header_end", "maximum", "read", "read_head", "received")

    def __init__(self, codec: Codec, name: str, maximum: int, received: Tally, form: Struct) -> None:
        fields = quick_struct(form)
        self.read: Callable[[bytes], Any] = fields.unpack_from
        self.read_head: Callable[[bytes], tuple[bytes, int, int, int]] = codec.reader(name, *_HEAD_FIELDS).unpack_from
        self.header_end: int = fields.size
        self.maximum = maximum
        """Maximum length in bytes of the data in a packet; 0 for packets without."""
        self.received = received
        """The counter of frames of this type."""


class KnownSender:
    """The result of checking the first part of a packet for the library, which is the same in all packets of its type
    from one endpoint."""

    __slots__ = ("endpoint", "peer", "reader", "sender")

    def __init__(self, reader: HeaderReader, endpoint: CardEndpoint, peer: Peer, sender: int) -> None:
        self.reader = reader
        self.endpoint = endpoint
        self.peer = peer
        self.sender = sender
        """``src_endpoint``."""


class HostInterface(TransferPort):
    """One interface ("board") of a host: the port for frames to transmit, and the checks of received ones."""

    def __init__(
        self,
        number: int,
        address: bytes,
        hostname: str,
        dialect: Dialect,
        profile: Profile,
        peers: PeerTable,
        names: Names,
        raw: RawQueue,
        rng: Random,
    ) -> None:
        super().__init__(number, address, hostname, dialect, profile, peers)
        self.names = names
        self.raw = raw
        self.rng = rng
        self.ready: Queue[CardEndpoint] = Queue()
        """The endpoints with new events in their ring, each once: see :meth:`CardEndpoint.announce`. Those that have
        closed stay until the next pass."""
        self._known: dict[bytes, KnownSender] = {}
        """The senders whose packets for the library have been accepted, by the first part of their headers."""
        self._newest_head = b""
        self._newest: KnownSender | None = None
        """The sender of the newest frame, if it is known."""
        self.slots: dict[int, HandleSlots] = {}
        self.timers = PullTimers(profile)
        self._long_query = _LONG_QUERY if profile.has(Defect.LONG_QUERY_LOSES_MAGIC) else _NEVER
        self._refuse = self._nack_lib
        received = self.counters.by_name
        codec, eager = self.codec, Struct(f">{self.tiny.shared}x{EAGER_NUMBERS}")
        liback = codec.reader("truc", *_LIBACK_FIELDS)
        fragment = fragment_struct(codec, "x")
        self._pipelined = "frag_pipeline" in codec.layout("medium").by_name
        self._truc_reader = HeaderReader(codec, "truc", 0, received[Counter.RECV_LIBACK], liback)
        self._medium_reader = HeaderReader(
            codec, "medium", dialect.receive_slot, received[Counter.RECV_MEDIUM_FRAG], fragment
        )
        rndv, notify = codec.reader("rndv", *_RNDV_FIELDS), codec.reader("notify", *_NOTIFY_FIELDS)
        self._rndv_reader = HeaderReader(codec, "rndv", 0, received[Counter.RECV_RNDV], rndv)
        self._notify_reader = HeaderReader(codec, "notify", 0, received[Counter.RECV_NOTIFY], notify)
        self._readers: dict[int, HeaderReader] = {
            PacketType.TINY: HeaderReader(codec, "tiny", TINY_MAXIMUM, received[Counter.RECV_TINY], eager),
            PacketType.SMALL: HeaderReader(codec, "small", SMALL_MAXIMUM, received[Counter.RECV_SMALL], eager),
            PacketType.MEDIUM: self._medium_reader,
            PacketType.RNDV: self._rndv_reader,
            PacketType.NOTIFY: self._notify_reader,
            PacketType.TRUC: self._truc_reader,
        }
        self._take: dict[type, Callable[[Any, int], None]] = {
            Malformed: self._take_malformed,
            HostQuery: self._take_query,
            HostReply: self._take_reply,
            Truc: self._take_truc,
            Pull: self._take_pull,
            PullReply: self._take_pull_reply,
            NackLib: self._take_nack_lib,
            NackMcp: self._take_nack_mcp,
            **dict.fromkeys((Raw, Announcement), self._take_raw),
            **dict.fromkeys((ConnectRequest, ConnectReply), self._take_connect),
            **dict.fromkeys((Tiny, Small, Medium, Rndv, Notify), self._take_message),
        }

    def open(self, number: int, session: int) -> CardEndpoint:
        """Open an endpoint. Its pull handles follow those of the last endpoint with this number, so that they do not
        recur, except with D-13."""
        slots = self.slots.get(number)
        if slots is None or self.profile.has(Defect.HANDLES_REUSED):
            slots = self.slots[number] = HandleSlots(self.profile.pull_maximum)
        endpoint = CardEndpoint(self, number, session, slots, self.timers, self.ready, self.rng)
        self.endpoints[number] = endpoint
        return endpoint

    def close(self, endpoint: CardEndpoint) -> None:
        """Remove an endpoint; its running pulls continue as orphans."""
        del self.endpoints[endpoint.number]
        # The entries refer to endpoints, and are found again by the next packet of each sender.
        self._known.clear()
        self._newest_head, self._newest = b"", None
        endpoint.close()

    def forget_sender(self, peer: Peer) -> None:
        """Forget what is known of the packets of a peer that was removed."""
        gone = [head for head, known in self._known.items() if known.peer is peer]
        for head in gone:
            del self._known[head]
        if gone:
            self._newest_head, self._newest = b"", None

    # Receiving.

    def take_few(self, frames: list[bytes], now: int) -> None:
        """Take single frames in order; PULLs of consecutive blocks are answered together (R-PUL-12)."""
        place, last = 0, len(frames)
        while place < last:
            frame, count = frames[place], 0
            kind = frame[_TYPE_OFFSET] if len(frame) > _TYPE_OFFSET else 0
            if kind == _PULL:
                count = self._take_pulls(frames, place)
            elif kind == _PULL_REPLY and REPLY_FORM is not None:
                count = self._take_replies(frames, place, now)
            if not count:
                self.take(frame, now)
                count = 1
            place += count

    def take(self, frame: bytes, now: int) -> None:
        """Check one frame, and act on it."""
        if len(frame) > _TYPE_OFFSET and frame[_TYPE_OFFSET] == _PULL_REPLY and self._take_data(frame, now):
            return
        head = frame[: self.tiny.shared]
        if head != self._newest_head:
            # Most frames come from the sender of the one before.
            self._newest_head, self._newest = head, self._known.get(head)
        if self._newest is not None and self._take_known(frame, self._newest):
            return
        if frame[TYPE_START:TYPE_END] != ETHERTYPE_BYTES:
            if frame[TYPE_START:TYPE_END] not in _VLAN_TAGS or not self.promiscuous:
                return
            # A tagged frame that passes the card is handled like an untagged one (R-MEA-06).
            frame = frame[:12] + frame[16:]
            if frame[TYPE_START:TYPE_END] != ETHERTYPE_BYTES:
                return
        if frame[:DESTINATION_END] != self.address and not self.promiscuous and not self.is_for_us(frame):
            return
        reader = self._readers.get(frame[_TYPE_OFFSET]) if len(frame) > _TYPE_OFFSET else None
        if reader is not None and self._take_quickly(frame, reader):
            return
        parsed = self.codec.parse(frame)
        if len(frame) >= self._long_query and type(parsed) is HostQuery:
            parsed = replace(parsed, magic=0)
        self._take[type(parsed)](parsed, now)

    def _take_malformed(self, frame: Malformed, _now: int) -> None:
        if frame.reason == Reason.RAW_TOO_LARGE and self.raw.full:
            # "Queue full" is tested before "too large" (R-MEA-10).
            self.counters[Counter.DROP_RAW_QUEUE_FULL] += 1
            return
        if frame.packet_type == PacketType.PULL_REPLY and frame.reason == Reason.BAD_FRAME_LENGTH:
            self.counters[Counter.RECV_PULL_REPLY] += 1
        self.counters[_REASONS[frame.reason]] += 1

    def _take_raw(self, frame: Raw | Announcement, _now: int) -> None:
        """Queue a frame for the discovery program, even if none runs (R-DISC-06)."""
        self.counters[Counter.RECV_RAW if self.raw.put(frame) else Counter.DROP_RAW_QUEUE_FULL] += 1

    def _take_query(self, frame: HostQuery, _now: int) -> None:
        """Answer a HOST_QUERY (R-HOST-04 to R-HOST-06)."""
        if frame.dst_mac != self.address:
            return
        self.counters[Counter.RECV_HOST_QUERY] += 1
        peer = self._peer_by_address(frame.src_mac)
        if peer is None:
            self.names.keep(self, frame)
            return
        peer.learn(self.number, frame.src_dst_peer_index)
        self.names.answer(self, peer, frame)
        self.names.revive(peer)

    def _take_reply(self, frame: HostReply, _now: int) -> None:
        """Learn the host name in a HOST_REPLY (R-HOST-07)."""
        if frame.magic != self.names.magic:
            self.counters[Counter.DROP_HOST_REPLY_BAD_MAGIC] += 1
            return
        self.counters[Counter.RECV_HOST_REPLY] += 1
        peer = self._peer_by_address(frame.src_mac)
        if peer is None:
            return
        peer.learn(self.number, frame.src_dst_peer_index)
        self.names.learn(peer, frame)

    def _take_connect(self, frame: ConnectRequest | ConnectReply, _now: int) -> None:
        """Take a connect packet: it is identified by its source address, and its index is learnt first (R-HOST-09)."""
        peer = self._peer_by_address(frame.src_mac)
        if peer is None:
            return
        self.names.revive(peer)
        peer.learn(self.number, frame.src_dst_peer_index)
        endpoint = self.endpoints.get(frame.dst_endpoint)
        if endpoint is None:
            if self.elsewhere(frame.dst_endpoint) or not self.speaks():
                return
            self.counters[Counter.DROP_BAD_ENDPOINT] += 1
            self._nack_lib(peer, self._missing(frame.dst_endpoint), frame)
            return
        self._deliver(endpoint, Arrival(peer, frame, frame.src_endpoint), frame)

    def _take_message(self, frame: Any, _now: int) -> None:
        """Check peer index, endpoint and session of TINY, SMALL, MEDIUM, RNDV and NOTIFY, in this order (R-NAK-01)."""
        target = self._target(frame, self._refuse)
        if target is not None:
            arrival = _ARRIVALS.get(type(frame), _plain_arrival)(target[1], frame)
            self._deliver(target[0], arrival, frame)

    def _take_quickly(self, frame: bytes, reader: HeaderReader) -> bool:
        """Take a packet for the library that passes all checks; return False, and do nothing, for any other frame.

        The effect is that of :meth:`_take_message` or :meth:`_take_truc`, in a fraction of the time.
        """
        if len(frame) < reader.header_end:
            return False
        source, index, number, sender = reader.read_head(frame)
        peer, endpoint = self.peers.entries.get(index), self.endpoints.get(number)
        if peer is None or endpoint is None or (self.strict_address and peer.address != source):
            return False
        known = KnownSender(reader, endpoint, peer, sender)
        if not self._take_known(frame, known):
            return False
        # Do not store the sender of a frame that only a promiscuous interface accepts, because the mode may change.
        if self.is_for_us(frame):
            if len(self._known) >= _KNOWN_MAXIMUM:
                # The oldest sender may have closed long ago.
                del self._known[next(iter(self._known))]
            head = self._newest_head = frame[: self.tiny.shared]
            self._known[head] = self._newest = known
        return True

    def _take_known(self, frame: bytes, known: KnownSender) -> bool:
        """Take a frame whose first part is known to be correct; return False if the rest is not."""
        reader, endpoint = known.reader, known.endpoint
        end = reader.header_end
        if len(frame) < end:
            return False
        arrival: Arrival
        if reader is self._truc_reader:
            liback: tuple[int, int, int, int, int, int] = reader.read(frame)
            length, session, kind, sequence, inner, count = liback
            if kind != _ACK_TYPE or length < LIBACK_LENGTH or not session == inner == endpoint.session:
                return False
            arrival = LibackArrival(known.peer, known.sender, sequence, count)
        elif reader is self._medium_reader:
            fragment: tuple[int, int, int, int, int] = reader.read(frame)
            whole, both, info, session, place = fragment
            size, number, shift = place >> 16, place >> 8 & 0xFF, place & 0xFF if self._pipelined else None
            if size > reader.maximum or size > len(frame) - end or session != endpoint.session:
                return False
            arrival = Fragment(
                known.peer, known.sender, both >> 16, both & 0xFFFF, info, whole, shift, number, frame, end, size
            )
        elif reader is self._rndv_reader:
            rndv: Any = reader.read(frame)
            if rndv[0] < RNDV_LENGTH or rndv[5] != endpoint.session:
                return False
            info = rndv[3] << 32 | rndv[4]
            arrival = RndvArrival(known.peer, known.sender, rndv[1], rndv[2], info, rndv[6], rndv[7], rndv[8], rndv[9])
        elif reader is self._notify_reader:
            notify: tuple[int, int, int, int, int, int] = reader.read(frame)
            session, transferred, region, use, sequence, piggyback = notify
            if session != endpoint.session:
                return False
            arrival = NotifyArrival(known.peer, known.sender, sequence, piggyback, region, use, transferred)
        else:
            eager: tuple[int, int, int] = reader.read(frame)
            first, info, session = eager
            length = first >> 48
            if length > reader.maximum or length > len(frame) - end or session != endpoint.session:
                return False
            arrival = EagerArrival(
                known.peer, known.sender, (first >> 16) & 0xFFFF, first & 0xFFFF, info, frame, end, length
            )
        # The caller then checks the frame from scratch, and counts the drop.
        if not endpoint.ring.push(arrival):
            return False
        reader.received.count += 1
        # As CardEndpoint.announce, without a call.
        if not endpoint.ready:
            endpoint.ready = True
            self.ready.append(endpoint)
        return True

    def _deliver(self, endpoint: CardEndpoint, arrival: Arrival, frame: Frame) -> None:
        """Put a frame into the ring of an endpoint."""
        if endpoint.ring.push(arrival):
            self.counters[_RECEIVED[type(frame)]] += 1
            endpoint.announce()
        else:
            self.counters[Counter.DROP_RING_FULL] += 1

    def _take_truc(self, frame: Truc, _now: int) -> None:
        """Check a liback: index, endpoint, session, sub-type, length, inner session. It is never nacked (R-ACK-10)."""
        target = self._target(frame, _keep_silent)
        if target is None or frame.liback_type != TrucType.ACK:
            return
        endpoint, peer = target
        if frame.length < LIBACK_LENGTH:
            self.counters[Counter.DROP_BAD_DATA_LENGTH] += 1
        elif frame.liback_session_id != endpoint.session:
            self.counters[Counter.DROP_BAD_SESSION] += 1
        else:
            self._deliver(endpoint, Arrival(peer, frame, frame.src_endpoint), frame)

    def _take_nack_lib(self, frame: NackLib, _now: int) -> None:
        """Take a refusal for the library (R-NAK-04)."""
        peer = self._peer_of_nack(frame)
        if peer is None:
            return
        endpoint = self.endpoints.get(frame.dst_endpoint)
        if endpoint is None:
            self.counters[Counter.DROP_BAD_ENDPOINT] += 1
        else:
            self._deliver(endpoint, Arrival(peer, frame, frame.src_endpoint), frame)

    def _nack_lib(self, peer: Peer, why: NackType, frame: Any) -> None:
        """Refuse a packet for the library; the nack goes to the peer that its index designates (R-NAK-02, R-NAK-03)."""
        index = peer.index_for(self.number)
        self.emit(
            Counter.SEND_NACK_LIB,
            NackLib(
                dst_mac=peer.address,
                src_mac=self.address,
                dst_src_peer_index=index,
                src_endpoint=frame.dst_endpoint,
                nack_type=why,
                dst_endpoint=frame.src_endpoint,
                dst_src_peer_index_copy=index,
                lib_seqnum=frame.lib_seqnum,
            ),
        )


def _plain_arrival(peer: Peer, frame: Any) -> Arrival:
    """The arrival of a parsed TINY or SMALL."""
    return Arrival(peer, frame, frame.src_endpoint, frame.lib_seqnum, frame.lib_piggyack)


_ARRIVALS: Final[dict[type, Callable[[Peer, Any], Arrival]]] = {
    Medium: fragment_of,
    Rndv: rndv_of,
    Notify: notify_of,
}


def _keep_silent(_peer: Peer, _why: NackType, _frame: Any) -> None:
    """Refuse nothing: some packets are never nacked."""
