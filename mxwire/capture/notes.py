"""Comments on frames and names of hosts in pcapng files, which batches do not contain."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from mxwire.capture.blocks import BYTE_ORDER_MAGIC, PACKET_LAYOUTS, BlockType, NameRecord, Option, parts
from mxwire.capture.scan import LARGEST_BLOCK_BYTES, SMALLEST_BLOCK_BYTES
from mxwire.errors import CaptureError
from mxwire.ethernet import ADDRESS_SIZE
from mxwire.words import printable

_SECTION: Final = BlockType.SECTION_HEADER.to_bytes(4, "little")
_LITTLE: Final = BYTE_ORDER_MAGIC.to_bytes(4, "little")
_WITH_OPTIONS: Final = (BlockType.ENHANCED_PACKET, BlockType.PACKET)
_CAPTURED_AT: Final = 20
"""Offset of the captured length in packet blocks with options."""
_FRAME_AT: Final = 28


@dataclass(slots=True)
class CaptureNotes:
    """The comments and host names of a file."""

    comments: dict[int, str] = field(default_factory=dict)
    """Comments by frame number, as in ``FrameBatch.number``; several on one frame are joined by newlines."""
    names: dict[bytes, str] = field(default_factory=dict)
    """Host names by Ethernet address, in the order of the file."""


class _RawBlock(NamedTuple):
    order: str
    """Byte order, as a character of :mod:`struct`."""
    type: int
    data: bytes
    """The whole block except its trailing length."""


def read_notes(path: str | Path) -> CaptureNotes:
    """Read the comments and names of an uncompressed pcapng file.

    Other files have none; in damaged or truncated ones, only those before the damage are returned. Raises
    ``CaptureError`` if the file cannot be read. Reads the whole file into memory.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read: {printable(error.strerror or str(error))}") from None
    notes = CaptureNotes()
    number = 0
    for block in _blocks(data) if data[:4] == _SECTION else ():
        if block.type in PACKET_LAYOUTS:
            number += 1
            if block.type in _WITH_OPTIONS and (found := _comments(block)):
                notes.comments[number] = "\n".join(found)
        elif block.type == BlockType.NAME_RESOLUTION:
            notes.names |= dict(ethernet_names(block.order, block.data[8:]))
    return notes


def _blocks(data: bytes) -> Iterator[_RawBlock]:
    order, at = "<", 0
    while at + SMALLEST_BLOCK_BYTES <= len(data):
        if data[at : at + 4] == _SECTION:
            order = "<" if data[at + 8 : at + 12] == _LITTLE else ">"
        block_type, length = struct.unpack_from(f"{order}II", data, at)
        if not SMALLEST_BLOCK_BYTES <= length <= LARGEST_BLOCK_BYTES or at + length > len(data):
            return
        yield _RawBlock(order, block_type, data[at : at + length - 4])
        at += length


def _comments(block: _RawBlock) -> list[str]:
    """The comments in a packet block."""
    if len(block.data) < _FRAME_AT:
        return []
    (captured,) = struct.unpack_from(f"{block.order}I", block.data, _CAPTURED_AT)
    options = parts(block.order, block.data, _FRAME_AT + captured + -captured % 4, Option.END)
    return [value.rstrip(b"\0").decode(errors="replace") for code, value in options if code == Option.COMMENT]


def ethernet_names(order: str, body: bytes) -> Iterator[tuple[bytes, str]]:
    """Yield the Ethernet addresses and their first names in the body of a name resolution block.

    ``order`` is the byte order, as a character of :mod:`struct`.
    """
    for code, value in parts(order, body, 0, NameRecord.END):
        if code == NameRecord.ETHERNET_ADDRESS and len(value) > ADDRESS_SIZE:
            yield value[:ADDRESS_SIZE], value[ADDRESS_SIZE:].partition(b"\0")[0].decode(errors="replace")
