"""XdpLink, XdpSender and XdpSendLink: an Ethernet interface through an AF_XDP socket.

Theory of operation
-------------------
*Why rings.* A packet socket costs a system call per batch sent, in which the kernel reads a message header and copies
each frame, and its interface is shared: every socket receives all frames. An AF_XDP socket shares memory with the
kernel instead (``umem.py``). Descriptors of frames pass through four rings; frames that are built in the shared memory
are never copied by this process, and one system call transmits what is in the ring. The price is that received frames
reach no other socket: neither another process that uses the interface, nor a sniffer.

*How frames arrive.* A BPF program on the interface (``bpf.py``) sees each frame first. Untagged frames of the EtherType
for the interface or broadcast are redirected to the socket of the queue on which they arrived. The kernel handles all
others as if there were no program; those of the EtherType with another destination or a VLAN tag are counted in a map.
A tag with VLAN 0 carries a priority only: it is removed and the frame redirected.

*Ownership of frames.* Received frames stay in their chunks until the next ``receive`` (``xdp_receive.py``). Memory of
sent frames belongs to the kernel until it is completed (``xdp_transmit.py``).

*Wake-ups.* The socket is readable when the receive ring has frames, so sleeping, spinning and waking are those of every
ring (``ring_socket.py``). Transmission starts with an empty ``send``; with ``USE_NEED_WAKEUP`` a zero-copy driver that
is already running sets no flag, and needs no call. A zero-copy driver may also wait for a call before it receives.

*Modes.* Two independent choices. The program is native (in the driver) or generic (in the kernel, any driver); the
socket is zero-copy (the driver accesses the memory) or copies. Native programs are preferred, and zero-copy with them,
except on veth, where a native program costs another copy of each frame and makes no frame faster. A mode that the
driver refuses falls back to the next; ``refusals`` gives the reasons.

*Failures.* A queue has one socket, and an interface one program: the error of a refusal names the existing socket or
program. An interface that is down receives no frames and refuses those that are sent. A program that was detached by
another process would leave the link silent, so the attachment is checked while waiting. The kernel releases program and
queue when the process ends, whatever the reason.
"""

from __future__ import annotations

import errno
import math
import socket
import struct
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import ETHERTYPE_MXOE, HEADER_SIZE
from mxwire.frames import FrameBatch
from mxwire.link import packet_socket
from mxwire.link.bpf import BpfAttachment, BpfMap, BpfProgram, MapKind, UnsupportedModeError, XdpMode
from mxwire.link.bpf_code import XdpAction, give
from mxwire.link.errors import LinkError
from mxwire.link.ethtool import read_hardware
from mxwire.link.interface import NetworkInterface, read_interface
from mxwire.link.link import LinkStatistics
from mxwire.link.packet import Mode, PacketLink
from mxwire.link.ring import Arrivals, ReceiveRing
from mxwire.link.ring_socket import CHECK_EVERY, RingSocket
from mxwire.link.umem import CHUNK, HEADROOM, SHORT_CHUNK, BindFlag, MemoryLimitError, XdpSocket
from mxwire.link.xdp_program import redirect
from mxwire.link.xdp_receive import XdpReceiveRing, receive_bytes
from mxwire.link.xdp_transmit import RING, TRANSMIT_BYTES, TransmitQueue

CHUNKS: Final = 4096
"""Chunks for received frames: some 16 MiB, as the ring of a packet socket."""
_FEWEST_CHUNKS: Final = 256
_ONE_PAGE: Final = 3498
"""Largest MTU whose frames fit into one descriptor."""
_BY_COPY_ONLY: Final = frozenset({"veth"})
"""Drivers whose native mode has no advantage."""


class _ModePair(NamedTuple):
    """A combination of modes to try."""

    program: XdpMode
    zero_copy: bool

    def __str__(self) -> str:
        return f"{self.program} mode, {_transfer(self.zero_copy)}"


def _transfer(zero_copy: bool) -> str:
    return "zero-copy" if zero_copy else "copying"


def _mode_pairs(interface: NetworkInterface, mode: XdpMode) -> list[_ModePair]:
    """Combinations to try, the best first."""
    native, generic = _ModePair(XdpMode.NATIVE, zero_copy=True), _ModePair(XdpMode.GENERIC, zero_copy=False)
    both = [native, native._replace(zero_copy=False)]
    if mode is XdpMode.GENERIC:
        return [generic]
    if read_hardware(interface.name).driver in _BY_COPY_ONLY:
        return both[1:] if mode is XdpMode.NATIVE else [generic]
    return both if mode is XdpMode.NATIVE else [*both, generic]


