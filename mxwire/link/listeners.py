"""Other receivers of an interface's frames: packet sockets, protocols in the kernel, and XDP programs."""

from __future__ import annotations

import socket
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_NET: Final = Path("/proc/thread-self/net")
_EVERY: Final = 0x0003
_OF_PACKET_SOCKETS: Final = ("packet_rcv", "tpacket_rcv", "packet_rcv_spkt", "packet_rcv_fanout")


_GET_LINK, _NEW_LINK, _REQUEST = 18, 16, 1
"""Types of rtnetlink's messages, and the flag of a request."""
_XDP_ATTRIBUTE, _XDP_ATTACHED, _XDP_PROGRAM = 43, 2, 4
_NESTED_MASK: Final = (1 << 14) - 1
"""Attribute types without the flags of nested ones."""
_MESSAGE, _LINK_INFO = struct.Struct("=IHHII"), struct.Struct("=BxHiII")
_ATTACHED_MODES: Final = {1: "native", 2: "generic", 3: "hardware", 4: "several modes"}


@dataclass(frozen=True, slots=True)
class SocketListener:
    """A packet socket."""

    every_type: bool
    """True if it listens to all EtherTypes, as captures do."""
    process: int | None
    """Process that has it open; None without permission to see it."""
    program: str | None
    user: int
    """User who has opened it."""


@dataclass(frozen=True, slots=True)
class KernelHandler:
    """A kernel function that receives frames of an EtherType."""

    function: str
    """Name of the function, and its module in brackets."""


@dataclass(frozen=True, slots=True)
class AttachedProgram:
    """An XDP program on an interface, which sees frames before all others."""

    mode: str
    number: int | None
    """Its number in the kernel (bpftool prog show id N)."""


def xdp_program(index: int) -> AttachedProgram | None:
    """Return the XDP program on the interface with number ``index``. Raises OSError if the kernel reports none."""
    request = _MESSAGE.pack(_MESSAGE.size + _LINK_INFO.size, _GET_LINK, _REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE) as asking:
        asking.send(request + _LINK_INFO.pack(socket.AF_UNSPEC, 0, index, 0, 0))
        answer = asking.recv(1 << 16)
    if _MESSAGE.unpack_from(answer)[1] != _NEW_LINK:
        raise OSError("rtnetlink reports no such interface")
    attributes = _attributes(answer[_MESSAGE.size + _LINK_INFO.size :])
    program = _attributes(attributes.get(_XDP_ATTRIBUTE, b""))
    mode = _ATTACHED_MODES.get(program.get(_XDP_ATTACHED, b"\0")[0])
    if mode is None:
        return None
    number = program.get(_XDP_PROGRAM)
    return AttachedProgram(mode, None if number is None else int.from_bytes(number, sys.byteorder))


def _attributes(data: bytes) -> dict[int, bytes]:
    """Return the attributes of a netlink message by type."""
    attributes: dict[int, bytes] = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        # A length below that of its own header would never advance.
        if length < 4:
            break
        attributes[kind & _NESTED_MASK] = data[4:length]
        data = data[-(-length // 4) * 4 :]
    return attributes


def packet_sockets(index: int, ethertype: int, *, not_of: int | None = None) -> list[SocketListener]:
    """List the packet sockets that receive an EtherType on the interface with number ``index`` or on all interfaces,
    except those of the user ``not_of``, one per process, which may have several hosts.

    Raises OSError if the kernel does not report them.
    """
    sockets = []
    for line in (_NET / "packet").read_text().splitlines()[1:]:
        words = line.split()
        protocol, interface, user, inode = int(words[3], 16), int(words[4]), int(words[7]), words[8]
        if interface in (0, index) and protocol in (_EVERY, ethertype) and user != not_of:
            process = _owner(inode)
            found = SocketListener(protocol == _EVERY, process, program_of(process), user)
            if process is None or found not in sockets:
                sockets.append(found)
    return sockets


def kernel_handlers(name: str, ethertype: int) -> list[KernelHandler]:
    """List the kernel functions other than packet sockets that receive an EtherType from an interface."""
    handlers = []
    for line in (_NET / "ptype").read_text().splitlines()[1:]:
        handler = _handler(line, name)
        if handler is not None and line.startswith(f"{ethertype:04x} "):
            handlers.append(handler)
    return handlers


def _handler(line: str, name: str) -> KernelHandler | None:
    """Kernel function of a line of /proc/net/ptype; None for another interface or a packet socket."""
    # EtherType, interface or spaces, function and perhaps its module.
    device, _, function = line[5:].partition(" ")
    function = function.strip()
    if device not in ("", name) or not function or function.split()[0] in _OF_PACKET_SOCKETS:
        return None
    return KernelHandler(function)


def master_of(name: str) -> str | None:
    """Bridge or bond that an interface belongs to; None without one."""
    try:
        return Path("/sys/class/net", name, "master").resolve(strict=True).name
    except OSError:
        return None


def _owner(inode: str) -> int | None:
    """Process that has a socket open; None if it belongs to another user, or has ended."""
    target = f"socket:[{inode}]"
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(str(each.readlink()) == target for each in (process / "fd").iterdir()):
                return int(process.name)
        except OSError:
            continue
    return None


def program_of(process: int | None) -> str | None:
    """Name of the program that a process runs; None if it has ended, or without permission to see it."""
    if process is None:
        return None
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return None
