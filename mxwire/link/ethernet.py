"""What a link needs to know of Ethernet: the header, and which frames are for us."""

from __future__ import annotations

HEADER = 14
"""Bytes of an Ethernet header: destination, source, EtherType."""
MXOE = 0x86DF
"""The EtherType of Myrinet Express over Ethernet."""
VLAN = frozenset({0x8100, 0x88A8})
"""EtherTypes of VLAN tags, which stand before the EtherType of the frame itself."""
BROADCAST = b"\xff" * 6


def as_text(address: bytes) -> str:
    """An Ethernet address as people write it."""
    return address.hex(":")


def ethertype_of(frame: bytes) -> int:
    """The EtherType behind the two addresses; of a tagged frame, that of the tag."""
    return int.from_bytes(frame[12:14], "big")


def tagged_ethertype_of(frame: bytes) -> int | None:
    """The EtherType behind a VLAN tag, None if there is none."""
    return int.from_bytes(frame[16:18], "big") if ethertype_of(frame) in VLAN else None
