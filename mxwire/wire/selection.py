"""Selection of a frame's layout: RAW and CONNECT have two layouts each, distinguished by the contents."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.wire.dialect import Dialect
from mxwire.wire.enums import PacketType
from mxwire.wire.formats import CONNECT_REPLY, CONNECT_REQUEST, RAW, RAW_OMXOED, PacketFormat
from mxwire.wire.layout import layout_of

_ANNOUNCEMENT = layout_of(RAW_OMXOED)

REPLY_FLAG: Final = layout_of(CONNECT_REPLY).by_name["is_reply"].offset
"""Offset of the byte that is 0 in a CONNECT request and nonzero in a reply (wire format, section 6.5)."""
ANNOUNCEMENT_LENGTH: Final = _ANNOUNCEMENT.header_end
"""Length of omxoed's frame in bytes (section 6.1)."""

_PADDING: Final = [
    place for field in _ANNOUNCEMENT.fields if field.kind == "undefined" for place in range(field.offset, field.end)
]
_NIC_ID: Final = _ANNOUNCEMENT.by_name["nic_id_hi"].offset


def is_announcement(rows: NDArray[np.uint8], wire_length: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mask of the RAW frames that are from omxoed: 64 bytes, zero padding, and a NIC id of 48 bits.

    ``rows`` has shape (n, 64), the starts of the frames; ``wire_length`` has shape (n,), in bytes.
    """
    plausible: NDArray[np.bool_] = wire_length == ANNOUNCEMENT_LENGTH
    plausible &= ~rows[:, _PADDING].any(axis=1)
    # An Ethernet address of 48 bits, in a field of 64.
    plausible &= ~rows[:, _NIC_ID : _NIC_ID + 2].any(axis=1)
    return plausible


@cache
def formats_by_type(dialect: Dialect) -> Mapping[PacketType, PacketFormat]:
    """The layout of each packet type; for RAW and CONNECT, the first of two (see :data:`ALTERNATIVES`)."""
    chosen = {each.packet_type: each for each in dialect.formats}
    return chosen | {PacketType.RAW: RAW, PacketType.CONNECT: CONNECT_REQUEST}


ALTERNATIVES: Final[dict[PacketType, PacketFormat]] = {
    PacketType.RAW: RAW_OMXOED,
    PacketType.CONNECT: CONNECT_REPLY,
}
"""The second layout of packet types with two."""
