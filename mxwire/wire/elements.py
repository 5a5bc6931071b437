"""Construct elements for the MXoE formats, beyond Construct's own.

Each marks a property of a field that codec, columns, scapy layers and Wireshark tables need, and that Construct cannot
express.
"""

from __future__ import annotations

from typing import Any

from construct import Bytes, Construct, Int16ub, Int32ub, Subconstruct, stream_write


class SenderOrder(Subconstruct):  # type: ignore[misc]
    """An integer in network byte order, or in little-endian order if the sender was built with the endian option off.

    Unmarked integers are big-endian in every build (section 3).
    """


U16 = SenderOrder(Int16ub)
U32 = SenderOrder(Int32ub)


class Mac(Subconstruct):  # type: ignore[misc]
    """An Ethernet address of six bytes."""

    def __init__(self) -> None:
        super().__init__(Bytes(6))


class Undefined(Subconstruct):  # type: ignore[misc]
    """Bytes that the sender never writes: parsed, never compared, zero when built (section 3)."""

    def __init__(self, size: int) -> None:
        super().__init__(Bytes(size))
        self.size = size
        self.flagbuildnone = True

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> bytes:
        zeros = bytes(self.size)
        stream_write(stream, zeros, self.size, path)
        return zeros


class Payload(Subconstruct):  # type: ignore[misc]
    """The data at the end of a packet, with its length in bytes in the field ``length_field``."""

    def __init__(self, length_field: str) -> None:
        super().__init__(Bytes(lambda context: context[length_field]))
        self.length_field = length_field


class TextPayload(Subconstruct):  # type: ignore[misc]
    """A payload that contains a NUL-terminated name."""

    def __init__(self, payload: Construct) -> None:
        super().__init__(payload)
