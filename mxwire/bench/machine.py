"""The machine of a study: conditions of a recording, and warnings beforehand about circumstances that spoil it."""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import mxwire
from mxwire import __version__
from mxwire.bench.processors import available
from mxwire.linerate.machine import processor_name
from mxwire.link.ethtool import read_hardware
from mxwire.link.interface import read_interface
from mxwire.native import is_compiled
from mxwire.words import count_of

_GET_ADDRESS: Final = 0x8915
_BUSY: Final = 0.3
"""Load per processor above which a machine counts as busy."""


def is_virtual() -> bool:
    """Return whether the processor reports a hypervisor."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return " hypervisor" in flags


def machine_conditions() -> dict[str, Any]:
    """The conditions that do not depend on an interface."""
    return {
        "processor": processor_name(),
        "processors": len(available()),
        "virtual_machine": is_virtual(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "mxwire": __version__,
    }


def interface_record(name: str) -> dict[str, Any]:
    """The conditions of an interface in the namespace of this thread. Raises LinkError if there is none."""
    interface, hardware = read_interface(name), read_hardware(name)
    coalescing = hardware.coalescing
    return {
        "address": interface.address.hex(),
        "mtu": interface.mtu,
        "driver": hardware.driver or "",
        "offloads": sorted(each for each, active in hardware.offloads.items() if active),
        "coalescing": None if coalescing is None else float(coalescing.microseconds),
        "ip": ip_address(name),
        "compiled": is_compiled(),
        "host": socket.gethostname(),
        "processors": len(available()),
    }


def ip_address(interface: str) -> str | None:
    """IPv4 address of an interface; None if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            answer = fcntl.ioctl(asking.fileno(), _GET_ADDRESS, struct.pack("256s", interface.encode()[:15]))
        except OSError:
            return None
    return socket.inet_ntoa(answer[20:24])


def own_folder() -> Path:
    """The folder of the mxwire that runs here."""
    return Path(mxwire.__file__).parents[1]


def compiled_folder() -> Path | None:
    """The folder of a compiled mxwire that equals this one (``make compiled``); None if there is none.

    A folder whose source differs is out of date, and not used.
    """
    package = Path(mxwire.__file__).parent
    folder = package.parent / "build" / "compiled"
    if not (folder / "digest").exists():
        return None
    for path in package.rglob("*.py"):
        other = folder / "mxwire" / path.relative_to(package)
        if not other.exists() or other.read_bytes() != path.read_bytes():
            return None
    return folder


def warnings() -> Iterator[str]:
    """Circumstances of this machine that spoil live measurements, one sentence each."""
    count = len(available())
    if count < 2:
        yield "there is one processor: both sides share it, so times contain the scheduler's; polling sides are slowest"
    load = os.getloadavg()[0]
    if load > _BUSY * count:
        yield f"the machine is busy (load {load:.1f} on {count_of(count, 'processor')}): orderings may remain undecided"
    if is_virtual():
        yield "this is a virtual machine: its host may take the processors away unseen"


def live_refusal() -> str | None:
    """The reason why namespaces cannot be created here; None if they probably can."""
    if os.geteuid() != 0:
        return "live studies create network namespaces, which needs root: run with sudo"
    return None if shutil.which("ip") else "live studies need the program ip (package iproute2)"
