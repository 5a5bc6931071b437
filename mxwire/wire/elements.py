"""The few Construct building blocks that the MXoE formats need beyond Construct's own.

Each says one thing about a field that the codec, the columns, the scapy layers and the Wireshark tables have
to know, and that Construct has no word for.
"""

from __future__ import annotations

from typing import Any

from construct import Bytes, Construct, Int16ub, Int32ub, Subconstruct, stream_write


class SenderOrder(Subconstruct):  # type: ignore[misc]
    """An integer in network byte order, or in the sender's own if its build has the endian option off.

    Integers without this mark are big-endian in every build (section 3).
    """


U16 = SenderOrder(Int16ub)
U32 = SenderOrder(Int32ub)


class Mac(Subconstruct):  # type: ignore[misc]
    """Six bytes that are an Ethernet address."""

    def __init__(self) -> None:
        super().__init__(Bytes(6))


class Undefined(Subconstruct):  # type: ignore[misc]
    """Bytes that the sender never writes: kept when parsed, never compared, zero when built (section 3)."""

    def __init__(self, size: int) -> None:
        super().__init__(Bytes(size))
        self.size = size
        self.flagbuildnone = True

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> bytes:
        zeros = bytes(self.size)
        stream_write(stream, zeros, self.size, path)
        return zeros


class Payload(Subconstruct):  # type: ignore[misc]
    """The bytes at the end of a packet, as many as the field named ``length_field`` says."""

    def __init__(self, length_field: str) -> None:
        super().__init__(Bytes(lambda context: context[length_field]))
        self.length_field = length_field


class Text(Subconstruct):  # type: ignore[misc]
    """A payload that is a NUL-terminated name."""

    def __init__(self, payload: Construct) -> None:
        super().__init__(payload)
