"""Answering PULLs: the regions that peers may pull from, and the replies to a block (R-RDV-01, R-PUL-12, R-PUL-13).

The replies to a block are queued as one object and built only when the link takes them, so a payload is copied once,
from the application's memory into the batch, or not at all if the link gathers it from there.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.native import native
from mxwire.protocol.arguments import Segments
from mxwire.protocol.card.outgoing import Port
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import Dialect
from mxwire.wire.enums import PacketType
from mxwire.wire.formats import PULL_REPLY
from mxwire.wire.layout import header_type, layout_of
from mxwire.wire.packets import Pull, PullReply

_LAYOUT: Final = layout_of(PULL_REPLY)
_HEADER: Final = header_type(_LAYOUT)
REPLY_HEADER: Final = _LAYOUT.header_end
"""Length in bytes of the header of a PULL_REPLY."""
_SHORTEST: Final = PULL_REPLY.minimum_length
_TYPE: Final = int(PacketType.PULL_REPLY)
_MODULO: Final = 1 << 32
FRAMES_MAXIMUM: Final = 256
"""Maximum number of frames per object."""
_STRETCH: Final = 512
"""Maximum number of headers of a transfer that are built in advance."""
_NUMBERS: Final = np.arange(_STRETCH)
_VARIABLE: Final = ("frame_seqnum", "frame_length", "msg_offset")
"""The fields in which the replies of a transfer differ."""


def _fixed_bytes() -> bytes:
    """A mask of the header: 255 for each byte that all replies of a transfer share, 0 for the others."""
    shared = {each.name for each in _LAYOUT.defined} - set(_VARIABLE)
    return b"".join((b"\xff" if each.name in shared else b"\0") * (each.size or 0) for each in _LAYOUT.fields)


REPLY_PARTS: Final = (_fixed_bytes(), _SHORTEST, *(_LAYOUT.by_name[each].offset for each in _VARIABLE))
"""The arguments of ``REPLY_FORM``: the shared bytes, the minimum length of a frame, and the offsets of the fields."""
REPLY_FORM: Final[Any] = None if native is None else native.RunForm(*REPLY_PARTS)
"""Native builder and parser of runs of single replies; None if mxwire is interpreted."""


class PullRequest:
    """The fields of a PULL that begins with a whole frame, as :class:`~mxwire.wire.packets.Pull` names them."""

    __slots__ = ("first_frame_offset", "frame_index", "pulled_rdma_offset", "src_mac", "src_magic", "src_pull_handle")

    def __init__(self, source: bytes, offset: int, handle: int, magic: int, frame_index: int) -> None:
        self.src_mac = source
        self.pulled_rdma_offset = offset
        self.src_pull_handle = handle
        self.src_magic = magic
        self.frame_index = frame_index
        self.first_frame_offset = 0


class Region:
    """One registered message."""

    __slots__ = ("failed", "memory", "number", "offset", "partner", "requested", "use")

    def __init__(self, number: int, use: int, offset: int, memory: Segments, partner: bytes) -> None:
        self.number = number
        """Its id on the wire, 0 to 255."""
        self.use = use
        """The use counter of its slot (``pulled_rdma_seqnum``)."""
        self.offset = offset
        """Offset of the message in the region, in bytes (R-RDV-02)."""
        self.memory = memory
        self.partner = partner
        """Address of the host to which the message is announced; no other host may pull it."""
        self.failed = False
        """True if some of the message could not be read, so that its receiver has received other data."""
        self.requested = 0
        """End of the furthest range that was requested, in bytes from the start of the region."""

    @property
    def length(self) -> int:
        """Length of the region in bytes."""
        return self.offset + self.memory.length

    def view(self, start: int, length: int) -> NDArray[np.uint8] | None:
        """A view of bytes of the region; None if they are not in one segment of the message."""
        return self.memory.view(start - self.offset, length) if start >= self.offset else None

    def flat(self, start: int, length: int) -> memoryview | None:
        """A view of bytes of the region that is not an array; None if they are not in a message of one segment."""
        return self.memory.part(start - self.offset, length) if start >= self.offset else None

    def part(self, start: int, length: int) -> bytes | memoryview:
        """Bytes of the region, without a copy if they are in one segment of the message."""
        found = self.flat(start, length)
        if found is not None:
            return found
        out = np.empty(length, np.uint8)
        self.take(start, out)
        return out.tobytes()

    def take(self, start: int, out: NDArray[np.uint8]) -> None:
        """Copy bytes of the region from ``start`` into ``out``; bytes before the message are zero."""
        before = min(len(out), max(0, self.offset - start))
        out[:before] = 0
        self.memory.take(start + before - self.offset, out[before:])


class RegionTable:
    """The regions of an endpoint; the id freed last is reused first, then the lowest."""

    def __init__(self, maximum: int, first_use: int) -> None:
        self._free = list(range(maximum - 1, -1, -1))
        self._uses = [first_use] * maximum
        self._live: dict[int, Region] = {}

    def __len__(self) -> int:
        """Number of regions in use."""
        return len(self._live)

    @property
    def available(self) -> bool:
        """True if a region is free."""
        return bool(self._free)

    def register(self, memory: Segments, offset: int, partner: bytes) -> Region:
        """Make a message available for pulling by the host with address ``partner``; the use counter of the slot
        increases by one, modulo 256."""
        number = self._free.pop()
        region = Region(number, self._uses[number], offset, memory, partner)
        self._uses[number] = (self._uses[number] + 1) & 0xFF
        self._live[number] = region
        return region

    def release(self, region: Region) -> None:
        """Free a region: from now on PULLs of it are refused."""
        del self._live[region.number]
        self._free.append(region.number)

    def adopt(self, region: Region) -> bool:
        """Enter a region whose number and use counter another process has chosen; return False if its number is in
        use."""
        return self._live.setdefault(region.number, region) is region

    def withdraw(self, number: int) -> None:
        """Remove a region that was adopted."""
        self._live.pop(number, None)

    def at(self, number: int) -> Region | None:
        """The region with an id, or None."""
        return self._live.get(number)


def replies_needed(pull: Pull, dialect: Dialect) -> int:
    """Number of frames that a PULL requests; in `omx` the sum of 32-bit fields wraps (R-PUL-12, R-MEA-03)."""
    requested = pull.first_frame_offset + pull.block_length
    if dialect.family == "omx":
        requested %= _MODULO
    return -(-requested // dialect.reply_payload)


def message_offset(pull: Pull | PullRequest, dialect: Dialect) -> int:
    """Offset of the block in the message, modulo 2^32 (R-PUL-13, R-MEA-03)."""
    payload = dialect.reply_payload
    start = pull.frame_index * payload - pull.pulled_rdma_offset % payload + pull.first_frame_offset
    return start % _MODULO


def region_offset(pull: Pull | PullRequest, dialect: Dialect) -> int:
    """Offset of the block in the region; this sum wraps too, so a large offset can designate the region's start."""
    return (pull.pulled_rdma_offset + message_offset(pull, dialect)) % _MODULO