def _open_socket(
    interface: NetworkInterface, queue: int, receive: int, transmit: int, *, zero_copy: bool, chunk: int = CHUNK
) -> XdpSocket:
    """Open a socket bound to a queue, with memory for ``receive`` chunks followed by that for frames to transmit.

    Raises OSError if the driver refuses these flags.
    """
    longest = interface.mtu + HEADER_SIZE
    size = receive_bytes(receive, longest, not zero_copy, chunk) if receive else 0
    size += TRANSMIT_BYTES if transmit else 0
    opened = XdpSocket(interface, size, receive=receive, transmit=transmit, unaligned=not zero_copy, chunk=chunk)
    kind = (BindFlag.ZERO_COPY if zero_copy else BindFlag.COPY) | BindFlag.USE_NEED_WAKEUP
    try:
        try:
            opened.bind(queue, kind | BindFlag.SCATTER_GATHER)
        except OSError as error:
            if error.errno != errno.EINVAL or interface.mtu > _ONE_PAGE:
                raise
            # Kernels before 6.6 have no frames of several descriptors.
            opened.bind(queue, kind)
    except BaseException:
        opened.close()
        raise
    return opened


def _refused(interface: NetworkInterface, error: OSError) -> LinkError:
    if error.errno == errno.EINVAL and interface.mtu > _ONE_PAGE:
        why = f"frames of an MTU of {interface.mtu} need several descriptors, as of Linux 6.6"
    else:
        why = str(error.strerror)
    return LinkError(f"{interface.name}: the kernel refuses an AF_XDP socket: {why}; use AF_PACKET (--via packet)")


def xdp_refusal(interface: NetworkInterface) -> str | None:
    """Return the reason why this process cannot use AF_XDP on an interface, None if it probably can.

    Nothing is attached or bound, which would disturb the interface.
    """
    try:
        XdpSocket(interface, CHUNK, transmit=1, unaligned=True).close()
        with BpfProgram.load(give(XdpAction.PASS)):
            pass
    except LinkError as error:
        return str(error)
    return None


