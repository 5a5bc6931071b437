"""Arithmetic of sequence numbers (R-SEQ-01, R-SEQ-02).

A number on the wire has 16 bits, two of them the session number. A *position* is the same number without an end: a
plain integer whose lower 14 bits are those on the wire, so that positions can be compared and subtracted.
"""

from __future__ import annotations

from typing import Final

NUMBER_MASK: Final = 0x3FFF
SESSION_MASK: Final = 0xC000
WINDOW: Final = 8191
"""Most numbers that may be outstanding (R-SEQ-06)."""
FIRST: Final = 1
"""What a new partner begins with (chapter 1)."""
GIVEN_UP_NEXT: Final = 0x30F1
GIVEN_UP_DONE: Final = 0x0F0E
"""What a receiver that has given its partner up expects and acknowledges, without the session number (R-RTX-05)."""


def position_of(number: int, near: int) -> int:
    """The position with the lower 14 bits of ``number`` that is closest to the position ``near``."""
    return near + ((number - near + 0x2000) & NUMBER_MASK) - 0x2000