class _ReplyHeaders:
    """The headers of the replies of one transfer.

    The header of a full reply follows from its position in the message, so the headers of several blocks are built in
    advance, before their PULLs arrive.
    """

    __slots__ = ("_payload", "_stretch", "template")

    def __init__(self, template: NDArray[np.uint8], payload: int) -> None:
        self.template = template
        """The fields that all headers share; shape (header size,)."""
        self._payload = payload
        self._stretch = (0, 0, np.empty((0, len(template)), np.uint8))
        """Frame number and message offset of the first header, and the headers; one tuple, since hosts in other threads
        may use the same object."""

    def full(self, number: int, offset: int, count: int, expected: int) -> NDArray[np.uint8]:
        """The headers of ``count`` full replies, of shape (count, header size), from frame ``number`` at ``offset`` in
        the message; ``expected`` is the number of replies that may follow from there."""
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


def _on_wire(number: Any) -> Any:
    """The numbers of frames as their field carries them, which has 8 bits."""
    return number & 0xFF


def _fill(headers: NDArray[np.void], number: int, offset: int, length: int) -> None:
    """Write the distinguishing fields into headers of shape (n,), for replies with ``length`` bytes of data each.

    The first reply has frame ``number`` and lies at ``offset`` in the message.
    """
    numbers = _NUMBERS[: len(headers)]
    headers["frame_seqnum"] = _on_wire(numbers + number)
    headers["frame_length"] = length
    headers["msg_offset"] = (numbers * length + offset) % _MODULO


