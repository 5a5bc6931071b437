"""Answering PULLs: the replies to one block are built at once, when they leave (R-PUL-12, R-PUL-13)."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.protocol.card.regions import Region
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import Dialect
from mxwire.wire.formats import PULL_REPLY
from mxwire.wire.headers import header_type
from mxwire.wire.layout import layout_of
from mxwire.wire.packets import Pull, PullReply

_LAYOUT: Final = layout_of(PULL_REPLY)
_HEADER: Final = header_type(_LAYOUT)
_HEADER_SIZE: Final = _LAYOUT.header_end
_SHORTEST: Final = PULL_REPLY.minimum_length
_MODULO: Final = 1 << 32
_NUMBERS: Final = np.arange(256)


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


def region_offset(pull: Pull, dialect: Dialect) -> int:
    """Where in the region the block starts: this sum wraps too, so that an offset can lead back to the region."""
    return (pull.pulled_rdma_offset + message_offset(pull, dialect)) % _MODULO


class PullReplies:
    """The replies to one PULL, frame by frame: how long each is and where its data lies."""

    __slots__ = ("_data", "_first", "_headers", "_payload", "_region", "lengths")

    def __init__(self, pull: Pull, region: Region, dialect: Dialect, source: bytes, count: int) -> None:
        self._payload = dialect.reply_payload
        self._data = _data_lengths(pull, self._payload, count)
        self._region = region
        start = message_offset(pull, dialect)
        # Where in the region the data of the first frame lies.
        self._first = region_offset(pull, dialect)
        self.lengths = [max(_SHORTEST, _HEADER_SIZE + length) for length in self._data]
        row = _template(dialect, pull.src_mac, source, pull.src_pull_handle, pull.src_magic)
        self._headers = np.frombuffer(bytearray(row * count), _HEADER)
        self._headers["frame_seqnum"] = (_NUMBERS[:count] + pull.frame_index) & 0xFF
        self._headers["frame_length"] = self._data
        self._headers["msg_offset"] = [each % _MODULO for each in accumulate(self._data[:-1], initial=start)]

    def write(self, out: NDArray[np.uint8]) -> None:
        """Build the frames; the payload is copied once, from the sender's memory."""
        headers = self._headers.view(np.uint8).reshape(-1, _HEADER_SIZE)
        at, taken, place, count = 0, self._first, 0, len(self._data)
        while place < count:
            alike = self._alike(place)
            length, size = self._data[place], self.lengths[place]
            memory = self._region.view(taken, alike * length) if alike > 1 else None
            if memory is None:
                alike = 1
                out[at : at + _HEADER_SIZE] = headers[place]
                self._region.take(taken, out[at + _HEADER_SIZE : at + _HEADER_SIZE + length])
                out[at + _HEADER_SIZE + length : at + size] = 0
            else:
                rows = out[at : at + alike * size].reshape(alike, size)
                rows[:, :_HEADER_SIZE] = headers[place : place + alike]
                rows[:, _HEADER_SIZE:] = memory.reshape(alike, length)
            place += alike
            at += alike * size
            taken += alike * length

    def _alike(self, place: int) -> int:
        """How many frames from ``place`` on are full and can be written together."""
        end = place
        while end < len(self._data) and self._data[end] == self._payload:
            end += 1
        return max(1, end - place)


@lru_cache(maxsize=1024)
def _template(dialect: Dialect, destination: bytes, source: bytes, handle: int, magic: int) -> bytes:
    """The header that all replies of a transfer have in common."""
    reply = PullReply(
        dst_mac=destination,
        src_mac=source,
        frame_seqnum=0,
        frame_length=0,
        msg_offset=0,
        dst_pull_handle=handle,
        dst_magic=magic,
        data=b"",
    )
    return codec_of(dialect).build(reply)[:_HEADER_SIZE]


def _data_lengths(pull: Pull, payload: int, count: int) -> list[int]:
    """Bytes of data in each frame; an offset beyond the first frame makes that frame carry everything (R-MEA-04)."""
    first = payload - pull.first_frame_offset
    if first < 0:
        return [pull.block_length] + [0] * (count - 1)
    if count == 1:
        return [min(first, pull.block_length)]
    rest = pull.block_length - first - (count - 2) * payload
    return [first] + [payload] * (count - 2) + [rest]
