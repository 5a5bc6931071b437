"""The blocks of pcapng: their types and options, as the reader and the writer need them, and their encoding.

Blocks are encoded in little-endian order; those with frames by :mod:`mxwire.capture.encoder`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from struct import pack, unpack_from
from typing import Final

BYTE_ORDER_MAGIC = 0x1A2B3C4D
LARGEST_OPTION_BYTES: Final = 65535
_PADDING: Final = (b"", b"\0\0\0", b"\0\0", b"\0")
"""Padding to a multiple of four bytes, by the length modulo 4."""


class BlockType(IntEnum):
    """Types of blocks."""

    INTERFACE_DESCRIPTION = 1
    PACKET = 2
    SIMPLE_PACKET = 3
    NAME_RESOLUTION = 4
    INTERFACE_STATISTICS = 5
    ENHANCED_PACKET = 6
    SECTION_HEADER = 0x0A0D0D0A


class Option(IntEnum):
    """Options of all blocks."""

    END = 0
    COMMENT = 1


class SectionOption(IntEnum):
    """Options of a section header."""

    HARDWARE = 2
    OPERATING_SYSTEM = 3
    APPLICATION = 4


class InterfaceOption(IntEnum):
    """Options of an interface description."""

    NAME = 2
    DESCRIPTION = 3
    RESOLUTION = 9
    FILTER = 11
    OPERATING_SYSTEM = 12
    FRAME_CHECK_LENGTH = 13
    TIME_OFFSET = 14
    HARDWARE = 15


class StatisticsOption(IntEnum):
    """Options of interface statistics."""

    END_TIME = 3
    RECEIVED = 4
    DROPPED = 5
    DROPPED_BY_SYSTEM = 7


class NameRecord(IntEnum):
    """Records of a name resolution block."""

    END = 0
    ETHERNET_ADDRESS = 3


SMALLEST_CONTROL_BLOCKS: Final[dict[int, int]] = {BlockType.SECTION_HEADER: 28, BlockType.INTERFACE_DESCRIPTION: 20}


@dataclass(frozen=True, slots=True)
class PacketLayout:
    """The position of the frame in a type of packet block."""

    header_words: int
    """Number of 32-bit integers before the frame, including block type and length."""

    @property
    def header_bytes(self) -> int:
        """Number of bytes before the frame."""
        return 4 * self.header_words

    @property
    def smallest_block(self) -> int:
        """Length of a block with an empty frame; every block ends with a copy of its length."""
        return self.header_bytes + 4


PACKET_LAYOUTS: Final[dict[int, PacketLayout]] = {
    BlockType.ENHANCED_PACKET: PacketLayout(header_words=7),
    BlockType.SIMPLE_PACKET: PacketLayout(header_words=3),
    BlockType.PACKET: PacketLayout(header_words=7),
}


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
    return options + pack("<HH", Option.END, 0) if options else b""


def parts(order: str, data: bytes, at: int, end: int) -> Iterator[tuple[int, bytes]]:
    """The whole options or records in ``data`` from offset ``at`` up to one of type ``end``."""
    while at + 4 <= len(data):
        code, length = unpack_from(f"{order}HH", data, at)
        at += 4
        if code == end or at + length > len(data):
            return
        yield code, data[at : at + length]
        at += length + -length % 4


def name_resolution(names: Mapping[bytes, str]) -> bytes:
    """A name resolution block; ``names`` are host names by Ethernet address of 6 bytes."""
    records = (
        # A NUL ends a name within the record.
        option(NameRecord.ETHERNET_ADDRESS, address + name.replace("\0", "").encode() + b"\0")
        for address, name in names.items()
    )
    return block(BlockType.NAME_RESOLUTION, b"".join(records) + pack("<HH", NameRecord.END, 0))


def statistics(interface: int, end: int, received: int, dropped: int) -> bytes:
    """An interface statistics block; ``interface`` is its number, ``end`` a time in ticks of the interface."""
    time = pack("<II", end >> 32, end & 0xFFFF_FFFF)
    options = option(StatisticsOption.END_TIME, time)
    options += option(StatisticsOption.RECEIVED, pack("<Q", received))
    options += option(StatisticsOption.DROPPED, pack("<Q", dropped))
    return block(BlockType.INTERFACE_STATISTICS, pack("<I", interface) + time + terminated(options))
