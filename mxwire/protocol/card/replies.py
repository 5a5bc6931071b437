"""Answering PULLs: the replies to one block are built at once, when they leave (R-PUL-12, R-PUL-13)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.protocol.card.regions import Region
from mxwire.wire.dialect import Dialect
from mxwire.wire.enums import ETHERTYPE_MXOE, PacketType
from mxwire.wire.formats import PULL_REPLY
from mxwire.wire.headers import header_type
from mxwire.wire.layout import layout_of
from mxwire.wire.packets import Pull

_LAYOUT: Final = layout_of(PULL_REPLY)
_HEADER: Final = header_type(_LAYOUT)
_HEADER_SIZE: Final = _LAYOUT.header_end
_SHORTEST: Final = PULL_REPLY.minimum_length
_MODULO: Final = 1 << 32


def replies_needed(pull: Pull, dialect: Dialect) -> int:
    """How many frames a PULL asks for; in `omx` the sum of 32-bit fields wraps (R-PUL-12, R-MEA-03)."""
    asked = pull.first_frame_offset + pull.block_length
    if dialect.family == "omx":
        asked %= _MODULO
    return -(-asked // dialect.reply_payload)


def message_offset(pull: Pull, dialect: Dialect) -> int:
    """Where in the message the block starts, modulo 2^32 (R-PUL-13, R-MEA-03)."""
    payload = dialect.reply_payload
    start = pull.frame_index * payload - pull.pulled_rdma_offset % payload + pull.first_frame_offset
    return start % _MODULO


class PullReplies:
    """The replies to one PULL, frame by frame: how long each is and where its data lies."""

    __slots__ = ("_data", "_first", "_offsets", "_region", "_template", "lengths")

    def __init__(self, pull: Pull, region: Region, dialect: Dialect, source: bytes, count: int) -> None:
        payload = dialect.reply_payload
        # An offset beyond the first frame makes that frame carry everything (R-MEA-04).
        first = payload - pull.first_frame_offset
        rest = pull.block_length
        self._data: list[int] = []
        for place in range(count):
            length = min(payload if place else first, rest) if (place or first >= 0) else rest
            self._data.append(length)
            rest -= length
        start = message_offset(pull, dialect)
        self._offsets = [start]
        for length in self._data[:-1]:
            self._offsets.append(self._offsets[-1] + length)
        self._first = pull.pulled_rdma_offset
        self._region = region
        self.lengths = [max(_SHORTEST, _HEADER_SIZE + length) for length in self._data]
        self._template = np.zeros(count, _HEADER)
        row = self._template
        row["dst_mac"] = np.frombuffer(pull.src_mac, np.uint8)
        row["src_mac"] = np.frombuffer(source, np.uint8)
        row["ethertype"] = ETHERTYPE_MXOE
        row["ptype"] = PacketType.PULL_REPLY
        row["frame_seqnum"] = (np.arange(count) + pull.frame_index) & 0xFF
        row["frame_length"] = self._data
        row["msg_offset"] = self._offsets
        row["dst_pull_handle"] = pull.src_pull_handle
        row["dst_magic"] = pull.src_magic

    def write(self, out: NDArray[np.uint8]) -> None:
        """Build the frames; the payload is copied once, from the sender's memory."""
        headers = self._template.view(np.uint8).reshape(len(self._data), _HEADER_SIZE)
        take = self._region.take
        at = 0
        for header, length, offset, size in zip(headers, self._data, self._offsets, self.lengths, strict=True):
            out[at : at + _HEADER_SIZE] = header
            take(self._first + offset, out[at + _HEADER_SIZE : at + _HEADER_SIZE + length])
            out[at + _HEADER_SIZE + length : at + size] = 0
            at += size
