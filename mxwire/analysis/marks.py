"""Marks of the frames in decoded batches: message number, role and flags, as NumPy columns.

::

    marker = FrameMarker()
    for decoded in Decoder().decode_all(capture):
        marks = marker.observe(decoded)
        decoded.batch.number[marks.flags & flag_bit("retransmission") != 0]
"""

from __future__ import annotations

from typing import Final

from mxwire.analysis.conversations import Follower
from mxwire.analysis.conversations.frame_marks import FLAGS, ROLES, FrameMarks, Role, flag_bit, flag_names, flags_text
from mxwire.wire.decoder import DecodedBatch

__all__ = [
    "FLAGS",
    "MARK_COLUMNS",
    "ROLES",
    "FrameMarker",
    "FrameMarks",
    "Role",
    "flag_bit",
    "flag_names",
    "flags_text",
]

MARK_COLUMNS: Final = ("message", "role", "flags", "repeat", "acknowledges")
"""The columns of a table of frames that need the analysis of conversations; null without it."""


class FrameMarker:
    """Marker of the frames of a capture, batch by batch and in order, in bounded memory.

    The marks do not depend on how the capture is divided into batches, with one exception: if several pulls of one
    message return the same bytes, because replies are processed pull by pull. With ``facts`` the marks serve selections
    by kind, match information and endpoints of messages.
    """

    def __init__(self, *, facts: bool = False) -> None:
        self._follower = Follower(marks=True, facts=facts, messages=False)

    def observe(self, decoded: DecodedBatch) -> FrameMarks:
        """Return the marks of the next batch, one per frame."""
        self._follower.observe(decoded)
        return self._follower.take_marks(decoded)
