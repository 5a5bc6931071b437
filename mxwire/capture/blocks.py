"""Constants of the pcapng format, shared by reader and writer."""

from __future__ import annotations

from dataclasses import dataclass

from mxwire.capture.scan import (
    ENHANCED_PACKET_BLOCK,
    INTERFACE_DESCRIPTION_BLOCK,
    PACKET_BLOCK,
    SECTION_HEADER_BLOCK,
    SIMPLE_PACKET_BLOCK,
)

BYTE_ORDER_MAGIC = 0x1A2B3C4D

SMALLEST_CONTROL_BLOCKS = {SECTION_HEADER_BLOCK: 28, INTERFACE_DESCRIPTION_BLOCK: 20}

NAME_RESOLUTION_BLOCK = 4

RECORD_END = 0
RECORD_ETHERNET_ADDRESS = 3

OPTION_END = 0
OPTION_COMMENT = 1

OPTION_SECTION_HARDWARE = 2
OPTION_SECTION_OPERATING_SYSTEM = 3
OPTION_SECTION_APPLICATION = 4

OPTION_INTERFACE_NAME = 2
OPTION_INTERFACE_DESCRIPTION = 3
OPTION_INTERFACE_RESOLUTION = 9
OPTION_INTERFACE_FILTER = 11
OPTION_INTERFACE_OPERATING_SYSTEM = 12
OPTION_INTERFACE_FRAME_CHECK_LENGTH = 13
OPTION_INTERFACE_TIME_OFFSET = 14
OPTION_INTERFACE_HARDWARE = 15

OPTION_STATISTICS_END = 3
OPTION_STATISTICS_RECEIVED = 4
OPTION_STATISTICS_DROPPED = 5
OPTION_STATISTICS_DROPPED_BY_SYSTEM = 7


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


PACKET_LAYOUTS = {
    ENHANCED_PACKET_BLOCK: PacketLayout(header_words=7),
    SIMPLE_PACKET_BLOCK: PacketLayout(header_words=3),
    PACKET_BLOCK: PacketLayout(header_words=7),
}
