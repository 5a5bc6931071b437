"""Links: Ethernet interfaces, networks in memory and faulty cables behind one protocol, defined in ``link.py``.

``packet.py`` is an interface of this machine through AF_PACKET: frames are received in a ring that is shared with the
kernel (``ring_v3.py``; ``ring_socket.py`` polls it and waits) and transmitted by ``sender.py``. ``xdp.py`` is one
through AF_XDP: ``umem.py`` maps its rings and memory, and ``bpf.py`` loads its program into the kernel. Both look up
the interface in ``interface.py``, which reports a missing or unsuitable one; ``packet_socket.py`` opens the sockets,
and explains a missing permission. ``memory.py`` is a network in memory, ``faulty.py`` adds faults to any link, and
``tap.py`` sees all frames of an interface, for captures. ``local.py`` passes records between the processes of one host,
through rings of shared memory (``record_ring.py``); ``process_memory.py`` copies long messages from one process to
another. ``transmit_waits.py`` waits for the time of a frame, and for room in a full queue.
"""

from mxwire.link.errors import LinkError
from mxwire.link.faults import Faults
from mxwire.link.faulty import FaultyLink
from mxwire.link.kinds import LinkKind, open_link
from mxwire.link.link import FewLink, Link, LinkStatistics, RoomLink
from mxwire.link.memory import MemoryLink, MemoryNetwork, memory_pair
from mxwire.link.packet import Mode, PacketLink
from mxwire.link.tap import Tap
from mxwire.link.wrapper import LinkWrapper
from mxwire.link.xdp import XdpLink, XdpSender, XdpSendLink

__all__ = [
    "Faults",
    "FaultyLink",
    "FewLink",
    "Link",
    "LinkError",
    "LinkKind",
    "LinkStatistics",
    "LinkWrapper",
    "MemoryLink",
    "MemoryNetwork",
    "Mode",
    "PacketLink",
    "RoomLink",
    "Tap",
    "XdpLink",
    "XdpSendLink",
    "XdpSender",
    "memory_pair",
    "open_link",
]
