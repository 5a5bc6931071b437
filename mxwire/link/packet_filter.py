"""Filters that the kernel runs for a packet socket, in classic BPF."""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Sequence
from typing import NamedTuple

from mxwire.ethernet import BROADCAST, HEADER_SIZE, VLAN_ETHERTYPES

_LOAD_WORD, _LOAD_HALF, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x28, 0x15, 0x06
_PACKET_TYPE = 0xFFFFF000 + 4
"""Offset of the packet type: the kernel's view of the destination."""
_VLAN_TAG_PRESENT = 0xFFFFF000 + 48
"""Offset of a flag for VLAN tags that the kernel has removed from the frame but still stores."""
_OTHER_HOST = 3
WHOLE = 0x40000
"""Captured length that cuts no frame."""
_SO_ATTACH_FILTER = 26


class FilterStep(NamedTuple):
    """One instruction with an optional label; jumps name a label, or continue with the next instruction."""

    operation: int
    operand: int
    equal: str = ""
    other: str = ""
    label: str = ""


def for_us(address: bytes) -> list[FilterStep]:
    """Build a filter that passes untagged frames to ``address`` or broadcast, and only the header of others.

    The headers are counted as foreign frames; a frame that the filter refused would leave no trace.

    For sockets of a single EtherType the kernel removes a VLAN tag and does not store it. The only trace is that the
    packet type is that of a frame for another host, in spite of the address. A tag with VLAN 0 (priority only) leaves
    no trace, and such frames pass.
    """
    high, low = int.from_bytes(address[:4], "big"), int.from_bytes(address[4:], "big")
    ones_high, ones_low = int.from_bytes(BROADCAST[:4], "big"), int.from_bytes(BROADCAST[4:], "big")
    return [
        FilterStep(_LOAD_WORD, _PACKET_TYPE),
        FilterStep(_JUMP_IF_EQUAL, _OTHER_HOST, equal="header"),
        FilterStep(_LOAD_WORD, _VLAN_TAG_PRESENT),
        FilterStep(_JUMP_IF_EQUAL, 0, other="header"),
        FilterStep(_LOAD_WORD, 0),
        FilterStep(_JUMP_IF_EQUAL, high, equal="unicast"),
        FilterStep(_JUMP_IF_EQUAL, ones_high, other="header"),
        FilterStep(_LOAD_HALF, 4),
        FilterStep(_JUMP_IF_EQUAL, ones_low, equal="whole", other="header"),
        FilterStep(_LOAD_HALF, 4, label="unicast"),
        FilterStep(_JUMP_IF_EQUAL, low, equal="whole", other="header"),
        FilterStep(_RETURN, HEADER_SIZE, label="header"),
        FilterStep(_RETURN, WHOLE, label="whole"),
    ]


def of_ethertype(ethertype: int, snap: int = WHOLE) -> list[FilterStep]:
    """Build a filter that passes frames of an EtherType, with or without a VLAN tag, and no others.

    Of each frame the first ``snap`` bytes are passed.
    """
    first, second = sorted(VLAN_ETHERTYPES)
    return [
        FilterStep(_LOAD_HALF, 12),
        FilterStep(_JUMP_IF_EQUAL, ethertype, equal="whole"),
        FilterStep(_JUMP_IF_EQUAL, first, equal="tagged"),
        FilterStep(_JUMP_IF_EQUAL, second, equal="tagged", other="nothing"),
        FilterStep(_LOAD_HALF, 16, label="tagged"),
        FilterStep(_JUMP_IF_EQUAL, ethertype, equal="whole", other="nothing"),
        FilterStep(_RETURN, 0, label="nothing"),
        FilterStep(_RETURN, snap, label="whole"),
    ]


def of_everything(snap: int = WHOLE) -> list[FilterStep]:
    """Build a filter that passes the first ``snap`` bytes of all frames."""
    return [FilterStep(_RETURN, snap)]


EVERYTHING: Sequence[FilterStep] = of_everything()
"""Passes all frames."""
NOTHING: Sequence[FilterStep] = (FilterStep(_RETURN, 0),)
"""Passes no frames."""


def _assemble(steps: Sequence[FilterStep]) -> bytes:
    places = {step.label: place for place, step in enumerate(steps) if step.label}

    def skip(place: int, label: str) -> int:
        return places[label] - place - 1 if label else 0

    return b"".join(
        struct.pack("HBBI", step.operation, skip(place, step.equal), skip(place, step.other), step.operand)
        for place, step in enumerate(steps)
    )


def attach(to: socket.socket, steps: Sequence[FilterStep]) -> None:
    """Attach a filter to a socket, in place of any previous one."""
    code = ctypes.create_string_buffer(_assemble(steps))
    to.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(steps), ctypes.addressof(code)))
