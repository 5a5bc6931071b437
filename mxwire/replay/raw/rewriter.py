"""Replacement of addresses and of the EtherType in frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import DESTINATION, ETHERTYPE, HEADER_SIZE, SOURCE
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
            told = (frame.nic_id_hi << _HIGH | frame.nic_id_lo) & 0xFFFF_FFFF_FFFF
            new = self.addresses.get(told.to_bytes(6, "big"))
            if new is None:
                continue
            number = int.from_bytes(new, "big")
            changed = replace(frame, nic_id_hi=number >> _HIGH, nic_id_lo=number & _LOW_MASK)
            built = np.frombuffer(decoded.codec(place).build(changed), np.uint8)[HEADER_SIZE:]
            start = int(batch.offset[row]) + 14 + int(decoded.located.shift[place])
            room = int(batch.offset[row] + batch.length[row]) - start
            batch.buffer[start : start + min(room, len(built))] = built[:room]
