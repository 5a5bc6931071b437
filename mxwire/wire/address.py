"""Ethernet addresses: six bytes, their text, and the integers that NumPy columns hold them as."""

from __future__ import annotations

import re

from mxwire.errors import MxwireError

BROADCAST = b"\xff" * 6

_MAC = re.compile(r"[0-9a-f]{2}([:-])[0-9a-f]{2}(?:\1[0-9a-f]{2}){4}", re.IGNORECASE)


def is_group(address: bytes) -> bool:
    """Whether six bytes are the address of several hosts."""
    return bool(address[0] & 1)


def mac_text(address: bytes | int) -> str:
    """``52:54:00:0a:00:01`` for six bytes, or for the integer of a column."""
    raw = address.to_bytes(6, "big") if isinstance(address, int) else address
    return raw.hex(":")


def mac_bytes(text: str) -> bytes:
    """Six bytes from ``52:54:00:0a:00:01`` or with dashes.

    Raises :class:`~mxwire.errors.MxwireError` for anything else.
    """
    if not _MAC.fullmatch(text.strip()):
        raise MxwireError(f"{text!r} is not an Ethernet address: write it like 52:54:00:0a:00:01")
    return bytes.fromhex(text.strip().replace(":", "").replace("-", ""))
