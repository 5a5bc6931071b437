"""Memory for messages that are measured."""

from __future__ import annotations

import mmap

MISALIGNED = 8
"""Bytes from the start of a page to a buffer that is not to be aligned."""


def buffer(length: int, *, aligned: bool) -> memoryview:
    """``length`` bytes that begin with a page, or plainly do not."""
    start = 0 if aligned else MISALIGNED
    view = memoryview(mmap.mmap(-1, max(1, start + length)))
    return view[start : start + length]
