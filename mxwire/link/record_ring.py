"""Rings of records in memory that two processes share, each with one producer and one consumer.

Both count bytes without wrapping around, in 64 bits; a record is its length, its bytes, and padding to 8 bytes, and
never wraps: the producer skips the end of the ring. The consumer works on the record in place.

A consumer that is about to sleep, and a producer without room, set a flag for the other side, and then check the ring
once more; the other side moves its position first, and then checks the flag. Each position and length in shared memory
is checked before it is used; positions of this side are kept in its own memory.
"""

from __future__ import annotations

import platform
import threading
from typing import Any, Final

from mxwire.errors import InvalidRecordError
from mxwire.native import native

RING_BYTES: Final = 1 << 18
"""Bytes of a ring: room for several records of maximum length."""
LONGEST: Final = 1 << 16
"""Length of the longest record in bytes."""
CONTROL: Final = 4096
"""Bytes before each ring."""
SIDE: Final = CONTROL + RING_BYTES
"""Bytes of a ring with its control words."""
_MASK: Final = RING_BYTES - 1
# Words of 8 bytes in the control part, each in a cache line of its own.
PRODUCED: Final = 0
CONSUMED: Final = 8
ASLEEP: Final = 16
STARVED: Final = 24
_SKIP: Final = (1 << 64) - 1
"""Length of a record that stands for the unused end of the ring."""
_STRONG: Final = platform.machine() in ("x86_64", "AMD64", "i686", "i386")
"""True if the processor keeps the order of stores, and that of loads."""
_lock: Final = threading.Lock()
_NO_MEMORY: Final = memoryview(b"")
_NO_WORDS: Final = _NO_MEMORY.cast("Q")


def fence() -> None:
    """Order all accesses to memory before it before all those after it: the atomic operations of a lock do that."""
    _lock.acquire()
    _lock.release()


def _span_of(length: int) -> int:
    """Return the bytes that a record occupies."""
    return 8 + ((length + 7) & ~7)


class RingSide:
    """One side of a ring: its ``control`` bytes, then its data.

    The other arguments are the length of the longest record, and the places of the control words.
    """

    __slots__ = (
        "_asleep",
        "_consumed",
        "_control",
        "_data",
        "_longest",
        "_produced",
        "_span",
        "_starved",
        "_words",
        "blocked",
        "position",
        "seen",
    )

    def __init__(
        self, memory: memoryview, control: int, longest: int, produced: int, consumed: int, asleep: int, starved: int
    ) -> None:
        self._control = memory[:control].cast("Q")
        self._data = memory[control:]
        self._words = self._data.cast("Q")
        self._longest = longest
        self._produced, self._consumed, self._asleep, self._starved = produced, consumed, asleep, starved
        self.position = 0
        self.seen = 0
        """Position of the other side, when it was last read."""
        self.blocked = False
        """True if a record did not fit, and no room was made since; shorter records may have fitted."""
        self._span = 0
        """Bytes that the record of the last ``peek`` occupies."""

    def _take_flag(self, place: int) -> bool:
        """Clear a flag of the other side, and return whether it was set.

        The fence keeps this check after the preceding stores of this side, because the other side sets its flag before
        it checks the ring.
        """
        fence()
        if not self._control or not self._control[place]:
            return False
        self._control[place] = 0
        return True

    def close(self) -> None:
        """Release the memory."""
        self._control, self._data, self._words = _NO_WORDS, _NO_MEMORY, _NO_WORDS


class RecordWriter(RingSide):
    """The side that fills the ring."""

    __slots__ = ()

    def has_room(self, span: int) -> bool:
        """Return whether ``span`` bytes fit into the ring without a wrap."""
        if not self._control:
            return False
        left = RING_BYTES - (self.position & _MASK)
        needed = span if span <= left else left + span
        # The position seen last often suffices, and reading the other side's word costs a cache miss.
        if self.position + needed - self.seen <= RING_BYTES:
            return True
        seen = self._control[self._consumed]
        if not self.seen <= seen <= self.position:
            raise InvalidRecordError("the consumer's position is impossible")
        self.seen = seen
        return self.position + needed - seen <= RING_BYTES

    def put(self, head: bytes, data: Any) -> bool:
        """Append a record of two parts; return False if there is no room now, or the ring was closed."""
        if not self._control:
            return False
        length = len(head) + len(data)
        span = _span_of(length)
        if not self.has_room(span):
            self._control[self._starved] = 1
            fence()
            if not self.has_room(span):
                self.blocked = True
                return False
        place = self.position & _MASK
        if place + span > RING_BYTES:
            self._words[place >> 3] = _SKIP
            self.position += RING_BYTES - place
            place = 0
        self._words[place >> 3] = length
        place += 8
        middle = place + len(head)
        self._data[place:middle] = head
        if len(data):
            self._data[middle : middle + len(data)] = data
        self.position += span
        if not _STRONG:
            fence()
        self._control[self._produced] = self.position
        return True

    def take_sleep(self) -> bool:
        """Return whether the other side sleeps and must be woken; True only once per sleep."""
        return self._take_flag(self._asleep)


class RecordReader(RingSide):
    """The side that empties the ring."""

    __slots__ = ()

    def peek(self) -> bytes | memoryview | None:
        """The oldest record, valid until :meth:`advance`."""
        if not self._control:
            return None
        produced = self._control[self._produced]
        self.seen = produced
        available = produced - self.position
        if not available:
            return None
        if not _STRONG:
            fence()
        if not 8 <= available <= RING_BYTES:
            raise InvalidRecordError("the producer's position is impossible")
        place = self.position & _MASK
        length = self._words[place >> 3]
        if length == _SKIP and place:
            available -= RING_BYTES - place
            self.position += RING_BYTES - place
            if available < 8:
                raise InvalidRecordError("the end of the ring is skipped for nothing")
            place = 0
            length = self._words[0]
        if length > self._longest:
            raise InvalidRecordError("a record is too long")
        span = _span_of(length)
        if span > available or place + span > RING_BYTES:
            raise InvalidRecordError("a record exceeds the ring")
        self._span = span
        return self._data[place + 8 : place + 8 + length]

    def advance(self) -> None:
        """Remove the oldest record."""
        if not self._control:
            return
        self.position += self._span
        if not _STRONG:
            fence()
        self._control[self._consumed] = self.position

    def waits(self) -> bool:
        """Return whether there is a record."""
        return bool(self._control) and self._control[self._produced] != self.position

    def take_starved(self) -> bool:
        """Return whether the other side waits for room and must be woken; True only once per wait."""
        return self._take_flag(self._starved)


def records_left(memory: memoryview, produced: int) -> list[bytes]:
    """The records that the consumer of a ring has not taken, up to the position ``produced``."""
    control, data = memory[:CONTROL].cast("Q"), memory[CONTROL:]
    words = data.cast("Q")
    position, records = control[CONSUMED], []
    # Bounded, because the other side can write any position and length into this memory.
    while 0 < produced - position <= RING_BYTES:
        place = position & _MASK
        length = words[place >> 3]
        if length == _SKIP:
            position += RING_BYTES - place
            continue
        if position & 7 or length > LONGEST:
            break
        records.append(bytes(data[place + 8 : place + 8 + length]))
        position += _span_of(length)
    return records


RING_LAYOUT: Final = (CONTROL, LONGEST, PRODUCED, CONSUMED, ASLEEP, STARVED)
make_writer: Final[Any] = RecordWriter if native is None else native.RecordWriter
make_reader: Final[Any] = RecordReader if native is None else native.RecordReader
"""The two sides of a ring, in C where mxwire is compiled; called with memory and ``*RING_LAYOUT``."""
