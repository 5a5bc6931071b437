"""Description of the machine and interface of a measurement, for its report."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mxwire import __version__
from mxwire.link.ethtool import read_hardware
from mxwire.link.interface import NetworkInterface


def boot_id() -> str:
    """Identifier of this start of the kernel: programs with the same one share their clocks; empty if unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def host_name() -> str:
    """Name of this machine."""
    return socket.gethostname()


def processor_name() -> str:
    """Model of the processor, as the kernel reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _queues(interface: str, kind: str) -> int | None:
    """Number of queues that the kernel reports for an interface; None if it is not visible here."""
    found = list(Path("/sys/class/net", interface, "queues").glob(f"{kind}-*"))
    return len(found) or None


def machine_record(
    interface: NetworkInterface, via: str, mode: str | None = None, refusals: Sequence[str] = ()
) -> dict[str, Any]:
    """Describe this machine, an interface and its kind of link as an object for JSON.

    ``mode`` is that of AF_XDP, ``refusals`` are the reasons why it is not a better one.
    """
    hardware = read_hardware(interface.name)
    return {
        "host": host_name(),
        "kernel": platform.release(),
        "processor": processor_name(),
        "processors": os.cpu_count(),
        "processors_used": sorted(os.sched_getaffinity(0)),
        "mxwire": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "interface": interface.name,
        "driver": hardware.driver,
        "megabits": hardware.megabits,
        "mtu": interface.mtu,
        "offloads": sorted(name for name, active in hardware.offloads.items() if active),
        "receive_queues": _queues(interface.name, "rx"),
        "transmit_queues": _queues(interface.name, "tx"),
        "via": via,
        "mode": mode,
        "refusals": list(refusals),
    }
