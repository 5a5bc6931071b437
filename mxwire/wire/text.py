"""Text forms of protocol values."""

from __future__ import annotations

from mxwire.wire.numbers import NUMBER_MASK, SESSION_NUMBER_SHIFT


def sequence_text(number: int) -> str:
    """A sequence number: its 14 bits, preceded by the session number unless that is 0, as in ``1/4097``."""
    session = number >> SESSION_NUMBER_SHIFT
    low = number & NUMBER_MASK
    return f"{session}/{low}" if session else str(low)


def hostname_text(raw: bytes) -> str:
    """A host name up to its NUL, with unprintable bytes escaped."""
    text = raw.split(b"\0", 1)[0].decode("ascii", "backslashreplace")
    return "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in text)
