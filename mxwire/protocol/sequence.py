"""Sequence numbers: 14 bits of number below two bits of session number (behaviour, section 6).

All values are the 16-bit integers of ``lib_seqnum`` and ``lib_piggyack``.
"""

from __future__ import annotations

from typing import Final

from mxwire.wire.numbers import NUMBER_MASK, SESSION_NUMBER_MASK

NO_NUMBER: Final = 0xFFFF
"""The number before the connect; no packet matches its session number 3 (R-SEQ-07)."""
JUST_BEFORE: Final = NUMBER_MASK
"""The distance from a number to the one before it."""


def number(value: int) -> int:
    """S(x): the sequence number without its session number (R-SEQ-01)."""
    return value & NUMBER_MASK


def session_bits(value: int) -> int:
    """N(x): the session number in its place (R-SEQ-01)."""
    return value & SESSION_NUMBER_MASK


def successor(value: int) -> int:
    """The next number: 0x3FFF is followed by 0, and nothing is carried into the session number (R-SEQ-01)."""
    return (value & SESSION_NUMBER_MASK) | ((value + 1) & NUMBER_MASK)


def distance(later: int, earlier: int) -> int:
    """The distance from ``earlier`` to ``later``, modulo 2^14, regardless of session numbers (R-SEQ-02)."""
    return (later - earlier) & NUMBER_MASK


def same_session(one: int, other: int) -> bool:
    """Return whether two values have the same session number (R-SEQ-07)."""
    return not (one ^ other) & SESSION_NUMBER_MASK
