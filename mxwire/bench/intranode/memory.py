"""Places of messages in the memory of a side: one for all, or many, so that messages are in some caches or in none."""

from __future__ import annotations

from typing import Final

from mxwire.bench.intranode.mechanism import LINE
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
        return LINE, 8 * cache_bytes(2) + size
    if memory == "cold":
        step = -(-size // _PAGE) * _PAGE + _PAGE
        return step, max(cold_bytes(), 2 * step)
    raise MxwireError(f"no memory {memory!r}{suggestion(memory, MEMORIES)}: use {', '.join(MEMORIES)}")
