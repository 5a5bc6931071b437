"""Location of the MXoE frames of a batch behind VLAN tags and Linux cooked headers.

The formats count from the first byte of an untagged Ethernet frame. Each frame therefore gets a *row*, its first 64
bytes as if captured untagged on Ethernet, which is longer than any fixed header; and a *shift*, the number of bytes
by which its contents lie later in the captured frame.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.frames import LINKTYPE_ETHERNET, LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2, FrameBatch
from mxwire.wire.formats import RAW
from mxwire.wire.layout import layout_of

ROW: Final = 64
"""Length of a row in bytes."""
TAG_TYPES: Final = (0x8100, 0x88A8, 0x9100)
"""EtherTypes that announce a VLAN tag: 802.1Q, 802.1ad (QinQ), and its predecessor."""
TAGS_MAXIMUM: Final = 4
"""Maximum nested VLAN tags to skip."""
TAG_LENGTH: Final = 4

_HEAD = layout_of(RAW).by_name
_SOURCE = _HEAD["src_mac"].offset
_ETHERTYPE = _HEAD["ethertype"].offset
HEADER_LENGTH: Final = _HEAD["ethertype"].end
"""Length of an untagged Ethernet header in bytes."""


@dataclass(frozen=True, slots=True)
class _LinkHeader:
    """Offsets of the Ethernet fields in the header of a link type, in bytes."""

    length: int
    protocol: int
    source: int
    has_destination: bool
    kind: int = 0
    """Offset of the byte that classifies the destination, where its address is not recorded."""


_BROADCAST_KIND: Final = 1
"""Kind of a received broadcast. The address of other destinations, and of sent frames, is unknown."""
_LINK_HEADERS: Final = {
    LINKTYPE_ETHERNET: _LinkHeader(length=14, protocol=12, source=6, has_destination=True),
    LINKTYPE_LINUX_SLL: _LinkHeader(length=16, protocol=14, source=6, has_destination=False, kind=1),
    LINKTYPE_LINUX_SLL2: _LinkHeader(length=20, protocol=0, source=12, has_destination=False, kind=10),
}


@dataclass(frozen=True)
class Located:
    """The MXoE frames of a batch with aligned headers. Arrays have shape (n,) or (n, …)."""

    batch: FrameBatch
    """The MXoE frames, as captured."""
    rows: NDArray[np.void]
    """64 bytes per frame, as if untagged on Ethernet; bytes beyond the captured ones are meaningless."""
    shift: NDArray[np.int64]
    """Bytes by which the contents after the addresses lie later in the captured frame than in the row."""
    vlan: NDArray[np.int32]
    """VLAN ids, outermost first, padded with -1; shape (n, depth), with depth 0 if no frame is tagged."""
    skipped: int
    """Number of frames left out: of another EtherType, or too short to have one."""

    @property
    def has_destination(self) -> bool:
        """False for Linux cooked captures, which do not record destinations."""
        return _LINK_HEADERS[self.batch.link_type].has_destination

    def place(self, index: int, offset: int) -> int:
        """The offset in the captured frame of the byte at ``offset`` of the row at ``index``."""
        link = _LINK_HEADERS[self.batch.link_type]
        if offset < _SOURCE:
            return offset
        if offset < _ETHERTYPE:
            return offset - _SOURCE + link.source
        if offset < HEADER_LENGTH and not (self.vlan.size and self.vlan[index].max() >= 0):
            return offset - _ETHERTYPE + link.protocol
        return offset + int(self.shift[index])

    @cached_property
    def row_bytes(self) -> NDArray[np.uint8]:
        """The rows as bytes, shape (n, 64)."""
        return self.rows.view(np.uint8).reshape(-1, ROW)

    @cached_property
    def captured(self) -> NDArray[np.int64]:
        """Captured length of each frame in bytes, without tags."""
        return self.batch.length - self.shift

    @cached_property
    def wire_length(self) -> NDArray[np.int64]:
        """Length of each frame on the wire in bytes, without tags; never below ``captured``."""
        return np.maximum(self.batch.wire_length, self.batch.length) - self.shift

    @cached_property
    def source(self) -> NDArray[np.uint64]:
        """Source addresses as integers."""
        return self._address(_SOURCE)

    @cached_property
    def destination(self) -> NDArray[np.uint64]:
        """Destination addresses as integers; 0 if not recorded, as for all but broadcasts in Linux cooked captures."""
        return self._address(0)

    def _address(self, offset: int) -> NDArray[np.uint64]:
        parts = self.rows.view(_address_type(offset))
        address: NDArray[np.uint64] = (parts["high"].astype(np.uint64) << np.uint64(16)) | parts["low"]
        return address

    def frame(self, index: int) -> bytes:
        """The captured frame at ``index`` as if untagged on Ethernet."""
        whole = self.batch.frame(index)
        shift = int(self.shift[index])
        if not shift:
            return whole
        return self.row_bytes[index, :HEADER_LENGTH].tobytes() + whole[HEADER_LENGTH + shift :]

    def pieces(self) -> tuple[memoryview, list[int], list[int]]:
        """All frames as if untagged on Ethernet: a buffer, and the start and end of each frame in it.

        Copies nothing if no frame is tagged.
        """
        if not self.shift.any():
            begin, end = self.batch.offset, self.batch.offset + self.batch.length
            return np.ascontiguousarray(self.batch.buffer).data, begin.tolist(), end.tolist()
        frames = [self.frame(index) for index in range(len(self.batch))]
        ends = list(accumulate(map(len, frames)))
        return memoryview(b"".join(frames)), [0, *ends[:-1]], ends


def locate(batch: FrameBatch, ethertypes: Collection[int] = (ETHERTYPE_MXOE,)) -> Located:
    """Locate the frames of a batch with one of ``ethertypes``, tagged or not."""
    link = _LINK_HEADERS[batch.link_type]
    rows = _gather(batch, batch.offset)
    shift = np.zeros(len(batch), np.int64)
    if batch.link_type == LINKTYPE_ETHERNET:
        ethertype = rows.view(_integer_type(_ETHERTYPE))["value"].astype(np.uint16)
        unusual = np.flatnonzero(_one_of(ethertype, TAG_TYPES))
    else:
        ethertype = np.zeros(len(batch), np.uint16)
        # Cooked headers have other offsets, so that each frame must be aligned.
        unusual = np.arange(len(batch))
    vlan = np.empty((len(batch), 0), np.int32)
    if len(unusual):
        ethertype, vlan = _unwrap(batch, link, unusual, ethertype, rows, shift)
    is_mxoe = batch.length - shift >= HEADER_LENGTH
    is_mxoe &= _one_of(ethertype, ethertypes)
    if is_mxoe.all():
        return Located(batch, rows, shift, vlan, 0)
    places = np.flatnonzero(is_mxoe)
    return Located(batch.select(places), rows[places], shift[places], vlan[places], len(batch) - len(places))


def _one_of(values: NDArray[np.uint16], accepted: Collection[int]) -> NDArray[np.bool_]:
    """Like ``np.isin``, which is ten times slower for only a few accepted values."""
    mask = np.zeros(len(values), np.bool_)
    for each in accepted:
        mask |= values == each
    return mask


def _gather(batch: FrameBatch, start: NDArray[np.int64]) -> NDArray[np.void]:
    """64 bytes from each start on, by a single indexing operation on a view of overlapping rows."""
    buffer = np.ascontiguousarray(batch.buffer)
    last = len(buffer) - ROW
    late = np.flatnonzero(start > last)
    rows = np.zeros(len(start), f"V{ROW}")
    if last >= 0:
        every = np.ndarray((last + 1,), f"V{ROW}", buffer, strides=(1,))
        rows = every[np.minimum(start, last)] if len(late) else every[start]
    # A row must not reach beyond the buffer: the last frames get zeros behind them.
    for place in late:
        tail = buffer[min(start[place], len(buffer)) :]
        row = np.zeros(ROW, np.uint8)
        row[: len(tail)] = tail
        rows[place] = row.view(f"V{ROW}")[0]
    return rows


@cache
def _integer_type(offset: int) -> np.dtype[np.void]:
    return np.dtype({"names": ["value"], "formats": [">u2"], "offsets": [offset], "itemsize": ROW})


@cache
def _address_type(offset: int) -> np.dtype[np.void]:
    names, formats = ["high", "low"], [">u4", ">u2"]
    return np.dtype({"names": names, "formats": formats, "offsets": [offset, offset + 4], "itemsize": ROW})


def _unwrap(
    batch: FrameBatch,
    link: _LinkHeader,
    which: NDArray[np.intp],
    ethertype: NDArray[np.uint16],
    rows: NDArray[np.void],
    shift: NDArray[np.int64],
) -> tuple[NDArray[np.uint16], NDArray[np.int32]]:
    """Skip the tags of the frames ``which``, align their rows and shifts in place, and return types and VLAN ids."""
    types = _read(batch, which, np.full(len(which), link.protocol))
    end = np.full(len(which), link.length)
    depths = []
    for _ in range(TAGS_MAXIMUM):
        tagged = _one_of(types, TAG_TYPES)
        if not tagged.any():
            break
        # The upper four bits are the priority and the drop eligibility.
        depths.append(np.where(tagged, _read(batch, which, end).astype(np.int32) & 0xFFF, -1))
        types = np.where(tagged, _read(batch, which, end + 2), types)
        end = np.where(tagged, end + TAG_LENGTH, end)
    shift[which] = end - HEADER_LENGTH
    aligned = _gather(batch, batch.offset[which] + shift[which]).view(np.uint8).reshape(-1, ROW)
    addresses = _gather(batch, batch.offset[which]).view(np.uint8).reshape(-1, ROW)
    aligned[:, :_SOURCE] = addresses[:, :_SOURCE] if link.has_destination else 0
    if not link.has_destination:
        aligned[addresses[:, link.kind] == _BROADCAST_KIND, :_SOURCE] = 0xFF
    aligned[:, _SOURCE:_ETHERTYPE] = addresses[:, link.source : link.source + 6]
    aligned[:, _ETHERTYPE:HEADER_LENGTH] = types.astype(">u2").view(np.uint8).reshape(-1, 2)
    rows[which] = aligned.view(f"V{ROW}")[:, 0]
    ethertype[which] = types
    vlan = np.full((len(batch), len(depths)), -1, np.int32)
    for depth, ids in enumerate(depths):
        vlan[which, depth] = ids
    return ethertype, vlan


def _read(batch: FrameBatch, which: NDArray[np.intp], position: NDArray[np.int64]) -> NDArray[np.uint16]:
    """Big-endian 16-bit integers at a position of the frames ``which``; 0 beyond the captured bytes."""
    inside = position + 2 <= batch.length[which]
    # Place 0 is always in range, and its value is not used.
    place = np.where(inside, batch.offset[which] + position, 0)
    if not inside.any():
        return np.zeros(len(which), np.uint16)
    high = batch.buffer[place].astype(np.uint16) << 8
    return np.where(inside, high | batch.buffer[place + 1], 0).astype(np.uint16)
