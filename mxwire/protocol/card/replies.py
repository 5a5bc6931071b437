"""Answering PULLs: the replies to one block are built at once, when they leave (R-PUL-12, R-PUL-13)."""

from __future__ import annotations

from functools import lru_cache
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
FRAMES_MAXIMUM: Final = 256
"""Most frames that are built at once."""
_STRETCH: Final = 512
"""Most headers of a transfer that are made at once."""
_NUMBERS: Final = np.arange(_STRETCH)


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


class _Headers:
    """The headers of the replies of one transfer. Those of full ones follow from where they lie in the message, so a
    stretch of them is made at once, for all the blocks that will be asked for."""

    __slots__ = ("_payload", "_stretch", "template")

    def __init__(self, template: NDArray[np.uint8], payload: int) -> None:
        self.template = template
        """What all have in common; shape (header size,)."""
        self._payload = payload
        self._stretch = (0, 0, np.empty((0, len(template)), np.uint8))
        """Number and place in the message of the first one, and the headers; one value, since hosts in other threads
        may have the same."""

    def full(self, number: int, offset: int, count: int, expected: int) -> NDArray[np.uint8]:
        """The headers of ``count`` full replies, of shape (count, header size). The first has a frame number and lies
        at ``offset`` in the message; ``expected`` says how many there may be from there on."""
        first, place, rows = self._stretch
        skip = number - first
        known = 0 <= skip <= len(rows) - count
        if not known or (place + skip * self._payload - offset) % _MODULO:
            rows = self._make(number, offset, max(count, min(expected, _STRETCH)))
            self._stretch = (number, offset, rows)
            skip = 0
        return rows[skip : skip + count]

    def _make(self, number: int, offset: int, count: int) -> NDArray[np.uint8]:
        rows = np.empty((count, len(self.template)), np.uint8)
        rows[:] = self.template
        _fill(rows.view(_HEADER).reshape(count), number, offset, self._payload)
        return rows


def _fill(headers: NDArray[np.void], number: int, offset: int, length: int) -> None:
    """Write into headers of shape (n,) what tells replies of a transfer apart: they have ``length`` bytes of data each,
    and the first has a frame number and lies at ``offset`` in the message."""
    numbers = _NUMBERS[: len(headers)]
    headers["frame_seqnum"] = (numbers + number) & 0xFF
    headers["frame_length"] = length
    headers["msg_offset"] = (numbers * length + offset) % _MODULO


class PullReplies:
    """Replies to one PULL, or to several that ask for what follows: how long each is and where its data lies."""

    __slots__ = (
        "_data",
        "_first",
        "_headers",
        "_payload",
        "_region",
        "_sequence",
        "_start",
        "_total",
        "even",
        "lengths",
    )

    def __init__(self, pull: Pull, length: int, region: Region, dialect: Dialect, source: bytes, count: int) -> None:
        """Replies to ``pull``, in ``count`` frames with ``length`` bytes of data: its block, or this and what follows
        it, which other PULLs have asked for."""
        self._payload = dialect.reply_payload
        self._data = _data_lengths(pull.first_frame_offset, length, self._payload, count)
        self._total = sum(self._data)
        self._region = region
        self._headers = _headers(dialect, pull.src_mac, source, pull.src_pull_handle, pull.src_magic)
        self._sequence = pull.frame_index
        self._start = message_offset(pull, dialect)
        # Where in the region the data of the first frame lies.
        self._first = (pull.pulled_rdma_offset + self._start) % _MODULO
        self.lengths = _frame_lengths(self._data, self._payload)
        self.even = self.lengths[0] if self.lengths[0] == self.lengths[-1] and self._data[0] == self._payload else 0

    def append(self, more: PullReplies) -> bool:
        """Take over the replies to the next PULL where they go on as these do; False where they do not."""
        count = len(self._data)
        # Not all frames need be full: a block may start within its first one (R-PUL-13).
        data = self._total
        if (
            more._region is not self._region
            or more._headers is not self._headers
            or more._sequence != self._sequence + count
            or more._first != self._first + data
            or more._start != self._start + data
            or self._data[-1] != self._payload
            or count + len(more._data) > FRAMES_MAXIMUM
        ):
            return False
        self._data += more._data
        self._total += more._total
        self.lengths += more.lengths
        if more.even != self.even:
            self.even = 0
        return True

    def write(self, out: NDArray[np.uint8]) -> None:
        """Build the frames; the payload is copied once, from the sender's memory."""
        at, taken, place, count = 0, 0, 0, len(self._data)
        while place < count:
            alike = self._alike(place)
            length, size = self._data[place], self.lengths[place]
            memory = self._region.view(self._first + taken, alike * length) if alike > 1 else None
            if memory is None:
                alike = 1
                self._write_one(out[at : at + size], place, taken)
            else:
                rows = out[at : at + alike * size].reshape(alike, size)
                rows[:, :_HEADER_SIZE] = self._full(place, alike, taken)
                rows[:, _HEADER_SIZE:] = memory.reshape(alike, length)
            place += alike
            at += alike * size
            taken += alike * length

    def _full(self, place: int, count: int, taken: int) -> NDArray[np.uint8]:
        """The headers of ``count`` full frames; ``taken`` bytes of data went before them."""
        expected = (self._region.length - self._first - taken) // self._payload
        return self._headers.full(self._sequence + place, (self._start + taken) % _MODULO, count, expected)

    def _write_one(self, out: NDArray[np.uint8], place: int, taken: int) -> None:
        """Build a frame by itself; ``taken`` bytes of data went before it."""
        length = self._data[place]
        out[:_HEADER_SIZE] = self._headers.template
        _fill(np.ndarray((1,), _HEADER, out), self._sequence + place, self._start + taken, length)
        self._region.take(self._first + taken, out[_HEADER_SIZE : _HEADER_SIZE + length])
        out[_HEADER_SIZE + length :] = 0

    def _alike(self, place: int) -> int:
        """How many frames from ``place`` on are full and can be written together."""
        rest = self._data[place:]
        full = [self._payload] * len(rest)
        if rest == full:
            return len(full)
        return max(1, len(full) - 1) if rest[:-1] == full[:-1] else 1


@lru_cache(maxsize=256)
def _headers(dialect: Dialect, destination: bytes, source: bytes, handle: int, magic: int) -> _Headers:
    """The headers of the replies of a transfer."""
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
    template = np.frombuffer(codec_of(dialect).build(reply), np.uint8)[:_HEADER_SIZE]
    return _Headers(template, dialect.reply_payload)


def _frame_lengths(data: list[int], payload: int) -> list[int]:
    """How long each frame is, whose bytes of data are given; nearly always all are full."""
    if data[0] == payload and data.count(payload) == len(data) and payload >= _SHORTEST - _HEADER_SIZE:
        return [_HEADER_SIZE + payload] * len(data)
    return [max(_SHORTEST, _HEADER_SIZE + length) for length in data]


def _data_lengths(offset: int, length: int, payload: int, count: int) -> list[int]:
    """Bytes of data in each frame; an offset beyond the first frame makes that frame carry everything (R-MEA-04)."""
    first = payload - offset
    if first < 0:
        return [length] + [0] * (count - 1)
    if count == 1:
        return [min(first, length)]
    rest = length - first - (count - 2) * payload
    return [first] + [payload] * (count - 2) + [rest]
