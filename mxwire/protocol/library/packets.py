"""What a delivery carries: each kind of numbered packet builds its own frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.protocol.buffers import Segments
from mxwire.protocol.counters import Counter
from mxwire.wire.enums import PacketType
from mxwire.wire.headers import header_type
from mxwire.wire.layout import layout_of
from mxwire.wire.numbers import TINY_MAXIMUM
from mxwire.wire.packets import Notify, Rndv

if TYPE_CHECKING:
    from mxwire.protocol.card.regions import Region
    from mxwire.protocol.library.delivery import Delivery

_LOW: Final = 0xFFFF_FFFF
# To look a member of an enumeration up takes as long as to pack a number, and these are wanted for each message.
_TINY: Final = int(PacketType.TINY)
_SMALL: Final = int(PacketType.SMALL)
_SEND_TINY: Final = Counter.SEND_TINY
_SEND_SMALL: Final = Counter.SEND_SMALL
_NO_CHECKSUM: Final = 0
"""What a release build leaves in the checksum's place (wire format, section 8)."""


class Packet(ABC):
    """What has a number, and is sent again until it is acked."""

    __slots__ = ()

    @property
    def uses_reverse_session(self) -> bool:
        """Whether it carries the session that the partner uses towards us."""
        return False

    @property
    def fragmented(self) -> bool:
        """Whether it leaves in several frames."""
        return False

    @abstractmethod
    def send(self, delivery: Delivery, piggyback: int) -> None:
        """Put it on the wire."""


class EagerPacket(Packet):
    """A message of up to 128 bytes in one frame: TINY or SMALL (R-SND-01)."""

    __slots__ = ("data", "match_info")

    def __init__(self, match_info: int, data: bytes) -> None:
        self.match_info = match_info
        self.data = data

    def send(self, delivery: Delivery, piggyback: int) -> None:
        """Put it on the wire."""
        partner = delivery.partner
        interface = partner.endpoint.card.interface
        length = len(self.data)
        if length <= TINY_MAXIMUM:
            header, shortest, kind, counter = interface.tiny, interface.tiny_minimum, _TINY, _SEND_TINY
        else:
            header, shortest, kind, counter = interface.small, interface.small_minimum, _SMALL, _SEND_SMALL
        interface.counters[counter] += 1
        packed = header.pack(
            partner.peer.address,
            interface.address,
            ETHERTYPE_MXOE,
            partner.peer.index_for(interface.number),
            kind,
            partner.number,
            partner.endpoint.number,
            length,
            _NO_CHECKSUM,
            delivery.sequence,
            piggyback,
            self.match_info >> 32,
            self.match_info & _LOW,
            delivery.session,
        )
        interface.outgoing.put((packed + self.data).ljust(shortest, b"\0"))


