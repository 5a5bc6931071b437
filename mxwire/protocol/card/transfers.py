"""The card's part of transfers: answers PULLs of this host's regions, and takes the replies to its own PULLs.

It also has the checks that transfers share with packets for the library: peer index, endpoint and session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mxwire.ethernet import DESTINATION, ETHERTYPE, ETHERTYPE_MXOE
from mxwire.native import quick_struct, view_of
from mxwire.protocol.card.endpoint import CardEndpoint
from mxwire.protocol.card.outgoing import Port
from mxwire.protocol.card.pull import PullEvent, PullTransfer
from mxwire.protocol.card.replies import FRAMES_MAXIMUM, PullReplies, PullRequest, region_offset, replies_needed
from mxwire.protocol.counters import Counter, Tally
from mxwire.protocol.peers import Peer, PeerTable
from mxwire.protocol.profile import Defect, Profile
from mxwire.protocol.status import Status
from mxwire.wire.dialect import Dialect
from mxwire.wire.enums import NackType
from mxwire.wire.numbers import NO_PEER_INDEX, PULL_MAGIC
from mxwire.wire.packets import NackLib, NackMcp, Pull, PullReply

_PULL_NACKS: Final[dict[int, Status]] = {
    NackType.BAD_ENDPT: Status.REMOTE_ENDPOINT_BAD_ID,
    NackType.ENDPT_CLOSED: Status.REMOTE_ENDPOINT_CLOSED,
    NackType.BAD_SESSION: Status.REMOTE_ENDPOINT_BAD_SESSION,
    NackType.BAD_RDMAWIN: Status.REMOTE_RDMA_WINDOW_BAD_ID,
}
_ODD_PULL_NACKS: Final[dict[int, Status]] = {
    NackType.NONE: Status.SUCCESS,
    5: Status.MESSAGE_ABORTED,
    6: Status.TIMEOUT,
}
"""The status that the real driver derives from types that are not refusals (R-NAK-09)."""
_PULL_FIELDS: Final = (
    "src_mac",
    "dst_src_peer_index",
    "dst_endpoint",
    "session",
    "pulled_rdma_id",
    "pulled_rdma_offset",
    "src_pull_handle",
    "src_magic",
    "frame_index",
)
_REPLY_FIELDS: Final = ("src_mac", "frame_seqnum", "frame_length", "msg_offset", "dst_pull_handle", "dst_magic")
_FRAME_LENGTH_MAXIMUM: Final = 0xFFFF
ETHERTYPE_BYTES: Final = ETHERTYPE_MXOE.to_bytes(2, "big")
# Bounds, not slice objects: mypyc compiles ``frame[slice]`` of bytes to the access of one byte, which fails.
TYPE_START: Final[int] = ETHERTYPE.start
TYPE_END: Final[int] = ETHERTYPE.stop
DESTINATION_END: Final[int] = DESTINATION.stop


class TransferPort(Port):
    """The port of an interface, with its peers and endpoints, that takes PULL, PULL_REPLY and NACK_MCP."""

    def __init__(
        self, number: int, address: bytes, hostname: str, dialect: Dialect, profile: Profile, peers: PeerTable
    ) -> None:
        super().__init__(number, address, hostname, dialect, profile)
        self.peers = peers
        self.promiscuous = False
        """True if frames to other addresses reach the driver (R-MEA-01)."""
        self.elsewhere: Callable[[int], bool] = lambda _endpoint: False
        """True if another node on the interface has an endpoint of a number open, and answers for it."""
        self.endpoints: dict[int, CardEndpoint] = {}
        """The open endpoints by number; each belongs to this interface alone (R-EP-05)."""
        self.strict_address = not profile.has(Defect.NACK_TO_INDEX)
        self.strict_transfers = not profile.has(Defect.TRANSFERS_WITH_ANY_HOST)
        self.strict_regions = self.strict_transfers and self.strict_address
        """True if only the host to which a region was announced may pull it; with D-6 any host may use its index."""
        self._pull_nacks = _PULL_NACKS | (_ODD_PULL_NACKS if profile.has(Defect.ODD_NACK_ENDS_PULL) else {})
        self._read_pull: Callable[[bytes], Any] = quick_struct(self.codec.reader("pull", *_PULL_FIELDS)).unpack_from
        reply = quick_struct(self.codec.reader("pull_reply", *_REPLY_FIELDS))
        self._read_reply: Callable[[bytes], Any] = reply.unpack_from
        self._reply_end: int = reply.size
        tallies = self.counters.by_name
        self._replies_received: Tally = tallies[Counter.RECV_PULL_REPLY]
        self._pulls_received: Tally = tallies[Counter.RECV_PULL_REQUEST]
        self._replies_sent: Tally = tallies[Counter.SEND_PULL_REPLY]

    def is_for_us(self, destination: bytes) -> bool:
        """Return whether a frame, which begins with its destination, passes the card: its own address, broadcast and
        multicast do (R-MEA-01)."""
        return destination[:DESTINATION_END] == self.address or bool(destination[0] & 1)

    def _target(self, frame: Any, refuse: Callable[[Peer, NackType, Any], None]) -> tuple[CardEndpoint, Peer] | None:
        """Endpoint and source of a frame with index, endpoint and session; refused frames are counted and answered.

        The source is the peer designated by ``dst_src_peer_index``; without D-6 the source address must be that of this
        peer.
        """
        peer = self.peers.at(frame.dst_src_peer_index)
        if peer is None or (self.strict_address and peer.address != frame.src_mac):
            self.counters[Counter.DROP_BAD_PEER_INDEX] += 1
            return None
        endpoint = self.endpoints.get(frame.dst_endpoint)
        if endpoint is None:
            # Another node of this host has the endpoint, or is the one that refuses: the peer must not get two answers.
            if self.elsewhere(frame.dst_endpoint) or not self.speaks():
                return None
            self.counters[Counter.DROP_BAD_ENDPOINT] += 1
            refuse(peer, self._missing(frame.dst_endpoint), frame)
            return None
        if frame.session != endpoint.session:
            self.counters[Counter.DROP_BAD_SESSION] += 1
            refuse(peer, NackType.BAD_SESSION, frame)
            return None
        return endpoint, peer

    def _missing(self, number: int) -> NackType:
        """The reason why an endpoint cannot be reached (R-EP-01)."""
        return NackType.ENDPT_CLOSED if number < self.profile.endpoint_maximum else NackType.BAD_ENDPT

    def _take_pull(self, frame: Pull, _now: int) -> None:
        """Answer a PULL at once, regardless of earlier ones (R-PUL-12 to R-PUL-15)."""
        self._pulls_received.count += 1
        target = self._target(frame, self._nack_mcp)
        if target is None:
            return
        endpoint, peer = target
        count = replies_needed(frame, self.dialect)
        if count > self.dialect.frames_per_block:
            self.counters[Counter.DROP_PULL_BAD_REPLIES] += 1
            return
        region = endpoint.regions.at(frame.pulled_rdma_id)
        if region is None or (self.strict_regions and region.partner != peer.address):
            # To any other host than the partner, the region is unknown.
            self.counters[Counter.DROP_PULL_BAD_REGION] += 1
            self._nack_mcp(peer, NackType.BAD_RDMAWIN, frame)
            return
        end = region_offset(frame, self.dialect) + frame.block_length
        strict = not self.profile.has(Defect.FIRST_FRAME_BEYOND_PAYLOAD)
        beyond = frame.first_frame_offset >= self.dialect.reply_payload
        if end > region.length or (beyond and (strict or frame.block_length > _FRAME_LENGTH_MAXIMUM)):
            # With D-15 the whole block is in one frame, whose length field has 16 bits.
            self.counters[Counter.DROP_PULL_BAD_RANGE] += 1
            return
        region.requested = max(region.requested, end)
        if self.outgoing.bulk_bytes + frame.block_length > self.profile.reply_bytes_maximum:
            self.counters[Counter.DROP_REPLIES_FULL] += 1
        elif count:
            self._replies_sent.count += count
            self.outgoing.put_bulk(PullReplies(frame, frame.block_length, region, self, count))

    def _take_pulls(self, frames: list[bytes], place: int) -> int:
        """Answer the PULL at ``place`` together with the PULLs after it that request the following blocks.

        Return the number of PULLs. If the first does not begin with a whole frame, or any of them needs more than an
        answer, return 0 and do nothing.
        """
        first = frames[place]
        blocks, length = self._consecutive_blocks(frames, place)
        if (
            not blocks
            or first[TYPE_START:TYPE_END] != ETHERTYPE_BYTES
            or not (self.promiscuous or self.is_for_us(first))
        ):
            return 0
        fields: tuple[bytes, int, int, int, int, int, int, int, int] = self._read_pull(first)
        source, index, number, session, region_number, offset, handle, magic, frame_index = fields
        peer, endpoint = self.peers.at(index), self.endpoints.get(number)
        if peer is None or endpoint is None or session != endpoint.session:
            return 0
        region = endpoint.regions.at(region_number)
        request = PullRequest(source, offset, handle, magic, frame_index)
        start = region_offset(request, self.dialect)
        if (
            region is None
            or (self.strict_address and peer.address != source)
            or (self.strict_regions and region.partner != peer.address)
            or start + length > region.length
            or self.outgoing.bulk_bytes + length > self.profile.reply_bytes_maximum
        ):
            return 0
        count = -(-length // self.dialect.reply_payload)
        region.requested = max(region.requested, start + length)
        self._pulls_received.count += blocks
        self._replies_sent.count += count
        self.outgoing.put_bulk(PullReplies(request, length, region, self, count))
        return blocks

    def _consecutive_blocks(self, frames: list[bytes], place: int) -> tuple[int, int]:
        """Number of PULLs of consecutive blocks from ``place``, and the number of bytes that they request."""
        at, block = self.pull_block
        full, step = self.block_length, self.dialect.frames_per_block
        shortest = at + block.size
        head, count, total, expected = frames[place][:at], 0, 0, None
        for frame in frames[place : place + FRAMES_MAXIMUM // step]:
            if len(frame) < shortest or frame[:at] != head:
                break
            offset, length, index = block.unpack_from(frame, at)
            if offset or not 0 < length <= full or (expected is not None and index != expected):
                break
            count += 1
            total += length
            expected = index + step
            # Only the last block of a transfer is shorter than the others (R-PUL-01).
            if length < full:
                break
        return count, total

    def _nack_mcp(self, peer: Peer, why: NackType, frame: Pull) -> None:
        """Refuse a PULL; ``src_endpoint`` is that of the puller (wire format, section 6.13)."""
        self.emit(
            Counter.SEND_NACK_MCP,
            NackMcp(
                dst_mac=peer.address,
                src_mac=self.address,
                dst_src_peer_index=peer.index_for(self.number),
                src_endpoint=frame.src_endpoint,
                nack_type=why,
                src_pull_handle=frame.src_pull_handle,
                src_magic=frame.src_magic,
            ),
        )

    def _take_replies(self, frames: list[bytes], place: int, now: int) -> int:
        """Take the PULL_REPLY at ``place`` and those that follow it in one pull, as :meth:`take` does one by one.

        Return their number; if the first is not a full one that is missing in its pull, return 0 and do nothing.
        """
        frame = frames[place]
        if len(frame) < self._reply_end or frame[:DESTINATION_END] != self.address:
            return 0
        fields: tuple[bytes, int, int, int, int, int] = self._read_reply(frame)
        source, sequence, length, offset, handle, magic = fields
        endpoint = self.endpoints.get((magic ^ PULL_MAGIC) & 0xFF)
        pull = None if endpoint is None else self.pull_of(endpoint, handle, source)
        if pull is None or endpoint is None or frame[TYPE_START:TYPE_END] != ETHERTYPE_BYTES:
            return 0
        count = pull.reply_run(frames, place, sequence, offset, length, now)
        self._replies_received.count += count
        if count and endpoint.ring.ended.count:
            endpoint.announce()
        return count

    def _take_pull_reply(self, frame: PullReply, now: int) -> None:
        """Take data of a local pull; a PULL_REPLY is never answered (R-PUL-05)."""
        self.counters[Counter.RECV_PULL_REPLY] += 1
        endpoint = self.endpoint_of_magic(frame.dst_magic)
        if endpoint is None:
            return
        data = frame.data
        self._fill(endpoint, frame.dst_pull_handle, frame.src_mac, frame.frame_seqnum, frame.msg_offset, data, now)

    def _take_data(self, frame: bytes, now: int) -> bool:
        """Take a well-formed PULL_REPLY to this interface, as :meth:`_take_pull_reply` does; return False, and do
        nothing, for any other frame."""
        end = self._reply_end
        if len(frame) < end or frame[:DESTINATION_END] != self.address or frame[TYPE_START:TYPE_END] != ETHERTYPE_BYTES:
            return False
        fields: tuple[bytes, int, int, int, int, int] = self._read_reply(frame)
        source, sequence, length, offset, handle, magic = fields
        if length > len(frame) - end:
            return False
        self._replies_received.count += 1
        endpoint = self.endpoint_of_magic(magic)
        if endpoint is not None:
            # A view, because slicing would copy the data once more.
            self._fill(endpoint, handle, source, sequence, offset, view_of(frame)[end : end + length], now)
        return True

    def _fill(
        self, endpoint: CardEndpoint, handle: int, source: bytes, sequence: int, offset: int, data: Any, now: int
    ) -> None:
        """Pass the data of a PULL_REPLY to its pull (R-PUL-05, from step 3)."""
        pull = self.pull_of(endpoint, handle, source)
        if pull is None:
            self.counters[Counter.DROP_REPLY_BAD_HANDLE] += 1
            return
        dropped = pull.reply(sequence, offset, data, now)
        if dropped is not None:
            self.counters[dropped] += 1
        if endpoint.ring.ended.count:
            endpoint.announce()

    def _take_nack_mcp(self, frame: NackMcp, _now: int) -> None:
        """End the pull that a NACK_MCP refuses (R-NAK-09); other types are ignored."""
        self.counters[Counter.RECV_NACK_MCP] += 1
        if self._peer_of_nack(frame) is None:
            return
        endpoint = self.endpoint_of_magic(frame.src_magic)
        if endpoint is None:
            return
        pull = self.pull_of(endpoint, frame.src_pull_handle, frame.src_mac)
        if pull is None:
            self.counters[Counter.DROP_REPLY_BAD_HANDLE] += 1
            return
        status = self._pull_nacks.get(frame.nack_type)
        if status is not None:
            pull.fire(PullEvent.NACKED, status)
            endpoint.announce()

    def pull_of(self, endpoint: CardEndpoint, handle: int, source: bytes) -> PullTransfer | None:
        """The running pull with a handle, or None; only the host to which its PULLs are addressed may answer them."""
        pull = endpoint.pulls.get(handle)
        if pull is None or (self.strict_transfers and pull.source.peer.address != source):
            return None
        return pull

    def endpoint_of_magic(self, magic: int) -> CardEndpoint | None:
        """The open endpoint designated by the magic of a reply; only its low 8 bits matter (R-PUL-05)."""
        endpoint = self.endpoints.get((magic ^ PULL_MAGIC) & 0xFF)
        if endpoint is None:
            self.counters[Counter.DROP_REPLY_BAD_MAGIC] += 1
        return endpoint

    def _peer_by_address(self, address: bytes) -> Peer | None:
        peer = self.peers.by_address(address)
        if peer is None:
            self.counters[Counter.DROP_BAD_PEER_ADDRESS] += 1
        return peer

    def _peer_of_nack(self, frame: NackLib | NackMcp) -> Peer | None:
        """The peer that has sent a nack, by its address if the index is 0xFFFF; other bad indexes are not counted
        (R-MEA-11)."""
        if frame.dst_src_peer_index == NO_PEER_INDEX:
            return self._peer_by_address(frame.src_mac)
        peer = self.peers.at(frame.dst_src_peer_index)
        if peer is not None and self.strict_address and peer.address != frame.src_mac:
            return None
        return peer