class XdpLink(RingSocket):
    """An Ethernet interface of this machine through AF_XDP, as a :class:`~mxwire.link.link.Link`.

    It takes all frames of its EtherType that arrive on its queue: no other socket sees them. Received frames are
    returned in place, and frames built in ``room`` are sent in place. Needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF.
    """

    def __init__(
        self, opened: XdpSocket, ring: XdpReceiveRing, transmit: TransmitQueue, foreign: BpfMap, query: socket.socket
    ) -> None:
        super().__init__(opened.interface, opened.socket, ring)
        self._reports_removal = False
        self._xdp = opened
        self._receive_ring = ring
        self._transmit = transmit
        self._held = ExitStack()
        self._foreign_map = foreign
        self._foreign = 0
        self._attachment: BpfAttachment | None = None
        self._query = query
        """A socket of the same network namespace, because an AF_XDP socket does not support ioctls about interfaces."""
        self.program_mode = XdpMode.AUTO
        """Native or generic, as attached."""
        self.zero_copy = opened.zero_copy
        """True if the driver accesses the memory itself."""
        self.refusals: list[str] = []
        """Reasons why better modes are not used, one line per mode."""

    @classmethod
    def open(
        cls,
        interface: str,
        *,
        queue: int = 0,
        mode: XdpMode | str = XdpMode.AUTO,
        ethertype: int = ETHERTYPE_MXOE,
        wait: Mode | str = Mode.SLEEP,
        chunks: int = CHUNKS,
        chunk: int | None = None,
        promiscuous: bool = False,
    ) -> Self:
        """Open a link on a queue of the interface of that name, in the network namespace of this thread.

        ``mode`` is the mode of the program; ``wait`` is the manner in which ``receive`` waits, SLEEP or SPIN.
        ``chunks`` is the size of the receive queue in chunks of ``chunk`` bytes, a power of two; 256 bytes of a chunk
        have no data. By default ``chunk`` is 2048 if all frames fit into such a chunk, and otherwise 4096.
        ``promiscuous`` returns frames for all destinations. Raises :class:`~mxwire.link.errors.LinkError` if there is
        no such interface, if it is not Ethernet, if its queue is taken or it has a program, and with the capability
        that is missing.
        """
        found = read_interface(interface)
        mode = XdpMode(mode)
        refusals: list[str] = []
        last = LinkError(f"{interface}: no mode")
        for pair in _mode_pairs(found, mode):
            try:
                made = cls._open(found, queue, pair, ethertype, (chunks, chunk), promiscuous)
            except OSError as error:
                refusals.append(f"{pair}: {error.strerror}")
                last = _refused(found, error)
            except UnsupportedModeError as error:
                refusals.append(f"{pair}: {error}")
                last = error
            else:
                made.refusals = refusals
                made.spin = math.inf if Mode(wait) is Mode.SPIN else 0.0
                return made
        raise last

    @classmethod
    def _open(
        cls,
        found: NetworkInterface,
        queue: int,
        pair: _ModePair,
        ethertype: int,
        memory: tuple[int, int | None],
        promiscuous: bool,
    ) -> Self:
        """Open a link in a pair of modes. Raises OSError or UnsupportedModeError if the driver refuses it."""
        with ExitStack() as stack:
            opened = cls._open_with_memory(found, queue, pair, *memory)
            stack.callback(opened.close)
            assert opened.receive is not None
            start = receive_bytes(opened.receive.count, found.mtu + HEADER_SIZE, opened.unaligned, opened.chunk)
            transmit = TransmitQueue(opened, start, start + TRANSMIT_BYTES)
            stack.callback(transmit.close)
            foreign = stack.enter_context(BpfMap.create(MapKind.ARRAY, 8))
            sockets = stack.enter_context(BpfMap.create(MapKind.SOCKETS, entries=queue + 1))
            sockets.update(queue, struct.pack("=I", opened.socket.fileno()))
            address = None if promiscuous else found.address
            program = stack.enter_context(BpfProgram.load(redirect(sockets, foreign, ethertype, address)))
            if promiscuous:
                stack.enter_context(packet_socket.promiscuous_socket(found))
            ring = XdpReceiveRing(opened, found.mtu + HEADER_SIZE)
            stack.callback(ring.close)
            attachment = stack.enter_context(program.attach(found.name, found.index, pair.program))
            query = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC))
            made = cls(opened, ring, transmit, foreign, query)
            made._held = stack.pop_all()
            made._attachment = attachment
            made.program_mode = pair.program
            return made

    @staticmethod
    def _open_with_memory(
        found: NetworkInterface, queue: int, pair: _ModePair, chunks: int, chunk: int | None
    ) -> XdpSocket:
        """Open a socket with ``chunks`` chunks for receiving, or fewer if this process may not lock their memory."""
        if chunk is None:
            # Drivers that access chunks themselves expect pages.
            short = found.mtu + HEADER_SIZE <= SHORT_CHUNK - HEADROOM and not pair.zero_copy
            chunk = SHORT_CHUNK if short else CHUNK
        while True:
            try:
                return _open_socket(found, queue, chunks, RING, zero_copy=pair.zero_copy, chunk=chunk)
            except MemoryLimitError:
                if chunks <= _FEWEST_CHUNKS:
                    raise
                chunks //= 2

    @property
    def mode(self) -> str:
        """Mode of the program and of the socket, like ``generic mode, copying``."""
        return str(_ModePair(self.program_mode, self.zero_copy))

    def room(self, size: int) -> NDArray[np.uint8] | None:
        """Reserve ``size`` bytes in which a caller builds the batch that it sends next, so that nothing is copied; None
        without free memory. Valid until the next call of this link that sends or reserves."""
        return None if self._closed else self._transmit.room(size)

    def send(self, batch: FrameBatch) -> int:
        """Send frames in order; return the number sent. Waits at most some 10 ms for a full queue."""
        return 0 if self._closed else self._transmit.send(batch)

    def send_few(self, frames: list[bytes]) -> int:
        """Send a few single frames, without the cost of a batch."""
        return 0 if self._closed else self._transmit.send_few(frames)

    def _sift(self, arrivals: Arrivals) -> Arrivals:
        return arrivals

    def _poll_ring(self) -> None:
        """Poll for a frame for a few microseconds."""
        if self.zero_copy and self._receive_ring.needs_wakeup:
            self._waiting.poll(0)
        super()._poll_ring()

    def _check(self, now: float) -> None:
        """Detect that the interface is gone, or that the program was detached: the socket reports neither."""
        self._next_check = now + CHECK_EVERY
        if self._attachment is not None and not self._attachment.is_attached():
            self._require_interface(self._query)
            raise LinkError(f"{self.name}: another program has detached the BPF program that receives the frames")

    def _count_drops(self) -> None:
        if not self._closed:
            counters = self._xdp.statistics()
            self._dropped = counters.dropped + counters.ring_full
            self._foreign = int(struct.unpack("=Q", self._foreign_map.lookup(0))[0])

    def statistics(self) -> LinkStatistics:
        """Counters since it was opened."""
        self._count_drops()
        return LinkStatistics(
            received=self._received,
            sent=self._transmit.sent,
            dropped=self._dropped,
            foreign=self._foreign,
            refused=self._transmit.refused,
        )

    def _release(self) -> None:
        self._held.close()


