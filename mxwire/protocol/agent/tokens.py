"""Memory that applications of an agent register for each other: regions with tokens, as in Kaput and LiMIC.

An application registers memory, and gets a token, a random number. It passes the token to other applications of the
agent by a message, or in any other way; each that has the token can put data into the region and get data out of it.
The agent copies, so that the application that has registered the memory continues to compute, and needs no permission
for the others, nor they for it. A registration costs one request to the agent; a cache of them and a deferred release
in bulk are up to the application.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Final

import numpy as np

from mxwire.protocol.agent.remote_segments import RemoteSegments, SharedSegments
from mxwire.protocol.arguments import Segments
from mxwire.protocol.status import LocalProtocolError, Status

MOVE_MAXIMUM: Final = 1 << 20
"""Maximum number of bytes that one record moves, so that other applications have their turn between two."""
SEGMENTS_REGISTERED: Final = 4096
"""Maximum number of segments of all regions of an application."""
_PIECE: Final = 1 << 16
"""Bytes copied at a time: they stay in the second-level cache between the read and the write."""
_TOKEN_BITS: Final = 64

RegionMemory = RemoteSegments | SharedSegments


class TokenTable:
    """The regions of all applications of an agent, by token; ``rng`` draws tokens, and must not be predictable."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._regions: dict[int, tuple[object, RegionMemory]] = {}
        self._owned: dict[object, dict[int, int]] = {}
        """The number of segments of each region of an application."""
        self._segments: Counter[object] = Counter()
        self._piece = np.empty(_PIECE, np.uint8)

    def count(self, owner: object) -> int:
        """The number of regions of an application."""
        return len(self._owned.get(owner, ()))

    def register(self, owner: object, memory: RegionMemory, segments: int = 1) -> int:
        """Enter memory of an application, and return its token; 0 if its regions would have too many segments."""
        if self._segments[owner] + segments > SEGMENTS_REGISTERED:
            return 0
        token = 0
        # 0 stands for no token.
        while not token or token in self._regions:
            token = self._rng.getrandbits(_TOKEN_BITS)
        self._regions[token] = owner, memory
        self._owned.setdefault(owner, {})[token] = segments
        self._segments[owner] += segments
        return token

    def deregister(self, owner: object, token: int) -> bool:
        """Remove a region; return False if it is not one of this application."""
        owned = self._owned.get(owner, {})
        if token not in owned:
            return False
        self._segments[owner] -= owned.pop(token)
        del self._regions[token]
        return True

    def forget(self, owner: object) -> None:
        """Remove all regions of an application."""
        self._segments.pop(owner, None)
        for token in self._owned.pop(owner, ()):
            del self._regions[token]

    def put(self, token: int, offset: int, data: Segments, begin: int, length: int) -> None:
        """Copy ``length`` bytes from ``begin`` of ``data`` to an offset in a region.

        Raises :class:`~mxwire.protocol.status.LocalProtocolError` if there is no such region, if they would not be
        within it, or if memory does not exist any more.
        """
        self._copy(data, begin, self._memory(token, offset, length), offset, length)

    def get(self, token: int, offset: int, memory: Segments, begin: int, length: int) -> None:
        """Copy ``length`` bytes from an offset in a region to ``begin`` of ``memory``; see :meth:`put`."""
        self._copy(self._memory(token, offset, length), offset, memory, begin, length)

    def _memory(self, token: int, offset: int, length: int) -> RegionMemory:
        if token not in self._regions:
            raise LocalProtocolError(Status.REMOTE_RDMA_WINDOW_BAD_ID, "no region has this token (any more)")
        memory = self._regions[token][1]
        if offset + length > memory.length:
            raise LocalProtocolError(
                Status.BAD_INFO_LENGTH,
                f"{length:,} bytes at {offset:,} are outside of the registered region of {memory.length:,} bytes",
            )
        # A former failure does not concern this access.
        memory.failed = False
        return memory

    def _copy(self, source: Segments, begin: int, target: Segments, place: int, length: int) -> None:
        for done in range(0, length, _PIECE):
            part = self._piece[: min(_PIECE, length - done)]
            source.take(begin + done, part)
            target.put(place + done, part)
        if any(getattr(each, "failed", False) for each in (source, target)):
            raise LocalProtocolError(Status.MESSAGE_ABORTED, "some of the memory does not exist any more")
