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
"""A load from here tells for whom the kernel thinks that the frame is."""
_VLAN_TAG_PRESENT = 0xFFFFF000 + 48
"""A load from here tells whether the kernel took a VLAN tag out of the frame and still knows."""
_OTHER_HOST = 3
_ALL = 0x40000
_SO_ATTACH_FILTER = 26


class FilterStep(NamedTuple):
    """One instruction, which may have a label; jumps name labels, and go on with the next step without."""

    operation: int
    operand: int
    equal: str = ""
    other: str = ""
    label: str = ""


def for_us(address: bytes) -> list[FilterStep]:
    """Lets whole frames pass that are untagged and for ``address`` or broadcast; of others only the header.

    The headers are what can be counted; a frame that the filter refused altogether would leave no trace.

    Before it comes to a socket of one EtherType, the kernel takes a tag out of the frame and forgets it; all that is
    left of it is that the frame is said to be for another host, in spite of its address. Of a tag without a VLAN (of
    number 0, for the priority) nothing is left, and such frames pass.
    """
    high, low = int.from_bytes(address[:4], "big"), int.from_bytes(address[4:], "big")
    ones_high, ones_low = int.from_bytes(BROADCAST[:4], "big"), int.from_bytes(BROADCAST[4:], "big")
    return [
        FilterStep(_LOAD_WORD, _PACKET_TYPE),
        FilterStep(_JUMP_IF_EQUAL, _OTHER_HOST, equal="header"),
        FilterStep(_LOAD_WORD, _VLAN_TAG_PRESENT),
        FilterStep(_JUMP_IF_EQUAL, 0, other="header"),
        FilterStep(_LOAD_WORD, 0),
        FilterStep(_JUMP_IF_EQUAL, high, equal="ours"),
        FilterStep(_JUMP_IF_EQUAL, ones_high, other="header"),
        FilterStep(_LOAD_HALF, 4),
        FilterStep(_JUMP_IF_EQUAL, ones_low, equal="whole", other="header"),
        FilterStep(_LOAD_HALF, 4, label="ours"),
        FilterStep(_JUMP_IF_EQUAL, low, equal="whole", other="header"),
        FilterStep(_RETURN, HEADER_SIZE, label="header"),
        FilterStep(_RETURN, _ALL, label="whole"),
    ]


def of_ethertype(ethertype: int) -> list[FilterStep]:
    """Lets whole frames of an EtherType pass, also behind a VLAN tag that is still in the frame; no others."""
    first, second = sorted(VLAN_ETHERTYPES)
    return [
        FilterStep(_LOAD_HALF, 12),
        FilterStep(_JUMP_IF_EQUAL, ethertype, equal="whole"),
        FilterStep(_JUMP_IF_EQUAL, first, equal="tagged"),
        FilterStep(_JUMP_IF_EQUAL, second, equal="tagged", other="nothing"),
        FilterStep(_LOAD_HALF, 16, label="tagged"),
        FilterStep(_JUMP_IF_EQUAL, ethertype, equal="whole", other="nothing"),
        FilterStep(_RETURN, 0, label="nothing"),
        FilterStep(_RETURN, _ALL, label="whole"),
    ]


EVERYTHING: Sequence[FilterStep] = (FilterStep(_RETURN, _ALL),)
"""Lets all frames pass."""
NOTHING: Sequence[FilterStep] = (FilterStep(_RETURN, 0),)
"""Lets nothing pass."""


def _assemble(steps: Sequence[FilterStep]) -> bytes:
    places = {step.label: place for place, step in enumerate(steps) if step.label}

    def skip(place: int, label: str) -> int:
        return places[label] - place - 1 if label else 0

    return b"".join(
        struct.pack("HBBI", step.operation, skip(place, step.equal), skip(place, step.other), step.operand)
        for place, step in enumerate(steps)
    )


def attach(to: socket.socket, steps: Sequence[FilterStep]) -> None:
    """Have the kernel run a filter for a socket, instead of any it had."""
    code = ctypes.create_string_buffer(_assemble(steps))
    to.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(steps), ctypes.addressof(code)))