class XdpSender:
    """Sends frames through a queue of an interface by AF_XDP, and receives none.

    It needs CAP_NET_RAW only, and no program: frames that arrive reach other sockets as before. Sending from it and
    receiving from a :class:`~mxwire.link.packet.PacketLink` combine well.
    """

    def __init__(self, opened: XdpSocket) -> None:
        self._xdp = opened
        self.name = opened.interface.name
        """Name under which the interface was opened."""
        self.address = opened.interface.address
        """Ethernet address of the interface, 6 bytes."""
        self.mtu = opened.interface.mtu
        """Largest number of bytes in a frame after its Ethernet header."""
        self._transmit = TransmitQueue(opened, 0, TRANSMIT_BYTES)
        self._closed = False
        self.zero_copy = opened.zero_copy
        """True if the driver accesses the memory itself."""

    @classmethod
    def open(cls, interface: str, *, queue: int = 0, copying: bool = False) -> Self:
        """Open a sender on a queue of the interface of that name, in the network namespace of this thread.

        If ``copying``, the driver does not access the memory itself even if it could. Raises
        :class:`~mxwire.link.errors.LinkError` if there is no such interface, if it is not Ethernet, if the queue is
        taken, and without permission.
        """
        found = read_interface(interface)
        try:
            if not copying:
                with suppress(OSError):
                    return cls(_open_socket(found, queue, 0, RING, zero_copy=True))
            return cls(_open_socket(found, queue, 0, RING, zero_copy=False))
        except OSError as error:
            raise _refused(found, error) from error

    @property
    def mode(self) -> str:
        """Mode of the socket, ``zero-copy`` or ``copying``."""
        return _transfer(self.zero_copy)

    @property
    def sent(self) -> int:
        """Frames sent."""
        return self._transmit.sent

    @property
    def refused(self) -> int:
        """Frames that could not be sent."""
        return self._transmit.refused

    def room(self, size: int) -> NDArray[np.uint8] | None:
        """Reserve memory as :meth:`XdpLink.room` does."""
        return None if self._closed else self._transmit.room(size)

    def hold(self, offset: NDArray[np.int64], length: NDArray[np.int64]) -> bool:
        """Keep frames in the array that ``room`` returned last, for repeated transmission by :meth:`send_held`.

        Return False if the driver needs the frames elsewhere. After True, the sender can send only held frames.
        """
        return not self._closed and self._transmit.hold(offset, length)

    def send_held(self, first: int, end: int) -> int:
        """Send the held frames from ``first`` up to, not including, ``end``; return the number sent."""
        return 0 if self._closed else self._transmit.send_held(first, end)

    def send(self, batch: FrameBatch) -> int:
        """Send frames in order; return the number sent. Waits at most some 10 ms for a full queue."""
        return 0 if self._closed else self._transmit.send(batch)

    def send_few(self, frames: list[bytes]) -> int:
        """Send a few single frames, without the cost of a batch."""
        return 0 if self._closed else self._transmit.send_few(frames)

    def close(self) -> None:
        """Release the queue; closing it again does nothing."""
        if not self._closed:
            self._closed = True
            self._transmit.close()
            self._xdp.close()

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the sender."""
        self.close()


class XdpSendLink(PacketLink):
    """An Ethernet interface through a packet socket, with an AF_XDP socket for the batches that are built in ``room``.

    On a driver that copies, receiving through AF_XDP costs the kernel one copy more, and only large batches are sent
    faster through it. So this link receives through the packet socket: other programs receive the frames too, and it
    needs CAP_NET_RAW only. Its arguments and errors are those of :class:`~mxwire.link.packet.PacketLink`; a queue that
    is taken by another AF_XDP socket is refused.
    """

    def __init__(self, interface: NetworkInterface, opened: socket.socket, ring: ReceiveRing) -> None:
        super().__init__(interface, opened, ring)
        # In zero-copy mode, batches cannot be built in place, and a driver may stop receiving on the queue.
        self._batches = XdpSender.open(interface.name, copying=True)
        self._built: NDArray[np.uint8] | None = None

    def room(self, size: int) -> NDArray[np.uint8] | None:
        """Reserve memory as :meth:`XdpLink.room` does."""
        self._built = self._batches.room(size)
        return self._built

    def send(self, batch: FrameBatch) -> int:
        """Send frames in order; return the number sent. Waits at most some 10 ms for a full queue."""
        built, self._built = self._built, None
        return self._batches.send(batch) if built is not None and batch.buffer is built else super().send(batch)

    def statistics(self) -> LinkStatistics:
        """Counters since it was opened."""
        plain, batches = super().statistics(), self._batches
        return replace(plain, sent=plain.sent + batches.sent, refused=plain.refused + batches.refused)

    def _release(self) -> None:
        self._batches.close()
        super()._release()
