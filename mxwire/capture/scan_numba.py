"""The loops of ``scan``, compiled by numba. Import only when the speed justifies importing numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from mxwire.capture.scan import (
    BLOCKS_TO_STOP_AT,
    LARGEST_BLOCK_BYTES,
    RECORD_HEADER_BYTES,
    SMALLEST_BLOCK_BYTES,
    ScanResult,
)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_compiled_into_callers: Decorator = numba.njit


def _compiled(signature: str) -> Decorator:
    """Compile eagerly for one signature, and cache the result on disk if possible."""

    def compile_function(function: Callable[..., Any]) -> Callable[..., Any]:
        compiled: Callable[..., Any]
        try:
            compiled = numba.njit(signature, cache=True, nogil=True)(function)
        except (RuntimeError, OSError):
            # There is no writable directory (a read-only installation without a home directory), or the disk is full.
            compiled = numba.njit(signature, nogil=True)(function)
        return compiled

    return compile_function


@_compiled_into_callers  # pragma: no cover (machine code)
def _word(buffer: NDArray[np.uint8], at: int, little_endian: bool) -> int:
    first, second, third, fourth = int(buffer[at]), int(buffer[at + 1]), int(buffer[at + 2]), int(buffer[at + 3])
    if little_endian:
        return fourth << 24 | third << 16 | second << 8 | first
    return first << 24 | second << 16 | third << 8 | fourth


@_compiled(
    "UniTuple(int64, 2)(uint8[::1], int64, int64, boolean, int64, int64[::1])"
)  # pragma: no cover (machine code)
def _fill_records(
    buffer: NDArray[np.uint8], start: int, end: int, little_endian: bool, largest: int, found: NDArray[np.int64]
) -> tuple[int, int]:
    count = 0
    at = start
    while at <= end - RECORD_HEADER_BYTES:
        captured = _word(buffer, at + 8, little_endian)
        following = at + RECORD_HEADER_BYTES + captured
        if captured > largest or following > end:
            break
        found[count] = at
        count += 1
        at = following
    return count, at


@_compiled(
    "UniTuple(int64, 2)(uint8[::1], int64, int64, boolean, int64, int64, int64[::1])"
)  # pragma: no cover (machine code)
def _fill_blocks(
    buffer: NDArray[np.uint8],
    start: int,
    end: int,
    little_endian: bool,
    wanted: int,
    smallest: int,
    found: NDArray[np.int64],
) -> tuple[int, int]:
    count = 0
    at = start
    while at <= end - SMALLEST_BLOCK_BYTES:
        block_type = _word(buffer, at, little_endian)
        length = _word(buffer, at + 4, little_endian)
        following = at + length
        if length > LARGEST_BLOCK_BYTES or length < SMALLEST_BLOCK_BYTES or following > end:
            break
        if _word(buffer, following - 4, little_endian) != length:
            break
        if block_type == wanted:
            if length < smallest:
                break
            found[count] = at
            count += 1
        elif block_type in BLOCKS_TO_STOP_AT:
            break
        at = following
    return count, at


def scan_records(buffer: NDArray[np.uint8], start: int, end: int, little_endian: bool, largest: int) -> ScanResult:
    """Find records as ``Scanner.records`` does."""
    offsets = np.empty(max(end - start, 0) // RECORD_HEADER_BYTES, np.int64)
    count, following = _fill_records(buffer, start, end, little_endian, largest, offsets)
    return offsets[:count], following


def scan_blocks(
    buffer: NDArray[np.uint8], start: int, end: int, little_endian: bool, wanted: int, smallest: int
) -> ScanResult:
    """Find blocks as ``Scanner.blocks`` does."""
    offsets = np.empty(max(end - start, 0) // SMALLEST_BLOCK_BYTES, np.int64)
    count, following = _fill_blocks(buffer, start, end, little_endian, wanted, smallest, offsets)
    return offsets[:count], following
