"""Links: Ethernet interfaces, networks in memory and faulty cables behind one protocol."""

from mxwire.link.errors import LinkError
from mxwire.link.faults import Faults
from mxwire.link.faulty import FaultyLink
from mxwire.link.link import FewLink, Link, LinkStatistics
from mxwire.link.memory import MemoryLink, MemoryNetwork, memory_pair
from mxwire.link.packet import Mode, PacketLink
from mxwire.link.tap import Tap
from mxwire.link.wrapper import LinkWrapper

__all__ = [
    "Faults",
    "FaultyLink",
    "FewLink",
    "Link",
    "LinkError",
    "LinkStatistics",
    "LinkWrapper",
    "MemoryLink",
    "MemoryNetwork",
    "Mode",
    "PacketLink",
    "Tap",
    "memory_pair",
]
