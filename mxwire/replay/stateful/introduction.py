"""Being known on an Ethernet: what a host says of itself before it says anything else."""

from __future__ import annotations

from typing import Final

from mxwire.protocol.profile import MILLISECOND
from mxwire.wire.address import BROADCAST
from mxwire.wire.packets import Announcement, HostQuery, HostReply

EVERY: Final = 250 * MILLISECOND
"""How often we say who we are while nobody answers."""
MAGIC: Final = 0x13052008
"""What a host query has after the driver was loaded (R-HOST-03)."""
_NAME_BYTES: Final = 79
_LOW: Final = 0xFFFF_FFFF


def announcement(address: bytes, serial: int) -> Announcement:
    """Says that a host is there: nobody hears whom he does not know (R-DISC-01)."""
    number = int.from_bytes(address, "big")
    return Announcement(
        dst_mac=BROADCAST, src_mac=address, nic_id_hi=number >> 32, nic_id_lo=number & _LOW, serial=serial
    )


def query(address: bytes, other: bytes, index: int) -> HostQuery:
    """Asks for a name, and teaches our index for the other host (R-HOST-05)."""
    return HostQuery(dst_mac=other, src_mac=address, src_dst_peer_index=index, magic=MAGIC)


def answer(asked: HostQuery, address: bytes, index: int, hostname: str) -> HostReply:
    """Our name for who asks for it (R-HOST-06)."""
    name = hostname.encode("latin-1", "replace")[:_NAME_BYTES] + b"\0"
    return HostReply(
        dst_mac=asked.src_mac,
        src_mac=address,
        length=len(name),
        src_dst_peer_index=index,
        magic=asked.magic,
        hostname=name,
    )
