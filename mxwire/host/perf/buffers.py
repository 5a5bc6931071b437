"""Memory of measured messages."""

from __future__ import annotations

import mmap

from mxwire.host.errors import HostError
from mxwire.protocol import Status

MISALIGNED = 8
"""Offset in bytes of an unaligned buffer from the start of its page."""


def buffer(length: int, *, aligned: bool) -> memoryview:
    """Allocate ``length`` bytes, page-aligned or deliberately not.

    Raises :class:`~mxwire.host.errors.HostError` without memory for them.
    """
    start = 0 if aligned else MISALIGNED
    try:
        view = memoryview(mmap.mmap(-1, max(1, start + length)))
    except (OSError, MemoryError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "out of memory"
        raise HostError(
            Status.NO_SYSTEM_RESOURCES,
            f"there is no memory for a message of {length} bytes ({why}): end at a shorter length (-E)",
        ) from None
    return view[start : start + length]
