"""Packet sockets: opened, bound, counted; the errors that a user can do something about."""

from __future__ import annotations

import errno
import socket
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

from mxwire.link import packet_filter
from mxwire.link.errors import LinkError
from mxwire.link.interface import NetworkInterface

SOL_PACKET = 263
EVERY_ETHERTYPE = 0x0003
"""ETH_P_ALL: frames of all EtherTypes, and the ones that this host sends."""
_ADD_MEMBERSHIP, _STATISTICS, _VERSION, _RESERVE = 1, 6, 10, 12
_PROMISCUOUS = 1
_SEND_BUFFER, _SEND_BUFFER_FORCE = socket.SO_SNDBUF, 32
_SEND_BUFFER_BYTES = 8 << 20


def open_socket(
    interface: NetworkInterface, version: int, program: Sequence[packet_filter.FilterStep]
) -> socket.socket:
    """A raw packet socket with a filter and the version of its ring, which hears nothing before it is bound.

    Raises :class:`~mxwire.link.errors.LinkError` when this may not be done, and says how to be allowed.
    """
    if not hasattr(socket, "AF_PACKET"):
        raise LinkError(f"{interface.name}: raw Ethernet frames need Linux, this is {sys.platform}")
    try:
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
    except PermissionError as error:
        raise LinkError(f"{interface.name}: {_how_to_be_allowed()}") from error
    except OSError as error:
        raise LinkError(f"{interface.name}: this kernel gives no packet sockets: {error.strerror}") from error
    opened.setsockopt(SOL_PACKET, _VERSION, version)
    packet_filter.attach(opened, program)
    return opened


def bind(opened: socket.socket, interface: NetworkInterface, ethertype: int) -> None:
    """Let a socket hear an EtherType on an interface, from now on."""
    try:
        opened.bind((interface.name, ethertype))
    except OSError as error:
        gone = error.errno in (errno.ENODEV, errno.ENXIO)
        what = "the interface is gone" if gone else f"cannot be listened to: {error.strerror}"
        raise LinkError(f"{interface.name}: {what}") from error


def want_long_queue(opened: socket.socket) -> None:
    """Let many frames wait in a real interface's queue; without CAP_NET_ADMIN as many as the system allows."""
    try:
        opened.setsockopt(socket.SOL_SOCKET, _SEND_BUFFER_FORCE, _SEND_BUFFER_BYTES)
    except PermissionError:
        opened.setsockopt(socket.SOL_SOCKET, _SEND_BUFFER, _SEND_BUFFER_BYTES)


def leave_room(opened: socket.socket, count: int) -> None:
    """Have the ring that is made next leave some bytes free in front of each frame."""
    opened.setsockopt(SOL_PACKET, _RESERVE, count)


def make_promiscuous(opened: socket.socket, interface: NetworkInterface) -> None:
    """Have the interface pass frames for others too, for as long as the socket is open."""
    opened.setsockopt(SOL_PACKET, _ADD_MEMBERSHIP, struct.pack("iHH8x", interface.index, _PROMISCUOUS, 0))


def take_drops(opened: socket.socket) -> int:
    """Frames that found the ring full since this was last asked."""
    return int(struct.unpack_from("II", opened.getsockopt(SOL_PACKET, _STATISTICS, 12))[1])


def take_error(opened: socket.socket) -> int:
    """The error number that waits at a socket, which is then forgotten; 0: none."""
    return opened.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


def _how_to_be_allowed() -> str:
    """Return the message for a process without the capability."""
    python = Path(sys.executable)
    if python.is_symlink():
        # Of the copies in DIR/bin, this is the one that pip lets scripts run on.
        copy = "python3 -m venv --copies DIR; sudo setcap cap_net_raw+ep DIR/bin/python"
        give = f"grant it to a separate Python ({copy})"
    else:
        give = f"grant it to this Python (sudo setcap cap_net_raw+ep {python})"
    return f"raw Ethernet frames need CAP_NET_RAW: use sudo, or {give}"
