"""Comments on single frames, which pcapng files may have; batches do not carry them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from mxwire.capture.blocks import BYTE_ORDER_MAGIC, OPTION_COMMENT, OPTION_END, PACKET_LAYOUTS
from mxwire.capture.scan import (
    ENHANCED_PACKET_BLOCK,
    LARGEST_BLOCK_BYTES,
    PACKET_BLOCK,
    SECTION_HEADER_BLOCK,
    SMALLEST_BLOCK_BYTES,
)
from mxwire.capture.text import printable
from mxwire.errors import CaptureError

_WITH_OPTIONS: Final = (ENHANCED_PACKET_BLOCK, PACKET_BLOCK)
_CAPTURED_AT: Final = 20
"""Where a block of those types says how many bytes of the frame it holds."""


def frame_comments(path: str | Path) -> dict[int, str]:
    """The comments of a plain pcapng file by the numbers of their frames, as ``FrameBatch.number`` counts them.

    Several comments on a frame are lines of one. A file of another kind has none; of a damaged or cut-off one, what
    stands before the damage. Raises ``CaptureError`` where the file cannot be read. Takes memory for the whole file.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read: {printable(error.strerror or str(error))}") from None
    comments: dict[int, str] = {}
    order, at, number = "<", 0, 0
    if data[:4] != SECTION_HEADER_BLOCK.to_bytes(4, "little"):
        return comments
    while at + SMALLEST_BLOCK_BYTES <= len(data):
        if data[at : at + 4] == SECTION_HEADER_BLOCK.to_bytes(4, "little"):
            order = "<" if data[at + 8 : at + 12] == BYTE_ORDER_MAGIC.to_bytes(4, "little") else ">"
        block_type, length = struct.unpack_from(f"{order}II", data, at)
        if not SMALLEST_BLOCK_BYTES <= length <= LARGEST_BLOCK_BYTES or at + length > len(data):
            break
        if block_type in PACKET_LAYOUTS:
            number += 1
            if block_type in _WITH_OPTIONS and (found := _comments(data[at : at + length - 4], order)):
                comments[number] = "\n".join(found)
        at += length
    return comments


def _comments(block: bytes, order: str) -> list[str]:
    """The comments among the options of a block that holds a frame."""
    found: list[str] = []
    if len(block) < _CAPTURED_AT + 8:
        return found
    (captured,) = struct.unpack_from(f"{order}I", block, _CAPTURED_AT)
    at = _CAPTURED_AT + 8 + captured + -captured % 4
    while at + 4 <= len(block):
        code, length = struct.unpack_from(f"{order}HH", block, at)
        if code == OPTION_END:
            break
        if code == OPTION_COMMENT:
            found.append(block[at + 4 : at + 4 + length].rstrip(b"\0").decode(errors="replace"))
        at += 4 + length + -length % 4
    return found