class PullReplies:
    """Replies to one PULL, or to several PULLs of consecutive blocks: the length and data of each."""

    __slots__ = (
        "_data",
        "_first",
        "_identity",
        "_payload",
        "_port",
        "_region",
        "_sequence",
        "_start",
        "_total",
        "even",
        "lengths",
        "size",
    )

    def __init__(self, pull: Pull | PullRequest, length: int, region: Region, port: Port, count: int) -> None:
        """Reply to ``pull``, received by ``port``, in ``count`` frames with ``length`` bytes of data in total: its
        block, and the following blocks if other PULLs have requested them."""
        dialect = port.dialect
        self._port = port
        self._payload = dialect.reply_payload
        self._data = _data_lengths(pull.first_frame_offset, length, self._payload, count)
        # Less than ``length`` only where the sum of 32-bit fields wraps (R-MEA-03).
        self._total = length if count > 1 else self._data[0]
        self._region = region
        self._identity = (pull.src_mac, pull.src_pull_handle, pull.src_magic)
        self._sequence = pull.frame_index
        self._start = message_offset(pull, dialect)
        # Offset in the region of the data of the first frame.
        self._first = (pull.pulled_rdma_offset + self._start) % _MODULO
        self.lengths = _frame_lengths(self._data, self._payload)
        self.even = self.lengths[0] if self.lengths[0] == self.lengths[-1] and self._data[0] == self._payload else 0
        self.size = self.even * count or sum(self.lengths)

    def append(self, more: PullReplies) -> bool:
        """Absorb the replies to the next PULL if they continue these; return False if they do not."""
        count = len(self._data)
        # Not all frames need be full: a block may start within its first one (R-PUL-13).
        data = self._total
        if (
            more._region is not self._region
            or more._port is not self._port
            or more._identity != self._identity
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
        self.size += more.size
        if more.even != self.even:
            self.even = 0
        return True

    def frames(self, gather: bool) -> list[bytes]:
        """Build the frames one by one, as :meth:`write` does, which is slower for a few frames.

        With ``gather`` their data may stay in the application's memory: see ``Outgoing.gathers``.
        """
        (destination, handle, magic), port = self._identity, self._port
        memory = self._region.flat(self._first, self._total) if REPLY_FORM is not None else None
        if memory is not None:
            head: bytes = port.reply.pack(destination, port.address, ETHERTYPE_MXOE, _TYPE, 0, 0, 0, handle, magic)
            make = REPLY_FORM.gather if gather else REPLY_FORM.build
            built: list[bytes] = make(head, memory, self._sequence & 0xFF, self._start, self._data)
            return built
        found: list[bytes] = []
        taken = 0
        # Once for all frames, since memory of another process takes a call.
        data = self._region.part(self._first, self._total)
        for place, length in enumerate(self._data):
            number, offset = _on_wire(self._sequence + place), (self._start + taken) % _MODULO
            head = port.reply.pack(
                destination, port.address, ETHERTYPE_MXOE, _TYPE, number, length, offset, handle, magic
            )
            frame = head + data[taken : taken + length]
            found.append(frame if len(frame) >= _SHORTEST else frame + bytes(_SHORTEST - len(frame)))
            taken += length
        return found

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
                rows[:, :REPLY_HEADER] = self._full(place, alike, taken)
                rows[:, REPLY_HEADER:] = memory.reshape(alike, length)
            place += alike
            at += alike * size
            taken += alike * length

    def _full(self, place: int, count: int, taken: int) -> NDArray[np.uint8]:
        """The headers of ``count`` full frames after ``taken`` bytes of data."""
        expected = (self._region.length - self._first - taken) // self._payload
        return self._headers().full(self._sequence + place, (self._start + taken) % _MODULO, count, expected)

    def _write_one(self, out: NDArray[np.uint8], place: int, taken: int) -> None:
        """Build one frame, after ``taken`` bytes of data."""
        length = self._data[place]
        out[:REPLY_HEADER] = self._headers().template
        _fill(np.ndarray((1,), _HEADER, out), self._sequence + place, self._start + taken, length)
        self._region.take(self._first + taken, out[REPLY_HEADER : REPLY_HEADER + length])
        out[REPLY_HEADER + length :] = 0

    def _headers(self) -> _ReplyHeaders:
        destination, handle, magic = self._identity
        return _headers(self._port.dialect, destination, self._port.address, handle, magic)

    def _alike(self, place: int) -> int:
        """Number of full frames from ``place`` that can be written together, at least 1."""
        rest = self._data[place:]
        full = [self._payload] * len(rest)
        if rest == full:
            return len(full)
        return max(1, len(full) - 1) if rest[:-1] == full[:-1] else 1


@lru_cache(maxsize=256)
def _headers(dialect: Dialect, destination: bytes, source: bytes, handle: int, magic: int) -> _ReplyHeaders:
    """The headers of the replies of a transfer, cached by its identity."""
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
    template = np.frombuffer(codec_of(dialect).build(reply), np.uint8)[:REPLY_HEADER]
    return _ReplyHeaders(template, dialect.reply_payload)


def _frame_lengths(data: list[int], payload: int) -> list[int]:
    """Length of each frame, given its bytes of data; nearly always all are full, as those between two full ones are."""
    if data[0] == payload == data[-1] and payload >= _SHORTEST - REPLY_HEADER:
        return [REPLY_HEADER + payload] * len(data)
    return [max(_SHORTEST, REPLY_HEADER + length) for length in data]


def _data_lengths(offset: int, length: int, payload: int, count: int) -> list[int]:
    """Bytes of data in each frame; with an offset beyond the first frame, that frame carries everything (R-MEA-04)."""
    first = payload - offset
    if first < 0:
        return [length] + [0] * (count - 1)
    if count == 1:
        return [min(first, length)]
    rest = length - first - (count - 2) * payload
    return [first] + [payload] * (count - 2) + [rest]
