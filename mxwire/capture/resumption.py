"""Resumption of a damaged capture at the next place where a record begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mxwire.capture.source import ChunkBuffer

SEARCHED_BYTES = 1 << 20
"""Bytes searched at a time: several records, even if frames are long."""


class Resumable(Protocol):
    """A decoder that can recognise its records."""

    def plausible(self, chunk: ChunkBuffer, first: int) -> NDArray[np.int64]:
        """Places in the buffer from ``first`` where a record begins."""


def resume(decoder: Resumable, chunk: ChunkBuffer, fill: Callable[[int], bool]) -> bool:
    """Move the start of ``chunk`` to the next record, and return True; without one, leave the chunk at its end.

    ``fill`` reads more, until the given number of bytes is available, and returns False at the end of the file.
    """
    more = True
    while chunk.available > 1 or more:
        while more and chunk.available < SEARCHED_BYTES:
            more = fill(SEARCHED_BYTES)
        found = decoder.plausible(chunk, chunk.start + 1)
        if len(found):
            chunk.start = int(found[0])
            return True
        # A record that began in the second half could have ended beyond the bytes read so far.
        chunk.start = chunk.start + max(chunk.available // 2, 1) if more else chunk.end
    return False
