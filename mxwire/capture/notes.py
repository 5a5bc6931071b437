"""What pcapng files may say besides their frames: comments on single ones, names of hosts. Batches have neither."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from mxwire.capture.blocks import (
    BYTE_ORDER_MAGIC,
    NAME_RESOLUTION_BLOCK,
    OPTION_COMMENT,
    OPTION_END,
    PACKET_LAYOUTS,
    RECORD_END,
    RECORD_ETHERNET_ADDRESS,
)
from mxwire.capture.scan import (
    ENHANCED_PACKET_BLOCK,
    LARGEST_BLOCK_BYTES,
    PACKET_BLOCK,
    SECTION_HEADER_BLOCK,
    SMALLEST_BLOCK_BYTES,
)
from mxwire.capture.text import printable
from mxwire.errors import CaptureError
from mxwire.ethernet import ADDRESS_SIZE

_SECTION: Final = SECTION_HEADER_BLOCK.to_bytes(4, "little")
_LITTLE: Final = BYTE_ORDER_MAGIC.to_bytes(4, "little")
_WITH_OPTIONS: Final = (ENHANCED_PACKET_BLOCK, PACKET_BLOCK)
_CAPTURED_AT: Final = 20
"""Where a block of those types says how many bytes of the frame it holds."""
_FRAME_AT: Final = 28


@dataclass(slots=True)
class Notes:
    """What a file says of its frames and hosts."""

    comments: dict[int, str] = field(default_factory=dict)
    """By the numbers of frames, as ``FrameBatch.number`` counts them; several on a frame are lines of one."""
    names: dict[bytes, str] = field(default_factory=dict)
    """Of hosts, by their Ethernet addresses, in the order of the file."""


class _Block(NamedTuple):
    order: str
    """That of the bytes, for :mod:`struct`."""
    type: int
    data: bytes
    """Without the length at its end."""


def read_notes(path: str | Path) -> Notes:
    """The comments and names in a plain pcapng file.

    A file of another kind has none; of a damaged or cut-off one, what stands before the damage. Raises
    ``CaptureError`` where the file cannot be read. Takes memory for the whole file.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read: {printable(error.strerror or str(error))}") from None
    notes = Notes()
    number = 0
    for block in _blocks(data) if data[:4] == _SECTION else ():
        if block.type in PACKET_LAYOUTS:
            number += 1
            if block.type in _WITH_OPTIONS and (found := _comments(block)):
                notes.comments[number] = "\n".join(found)
        elif block.type == NAME_RESOLUTION_BLOCK:
            notes.names |= _names(block)
    return notes


def _blocks(data: bytes) -> Iterator[_Block]:
    order, at = "<", 0
    while at + SMALLEST_BLOCK_BYTES <= len(data):
        if data[at : at + 4] == _SECTION:
            order = "<" if data[at + 8 : at + 12] == _LITTLE else ">"
        block_type, length = struct.unpack_from(f"{order}II", data, at)
        if not SMALLEST_BLOCK_BYTES <= length <= LARGEST_BLOCK_BYTES or at + length > len(data):
            return
        yield _Block(order, block_type, data[at : at + length - 4])
        at += length


def _parts(block: _Block, at: int, end: int) -> Iterator[tuple[int, bytes]]:
    """The options or records of a block from a place on, until one of the type ``end``."""
    while at + 4 <= len(block.data):
        code, length = struct.unpack_from(f"{block.order}HH", block.data, at)
        if code == end:
            return
        yield code, block.data[at + 4 : at + 4 + length]
        at += 4 + length + -length % 4


def _comments(block: _Block) -> list[str]:
    """The comments on the frame of a block."""
    if len(block.data) < _FRAME_AT:
        return []
    (captured,) = struct.unpack_from(f"{block.order}I", block.data, _CAPTURED_AT)
    options = _parts(block, _FRAME_AT + captured + -captured % 4, OPTION_END)
    return [value.rstrip(b"\0").decode(errors="replace") for code, value in options if code == OPTION_COMMENT]


def _names(block: _Block) -> dict[bytes, str]:
    """The first name of each Ethernet address."""
    return {
        value[:ADDRESS_SIZE]: value[ADDRESS_SIZE:].partition(b"\0")[0].decode(errors="replace")
        for code, value in _parts(block, 8, RECORD_END)
        if code == RECORD_ETHERNET_ADDRESS and len(value) > ADDRESS_SIZE
    }
