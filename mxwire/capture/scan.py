"""Finding where the records of a capture start, the only step that has to go from one record to the next.

There are two scanners that find the same: loops in plain Python here, which need nothing, and the same loops
compiled by numba in ``scan_numba``, which cost the import of numba first. Everything else about records is done
for all of them at once with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mxwire.capture.text import printable
from mxwire.errors import MxwireError
from mxwire.extras import install_command

RECORD_HEADER_BYTES = 16
"""The size of what precedes each frame in a pcap file."""

SMALLEST_BLOCK_BYTES = 12
LARGEST_BLOCK_BYTES = 16 << 20
"""No sane pcapng block is larger (Wireshark's limit too): a longer one means a damaged file."""

SECTION_HEADER_BLOCK = 0x0A0D0D0A
INTERFACE_DESCRIPTION_BLOCK = 1
PACKET_BLOCK = 2
SIMPLE_PACKET_BLOCK = 3
INTERFACE_STATISTICS_BLOCK = 5
ENHANCED_PACKET_BLOCK = 6

BLOCKS_TO_STOP_AT = (
    SECTION_HEADER_BLOCK,
    INTERFACE_DESCRIPTION_BLOCK,
    PACKET_BLOCK,
    SIMPLE_PACKET_BLOCK,
    INTERFACE_STATISTICS_BLOCK,
    ENHANCED_PACKET_BLOCK,
)
"""The types of blocks that say something about frames; a scan walks over all others."""

NUMBA_PAYS_FROM = 5_000_000
"""How many frames plain Python scans (10 million/s) in the time that numba needs to start (0.2 to 0.5 s)."""

Found = tuple[NDArray[np.int64], int]
"""Where records start, and where the first one starts that was not taken."""


class Scanner(NamedTuple):
    """The two scans. Both stop before a record that is not whole, or that the caller has to look at."""

    records: Callable[[NDArray[np.uint8], int, int, bool, int], Found]
    """Whole pcap records: ``(buffer, start, end, little_endian, largest)``.

    Stops before a record of more than ``largest`` captured bytes."""
    blocks: Callable[[NDArray[np.uint8], int, int, bool, int, int], Found]
    """Whole pcapng blocks of the type ``wanted``: ``(buffer, start, end, little_endian, wanted, smallest)``.

    Stops before a wanted block of fewer than ``smallest`` bytes, any other type of ``BLOCKS_TO_STOP_AT``, and
    a block whose two lengths are impossible or differ."""


def _scan_records(buffer: NDArray[np.uint8], start: int, end: int, little_endian: bool, largest: int) -> Found:
    captured_length = Struct("<8xI" if little_endian else ">8xI").unpack_from
    data = buffer.data  # a memoryview is read twice as fast as an array
    found: list[int] = []
    take = found.append
    at = start
    last = end - RECORD_HEADER_BYTES
    while at <= last:
        (captured,) = captured_length(data, at)
        following = at + RECORD_HEADER_BYTES + captured
        if captured > largest or following > end:
            break
        take(at)
        at = following
    return np.array(found, dtype=np.int64), at


def _scan_blocks(
    buffer: NDArray[np.uint8], start: int, end: int, little_endian: bool, wanted: int, smallest: int
) -> Found:
    type_and_length = Struct("<II" if little_endian else ">II").unpack_from
    trailing_length = Struct("<I" if little_endian else ">I").unpack_from
    data = buffer.data
    found: list[int] = []
    take = found.append
    at = start
    last = end - SMALLEST_BLOCK_BYTES
    while at <= last:
        block_type, length = type_and_length(data, at)
        following = at + length
        if length > LARGEST_BLOCK_BYTES or length < SMALLEST_BLOCK_BYTES or following > end:
            break
        if trailing_length(data, following - 4)[0] != length:
            break
        if block_type == wanted:
            if length < smallest:
                break
            take(at)
        elif block_type in BLOCKS_TO_STOP_AT:
            break
        at = following
    return np.array(found, dtype=np.int64), at


PYTHON_SCANNER = Scanner(_scan_records, _scan_blocks)


def numba_scanner() -> Scanner:
    """The scanner compiled by numba, which takes a moment to import and once a second to compile."""
    try:
        from mxwire.capture.scan_numba import scan_blocks, scan_records
    except ImportError as error:
        raise MxwireError(
            f"numba cannot be used ({printable(str(error))}); {install_command('fast')}, or use plain Python"
        ) from error
    return Scanner(scan_records, scan_blocks)


class ScannerChoice:
    """Plain Python until the frames still to come are worth the import of numba, unless told otherwise."""

    def __init__(self, numba: bool | None) -> None:
        """``numba``: always, never, or (None) when it pays and is installed."""
        self.scanner = numba_scanner() if numba else PYTHON_SCANNER
        self._open = numba is None

    def reconsider(self, frames_to_come: float) -> None:
        """Change to numba if that many more frames are worth it."""
        if self._open and frames_to_come >= NUMBA_PAYS_FROM:
            self._open = False
            # Not installed, or not for this NumPy: plain Python does as well, only later.
            with suppress(MxwireError):
                self.scanner = numba_scanner()


def gather_words(
    buffer: NDArray[np.uint8], offsets: NDArray[np.int64], words: int, little_endian: bool
) -> NDArray[np.int64]:
    """The ``words`` integers of 32 bits that start at each offset, as one row for each word."""
    size = 4 * words
    if not len(offsets):
        return np.zeros((words, 0), np.int64)
    # Every place of the buffer seen as the start of an item: one indexing copies the headers of all records.
    every_place = np.ndarray((len(buffer) - size + 1,), f"V{size}", buffer, strides=(1,))
    integers = every_place[offsets].view("<u4" if little_endian else ">u4")
    return integers.reshape(-1, words).T.astype(np.int64)
