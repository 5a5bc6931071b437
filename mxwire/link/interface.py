"""Network interfaces: number, address, MTU and state, as the kernel reports them; errors for missing ones."""

from __future__ import annotations

import errno
import fcntl
import socket
import struct
import time
from dataclasses import dataclass
from typing import Final

from mxwire.link.errors import LinkError

_GET_NAME = 0x8910
_GET_FLAGS = 0x8913
_GET_MTU = 0x8921
_GET_HARDWARE_ADDRESS = 0x8927
_NAME_BYTES = 16
_UP = 0x1
_RUNNING = 0x40
_POLL_EVERY: Final = 0.05
"""Seconds between reads of the state of an interface that is coming up."""
_ETHERNET = 1
_LOOPBACK = 772
_KINDS = {
    24: "an IEEE 1394",
    32: "an InfiniBand",
    512: "a PPP",
    768: "an IPIP tunnel",
    769: "an IPv6 tunnel",
    776: "a SIT tunnel",
    778: "a GRE tunnel",
    801: "an IEEE 802.11 monitor",
    802: "an IEEE 802.11 monitor",
    803: "an IEEE 802.11 monitor",
    804: "an IEEE 802.15.4",
    823: "a GRE tunnel",
    824: "a netlink monitor",
    65534: "a tunnel (tun)",
}
"""Common names of the kernel's hardware types (ARPHRD), with their article."""


@dataclass(frozen=True, slots=True)
class NetworkInterface:
    """Snapshot of an Ethernet interface."""

    name: str
    index: int
    """Number in the kernel, which does not change with the name."""
    address: bytes
    """Ethernet address, 6 bytes."""
    mtu: int
    """Largest number of bytes after the Ethernet header."""
    up: bool
    """True if it is administratively up."""
    carrier: bool
    """True if it is up and has a carrier."""


def read_interface(name: str) -> NetworkInterface:
    """Read the Ethernet interface ``name``, in the network namespace of this thread.

    Needs no privilege. Raises :class:`~mxwire.link.errors.LinkError` if it does not exist, or is not Ethernet.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as asking:
        try:
            return _read(asking.fileno(), name)
        except (OSError, ValueError) as error:
            # The error of if_nametoindex has no errno.
            if isinstance(error, OSError) and error.errno not in (None, errno.ENODEV, errno.ENXIO):
                raise LinkError(f"{name}: the kernel does not report this interface: {error.strerror}") from error
            raise LinkError(f"there is no interface {name!r} here{_offer()}") from error


def read_settled(name: str, seconds: float) -> NetworkInterface:
    """Read an Ethernet interface once it has a carrier, or is down, or after ``seconds``.

    An interface that was just set up or plugged in has no carrier for a moment. Raises what :func:`read_interface`
    raises.
    """
    end = time.monotonic() + seconds
    found = read_interface(name)
    while found.up and not found.carrier and time.monotonic() < end:
        time.sleep(_POLL_EVERY)
        found = read_interface(name)
    return found


def _read(descriptor: int, name: str) -> NetworkInterface:
    index = socket.if_nametoindex(name)
    kind, address = struct.unpack_from("H6s", _ask(descriptor, _GET_HARDWARE_ADDRESS, name))
    _require_ethernet(name, kind)
    (flags,) = struct.unpack_from("H", _ask(descriptor, _GET_FLAGS, name))
    (mtu,) = struct.unpack_from("i", _ask(descriptor, _GET_MTU, name))
    return NetworkInterface(name, index, address, mtu, bool(flags & _UP), flags & (_UP | _RUNNING) == _UP | _RUNNING)


def _ask(descriptor: int, command: int, name: str) -> bytes:
    """Answer of an ioctl about an interface: the part of struct ifreq after the name."""
    encoded = name.encode()
    if len(encoded) >= _NAME_BYTES:
        raise ValueError("longer than any interface's name")
    return fcntl.ioctl(descriptor, command, encoded.ljust(40, b"\0"))[_NAME_BYTES:]


def exists(descriptor: int, index: int) -> bool:
    """True if an interface with that number still exists, in the network namespace of a socket."""
    try:
        fcntl.ioctl(descriptor, _GET_NAME, struct.pack("16si20x", b"", index))
    except OSError:
        return False
    return True


def _require_ethernet(name: str, kind: int) -> None:
    if kind == _LOOPBACK:
        raise LinkError(
            f"{name}: a loopback interface has no Ethernet address, so hosts on it could not be distinguished; "
            f"to run hosts on one machine, use two network namespaces joined by a veth pair"
        )
    if kind != _ETHERNET:
        what = _KINDS.get(kind, f"a type {kind} (ARPHRD)")
        raise LinkError(f"{name}: this is {what} interface, and MXoE needs Ethernet{_offer()}")


def _offer() -> str:
    """List of the existing interfaces, for error messages."""
    names = [name for _, name in socket.if_nameindex() if name != "lo"]
    return f"; there are {', '.join(sorted(names))}" if names else "; there is none but lo"
