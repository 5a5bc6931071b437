"""FrameQueue: frames of one kind that a packet socket queues in the kernel, beside the receive ring of a link.

Theory of operation
-------------------
The kernel copies a frame into a ring (``ring_v2.py``) while it delivers it, which between two network namespaces or
virtual machines is on the CPU of the sender. This host copies it again, into the memory of a message, before the slot
is used again. A frame in the queue of a plain socket stays where the kernel has it until this process takes it, and the
only copies, of the kernel and of the engine, are on the CPU of the receiver. So

* a *ring* is better for frames that are waited for one by one: a poll reads one word, where a plain socket needs a
  system call (0.2 µs), and a short frame is cheaply copied;
* a *queue* is better for long frames that arrive in runs. Half a round trip of 256 KiB to 4 MiB takes some
  12 % less time.

A link with both attaches a filter to each socket (``packet_filter.py``), so that a frame arrives in only one. The
socket of the queue is bound first: the kernel offers a frame to the socket bound last first, and a socket of this kind
takes the frame itself only if no other follows, and a clone otherwise (8 % of the time of a run). All other frames are
offered to the queue without success, which takes some 2 % of the time of a short message. A fanout group, in which a
program selects the socket, is no faster.

Frames of the queue are taken only while they are *awaited*, since an idle host that polls would otherwise double its
system calls; frames that no pull awaits, late or forged, are taken when the link looks for errors, or has nothing else
to do. The order of frames within each socket is kept. Between the two it is not, which the protocol allows: a
PULL_REPLY is placed by its own handle and offset (R-PUL-05).

The memory that frames in the queue occupy is bounded by the receive buffer of the socket. The default is too small for
the replies of a single message, so a process that may not enlarge it (CAP_NET_ADMIN) has no queue.
"""

from __future__ import annotations

import socket
from typing import Any, Final

from mxwire.ethernet import HEADER_SIZE
from mxwire.link import packet_filter, packet_socket
from mxwire.link.interface import NetworkInterface
from mxwire.native import native

FEW: Final = 64
"""Maximum number of frames taken at once: their copies stay in the cache until the engine has stored them."""
_TAG: Final = 4
_NO_RING: Final = 0


class FrameReader:
    """Takes frames of at most ``longest`` bytes from a socket that keeps their boundaries."""

    def __init__(self, opened: socket.socket, longest: int) -> None:
        self._socket = opened
        self._longest = longest
        self.cut = 0
        """Number of frames that were longer, and are lost."""

    def take(self) -> list[bytes] | None:
        """Take the next frames, at most ``FEW``; None if there are none."""
        frames: list[bytes] = []
        for _ in range(FEW):
            try:
                frame, _, flags, _ = self._socket.recvmsg(self._longest, 0, socket.MSG_DONTWAIT)
            except OSError:
                # Nothing waits, or the interface is down or gone, which the link detects by its ring.
                break
            if flags & socket.MSG_TRUNC:
                self.cut += 1
            else:
                frames.append(frame)
        return frames or None


class FrameQueue:
    """A socket bound to an interface for the frames with a mark."""

    def __init__(self, opened: socket.socket, longest: int) -> None:
        self.socket = opened
        self._reader: Any = (
            FrameReader(opened, longest) if native is None else native.FrameReader(opened.fileno(), longest, FEW)
        )
        self.take = self._reader.take

    @classmethod
    def open(
        cls, interface: NetworkInterface, ethertype: int, mark: packet_filter.Mark, count: int
    ) -> FrameQueue | None:
        """Open a queue of up to ``count`` bytes; None if this process may not have that many.

        Raises :class:`~mxwire.link.errors.LinkError` as :func:`~mxwire.link.packet_socket.open_socket` does.
        """
        marked = packet_filter.for_us(interface.address, mark, marked=True)
        opened = packet_socket.open_socket(interface, _NO_RING, marked)
        try:
            if packet_socket.enlarge_receive_queue(opened, count):
                packet_socket.bind(opened, interface, ethertype)
                return cls(opened, HEADER_SIZE + _TAG + interface.mtu)
        except BaseException:
            opened.close()
            raise
        opened.close()
        return None

    def take_drops(self) -> int:
        """Return the number of frames that were lost since the last call: the queue was full, or they were cut."""
        cut, self._reader.cut = int(self._reader.cut), 0
        return cut + packet_socket.take_drops(self.socket)

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()
