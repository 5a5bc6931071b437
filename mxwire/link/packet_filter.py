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


class Step(NamedTuple):
    """One instruction, which may have a label; jumps name labels, and go on with the next step without."""

    operation: int
    operand: int
    equal: str = ""
    other: str = ""
    label: str = ""


def for_us(address: bytes) -> list[Step]:
    """Lets whole frames pass that are untagged and for ``address`` or broadcast; of others only the header.

    The headers are what can be counted; a frame that the filter refused altogether would leave no trace.

    Before it comes to a socket of one EtherType, the kernel takes a tag out of the frame and forgets it; all that is
    left of it is that the frame is said to be for another host, in spite of its address. Of a tag without a VLAN (of
    number 0, for the priority) nothing is left, and such frames pass.
    """
    high, low = int.from_bytes(address[:4], "big"), int.from_bytes(address[4:], "big")
    ones_high, ones_low = int.from_bytes(BROADCAST[:4], "big"), int.from_bytes(BROADCAST[4:], "big")
    return [
        Step(_LOAD_WORD, _PACKET_TYPE),
        Step(_JUMP_IF_EQUAL, _OTHER_HOST, equal="header"),
        Step(_LOAD_WORD, _VLAN_TAG_PRESENT),
        Step(_JUMP_IF_EQUAL, 0, other="header"),
        Step(_LOAD_WORD, 0),
        Step(_JUMP_IF_EQUAL, high, equal="ours"),
        Step(_JUMP_IF_EQUAL, ones_high, other="header"),
        Step(_LOAD_HALF, 4),
        Step(_JUMP_IF_EQUAL, ones_low, equal="whole", other="header"),
        Step(_LOAD_HALF, 4, label="ours"),
        Step(_JUMP_IF_EQUAL, low, equal="whole", other="header"),
        Step(_RETURN, HEADER_SIZE, label="header"),
        Step(_RETURN, _ALL, label="whole"),
    ]


def of_ethertype(ethertype: int) -> list[Step]:
    """Lets whole frames of an EtherType pass, also behind a VLAN tag that is still in the frame; no others."""
    first, second = sorted(VLAN_ETHERTYPES)
    return [
        Step(_LOAD_HALF, 12),
        Step(_JUMP_IF_EQUAL, ethertype, equal="whole"),
        Step(_JUMP_IF_EQUAL, first, equal="tagged"),
        Step(_JUMP_IF_EQUAL, second, equal="tagged", other="nothing"),
        Step(_LOAD_HALF, 16, label="tagged"),
        Step(_JUMP_IF_EQUAL, ethertype, equal="whole", other="nothing"),
        Step(_RETURN, 0, label="nothing"),
        Step(_RETURN, _ALL, label="whole"),
    ]


EVERYTHING: Sequence[Step] = (Step(_RETURN, _ALL),)
"""Lets all frames pass."""
NOTHING: Sequence[Step] = (Step(_RETURN, 0),)
"""Lets nothing pass."""


def _assemble(steps: Sequence[Step]) -> bytes:
    places = {step.label: place for place, step in enumerate(steps) if step.label}

    def skip(place: int, label: str) -> int:
        return places[label] - place - 1 if label else 0

    return b"".join(
        struct.pack("HBBI", step.operation, skip(place, step.equal), skip(place, step.other), step.operand)
        for place, step in enumerate(steps)
    )


def attach(to: socket.socket, steps: Sequence[Step]) -> None:
    """Have the kernel run a filter for a socket, instead of any it had."""
    code = ctypes.create_string_buffer(_assemble(steps))
    to.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(steps), ctypes.addressof(code)))
