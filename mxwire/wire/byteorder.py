"""Detection of senders built with the endian option off, which send integers in little-endian order.

No field on the wire announces it (wire format, section 3), so a sender is judged by fields with known values: magics,
the fixed length of a RNDV, and lengths that are possible in one order only. Each such frame is a vote.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.wire import formats
from mxwire.wire.encapsulation import ROW, Located
from mxwire.wire.enums import PacketType
from mxwire.wire.layout import header_type, layout_of
from mxwire.wire.numbers import HOST_QUERY_MAGIC, PULL_MAGIC, RNDV_LENGTH, SMALL_MAXIMUM, TINY_MAXIMUM

PULL_MAGIC_PREFIX: Final = PULL_MAGIC >> 8
"""The upper 24 bits of the magic of every Open-MX puller (rule R-PUL-03); the endpoint number is in the lower 8."""
HOST_MAGIC_PREFIX: Final = HOST_QUERY_MAGIC >> 8
"""The upper 24 bits of the host query magic, which starts at …08 and counts up: they change after 248 resets of the
name table (rule R-HOST-03)."""

SETTLED: Final = 16
"""Number of strong votes after which the byte order of a sender is settled and its frames are no longer examined."""
SENDER_FRAMES: Final = 64
"""Maximum frames examined per batch and unsettled sender: enough to settle it, whatever the size of the batch."""
# The start number of a CONNECT is usually 1, but need not be; magics and lengths practically never fit both orders.
_WEAK: Final = 1
_STRONG: Final = 4

_PREFIXES: Final = (
    # Both layouts, since dialects are detected only after the byte order, by which their hints are read.
    (PacketType.PULL, formats.PULL_MXOE, "src_magic", PULL_MAGIC_PREFIX),
    (PacketType.PULL, formats.PULL_OMX, "src_magic", PULL_MAGIC_PREFIX),
    (PacketType.PULL_REPLY, formats.PULL_REPLY, "dst_magic", PULL_MAGIC_PREFIX),
    (PacketType.NACK_MCP, formats.NACK_MCP, "src_magic", PULL_MAGIC_PREFIX),
    (PacketType.HOST_QUERY, formats.HOST_QUERY, "magic", HOST_MAGIC_PREFIX),
    (PacketType.HOST_REPLY, formats.HOST_QUERY, "magic", HOST_MAGIC_PREFIX),
)
_VALUES: Final = (
    (PacketType.RNDV, formats.RNDV, "length", RNDV_LENGTH, _STRONG),
    (PacketType.CONNECT, formats.CONNECT_REQUEST, "target_recv_seqnum_start", 1, _WEAK),
)
_LENGTHS: Final = ((PacketType.TINY, formats.TINY, TINY_MAXIMUM), (PacketType.SMALL, formats.SMALL, SMALL_MAXIMUM))
_VOTING: Final = np.isin(np.arange(256), [each[0] for each in (*_PREFIXES, *_VALUES, *_LENGTHS)])
"""Indexed by packet type: True for types whose frames may vote."""


def byte_order_votes(located: Located, which: NDArray[np.intp]) -> NDArray[np.int64]:
    """The votes of the frames ``which``: positive for network order, negative for swapped. Shape (len(which),)."""
    rows = located.rows[which]
    types = located.row_bytes[which][:, layout_of(formats.TINY).by_name["ptype"].offset]
    room = located.wire_length[which]
    captured = located.captured[which]
    votes = np.zeros(len(which), np.int64)
    # In small batches, as of live interfaces, most types are absent, and each costs as much as a present one.
    present = set(types.tolist())

    def judge(packet_type: PacketType, packet_format: formats.PacketFormat, name: str) -> tuple[NDArray[np.intp], ...]:
        layout = layout_of(packet_format)
        place = np.flatnonzero((types == int(packet_type)) & (captured >= layout.header_end))
        network, swapped = (
            rows[place].view(header_type(layout, swapped=order, size=ROW))[name] for order in (False, True)
        )
        return place, network.astype(np.int64), swapped.astype(np.int64)

    for packet_type, packet_format, name, prefix in _PREFIXES:
        if packet_type not in present:
            continue
        place, network, swapped = judge(packet_type, packet_format, name)
        votes[place] += _STRONG * ((network >> 8 == prefix).astype(np.int64) - (swapped >> 8 == prefix))
    for packet_type, packet_format, name, value, weight in _VALUES:
        if packet_type not in present:
            continue
        place, network, swapped = judge(packet_type, packet_format, name)
        votes[place] += weight * ((network == value).astype(np.int64) - (swapped == value))
    for packet_type, packet_format, maximum in _LENGTHS:
        if packet_type not in present:
            continue
        place, network, swapped = judge(packet_type, packet_format, "length")
        # A length that its type allows, but that exceeds the frame, was read in the wrong order.
        fits = np.minimum(maximum, room[place] - layout_of(packet_format).header_end)
        votes[place] += _STRONG * ((network <= fits).astype(np.int64) - (swapped <= fits))
    return votes


def _first_of_each(sender: NDArray[np.intp], limit: int) -> NDArray[np.intp]:
    """The places of the first ``limit`` frames of each sender."""
    if len(sender) <= limit:
        return np.arange(len(sender))
    order = np.argsort(sender, kind="stable")
    grouped = sender[order]
    rank = np.arange(len(sender)) - np.searchsorted(grouped, grouped)
    return order[rank < limit]


class ByteOrderDetector:
    """Accumulates the votes of each sender, indexed by its code."""

    def __init__(self) -> None:
        self._network = np.zeros(0, np.int64)
        self._swapped = np.zeros(0, np.int64)

    def observe(self, located: Located, sender: NDArray[np.intp], senders: int) -> NDArray[np.bool_] | None:
        """Count the votes of a batch, and return the mask of its swapped frames, or None if no sender is swapped.

        ``sender`` has shape (n,): the code of each frame's source, below ``senders``.
        """
        self._extend(senders)
        open_question = self._network + self._swapped < SETTLED * _STRONG
        if open_question.any():
            types = located.row_bytes[:, layout_of(formats.TINY).by_name["ptype"].offset]
            which = np.flatnonzero(open_question[sender] & _VOTING[types])
            if len(which):
                which = which[_first_of_each(sender[which], SENDER_FRAMES)]
                votes = byte_order_votes(located, which)
                np.add.at(self._network, sender[which], np.maximum(votes, 0))
                np.add.at(self._swapped, sender[which], np.maximum(-votes, 0))
        swapped = self.swapped
        return swapped[sender] if swapped.any() else None

    @property
    def senders(self) -> int:
        """Number of senders seen so far."""
        return len(self._network)

    def votes(self) -> tuple[list[int], list[int]]:
        """Return the votes for network order and for swapped integers, by sender code."""
        return self._network.tolist(), self._swapped.tolist()

    def add(
        self, sender: NDArray[np.intp], network: NDArray[np.int64], swapped: NDArray[np.int64], senders: int
    ) -> None:
        """Add votes of the codes ``sender``, below ``senders``, each of which occurs once or is that of all others."""
        self._extend(senders)
        np.add.at(self._network, sender, network)
        np.add.at(self._swapped, sender, swapped)

    def settle(self, swapped: NDArray[np.bool_]) -> None:
        """Append senders whose byte order is known; ``swapped`` has shape (new senders,)."""
        self._network = np.concatenate([self._network, np.zeros(len(swapped), np.int64)])
        self._swapped = np.concatenate([self._swapped, swapped.astype(np.int64)])

    def _extend(self, senders: int) -> None:
        missing = senders - len(self._network)
        if missing > 0:
            self.settle(np.zeros(missing, np.bool_))

    @property
    def swapped(self) -> NDArray[np.bool_]:
        """By sender code: True where the sender's integers are swapped."""
        # Of equal votes, network order is far more likely.
        swapped: NDArray[np.bool_] = self._swapped > self._network
        return swapped
