"""Links of generators and sinks: a packet socket, an AF_XDP socket, or live frames made by the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Final

from mxwire.linerate.generator import FrameTransmitter
from mxwire.link import PacketLink

SINK_RING_BYTES: Final = 32 << 20
"""Receive ring of a sink: some milliseconds of frames, for moments in which the sink does not have the processor."""
_SPIN: Final = 0.2
"""Seconds for which a sink polls before it sleeps: to wake it for each frame would cost the sender more than the
frame."""


class Via(StrEnum):
    """Ways of a frame into and out of the kernel."""

    PACKET = "packet"
    """AF_PACKET: any interface, needs CAP_NET_RAW."""
    XDP = "xdp"
    """AF_XDP: takes a queue of the interface for itself."""
    KERNEL = "kernel"
    """Live frames made by the kernel: only for sending, and only as fast as possible."""


def open_sink_link(interface: str, via: Via = Via.PACKET, ring_bytes: int = SINK_RING_BYTES) -> PacketLink:
    """Open a link to receive on. Raises :class:`~mxwire.link.errors.LinkError` if that is not possible here."""
    link = PacketLink.open(interface, ring_bytes=ring_bytes)
    link.spin = _SPIN
    return link


@contextmanager
def open_transmitter(own: PacketLink, via: Via = Via.PACKET) -> Iterator[FrameTransmitter]:
    """Open the sending side of a generator whose control link is ``own``."""
    yield own
