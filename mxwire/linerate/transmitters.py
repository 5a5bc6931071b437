"""Transmitters: a packet socket or an AF_XDP socket, each with its generator; live frames are in live_frames.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from mxwire.linerate.generator import FrameGenerator, GeneratorPlan, GeneratorResult
from mxwire.linerate.live_frames import KernelTransmitter
from mxwire.linerate.slots import FrameSlots
from mxwire.linerate.template import FrameTemplate
from mxwire.link import Link, Mode, PacketLink
from mxwire.link.bpf import XdpMode
from mxwire.link.umem import SHORT_CHUNK
from mxwire.link.xdp import XdpLink, XdpSender
from mxwire.link.xdp_transmit import TRANSMIT_BYTES

SINK_RING_BYTES: Final = 32 << 20
"""Default size of the receive ring of a sink."""
_SPIN: Final = 0.01
"""Seconds for which a sink polls before it sleeps: at high rates, waking it for each frame would cost the sender more
than the frame itself.
"""
_XDP_BATCH: Final = 256
"""Frames per batch of AF_XDP: its cost per frame is so small that larger batches still pay off."""
_CHUNKS_MAXIMUM: Final = 1 << 16


class Via(StrEnum):
    """Kinds of links: the interface by which frames enter and leave the kernel."""

    PACKET = "packet"
    """AF_PACKET: any interface, needs CAP_NET_RAW."""
    XDP = "xdp"
    """AF_XDP: takes a queue of the interface for itself."""
    KERNEL = "kernel"
    """Live frames made by the kernel: only for sending."""


class RunningGenerator(Protocol):
    """A generator for one run."""

    stopped: bool
    """Set to end the run soon; a signal handler may set it."""

    @property
    def result(self) -> GeneratorResult:
        """The run so far; valid at any time, also after an error."""

    def run(self, progress: Callable[[GeneratorResult], None] | None = None) -> GeneratorResult:
        """Send until the plan is fulfilled; call ``progress`` some times per second."""


class Transmitter(Protocol):
    """The sending side of an interface."""

    @property
    def name(self) -> str:
        """Name of the interface."""

    @property
    def mode(self) -> str | None:
        """Mode of AF_XDP; None for others."""

    def generator(
        self, templates: Sequence[FrameTemplate], plan: GeneratorPlan, *, streams: int, run: int
    ) -> RunningGenerator:
        """Prepare a run."""


def open_sink_link(
    interface: str, via: Via = Via.PACKET, ring_bytes: int = SINK_RING_BYTES, mode: XdpMode | str = XdpMode.AUTO
) -> PacketLink | XdpLink:
    """Open a link for receiving, with a receive ring of about ``ring_bytes``; ``mode`` is that of AF_XDP's program.

    A packet socket uses a ring of blocks, which packs short frames: it holds a hundred times as many of them as a ring
    of slots, so that the sink loses no frames while it is not scheduled. Raises :class:`~mxwire.link.errors.LinkError`
    if that is not possible here.
    """
    link: PacketLink | XdpLink
    if via is Via.XDP:
        # Frames of 9000 bytes take 10% longer than with long chunks, those of up to 1792 a quarter to a third less.
        chunks = min(1 << (max(ring_bytes // SHORT_CHUNK, 1) - 1).bit_length(), _CHUNKS_MAXIMUM)
        link = XdpLink.open(interface, mode=mode, chunks=chunks, chunk=SHORT_CHUNK)
    else:
        link = PacketLink.open(interface, mode=Mode.BULK, ring_bytes=ring_bytes)
    link.spin = _SPIN
    return link


@contextmanager
def open_transmitter(own: Link, via: Via = Via.PACKET) -> Iterator[Transmitter]:
    """Open the sending side of a generator whose control messages pass through ``own``.

    Raises :class:`~mxwire.link.errors.LinkError` with the reason if this kind of link is not possible here.
    """
    if via is Via.PACKET:
        yield LinkTransmitter(own)
    elif via is Via.XDP:
        with XdpSender.open(own.name) as sender:
            yield XdpTransmitter(sender)
    else:
        yield KernelTransmitter(own.name)


class LinkTransmitter:
    """Sends through a link."""

    mode = None

    def __init__(self, link: Link) -> None:
        self._link = link

    @property
    def name(self) -> str:
        """Name of the interface."""
        return self._link.name

    def generator(
        self, templates: Sequence[FrameTemplate], plan: GeneratorPlan, *, streams: int, run: int
    ) -> FrameGenerator:
        """Prepare a run."""
        return FrameGenerator(self._link, FrameSlots(templates, streams=streams, run=run), plan)


class XdpTransmitter:
    """Sends through AF_XDP. The slots lie in the memory that is shared with the kernel, unless the driver refuses."""

    def __init__(self, sender: XdpSender) -> None:
        self._sender = sender
        self._shared = False

    @property
    def name(self) -> str:
        """Name of the interface."""
        return self._sender.name

    @property
    def mode(self) -> str:
        """Mode of the socket."""
        return self._sender.mode

    def generator(
        self, templates: Sequence[FrameTemplate], plan: GeneratorPlan, *, streams: int, run: int
    ) -> FrameGenerator:
        """Prepare a run."""
        # Half of the memory: slots in use stay in the cache of the CPU.
        slots = FrameSlots(templates, streams=streams, run=run, room=self._room, most_bytes=TRANSMIT_BYTES // 2)
        held = self._shared and self._sender.hold(slots.offset, slots.length)
        if not held:
            return FrameGenerator(self._sender, slots, plan)
        return FrameGenerator(self._sender, slots, plan, send=self._sender.send_held, batch=_XDP_BATCH)

    def _room(self, count: int) -> NDArray[np.uint8]:
        found = self._sender.room(count)
        self._shared = found is not None
        if found is None:
            return np.zeros(count, np.uint8)
        found[:] = 0
        return found
