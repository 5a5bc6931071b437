"""The digest of a run: all frames on the wire and all events of applications, with their times."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from struct import Struct

from mxwire.frames import FrameBatch
from mxwire.protocol import Event

_FRAMES = Struct(">BQHHI")
_LENGTH = Struct(">I")


class Digest:
    """SHA-256 over frames and events, in order; the same on any machine."""

    def __init__(self) -> None:
        self._hash = sha256()

    def frames(self, time: int, host: int, interface: int, frames: Sequence[bytes] | FrameBatch) -> None:
        """Add the frames that a host transmits."""
        parts = [_FRAMES.pack(1, time, host, interface, len(frames))]
        for frame in frames:
            parts += _LENGTH.pack(len(frame)), frame
        self._hash.update(b"".join(parts))

    def event(self, time: int, host: int, event: Event) -> None:
        """Add an event of a host."""
        request, partner, peer = event.request, event.partner, event.peer
        words: list[object] = [time, host, event.kind.value]
        if request is not None:
            status = None if request.status is None else int(request.status)
            words += [request.kind.value, status, request.match_info, request.length, request.transferred]
        if partner is not None:
            words += [partner.peer.index, partner.number]
        if peer is not None:
            words += [peer.index, peer.name]
        self._hash.update(repr(words).encode())

    def text(self) -> str:
        """Return the digest so far, in hexadecimal."""
        return self._hash.hexdigest()
