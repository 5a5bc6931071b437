"""Preparation of captured frames for transmission: selection, replacement of addresses, and grouping in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.errors import MxwireError
from mxwire.ethernet import DESTINATION, ETHERTYPE, HEADER_SIZE, SOURCE, VLAN_TAG_SIZE
from mxwire.frames import FrameBatch
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.enums import PacketType
from mxwire.wire.packets import Announcement

_HIGH: Final = 32
_LOW_MASK: Final = 0xFFFF_FFFF


@dataclass(frozen=True)
class FrameRewriter:
    """Replacements to apply to each frame.

    An address is replaced in every position: as source, as destination, and as the address in an announcement.
    """

    addresses: Mapping[bytes, bytes] = field(default_factory=dict)
    """New Ethernet addresses by the recorded ones, six bytes each."""
    ethertype: int | None = None
    """The new EtherType; None to keep the recorded one."""

    def apply(self, batch: FrameBatch, decoded: DecodedBatch, places: NDArray[np.intp]) -> None:
        """Rewrite frames in place; ``batch`` holds copies of the frames of ``decoded`` at ``places``."""
        if self.addresses:
            self._announcements(batch, decoded, places)
            self._readdress(batch, decoded.located.destination[places], DESTINATION.start)
            self._readdress(batch, decoded.located.source[places], SOURCE.start)
        if self.ethertype is not None:
            where = batch.offset + ETHERTYPE.start + decoded.located.shift[places]
            batch.buffer[where] = self.ethertype >> 8
            batch.buffer[where + 1] = self.ethertype & 0xFF

    def _readdress(self, batch: FrameBatch, present: NDArray[np.uint64], at: int) -> None:
        for old, new in self.addresses.items():
            which = np.flatnonzero(present == np.uint64(int.from_bytes(old, "big")))
            if len(which):
                where = batch.offset[which][:, None] + at + np.arange(6)
                batch.buffer[where] = np.frombuffer(new, np.uint8)

    def _announcements(self, batch: FrameBatch, decoded: DecodedBatch, places: NDArray[np.intp]) -> None:
        """Rewrite the second copy of the address that announcements contain."""
        types = decoded.columns.packet_type[places]
        for row in np.flatnonzero(types == int(PacketType.RAW)).tolist():
            place = int(places[row])
            frame = decoded.frame(place)
            if not isinstance(frame, Announcement):
                continue
            announced = (frame.nic_id_hi << _HIGH | frame.nic_id_lo) & 0xFFFF_FFFF_FFFF
            new = self.addresses.get(announced.to_bytes(6, "big"))
            if new is None:
                continue
            number = int.from_bytes(new, "big")
            changed = replace(frame, nic_id_hi=number >> _HIGH, nic_id_lo=number & _LOW_MASK)
            built = np.frombuffer(decoded.codec(place).build(changed), np.uint8)[HEADER_SIZE:]
            start = int(batch.offset[row]) + 14 + int(decoded.located.shift[place])
            room = int(batch.offset[row] + batch.length[row]) - start
            batch.buffer[start : start + min(room, len(built))] = built[:room]


PIECE: Final = 1024
"""Frames per piece: as many as the kernel accepts in one call."""

SelectedFrames = tuple[DecodedBatch, NDArray[np.intp]]
"""Decoded frames, and the indexes of the selected ones."""


@dataclass
class PiecePreparer:
    """Makes pieces of decoded batches: consecutive frames to transmit, complete and in memory of their own, with their
    recorded timestamps. Counts the frames that it leaves out.

    With ``pad``, bytes cut off by the capture are replaced by zeros; without it such frames are left out.
    """

    name: str
    """Name of the capture, for errors."""
    rewriting: FrameRewriter = field(default_factory=FrameRewriter)
    mtu: int | None = None
    """MTU of the interface in bytes after the Ethernet header; None for no limit."""
    interface: str = ""
    pad: bool = False
    cut: int = 0
    """Number of frames so far that the capture has truncated."""

    def pieces(self, chosen: Iterable[SelectedFrames]) -> Iterator[FrameBatch]:
        """Yield the frames in pieces; raise :class:`~mxwire.errors.MxwireError` if they cannot be transmitted."""
        for decoded, places in chosen:
            if len(places) and not decoded.located.has_destination:
                raise MxwireError(
                    f"{self.name}: was recorded with Linux cooked headers, which do not keep the destination of a "
                    f"frame; record it on the interface itself (tcpdump -i eth0, not -i any)"
                )
            for first in range(0, len(places), PIECE):
                piece = self._piece(decoded, places[first : first + PIECE])
                if len(piece):
                    yield piece

    def _piece(self, decoded: DecodedBatch, places: NDArray[np.intp]) -> FrameBatch:
        batch = decoded.batch
        short = batch.length[places] < batch.wire_length[places]
        self.cut += int(short.sum())
        if short.any() and not self.pad:
            places = places[~short]
        self._refuse_long(decoded, places)
        copied = _copied(batch.select(places))
        self.rewriting.apply(copied, decoded, places)
        return copied

    def _refuse_long(self, decoded: DecodedBatch, places: NDArray[np.intp]) -> None:
        if self.mtu is None or not len(places):
            return
        tags = (decoded.located.vlan[places] >= 0).sum(axis=1)
        # The kernel does not count a VLAN tag in the MTU.
        size = decoded.batch.wire_length[places] - HEADER_SIZE - VLAN_TAG_SIZE * np.minimum(tags, 1)
        long = np.flatnonzero(size > self.mtu)
        if len(long):
            place = int(places[long[0]])
            raise MxwireError(
                f"{self.name}: frame {int(decoded.batch.number[place])} has {int(size[long[0]])} bytes after its "
                f"Ethernet header, but the MTU of {self.interface} is {self.mtu}; raise it (ip link set "
                f"{self.interface} mtu {int(size.max())}), or select other frames (--frames, --type)"
            )


def _copied(batch: FrameBatch) -> FrameBatch:
    """Copy the frames into memory of their own, padded with zeros to their length on the wire."""
    length = batch.wire_length
    offset = np.cumsum(length) - length
    buffer = np.zeros(int(length.sum()), np.uint8)
    source, starts = np.ascontiguousarray(batch.buffer), batch.offset.tolist()
    target, lengths = offset.tolist(), batch.length.tolist()
    for begin, start, count in zip(target, starts, lengths, strict=True):
        buffer[begin : begin + count] = source[start : start + count]
    return FrameBatch(buffer, offset, length.copy(), length.copy(), batch.timestamp_ns.copy(), batch.number.copy())
