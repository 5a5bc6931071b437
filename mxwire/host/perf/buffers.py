"""Memory for messages that are measured."""

from __future__ import annotations

import mmap

from mxwire.host.errors import HostError
from mxwire.protocol import Status

MISALIGNED = 8
"""Bytes from the start of a page to a buffer that is not to be aligned."""


def buffer(length: int, *, aligned: bool) -> memoryview:
    """``length`` bytes that begin with a page, or plainly do not.

    Raises :class:`~mxwire.host.errors.HostError` where there is no memory for them.
    """
    start = 0 if aligned else MISALIGNED
    try:
        view = memoryview(mmap.mmap(-1, max(1, start + length)))
    except (OSError, MemoryError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "out of memory"
        raise HostError(
            Status.NO_SYSTEM_RESOURCES,
            f"there is no memory for a message of {length} bytes ({why}): end with a shorter one (-E)",
        ) from None
    return view[start : start + length]
