"""Messages of the classic libraries whose card is a process of its own.

Theory of operation
===================

On the adapters of 1998 a part of each library ran on the card. Here this part is a second process per side, a child of
the program's, with the interface, and with rings of records in shared memory between both (``link/local.py``, the rings
of ``mxwire agent``). Table 3 of Araki and others decides where a library is cut. If a received message reaches its
buffer at the expense of the receiver's processor (Active Messages, Fast Messages), the card only moves frames, and all
of the layer runs in the program's calls. Otherwise the layer runs on the card, and the program describes its messages::

    program  EXPECT length | SEND length, place | WRITE data | RELEASE pieces | COUNT | CLOSE     ->  card
    program  <-  READY mtu | PIECE length, place | DATA data | TAKEN unsettled, messages | COUNT counters
    program  <-  FAILED reason
    both     FRAME bytes                                  (the card moves frames)

*Places* are offsets in an arena, memory that both processes map: it holds the data of the program, and whatever the
layer allocates for received data, so that a description is all that the program writes or reads. The card may read the
data of *unsettled* messages again, to retransmit them: the program must not change them yet. A message that the library
writes to the adapter (``ModelPort.written``) is copied into its record instead, and so are received data that no memory
of the layer holds (those of short messages, and of the null model). If a library copies data that are elsewhere
(``elsewhere`` of its facts), the program's processor does so, into or out of the arena.

The card sleeps until a frame or a record arrives, like an interrupt, unless it has a processor of its own to poll on;
so does a program that shares its processor with cards. A card that fails, or ends, ends the waits of its program.
"""

from __future__ import annotations

import ctypes
import mmap
import select
import time
from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import Final

from mxwire.errors import MxwireError
from mxwire.link.local import SharedMemoryChannel, SharedMemoryPath

_RECORD: Final = Struct("=BxxxIQ")
"""Kind, length, and place or number."""


class CardRecordKind(IntEnum):
    """Purpose of a record."""

    READY = 1
    FRAME = 2
    SEND = 3
    WRITE = 4
    EXPECT = 5
    RELEASE = 6
    TAKEN = 7
    PIECE = 8
    DATA = 9
    COUNT = 10
    FAILED = 11
    CLOSE = 12


CardRecord = tuple[int, int, int, memoryview]
"""Kind, length, place, and data, which are valid until the next record is read."""


class SharedArena:
    """Memory that both processes map, in which the program allocates ``own`` bytes and the card the ``rest``."""

    def __init__(self, own: int, rest: int) -> None:
        self._memory = mmap.mmap(-1, own + rest)
        self.view = memoryview(self._memory)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._used, self._end = 0, own

    def become_cards(self) -> None:
        """Allocate in the part of the card from now on."""
        self._used, self._end = self._end, len(self.view)

    def allocate(self, length: int) -> memoryview:
        """Return memory. Raises :class:`~mxwire.errors.MxwireError` if there is none left."""
        begin = self._used
        self._used += -(-length // mmap.PAGESIZE) * mmap.PAGESIZE
        if self._used > self._end:
            raise MxwireError(f"no memory for {length:,} bytes more: a card's messages are too long, or too many")
        return self.view[begin : begin + length]

    def place_of(self, data: memoryview) -> int | None:
        """Return the place of data; None if they are elsewhere."""
        if data.readonly or not len(data):
            return None
        place = ctypes.addressof(ctypes.c_char.from_buffer(data)) - self._base
        return place if 0 <= place < len(self.view) else None


class CardRing:
    """One end of the rings between a program and its card."""

    def __init__(self, path: SharedMemoryPath, channel: SharedMemoryChannel) -> None:
        self.path, self.channel = path, channel
        self.poller = select.poll()
        self.poller.register(path.fileno(), select.POLLIN)

    def put(self, kind: CardRecordKind, length: int = 0, place: int = 0, data: bytes | memoryview = b"") -> bool:
        """Append a record; return False if there is no room now."""
        return self.channel.put(_RECORD.pack(kind, length, place), data)

    def records(self) -> Iterator[CardRecord]:
        """Take the records that have arrived."""
        channel = self.channel
        while (record := channel.peek()) is not None:
            view = memoryview(record)
            yield *_RECORD.unpack_from(view), view[_RECORD.size :]
            channel.advance()
        channel.settle()

    def sleep(self, seconds: float) -> None:
        """Wait for a record, or another descriptor of the poller, for some time."""
        if not self.path.arm():
            self.poller.poll(max(seconds, 0) * 1000)
        self.look()

    def look(self) -> None:
        """Notice the end of the other process."""
        self.path.poll(time.monotonic_ns())