class MediumPacket(Packet):
    """A message in several fragments; always all of them are sent (R-SND-03, R-RTX-02)."""

    __slots__ = ("_data", "_fragment", "_pipeline", "match_info")

    def __init__(self, match_info: int, data: bytes, fragment: int, pipeline: int | None) -> None:
        self.match_info = match_info
        self._data = data
        self._fragment = fragment
        self._pipeline = pipeline

    @property
    def fragmented(self) -> bool:
        """Whether it leaves in several frames, as mediums nearly always do."""
        return True

    def send(self, delivery: Delivery, piggyback: int) -> None:
        """Put all fragments on the wire."""
        partner = delivery.partner
        interface = partner.endpoint.card.interface
        layout = layout_of(interface.dialect.medium_format)
        count = max(1, -(-len(self._data) // self._fragment))
        headers = np.zeros(count, header_type(layout))
        headers["dst_mac"] = np.frombuffer(partner.peer.address, np.uint8)
        headers["src_mac"] = np.frombuffer(interface.address, np.uint8)
        headers["ethertype"] = ETHERTYPE_MXOE
        headers["dst_src_peer_index"] = partner.peer.index_for(interface.number)
        headers["ptype"] = PacketType.MEDIUM
        headers["dst_endpoint"] = partner.number
        headers["src_endpoint"] = partner.endpoint.number
        headers["length"] = len(self._data)
        headers["lib_seqnum"] = delivery.sequence
        headers["lib_piggyack"] = piggyback
        headers["match_a"] = self.match_info >> 32
        headers["match_b"] = self.match_info & _LOW
        headers["session"] = delivery.session
        sizes = [min(self._fragment, len(self._data) - at) for at in range(0, count * self._fragment, self._fragment)]
        headers["frag_length"] = sizes
        headers["frag_seqnum"] = np.arange(count)
        if "frag_pipeline" in layout.by_name:
            headers["frag_pipeline"] = self._pipeline
        interface.counters[Counter.SEND_MEDIUM_SQ_FRAG] += count
        interface.outgoing.put_bulk(_FragmentFrames(headers, self._data, sizes, layout.format.minimum_length))


class _FragmentFrames:
    """The frames of a MEDIUM, built when they leave."""

    __slots__ = ("_data", "_headers", "_sizes", "even", "lengths")

    def __init__(self, headers: NDArray[np.void], data: bytes, sizes: list[int], shortest: int) -> None:
        self._headers = headers
        self._data = data
        self._sizes = sizes
        self.lengths = [max(shortest, headers.itemsize + size) for size in sizes]
        # The last one is shorter, nearly always.
        self.even = 0

    def append(self, _more: _FragmentFrames) -> bool:
        """Two messages have no header in common."""
        return False

    def write(self, out: NDArray[np.uint8]) -> None:
        """Header, data, padding; frame by frame."""
        head = self._headers.itemsize
        data = np.frombuffer(self._data, np.uint8)
        at = taken = 0
        rows = self._headers.view(np.uint8).reshape(len(self._sizes), head)
        for row, size, length in zip(rows, self._sizes, self.lengths, strict=True):
            out[at : at + head] = row
            out[at + head : at + head + size] = data[taken : taken + size]
            out[at + head + size : at + length] = 0
            at += length
            taken += size


class RndvPacket(Packet):
    """The announcement of a message that may be pulled (R-RDV-01)."""

    __slots__ = ("match_info", "memory", "region")

    def __init__(self, match_info: int, memory: Segments) -> None:
        self.match_info = match_info
        self.memory = memory
        self.region: Region | None = None
        """Set when a region has been had, before the first transmission."""

    def send(self, delivery: Delivery, piggyback: int) -> None:
        """Put it on the wire."""
        region = self.region
        assert region is not None
        delivery.partner.send(
            Counter.SEND_RNDV,
            Rndv(
                **delivery.partner.head(),
                lib_seqnum=delivery.sequence,
                lib_piggyack=piggyback,
                match_a=self.match_info >> 32,
                match_b=self.match_info & _LOW,
                session=delivery.session,
                msg_length=self.memory.length,
                pulled_rdma_id=region.number,
                pulled_rdma_seqnum=region.use,
                pulled_rdma_offset=region.offset,
            ),
        )


class NotifyPacket(Packet):
    """The end of a pull, told to the sender (R-NOT-01)."""

    __slots__ = ("region", "transferred", "use")

    def __init__(self, region: int, use: int, transferred: int) -> None:
        self.region = region
        self.use = use
        self.transferred = transferred
        """Bytes pulled, 0 if the pull failed."""

    @property
    def uses_reverse_session(self) -> bool:
        """It carries the session that the partner uses towards us."""
        return True

    def send(self, delivery: Delivery, piggyback: int) -> None:
        """Put it on the wire."""
        delivery.partner.send(
            Counter.SEND_NOTIFY,
            Notify(
                **delivery.partner.head(),
                session=delivery.session,
                total_length=self.transferred,
                pulled_rdma_id=self.region,
                pulled_rdma_seqnum=self.use,
                lib_seqnum=delivery.sequence,
                lib_piggyack=piggyback,
            ),
        )
