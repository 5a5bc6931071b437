"""Links: Ethernet interfaces, networks in memory and faulty cables behind one protocol, defined in ``link.py``.

``packet.py`` is an interface of this machine: frames are received in a ring that is shared with the kernel
(``ring_v3.py``; ``ring_socket.py`` polls it and waits) and transmitted by ``sender.py``. ``memory.py`` is a network in
memory, ``faulty.py`` adds faults to any link, and ``tap.py`` sees all frames of an interface, for captures.
"""

from mxwire.link.errors import LinkError
from mxwire.link.faults import Faults
from mxwire.link.faulty import FaultyLink
from mxwire.link.link import FewLink, Link, LinkStatistics
from mxwire.link.memory import MemoryLink, MemoryNetwork, memory_pair
from mxwire.link.packet import Mode, PacketLink
from mxwire.link.tap import Tap
from mxwire.link.wrapper import LinkWrapper
from mxwire.link.xdp import XdpLink, XdpSender

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
    "XdpLink",
    "XdpSender",
    "memory_pair",
]
