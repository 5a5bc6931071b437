"""LinkKind: the paths of frames into and out of the kernel, and links opened by kind."""

from __future__ import annotations

from enum import StrEnum

from mxwire.errors import MxwireError
from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.link.packet import Mode, PacketLink
from mxwire.link.xdp import XdpLink, XdpSendLink
from mxwire.words import alternatives


class LinkKind(StrEnum):
    """Kinds of links on an interface of this machine."""

    PACKET = "packet"
    """AF_PACKET: shared with all other programs, on any interface."""
    XDP = "xdp"
    """AF_XDP: takes the frames of its queue from all other programs."""
    XDP_SEND = "xdp-send"
    """AF_XDP to send batches, AF_PACKET for all other frames."""


def open_link(
    interface: str,
    kind: LinkKind | str = LinkKind.PACKET,
    *,
    spin: bool = False,
    ethertype: int = ETHERTYPE_MXOE,
    promiscuous: bool = False,
) -> PacketLink | XdpLink:
    """Open a link of a kind; if ``spin``, it polls without sleeping. The other arguments are those of the links.

    Raises :class:`~mxwire.errors.MxwireError` for a kind that does not exist, and
    :class:`~mxwire.link.errors.LinkError` if the interface cannot be used.
    """
    if kind not in list(LinkKind):
        raise MxwireError(f"there is no kind of link {kind!r}: use {alternatives(list(LinkKind))}")
    wait = Mode.SPIN if spin else Mode.SLEEP
    if kind == LinkKind.XDP:
        return XdpLink.open(interface, ethertype=ethertype, wait=wait, promiscuous=promiscuous)
    made = XdpSendLink if kind == LinkKind.XDP_SEND else PacketLink
    return made.open(interface, ethertype=ethertype, mode=wait, promiscuous=promiscuous)
