"""Places of messages in the memory of a side: one for all, or many, so that messages are in some caches or in none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mxwire.bench.intranode.mechanism import LINE, Piece, Pool
from mxwire.errors import MxwireError
from mxwire.lab.machine import cache_bytes, cold_bytes
from mxwire.words import suggestion

MEMORIES: Final = ("warm", "paper", "cold")
_PAGE: Final = 4096


def pool_of(memory: str, size: int) -> tuple[int, int]:
    """Distance of the begins of messages of ``size`` bytes, and length of their pool.

    Raises :class:`~mxwire.errors.MxwireError` for an unknown name.
    """
    if memory == "warm":
        return 0, size
    if memory == "paper":
        # The paper's rule: one cache line further each time, and back after eight times the L2 cache.
        return LINE, 8 * cache_bytes(2) + size
    if memory == "cold":
        # A page lies between messages, as prefetching ends at the next page.
        step = -(-size // _PAGE) * _PAGE + _PAGE
        return step, max(cold_bytes(), 2 * step)
    raise MxwireError(f"no memory {memory!r}{suggestion(memory, MEMORIES)}: use {', '.join(MEMORIES)}")


class KeptPool:
    """Memory of a side, kept while successive roles ask for the same length: to fill it takes longer than to use it.

    The messages of a role continue where those of the last one ended, so that memory that is to be cold was not used
    since. ``full``: with the content of a source.
    """

    def __init__(self, *, full: bool) -> None:
        self._full = full
        self._pool: Pool | None = None
        self._used = 0

    def pieces(self, size: int, count: int, step: int, length: int) -> tuple[Pool, Sequence[Piece]]:
        """A pool of ``length`` bytes, and messages that begin ``step`` bytes after each other in it.

        The last one is empty unless this is a source, so that its content can be checked when it has arrived.
        """
        if self._pool is None or len(self._pool.view) != length:
            self.release()
            self._pool = Pool(length, full=self._full)
        first = -(-self._used // step) if step else 0
        pieces = self._pool.pieces(size, count, step, first)
        self._used = (first + count) * step
        if not self._full:
            pieces[-1].view[:] = bytes(size)
        return self._pool, pieces

    def release(self) -> None:
        """Free the memory."""
        self._pool, self._used = None, 0
