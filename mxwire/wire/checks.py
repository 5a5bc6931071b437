"""Checks of a frame that a receiver makes before it consults its own state, as data for both decoding paths.

The reasons are drop conditions of the behaviour specification, section 21, confirmed frame by frame on a real driver.
Checks that a receiver makes after consulting its state (the length of a TRUC, the number of replies of a PULL, the
length of a host name) are not here, because the frame does not show whether the receiver reaches them; see
:mod:`mxwire.wire.remarks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Literal

from mxwire.wire.numbers import RAW_FRAME_MAXIMUM, SMALL_MAXIMUM, TINY_MAXIMUM


class Reason(IntEnum):
    """The reason why a frame is malformed; 0 if it is well formed."""

    text: str
    """The specification's term; "cut by the capture" is mxwire's own, since no receiver sees such frames."""
    explanation: str
    """A sentence for the user."""

    def __new__(cls, value: int, text: str = "", explanation: str = "") -> Reason:
        """Give a number its texts; ``Reason(3)`` finds the member by its number alone."""
        reason = int.__new__(cls, value)
        reason._value_, reason.text, reason.explanation = value, text, explanation
        return reason

    NONE = 0, "", "the frame is well formed"
    BAD_HEADER_LENGTH = 1, "bad header length", "the frame ends before its type byte or its fixed header does"
    INVALID_TYPE = 2, "invalid type", "the packet type is reserved for native MX; Open-MX drops it"
    UNKNOWN_TYPE = 3, "unknown type", "no packet has this type"
    BAD_DATA_LENGTH = 4, "bad data length", "the announced length is not possible for this packet type"
    BAD_FRAME_LENGTH = 5, "bad frame length", "the announced data is longer than the frame"
    RAW_TOO_LARGE = 6, "raw too large", "RAW frames have at most 1024 bytes"
    CUT_BY_CAPTURE = (
        7,
        "cut by the capture",
        "the capture kept too few bytes of this frame to read its header (snap length)",
    )


@dataclass(frozen=True, slots=True)
class FrameCheck:
    """One check of one field; a frame that fails it is malformed."""

    field: str
    test: Literal["at most", "at least", "fits the frame"]
    bound: int | Literal["receive_slot"] = 0
    """The limit in bytes, or the name of the dialect's size to use as the limit."""

    @property
    def reason(self) -> Reason:
        """The reason for frames that fail the check."""
        return Reason.BAD_FRAME_LENGTH if self.test == "fits the frame" else Reason.BAD_DATA_LENGTH


CHECKS: Final[dict[str, tuple[FrameCheck, ...]]] = {
    "connect_request": (FrameCheck("length", "at least", 16),),
    "connect_reply": (FrameCheck("length", "at least", 16),),
    "tiny": (FrameCheck("length", "at most", TINY_MAXIMUM), FrameCheck("length", "fits the frame")),
    "small": (FrameCheck("length", "at most", SMALL_MAXIMUM), FrameCheck("length", "fits the frame")),
    "medium": (FrameCheck("frag_length", "at most", "receive_slot"), FrameCheck("frag_length", "fits the frame")),
    "rndv": (FrameCheck("length", "at least", 8),),
    "pull_reply": (FrameCheck("frame_length", "fits the frame"),),
}
"""The checks of each layout, in the receiver's order (behaviour, section 21)."""

FRAME_MAXIMUM: Final[dict[str, int]] = {"raw": RAW_FRAME_MAXIMUM}
"""Maximum length of the whole frame in bytes, by layout; longer frames are "raw too large"."""
