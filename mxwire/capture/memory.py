"""Memory that the arrays of one batch leave to those of the next one."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache
from typing import Final

RETAINED_BYTES: Final = 64 << 20
"""Freed memory that the process keeps, at most: the arrays of a batch and its analysis."""
_LARGEST_BYTES: Final = 32 << 20
"""Size from which memory is returned when it is freed: the maximum of the GNU C library."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of ``mallopt``."""


@cache
def retain_freed_memory() -> None:
    """Let this process keep up to :data:`RETAINED_BYTES` of freed memory for the next batches of captures.

    By default the C library returns the arrays of a batch to the kernel, which clears them again page by page for the
    next one: half of the time of decoding small frames. As this concerns the whole process, commands call this
    function, and a program that decodes long captures may; the library does not. Without ``mallopt``, which other C
    libraries lack, nothing changes.
    """
    with suppress(AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, _LARGEST_BYTES)
        mallopt(_TRIM_THRESHOLD, RETAINED_BYTES)
