"""Packet sockets: opening, binding, options and counters, with errors that name a remedy."""

from __future__ import annotations

import errno
import socket
import struct
import sys
from collections.abc import Sequence

from mxwire.link import packet_filter
from mxwire.link.errors import LinkError
from mxwire.link.interface import NetworkInterface

SOL_PACKET = 263
EVERY_ETHERTYPE = 0x0003
"""ETH_P_ALL: frames of all EtherTypes, including those sent by this host."""
_ADD_MEMBERSHIP, _STATISTICS, _VERSION, _RESERVE, _KERNEL_HEADER = 1, 6, 10, 12, 15
_PROMISCUOUS = 1
_SEND_BUFFER, _SEND_BUFFER_FORCE = socket.SO_SNDBUF, 32
_SEND_BUFFER_BYTES = 8 << 20


def open_socket(
    interface: NetworkInterface, version: int, program: Sequence[packet_filter.FilterStep]
) -> socket.socket:
    """Open a raw packet socket with a filter and a ring version; it receives no frames before it is bound.

    Raises :class:`~mxwire.link.errors.LinkError` without permission, with instructions to get it.
    """
    opened = _raw_socket(interface)
    opened.setsockopt(SOL_PACKET, _VERSION, version)
    packet_filter.attach(opened, program)
    return opened


def _raw_socket(interface: NetworkInterface) -> socket.socket:
    if not hasattr(socket, "AF_PACKET"):
        raise LinkError(f"{interface.name}: raw Ethernet frames need Linux, this is {sys.platform}")
    try:
        return socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
    except PermissionError as error:
        raise LinkError(f"{interface.name}: {permission_advice()}") from error
    except OSError as error:
        raise LinkError(f"{interface.name}: cannot open a packet socket: {error.strerror}") from error


def bind(opened: socket.socket, interface: NetworkInterface, ethertype: int) -> None:
    """Receive an EtherType on an interface from now on."""
    try:
        opened.bind((interface.name, ethertype))
    except OSError as error:
        gone = error.errno in (errno.ENODEV, errno.ENXIO)
        what = "the interface is gone" if gone else f"cannot receive frames: {error.strerror}"
        raise LinkError(f"{interface.name}: {what}") from error


def enlarge_send_queue(opened: socket.socket) -> None:
    """Enlarge the send queue; without CAP_NET_ADMIN up to the system's limit."""
    try:
        opened.setsockopt(socket.SOL_SOCKET, _SEND_BUFFER_FORCE, _SEND_BUFFER_BYTES)
    except PermissionError:
        opened.setsockopt(socket.SOL_SOCKET, _SEND_BUFFER, _SEND_BUFFER_BYTES)


def reserve_headroom(opened: socket.socket, count: int) -> None:
    """Reserve ``count`` bytes before each frame in the ring that is made next."""
    opened.setsockopt(SOL_PACKET, _RESERVE, count)


def make_promiscuous(opened: socket.socket, interface: NetworkInterface) -> None:
    """Make the interface promiscuous for as long as the socket is open."""
    opened.setsockopt(SOL_PACKET, _ADD_MEMBERSHIP, struct.pack("iHH8x", interface.index, _PROMISCUOUS, 0))


def promiscuous_socket(interface: NetworkInterface) -> socket.socket:
    """Open a socket that receives nothing, and makes the interface promiscuous until it is closed."""
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
    make_promiscuous(opened, interface)
    return opened


def take_drops(opened: socket.socket) -> int:
    """Return the number of frames that found the ring full since the last call."""
    return int(struct.unpack_from("II", opened.getsockopt(SOL_PACKET, _STATISTICS, 12))[1])


def take_error(opened: socket.socket) -> int:
    """Return and clear the pending error number of a socket; 0: none."""
    return opened.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


def whole_sender(interface: NetworkInterface) -> socket.socket:
    """Open a socket that receives nothing, and expects a header for the kernel (struct virtio_net_hdr) before each
    frame that is sent."""
    opened = _raw_socket(interface)
    try:
        opened.setsockopt(SOL_PACKET, _KERNEL_HEADER, 1)
        enlarge_send_queue(opened)
        bind(opened, interface, 0)
    except BaseException:
        opened.close()
        raise
    return opened


def permission_advice() -> str:
    """Return the message for a process without the capability."""
    # Not setcap alone: everyone may run an ordinary Python, and would read and forge all frames with it.
    own = "sudo setpriv --reuid $USER --regid $(id -g) --init-groups --inh-caps +net_raw --ambient-caps +net_raw $SHELL"
    return f"raw Ethernet frames need CAP_NET_RAW: use sudo, or a shell with it ({own})"
