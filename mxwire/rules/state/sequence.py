"""Arithmetic of sequence numbers (R-SEQ-01, R-SEQ-02).

A number on the wire has 16 bits, two of them the session number. A *position* is the same number without wrap-around:
an integer whose lower 14 bits are those on the wire, so that positions can be compared and subtracted.
"""

from __future__ import annotations

from typing import Final

from mxwire.wire.numbers import (
    NUMBER_MASK,
    SESSION_NUMBER_STEP,
)

_HALF: Final = SESSION_NUMBER_STEP // 2


def position_of(number: int, near: int) -> int:
    """Return the position with the lower 14 bits of ``number`` that is closest to the position ``near``."""
    return near + ((number - near + _HALF) & NUMBER_MASK) - _HALF
