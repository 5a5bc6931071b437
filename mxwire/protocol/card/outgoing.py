"""The transmitting half of an interface: counters, prepared headers, and the queue of frames for the link.

Frames are queued as bytes, except the replies to PULLs: these are queued as objects whose frames are built when the
link takes them, so that a payload is copied once. Up to ``FEW`` frames are handed to the link as a list of bytes, since
a batch has a fixed cost of some 20 us; more frames are written into one batch. A link that gathers takes lists only: a
batch would copy the data once more, and the link would not send its first frame before the last one is built.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from struct import Struct
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from mxwire.frames import FrameBatch
from mxwire.native import native, quick_struct
from mxwire.protocol.counters import Counter, Counters, Tally
from mxwire.protocol.profile import Profile
from mxwire.wire.codec import Codec, codec_of
from mxwire.wire.dialect import Dialect
from mxwire.wire.packets import Frame

NO_FRAMES: Final = FrameBatch.from_frames(())
"""The empty batch, made once: most calls have nothing to transmit."""

_EAGER_FIELDS: Final = ("length", "checksum", "lib_seqnum", "lib_piggyack", "match_a", "match_b", "session")
EAGER_NUMBERS: Final = "QQI"
"""These fields as three integers, because creating an integer object takes as long as packing it: the first consists of
length, checksum, sequence number and piggyback (16 bits each), the second is the match information."""
_FRAGMENT_NUMBERS: Final = "IQII"
"""The fields of a MEDIUM behind its length, in the same manner: sequence number and piggyback; match information;
session; ``frag_length`` (16 bits), ``frag_seqnum`` and ``frag_pipeline``, which is 0 in a format without it."""
_LIBACK_FIELDS: Final = ("liback.lib_seqnum", "liback.session_id", "liback.acknum", "liback.send_seq")
_LIBACK_NUMBERS: Final = "HIIH"
_FIRST: Final = np.zeros(1, np.int64)
_FIRST.flags.writeable = False


_GATHERED: Final[Any] = None if native is None else native.GatheredFrame
_GATHERED_AT_ONCE: Final = 128
"""Number of frames after which a link that gathers is to send them before others are built."""
FEW: Final = 64 if native is None else 256
"""Up to this number of frames, single frames are faster than a batch (benchmarks/curve.py)."""


class Bulk(Protocol):
    """Several frames that are built only when they are transmitted, directly in the batch."""

    lengths: list[int]
    """The length of each frame in bytes."""
    even: int
    """The length of every frame if all are equal, otherwise 0."""
    size: int
    """Bytes of all frames together."""

    def frames(self, gather: bool) -> list[bytes]:
        """Build the frames one by one, which is faster for a few; with ``gather`` see :attr:`Outgoing.gathers`."""

    def write(self, out: NDArray[np.uint8]) -> None:
        """Build the frames into ``out``, one after another; it has ``size`` bytes."""

    def append(self, more: Any, /) -> bool:
        """Absorb frames of the same kind that continue these; return False if they do not."""


class Outgoing:
    """The frames that wait for the link, in order."""

    __slots__ = ("_gathered", "_pieces", "bulk_bytes", "frames", "gathers", "room")

    def __init__(self) -> None:
        self._pieces: list[bytes | Bulk] = []
        self.frames = 0
        """Number of frames that wait."""
        self.bulk_bytes = 0
        """Bytes of frames that are not built yet."""
        self._gathered = False
        """True if a gathered frame waits."""
        self.gathers = False
        """True if the link also takes gathered frames of the native module: a header, and data in the memory of the
        application, which only the kernel copies."""
        self.room: Callable[[int], NDArray[np.uint8] | None] | None = None
        """Returns link memory of a number of bytes, in which the next batch is built; if it is unset or returns None,
        the batch is built in new memory."""

    def put(self, frame: bytes) -> None:
        """Queue a frame."""
        self._pieces.append(frame)
        self.frames += 1

    def put_gathered(self, frames: list[Any]) -> None:
        """Queue gathered frames of the native module; only if the link takes them."""
        self._pieces += frames
        self.frames += len(frames)
        self._gathered = True

    def put_bulk(self, bulk: Bulk) -> None:
        """Queue several frames."""
        self.frames += len(bulk.lengths)
        self.bulk_bytes += bulk.size
        last = self._pieces[-1] if self._pieces else b""
        if type(last) is not type(bulk) or not last.append(bulk):
            self._pieces.append(bulk)

    def take(self, now: int, first_number: int, limit: int) -> list[bytes] | FrameBatch:
        """Take all frames, as bytes if they are at most ``limit``.

        Otherwise they are one batch with the time ``now`` (ns) and numbers from ``first_number``; but if the link
        gathers and ``limit`` is not 0, the first of them are taken as bytes.
        """
        if limit and self.gathers and self.frames > limit:
            return self._take_first()
        pieces: list[Any] = self._pieces
        bulky, waiting = self.bulk_bytes > 0, self.frames
        if not pieces:
            return []
        self._pieces, self.frames, self.bulk_bytes = [], 0, 0
        if self._gathered:
            self._gathered = False
            if waiting > limit:
                # A batch has no gathered frames.
                pieces = [bytes(each) if type(each) is _GATHERED else each for each in pieces]
        if waiting <= limit:
            if not bulky:
                return pieces
            frames: list[Any] = []
            for piece in pieces:
                if type(piece) is bytes or type(piece) is _GATHERED:
                    frames.append(piece)
                else:
                    frames += piece.frames(self.gathers)
            return frames
        if len(pieces) == 1 and type(pieces[0]) is bytes:
            return _single(pieces[0], now, first_number)
        offset, length = _places(pieces)
        count = len(length)
        if bulky:
            size = int(offset[-1]) + int(length[-1])
            room = None if self.room is None else self.room(size)
            buffer = np.empty(size, np.uint8) if room is None else room
            _write(pieces, buffer)
        else:
            buffer = np.frombuffer(b"".join(pieces), np.uint8)
        return FrameBatch(
            buffer=buffer,
            offset=offset,
            length=length,
            wire_length=length,
            timestamp_ns=np.full(count, now, np.int64),
            number=np.arange(first_number, first_number + count, dtype=np.int64),
        )

    def _take_first(self) -> list[bytes]:
        """Take the first frames, so that the link sends them before the others are built."""
        taken: list[Any] = []
        place = 0
        while place < len(self._pieces) and len(taken) < _GATHERED_AT_ONCE:
            piece: Any = self._pieces[place]
            if type(piece) is bytes or type(piece) is _GATHERED:
                taken.append(piece)
            else:
                self.bulk_bytes -= piece.size
                taken += piece.frames(self.gathers)
            place += 1
        del self._pieces[:place]
        self.frames -= len(taken)
        return taken


@cache
def _packing(
    codec: Codec, name: str, fields: tuple[str, ...], numbers: str
) -> tuple[Struct, int, int, int, Callable[..., bytes]]:
    """The constants of a :class:`HeaderPacker`, the same for all interfaces: the struct of the whole header and the
    number of its fields; the length of the shared part; the bytes of data within the minimum length of a frame; and a
    function that packs the shared part, the numbers, and the data up to the minimum length, padded with zeros."""
    whole, shortest = codec.header(name)
    shared, rest = codec.stretch(name, *fields)
    room = max(0, shortest - whole.size)
    behind = whole.size - shared - rest.size
    pack: Callable[..., bytes] = quick_struct(Struct(f">{shared}s{numbers}{behind}x{room}s")).pack
    return whole, len(codec.layout(name).defined), shared, room, pack


@cache
def _whole(codec: Codec, name: str) -> Any:
    """A struct that packs the frames of a layout without payload, with zeros up to the minimum length."""
    whole, shortest = codec.header(name)
    return quick_struct(Struct(f"{whole.format}{max(0, shortest - whole.size)}x"))


@cache
def fragment_struct(codec: Codec, shared: str) -> Struct:
    """A struct of the header of a MEDIUM: the part that all packets to a partner share, with the code ``shared``, the
    length of the message, and ``_FRAGMENT_NUMBERS``."""
    length = codec.layout("medium").by_name["length"]
    numbers = ("Hxx" if length.size == 2 else "I") + _FRAGMENT_NUMBERS
    behind = codec.header("medium")[0].size - length.offset - Struct(f">{numbers}").size
    return Struct(f">{length.offset}{shared}{numbers}{behind}x")


@cache
def _fragment_form(codec: Codec) -> Any:
    if native is None:
        return None
    whole, shortest = codec.header("medium")
    fields = codec.layout("medium").by_name
    return native.RunForm(bytes(whole.size), shortest, fields["frag_seqnum"].offset, fields["frag_length"].offset, -1)


class HeaderPacker:
    """Packs headers of one layout: first the part that all packets to one partner share, then ``fields``, which are
    adjacent.

    ``numbers`` are the ``struct`` codes of the integers into which these fields are combined. The fields after them are
    0.
    """

    __slots__ = ("_count", "_whole", "pack", "room", "sent", "shared")

    def __init__(self, codec: Codec, name: str, sent: Tally, fields: tuple[str, ...], numbers: str) -> None:
        self.sent = sent
        """The counter of its frames."""
        self._whole, self._count, self.shared, self.room, self.pack = _packing(codec, name, fields, numbers)

    def head(self, *fields: Any) -> bytes:
        """Pack the shared part; ``fields`` start with the destination."""
        return self._whole.pack(*fields, *(0 for _ in range(self._count - len(fields))))[: self.shared]


class Port:
    """The part of an interface that endpoints, pulls and name queries use: identity, counters and the queue of
    frames."""

    def __init__(self, number: int, address: bytes, hostname: str, dialect: Dialect, profile: Profile) -> None:
        self.number = number
        self.address = address
        """Its Ethernet address."""
        self.name = hostname
        """The name in its HOST_REPLYs."""
        self.dialect = dialect
        self.profile = profile
        self.block_length = dialect.block_length
        """Maximum number of bytes that one PULL requests."""
        self.counters = Counters()
        self.outgoing = Outgoing()
        self.speaks: Callable[[], bool] = lambda: True
        """True if this node answers and announces for the interface, rather than another node that shares it."""
        self.codec = codec_of(dialect)
        sent = self.counters.by_name
        self.tiny = HeaderPacker(self.codec, "tiny", sent[Counter.SEND_TINY], _EAGER_FIELDS, EAGER_NUMBERS)
        self.small = HeaderPacker(self.codec, "small", sent[Counter.SEND_SMALL], _EAGER_FIELDS, EAGER_NUMBERS)
        self.liback = HeaderPacker(self.codec, "truc", sent[Counter.SEND_LIBACK], _LIBACK_FIELDS, _LIBACK_NUMBERS)
        self.medium = quick_struct(fragment_struct(self.codec, "s"))
        """Packs the header of a MEDIUM fragment: see :func:`fragment_struct`."""
        self.medium_sent: Tally = sent[Counter.SEND_MEDIUM_SQ_FRAG]
        self.pulls_sent: Tally = sent[Counter.SEND_PULL_REQUEST]
        self.medium_shortest = self.codec.header("medium")[1]
        self.rndv, self.pull, self.notify = (_whole(self.codec, name) for name in ("rndv", "pull", "notify"))
        """Pack whole frames, from all defined fields in order of offset."""
        self.reply = quick_struct(self.codec.header("pull_reply")[0])
        """Packs the header of a PULL_REPLY."""
        self.fragment_place = self.codec.stretch("medium", "frag_length", "frag_seqnum")
        """Offset and packer of the fields in which the fragments of a message differ."""
        self.fragments: Any = _fragment_form(self.codec)
        """Native builder of gathered frames with the fragments of a message; None if mxwire is interpreted."""
        self.pull_block = self.codec.stretch("pull", "first_frame_offset", "block_length", "frame_index")
        """Offset and packer of the fields of a PULL that designate its block."""

    def emit(self, counter: Counter, frame: Frame) -> None:
        """Build a frame and queue it for the link."""
        self.counters[counter] += 1
        self.outgoing.put(self.codec.build(frame))


def _places(pieces: list[bytes | Bulk]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offset and length of each frame."""
    lengths: list[int] = []
    evens: set[int] = set()
    for piece in pieces:
        if isinstance(piece, bytes):
            lengths.append(len(piece))
            evens.add(0)
        else:
            lengths += piece.lengths
            evens.add(piece.even)
    if len(evens) == 1 and lengths[0] in evens:
        return _evenly(lengths[0], len(lengths))
    length = np.array(lengths, dtype=np.int64)
    return length.cumsum() - length, length


@lru_cache(maxsize=256)
def _evenly(length: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offset and length of ``count`` frames of one length; cached, therefore read-only."""
    lengths = np.full(count, length, np.int64)
    offset = np.arange(count, dtype=np.int64) * length
    lengths.flags.writeable = offset.flags.writeable = False
    return offset, lengths


def _single(frame: bytes, now: int, number: int) -> FrameBatch:
    """A batch of one frame, the usual case while a caller waits for an answer."""
    length = np.array((len(frame),), np.int64)
    return FrameBatch(
        buffer=np.frombuffer(frame, np.uint8),
        offset=_FIRST,
        length=length,
        wire_length=length,
        timestamp_ns=np.array((now,), np.int64),
        number=np.array((number,), np.int64),
    )


def _write(pieces: list[bytes | Bulk], buffer: NDArray[np.uint8]) -> None:
    at = 0
    for piece in pieces:
        if isinstance(piece, bytes):
            buffer[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
            at += len(piece)
        else:
            piece.write(buffer[at : at + piece.size])
            at += piece.size
