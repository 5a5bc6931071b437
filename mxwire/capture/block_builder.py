"""Encoding of pcapng blocks without frames, and of options, in little-endian order."""

from __future__ import annotations

from collections.abc import Mapping
from struct import pack
from typing import Final

from mxwire.capture.blocks import (
    NAME_RESOLUTION_BLOCK,
    OPTION_END,
    OPTION_STATISTICS_DROPPED,
    OPTION_STATISTICS_END,
    OPTION_STATISTICS_RECEIVED,
    RECORD_END,
    RECORD_ETHERNET_ADDRESS,
)
from mxwire.capture.scan import INTERFACE_STATISTICS_BLOCK

LARGEST_OPTION_BYTES: Final = 65535
_PADDING: Final = (b"", b"\0\0\0", b"\0\0", b"\0")
"""Padding to a multiple of four bytes, by the length modulo 4."""


def block(block_type: int, body: bytes) -> bytes:
    """A block, with its length before and after the body."""
    length = len(body) + 12
    return pack("<II", block_type, length) + body + pack("<I", length)


def option(code: int, value: str | bytes) -> bytes:
    """An option; raises ``ValueError`` if the value is too long for the format."""
    data = value.encode() if isinstance(value, str) else value
    if len(data) > LARGEST_OPTION_BYTES:
        raise ValueError(f"a text of {len(data)} bytes exceeds the {LARGEST_OPTION_BYTES} bytes that pcapng allows")
    return pack("<HH", code, len(data)) + data + _PADDING[len(data) % 4]


def terminated(options: bytes) -> bytes:
    """The options followed by the end-of-options option; empty if there are none."""
    return options + pack("<HH", OPTION_END, 0) if options else b""


def name_resolution(names: Mapping[bytes, str]) -> bytes:
    """A name resolution block; ``names`` are host names by Ethernet address of 6 bytes."""
    records = (
        option(RECORD_ETHERNET_ADDRESS, address + name.replace("\0", "").encode() + b"\0")
        for address, name in names.items()
    )
    return block(NAME_RESOLUTION_BLOCK, b"".join(records) + pack("<HH", RECORD_END, 0))


def statistics(interface: int, end: int, received: int, dropped: int) -> bytes:
    """An interface statistics block; ``interface`` is its number, ``end`` a time in ticks of the interface."""
    time = pack("<II", end >> 32, end & 0xFFFF_FFFF)
    options = option(OPTION_STATISTICS_END, time)
    options += option(OPTION_STATISTICS_RECEIVED, pack("<Q", received))
    options += option(OPTION_STATISTICS_DROPPED, pack("<Q", dropped))
    return block(INTERFACE_STATISTICS_BLOCK, pack("<I", interface) + time + terminated(options))
