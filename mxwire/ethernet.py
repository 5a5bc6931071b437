"""Ethernet: the header of a frame, and addresses as bytes, text and integers.

A frame is the bytes from the destination address on, without preamble and frame check sequence. The header fields are
slices, ``frame[SOURCE]``, because a function call per field would be too slow where frames are handled one by one.
"""

from __future__ import annotations

import re
from typing import Final

from mxwire.errors import MxwireError

ADDRESS_SIZE: Final = 6
HEADER_SIZE: Final = 14
"""Length of the header: destination, source and EtherType."""
VLAN_TAG_SIZE: Final = 4
SHORTEST_FRAME: Final = 60
"""Length in bytes to which the header and the data of a frame are padded (wire format, section 2)."""

DESTINATION: Final = slice(0, ADDRESS_SIZE)
SOURCE: Final = slice(ADDRESS_SIZE, 2 * ADDRESS_SIZE)
ETHERTYPE: Final = slice(2 * ADDRESS_SIZE, HEADER_SIZE)
"""The EtherType; in a tagged frame, that of the tag."""
TAGGED_ETHERTYPE: Final = slice(2 * ADDRESS_SIZE + VLAN_TAG_SIZE, HEADER_SIZE + VLAN_TAG_SIZE)
"""The EtherType after one VLAN tag."""

ETHERTYPE_MXOE: Final = 0x86DF
"""EtherType of Myrinet Express over Ethernet, both dialects (wire format, section 2)."""
VLAN_ETHERTYPES: Final = frozenset({0x8100, 0x88A8})
"""EtherTypes of VLAN tags, which precede the EtherType of the frame itself."""
BROADCAST: Final = b"\xff" * ADDRESS_SIZE
GROUP_BIT: Final = 1 << 40
"""The bit of a broadcast or multicast address, in the integer of an address."""

_MAC: Final = re.compile(
    r"[0-9a-f]{2}([:-])[0-9a-f]{2}(?:\1[0-9a-f]{2}){4}|[0-9a-f]{4}(\.?)[0-9a-f]{4}\2[0-9a-f]{4}", re.IGNORECASE
)

MAC_TEXT: Final = re.compile(r"\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b")
"""An address in running text, as :func:`mac_text` writes it."""


def ethertype_of(frame: bytes) -> int:
    """The EtherType after the addresses; in a tagged frame, that of the tag."""
    return int.from_bytes(frame[ETHERTYPE], "big")


def tagged_ethertype_of(frame: bytes) -> int | None:
    """The EtherType after a VLAN tag; None for untagged frames."""
    return int.from_bytes(frame[TAGGED_ETHERTYPE], "big") if ethertype_of(frame) in VLAN_ETHERTYPES else None


def is_group(address: bytes) -> bool:
    """Return whether six bytes are a multicast or broadcast address."""
    return bool(address[0] & 1)


def mac_text(address: bytes | int) -> str:
    """Return ``52:54:00:0a:00:01`` for six bytes, or for the integer of a column."""
    raw = address.to_bytes(ADDRESS_SIZE, "big") if isinstance(address, int) else address
    return raw.hex(":")


def mac_bytes(text: str) -> bytes:
    """Return six bytes from ``52:54:00:0a:00:01``, the same with dashes, ``5254.000a.0001`` or ``5254000a0001``.

    Raises :class:`~mxwire.errors.MxwireError` for anything else.
    """
    if not _MAC.fullmatch(text.strip()):
        raise MxwireError(f"{text!r} is not an Ethernet address: write it like 52:54:00:0a:00:01")
    return bytes.fromhex(text.strip().translate({ord(each): None for each in ":-."}))
