"""The bytes of one message, reassembled from the frames that carried them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mxwire.analysis.conversations.frame_marks import Role
from mxwire.analysis.conversations.message import CapturedMessage
from mxwire.analysis.conversations.ranges import Ranges
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.packets import Medium, PullReply, Small, Tiny

SHIFT_MASK = 31
"""Only hostile senders use pipelines above 31, because receivers shift 32-bit values."""


class Content:
    """Collector of a message's bytes: passes each byte once to ``write(offset, data)``.

    If bytes arrive more than once, the first copy is used, as a receiver does (R-MED-03, R-PUL-05).
    """

    def __init__(self, write: Callable[[int, bytes], object]) -> None:
        self._write = write
        self.ranges = Ranges()
        """The ranges of bytes that were passed to ``write``."""
        self.cut = 0
        """Number of bytes that were transmitted, but truncated by the capture."""
        self.beyond = 0
        """Number of bytes beyond the end of the message; they are ignored."""

    def take(self, decoded: DecodedBatch, frames: Iterable[tuple[int, Role]], message: CapturedMessage) -> None:
        """Add the frames of a batch, given as their places in it and their roles in the message."""
        for place, role in frames:
            if role not in (Role.DATA, Role.REPLY):
                continue
            frame = decoded.frame(place)
            if isinstance(frame, (Tiny, Small)):
                self._add(0, frame.data, frame.length, message.length)
            elif isinstance(frame, Medium):
                if frame.frag_pipeline is None:
                    start = frame.frag_seqnum * decoded.dialect(place).fragment_payload
                else:
                    start = frame.frag_seqnum << (frame.frag_pipeline & SHIFT_MASK)
                self._add(start, frame.data, frame.frag_length, message.length)
            elif isinstance(frame, PullReply):
                self._add(frame.msg_offset, frame.data, frame.frame_length, message.length)

    def _add(self, start: int, data: bytes, announced: int, length: int | None) -> None:
        self.cut += announced - len(data)
        if length is not None and start + len(data) > length:
            self.beyond += start + len(data) - max(start, length)
            data = data[: max(length - start, 0)]
        end = start + len(data)
        for first, last in _new(self.ranges, start, end):
            # Hostile traffic may exceed the number of ranges: bytes that cannot be noted would be written twice.
            if self.ranges.add(first, last):
                self._write(first, data[first - start : last - start])

    def gaps(self, length: int | None) -> list[tuple[int, int]]:
        """Return start and end (exclusive) of each missing range of bytes; if the length is unknown, up to the last
        byte that was seen."""
        seen = max((end for _, end in self.ranges), default=0)
        return self.ranges.gaps(seen if length is None else length)


def _new(ranges: Ranges, start: int, end: int) -> list[tuple[int, int]]:
    """Return the parts of ``start`` to ``end`` (exclusive) that are not in ``ranges``."""
    return [(max(first, start), last) for first, last in ranges.gaps(end) if last > start]
