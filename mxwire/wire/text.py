"""How the protocol's values are written for people, the same everywhere."""

from __future__ import annotations

from mxwire.wire.numbers import NUMBER_MASK, SESSION_NUMBER_SHIFT


def sequence_text(number: int) -> str:
    """A sequence number: its 14 bits, and the session number before it where it is not 0, as in ``1/4097``."""
    session = number >> SESSION_NUMBER_SHIFT
    low = number & NUMBER_MASK
    return f"{session}/{low}" if session else str(low)


def hostname_text(raw: bytes) -> str:
    """A host name up to its NUL; bytes that cannot be printed are shown escaped."""
    text = raw.split(b"\0", 1)[0].decode("ascii", "backslashreplace")
    return "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in text)
