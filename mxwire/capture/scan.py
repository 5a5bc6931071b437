"""Scan for the start of each record of a capture, the only step that must run record by record.

There are two equivalent scanners: loops in plain Python here, which have no start-up cost and find runs of pcap records
of equal length at once, and loops compiled by numba in ``scan_numba``, which need the import of numba. All other work
on records is done with NumPy for a whole chunk at once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mxwire.capture.blocks import BlockType
from mxwire.errors import MxwireError
from mxwire.extras import install_command
from mxwire.words import printable

RECORD_HEADER_BYTES = 16
"""Size of the header before each frame in a pcap file."""

SMALLEST_BLOCK_BYTES = 12
LARGEST_BLOCK_BYTES = 16 << 20
"""Larger pcapng blocks are treated as damage, as in Wireshark."""

BLOCKS_TO_STOP_AT = tuple(int(each) for each in BlockType)
"""Types of blocks that the reader interprets; a scan skips all others."""

NUMBA_PAYS_FROM = 20_000_000
"""Number of frames for which numba is started: plain Python scans 10 million per second. numba starts in 0.2 to 0.5 s,
but takes 90 MB, a fifth of what ten million frames of 10,000 hosts need."""

_RUN = 256
"""Number of records whose lengths are compared at once; streams of small messages often consist of frames of equal
length."""
_WALKED = 1024
"""Number of records found one by one before equal lengths are tried again, so that the attempts take only a few per
cent of the time in other captures."""

ScanResult = tuple[NDArray[np.int64], int]
"""Offsets of the records found, and of the first record not included."""


class Scanner(NamedTuple):
    """The scan functions of both formats; they stop before a record that is incomplete or needs the caller."""

    records: Callable[[NDArray[np.uint8], int, int, bool, int], ScanResult]
    """Find complete pcap records: ``(buffer, start, end, little_endian, largest)``.

    Stops before a record of more than ``largest`` captured bytes."""
    blocks: Callable[[NDArray[np.uint8], int, int, bool, int, int], ScanResult]
    """Find complete pcapng blocks of the type ``wanted``: ``(buffer, start, end, little_endian, wanted, smallest)``.

    Stops before a wanted block of fewer than ``smallest`` bytes, any other type of ``BLOCKS_TO_STOP_AT``, and
    a block whose lengths are impossible or differ from each other."""


def _scan_records(buffer: NDArray[np.uint8], start: int, end: int, little_endian: bool, largest: int) -> ScanResult:
    found: list[NDArray[np.int64]] = []
    at = start
    more = True
    while more:
        while len(run := _equal_records(buffer, at, end, little_endian, largest)):
            found.append(run[:-1])
            at = int(run[-1])
        walked, at = _walk_records(buffer, at, end, little_endian, largest)
        found.append(walked)
        more = len(walked) == _WALKED
    return np.concatenate(found), at


def _equal_records(
    buffer: NDArray[np.uint8], at: int, end: int, little_endian: bool, largest: int
) -> NDArray[np.int64]:
    """Return the offsets of the next ``_RUN`` records, and of the end of the last, if they have the same length.

    Returns an empty array if they do not, or stop the scan.
    """
    field = np.dtype("<u4" if little_endian else ">u4")
    if at + RECORD_HEADER_BYTES <= end:
        captured = int(np.frombuffer(buffer, field, 1, at + 8)[0])
        stride = RECORD_HEADER_BYTES + captured
        following = at + _RUN * stride
        if captured <= largest and following <= end:
            lengths = np.ndarray((_RUN,), field, buffer, at + 8, (stride,))
            if (lengths == captured).all():
                return np.arange(at, following + 1, stride)
    return np.empty(0, np.int64)


def _walk_records(buffer: NDArray[np.uint8], start: int, end: int, little_endian: bool, largest: int) -> ScanResult:
    """Find the next ``_WALKED`` records one by one, or fewer if the scan stops there."""
    captured_length = Struct("<8xI" if little_endian else ">8xI").unpack_from
    data = buffer.data  # a memoryview is read twice as fast as an array
    offsets: list[int] = []
    take = offsets.append
    at = start
    last = end - RECORD_HEADER_BYTES
    for _ in range(_WALKED):
        if at > last:
            break
        (captured,) = captured_length(data, at)
        following = at + RECORD_HEADER_BYTES + captured
        if captured > largest or following > end:
            break
        take(at)
        at = following
    return np.array(offsets, dtype=np.int64), at


def _scan_blocks(
    buffer: NDArray[np.uint8], start: int, end: int, little_endian: bool, wanted: int, smallest: int
) -> ScanResult:
    type_and_length = Struct("<II" if little_endian else ">II").unpack_from
    trailing_length = Struct("<I" if little_endian else ">I").unpack_from
    data = buffer.data
    offsets: list[int] = []
    take = offsets.append
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
    return np.array(offsets, dtype=np.int64), at


PYTHON_SCANNER = Scanner(_scan_records, _scan_blocks)


def numba_scanner() -> Scanner:
    """The scanner compiled by numba; compiling takes about a second, once, because the result is cached on disk."""
    try:
        from mxwire.capture.scan_numba import scan_blocks, scan_records
    except ImportError as error:
        raise MxwireError(
            f"numba cannot be used ({printable(str(error))}); {install_command('fast')}, or use plain Python"
        ) from error
    return Scanner(scan_records, scan_blocks)


class ScannerChoice:
    """Selects plain Python until the remaining frames justify the import of numba, unless ``numba`` is given."""

    def __init__(self, numba: bool | None) -> None:
        """``numba`` is True for always, False for never, None for as soon as it pays, if installed."""
        self.scanner = numba_scanner() if numba else PYTHON_SCANNER
        self._undecided = numba is None

    def reconsider(self, frames_to_come: float) -> None:
        """Switch to numba if ``frames_to_come`` justify it."""
        if self._undecided and frames_to_come >= NUMBA_PAYS_FROM:
            self._undecided = False
            # If numba is missing or does not support this NumPy, plain Python gives the same results, only slower.
            with suppress(MxwireError):
                self.scanner = numba_scanner()


def gather_words(
    buffer: NDArray[np.uint8], offsets: NDArray[np.int64], words: int, little_endian: bool
) -> NDArray[np.int64]:
    """Read ``words`` 32-bit integers at each offset; shape (words, n)."""
    size = 4 * words
    if not len(offsets):
        return np.zeros((words, 0), np.int64)
    # A view with an item at every byte of the buffer: a single indexing operation copies the headers of all records.
    every_place = np.ndarray((len(buffer) - size + 1,), f"V{size}", buffer, strides=(1,))
    integers = every_place[offsets].view("<u4" if little_endian else ">u4")
    return integers.reshape(-1, words).T.astype(np.int64)
