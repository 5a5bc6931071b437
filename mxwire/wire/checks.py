"""What a receiver tests in a frame before it looks at its own state, as data for both decoding paths.

The reasons are drop conditions of the behaviour specification, section 21, confirmed frame by frame on a real
driver. Tests that come after the receiver's state was looked at (the length of a TRUC, the number of replies of a
PULL, a host name's length) are not here: whether they are reached cannot be known from the frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Literal

from mxwire.wire.numbers import RAW_FRAME_MAXIMUM, SMALL_MAXIMUM, TINY_MAXIMUM


class Reason(IntEnum):
    """Why a frame cannot be what it claims; 0 where nothing is wrong."""

    NONE = 0
    BAD_HEADER_LENGTH = 1
    INVALID_TYPE = 2
    UNKNOWN_TYPE = 3
    BAD_DATA_LENGTH = 4
    BAD_FRAME_LENGTH = 5
    RAW_TOO_LARGE = 6
    CUT_BY_CAPTURE = 7

    @property
    def text(self) -> str:
        """The specification's words (the last reason is the capture's fault, not the sender's)."""
        return _TEXTS[self]

    @property
    def explanation(self) -> str:
        """A sentence for the user."""
        return _EXPLANATIONS[self]


_TEXTS: Final = {
    Reason.NONE: "",
    Reason.BAD_HEADER_LENGTH: "bad header length",
    Reason.INVALID_TYPE: "invalid type",
    Reason.UNKNOWN_TYPE: "unknown type",
    Reason.BAD_DATA_LENGTH: "bad data length",
    Reason.BAD_FRAME_LENGTH: "bad frame length",
    Reason.RAW_TOO_LARGE: "raw too large",
    Reason.CUT_BY_CAPTURE: "cut by the capture",
}

_EXPLANATIONS: Final = {
    Reason.NONE: "nothing is wrong",
    Reason.BAD_HEADER_LENGTH: "the frame ends before its type byte or its fixed header does",
    Reason.INVALID_TYPE: "the packet type is reserved for native MX; Open-MX drops it",
    Reason.UNKNOWN_TYPE: "no packet has this type",
    Reason.BAD_DATA_LENGTH: "the announced length is not possible for this packet type",
    Reason.BAD_FRAME_LENGTH: "the announced data is longer than the frame",
    Reason.RAW_TOO_LARGE: "RAW frames have at most 1024 bytes",
    Reason.CUT_BY_CAPTURE: "the capture kept too few bytes of this frame to read its header (snap length)",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One test of one field; the frame is malformed where it fails."""

    field: str
    test: Literal["at most", "at least", "fits the frame"]
    bound: int | Literal["receive_slot"] = 0
    """The limit in bytes, or the name of the dialect's size that is the limit."""

    @property
    def reason(self) -> Reason:
        """What the frame is called when the test fails."""
        return Reason.BAD_FRAME_LENGTH if self.test == "fits the frame" else Reason.BAD_DATA_LENGTH


CHECKS: Final[dict[str, tuple[Check, ...]]] = {
    "connect_request": (Check("length", "at least", 16),),
    "connect_reply": (Check("length", "at least", 16),),
    "tiny": (Check("length", "at most", TINY_MAXIMUM), Check("length", "fits the frame")),
    "small": (Check("length", "at most", SMALL_MAXIMUM), Check("length", "fits the frame")),
    "medium": (Check("frag_length", "at most", "receive_slot"), Check("frag_length", "fits the frame")),
    "rndv": (Check("length", "at least", 8),),
    "pull_reply": (Check("frame_length", "fits the frame"),),
}
"""The tests of each layout in the receiver's order (behaviour, section 21)."""

FRAME_MAXIMUM: Final[dict[str, int]] = {"raw": RAW_FRAME_MAXIMUM}
"""Layouts whose whole frame is limited, in bytes; more is "raw too large"."""
